"""The flags that a program knows, read from its source: calls of add_argument, and annotated fields."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from watchd.correction.values import UNKNOWN, Module, Unknown, Value, known

_SWITCHES = frozenset(("store_true", "store_false", "store_const", "count", "help", "version"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag.

    names     as they are typed, the one to show first
    dest      the attribute that it sets
    kind      `value`, `on` (a switch that sets True), `off` (one that sets False), `either` (--x and --no-x)
    type      name of the type of its value, empty where the source does not say
    default   the attribute's value without it, unknown where the source does not say it plainly
    choices   the values that it takes, or None for any
    many      True where it takes any number of words
    required  True where the program refuses to start without it
    metavar   what its usage calls the value
    """

    names: tuple[str, ...]
    dest: str
    kind: str = "value"
    type: str = ""
    default: Value = UNKNOWN
    choices: tuple[Value, ...] | None = None
    many: bool = False
    required: bool = False
    metavar: str = ""

    @property
    def shown(self) -> str:
        """The name to show: the first with two dashes."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """Every flag of a program; `partial` where its command has flags that the source at hand does not define."""

    flags: tuple[Flag, ...] = ()
    by_name: Mapping[str, Flag] = field(default_factory=dict)
    by_dest: Mapping[str, Flag] = field(default_factory=dict)
    partial: bool = False
    also: Mapping[str, str] = field(default_factory=dict)
    """attributes to the name under which the parser leaves their value, where the program copies it to another"""

    @property
    def read(self) -> bool:
        """Whether the program's flags are known: any was found, and not only a part of them."""
        return bool(self.flags) and not self.partial


Evaluate = Callable[[ast.expr, Module], Value]


def read(modules: Sequence[Module], evaluate: Evaluate) -> Known:
    """The flags in these files."""
    found: dict[str, Flag] = {}
    by_name: dict[str, Flag] = {}
    for flag in (flag for module in modules for flag in _of(module, evaluate)):
        known_ = found.get(flag.dest)
        merged = flag if known_ is None else replace(known_, names=tuple(dict.fromkeys((*known_.names, *flag.names))))
        if known_ is not None and known_.kind != flag.kind and {known_.kind, flag.kind} == {"on", "off"}:
            by_name |= dict.fromkeys(flag.names, flag)  # --x and --no-x as two calls
            continue
        found[flag.dest] = merged
        by_name |= dict.fromkeys(merged.names, merged)
    also: dict[str, str] = {}
    for attribute, dest in _copied(modules):
        held = found.get(dest)
        if held is not None and attribute not in found:
            # args.ranks = args.tensor_parallel_size: the checks read the one, the flag sets the other.
            del found[dest]
            found[attribute] = replace(held, dest=attribute)
            also[attribute] = dest
            by_name |= dict.fromkeys(held.names, found[attribute])
    return Known(flags=tuple(found.values()), by_name=by_name, by_dest=found, also=also)


def _copied(modules: Sequence[Module]) -> Iterator[tuple[str, str]]:
    """`args.a = args.b`: the attribute `a` is set by the flag whose value the parser leaves in `b`."""
    for module in modules:
        for node in ast.walk(module.tree):
            match node:
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id=one), attr=attribute)],
                    value=ast.Attribute(value=ast.Name(id=other), attr=dest),
                ) if one == other != "self":
                    yield attribute, dest


def _of(module: Module, evaluate: Evaluate) -> Iterator[Flag]:
    adders = {"add_argument"}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute) and node.value.attr == "add_argument":
            adders |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    annotations = _annotations(module, evaluate)
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _called(node.func) in adders:
            flag = _argument(node, module, evaluate, annotations)
            if flag is not None:
                yield flag
        elif isinstance(node, ast.ClassDef):
            yield from _annotated(node, module, evaluate)


def _called(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def _argument(
    node: ast.Call, module: Module, evaluate: Evaluate, fields: Mapping[str, tuple[str, Value]]
) -> Flag | None:
    names = tuple(part.value for part in node.args if isinstance(part, ast.Constant) and isinstance(part.value, str))
    if not names or not all(name.startswith("-") for name in names):
        return None
    words = {word.arg: word.value for word in node.keywords if word.arg}
    dest = _text(words.get("dest")) or next((n for n in names if n.startswith("--")), names[0])
    dest = dest.lstrip("-").replace("-", "_")
    action = _text(words.get("action")) or _name_of(words.get("action"))
    kind = "value"
    default: Value = UNKNOWN if "default" in words else None
    if "default" in words:
        default = evaluate(words["default"], module)
    elif any(word.arg is None for word in node.keywords):
        default = UNKNOWN
    hint, of_field = fields.get(dest, ("", Unknown(frozenset({dest}))))
    if not known(default):
        default = of_field
    if action == "store_true":
        kind, default = "on", False if "default" not in words else default
    elif action == "store_false":
        kind, default = "off", True if "default" not in words else default
    elif "BooleanOptional" in action:
        kind = "either"
    elif action in _SWITCHES:
        kind = "on"
    nargs = _constant(words.get("nargs"))
    choices = evaluate(words["choices"], module) if "choices" in words else None
    return Flag(
        names=names,
        dest=dest,
        kind=kind,
        type=_name_of(words.get("type")) if "type" in words else ("str" if kind == "value" and not hint else hint),
        default=default,
        choices=tuple(choices) if isinstance(choices, list | tuple | dict | set) else None,
        many=nargs in ("*", "+", "...") or (isinstance(nargs, int) and nargs > 1) or action in ("append", "extend"),
        required=_constant(words.get("required")) is True,
        metavar=_text(words.get("metavar")),
    )


def _annotations(module: Module, evaluate: Evaluate) -> dict[str, tuple[str, Value]]:
    """Fields of the classes of a file: the type of each, and its default."""
    found: dict[str, tuple[str, Value]] = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            for part in node.body:
                if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and part.value is not None:
                    found.setdefault(part.target.id, (_plain_type(part.annotation), evaluate(part.value, module)))
    return found


def _annotated(cls: ast.ClassDef, module: Module, evaluate: Evaluate) -> Iterator[Flag]:
    """`name: Annotated[int, Opt("…", cli_name="--n", aliases=("--m",))] = 1`."""
    for node in cls.body:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        marked = _metadata(node.annotation)
        if marked is None:
            continue
        hint, mark = marked
        words = {word.arg: word.value for word in mark.keywords if word.arg}
        if _constant(words.get("no_cli")) is True:
            continue
        own = _text(words.get("cli_name")) or "--" + node.target.id.replace("_", "-")
        aliases = evaluate(words["aliases"], module) if "aliases" in words else ()
        more = tuple(a for a in aliases if isinstance(a, str)) if isinstance(aliases, list | tuple) else ()
        type_ = _plain_type(hint)
        choices = evaluate(words["choices"], module) if "choices" in words else _literals(hint)
        yield Flag(
            names=(own, *more),
            dest=node.target.id,
            kind="on" if type_ == "bool" else "value",
            type=type_,
            default=UNKNOWN if node.value is None else evaluate(node.value, module),
            choices=tuple(choices) if isinstance(choices, list | tuple) and choices else None,
            many=isinstance(hint, ast.Subscript) and _name_of(hint.value).lower() == "list",
            required=node.value is None,
        )


def _metadata(annotation: ast.expr) -> tuple[ast.expr, ast.Call] | None:
    if not (isinstance(annotation, ast.Subscript) and _name_of(annotation.value) in ("Annotated", "A")):
        return None
    if not isinstance(annotation.slice, ast.Tuple) or len(annotation.slice.elts) < 2:
        return None
    hint, *marks = annotation.slice.elts
    mark = next((mark for mark in marks if isinstance(mark, ast.Call)), None)
    return None if mark is None else (hint, mark)


def _plain_type(hint: ast.expr) -> str:
    """`Optional[int]`, `int | None`, `Annotated[int, …]` are all `int`; a Literal of strings is `str`."""
    match hint:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=owner, slice=inner):
            outer = _name_of(owner)
            if outer in ("Optional", "Annotated", "A", "Union"):
                parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                return _plain_type(parts[0])
            return "str" if outer == "Literal" else outer.lower()
        case ast.BinOp(left=left, right=right):
            return _plain_type(left) if not _is_none(left) else _plain_type(right)
        case ast.Constant(value=str() as text):
            return text.removeprefix("Optional[").rstrip("]").partition("|")[0].strip()
        case _:
            return _name_of(hint)


def _literals(hint: ast.expr) -> tuple[Value, ...]:
    found: list[Value] = []
    for node in ast.walk(hint):
        if isinstance(node, ast.Subscript) and _name_of(node.value) == "Literal":
            found += [part.value for part in ast.walk(node.slice) if isinstance(part, ast.Constant)]
    return tuple(found)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _name_of(node: ast.expr | None) -> str:
    """The last name of an expression: `json.loads` is `loads`."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _text(node: ast.expr | None) -> str:
    value = _constant(node)
    return value if isinstance(value, str) else ""


def _constant(node: ast.expr | None) -> Value:
    return node.value if isinstance(node, ast.Constant) else None
