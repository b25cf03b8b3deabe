"""Calls, classes and assignments of the followed source."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Protocol

from watchd.correction import plain
from watchd.correction.expressions import Expressions, Scope
from watchd.correction.values import (
    UNKNOWN,
    Builtin,
    Cls,
    Func,
    Method,
    Obj,
    Unknown,
    Value,
    known,
    truth,
    unknown,
)
from watchd.correction.world import MAX_DEPTH, RaisedError, TooLongError

_PARSES = frozenset(("parse_args", "parse_known_args", "parse_intermixed_args"))
_BASES = 8


class Body(Protocol):
    """Runs the statements of a function."""

    def __call__(self, func: Func, names: dict[str, Value]) -> Value:
        """The value that it returns."""


class Calls:
    """Follows calls; `arguments` makes the object that a parser of the command line gives."""

    def __init__(self, expressions: Expressions, body: Body, arguments: Callable[[], dict[str, Value]]) -> None:
        self.expressions = expressions
        self.world = expressions.world
        self.body = body
        self.arguments = arguments
        self._namespace: Obj | None = None
        self.given: frozenset[str] = frozenset()

    def namespace(self) -> Obj:
        """What parsing the command line gives; one object, however often it is parsed."""
        if self._namespace is None:
            self._namespace = self.world.add(Obj(attrs=self.arguments(), arguments=True, given=self.given))
        return self._namespace

    def call(self, node: ast.Call, scope: Scope) -> Value:
        """The value of a call. Raises RaisedError, TooLongError."""
        eval_ = self.expressions.eval
        target = eval_(node.func, scope)
        if isinstance(target, Builtin):
            special = self._special(target.name, node, scope)
            if special is not NotImplemented:
                return special
        args = self._positional(node, scope)
        named = {word.arg: self._plain(eval_(word.value, scope)) for word in node.keywords if word.arg}
        for word in node.keywords:
            if word.arg is None:
                more = self._plain(eval_(word.value, scope))
                if isinstance(more, dict):
                    named |= {str(name): value for name, value in more.items()}
                else:
                    named[""] = more
        return self._apply(target, args, named, node, scope)

    def _positional(self, node: ast.Call, scope: Scope) -> list[Value]:
        args: list[Value] = []
        for part in node.args:
            if isinstance(part, ast.Starred):
                more = self.expressions.items(self._plain(self.expressions.eval(part.value, scope)))
                args += more if more is not None else [UNKNOWN]
            else:
                args.append(self._plain(self.expressions.eval(part, scope)))
        return args

    def _apply(self, target: Value, args: list[Value], named: dict[str, Value], node: ast.Call, scope: Scope) -> Value:
        match target:
            case Func():
                return self.invoke(target, args, named)
            case Cls():
                return self.make(target, args, named)
            case Method(on=Unknown() | Obj(), name=name) if name in _PARSES:
                made = self.namespace()
                return (made, []) if name == "parse_known_args" else made
            case Method(on=on, name=name) if not isinstance(on, Unknown):
                changed = self._changed(on, name, args, node, scope)
                found = changed if changed is not NotImplemented else plain.method(on, name, args)
                return unknown(on, *args) if found is NotImplemented else found
            case Method(on=on):
                return unknown(on, *args)
            case Builtin(name=name):
                if name == "divmod" and len(args) == 2 and all(isinstance(arg, int) for arg in args):
                    self.world.divided.append((args[0], args[1]))  # type: ignore[arg-type]
                found = NotImplemented if named else plain.call(name, args)
                return unknown(*args) if found is NotImplemented else found
            case _:
                return unknown(target, *args)

    def _changed(self, on: Value, name: str, args: list[Value], node: ast.Call, scope: Scope) -> Value:
        """`names.append(x)`: the name stands for a new list from here on."""
        more: Value = NotImplemented
        if isinstance(on, list) and name == "append" and len(args) == 1:
            more = [*on, args[0]]
        elif isinstance(on, list) and name == "extend" and len(args) == 1 and isinstance(args[0], list | tuple):
            more = [*on, *args[0]]
        elif isinstance(on, dict) and name == "update" and len(args) == 1 and isinstance(args[0], dict):
            more = {**on, **args[0]}
        if more is NotImplemented or not isinstance(node.func, ast.Attribute):
            return NotImplemented
        self.assign(node.func.value, more, scope)
        return None

    def _special(self, name: str, node: ast.Call, scope: Scope) -> Value:
        """What needs its arguments unevaluated, or objects: getattr, isinstance, any, vars, fields."""
        short = name.rpartition(".")[2]
        run: Mapping[str, Callable[[ast.Call, Scope], Value]] = {
            "getattr": self._getattr, "hasattr": self._hasattr, "setattr": self._setattr, "vars": self._vars,
            "isinstance": self._isinstance, "any": self._any, "all": self._any, "fields": self._fields,
            "field": self._field, "super": self._super,
        }  # fmt: skip
        chosen = run.get(short)
        if chosen is None or ("." in name and short not in ("fields", "field")):
            return NotImplemented
        return chosen(node, scope) if node.args or short in ("field", "super") else NotImplemented

    def _getattr(self, node: ast.Call, scope: Scope) -> Value:
        args = self._positional(node, scope)
        on, name = args[0], args[1] if len(args) > 1 else UNKNOWN
        if not isinstance(name, str):
            return unknown(*args)
        if isinstance(on, Obj) and len(args) > 2 and name not in on.attrs and self._absent(on, name):
            return args[2]
        return self._plain(self.expressions.attribute(on, name, scope))

    def _absent(self, on: Obj, name: str) -> bool:
        """Whether an object of the arguments surely has no such attribute."""
        return on.arguments and on.cls is None and not name.startswith("_")

    def _hasattr(self, node: ast.Call, scope: Scope) -> Value:
        args = self._positional(node, scope)
        on, name = args[0], args[1] if len(args) > 1 else UNKNOWN
        if isinstance(on, Obj) and isinstance(name, str):
            return True if name in on.attrs else (False if self._absent(on, name) else UNKNOWN)
        return UNKNOWN

    def _setattr(self, node: ast.Call, scope: Scope) -> Value:
        args = self._positional(node, scope)
        if len(args) == 3 and isinstance(args[0], Obj) and isinstance(args[1], str):
            args[0].attrs[args[1]] = args[2]
        return None

    def _vars(self, node: ast.Call, scope: Scope) -> Value:
        on = self._plain(self.expressions.eval(node.args[0], scope))
        return dict(on.attrs) if isinstance(on, Obj) else unknown(on)

    def _isinstance(self, node: ast.Call, scope: Scope) -> Value:
        value = self._plain(self.expressions.eval(node.args[0], scope))
        kinds = node.args[1] if len(node.args) > 1 else None
        parts = kinds.elts if isinstance(kinds, ast.Tuple) else [kinds]
        names = [part.id if isinstance(part, ast.Name) else "" for part in parts]
        found = plain.is_instance(value, names)
        return unknown(value) if found is None else found

    def _any(self, node: ast.Call, scope: Scope) -> Value:
        stop = isinstance(node.func, ast.Name) and node.func.id == "any"
        part = node.args[0]
        if isinstance(part, ast.GeneratorExp | ast.ListComp):
            items: list[Value] | None = self.expressions.each(part, scope)
        else:
            items = self.expressions.items(self._plain(self.expressions.eval(part, scope)))
        if items is None:
            return UNKNOWN
        found = [truth(item) for item in items]
        if stop in found:
            return stop
        return unknown(*items) if None in found else not stop

    def _fields(self, node: ast.Call, scope: Scope) -> Value:
        """`dataclasses.fields(cls)`: objects with a name."""
        on = self.expressions.eval(node.args[0], scope)
        cls = on.cls if isinstance(on, Obj) else on
        if not isinstance(cls, Cls):
            return UNKNOWN
        return [self.world.add(Obj(attrs={"name": name})) for name in fields_of(cls)]

    def _field(self, node: ast.Call, scope: Scope) -> Value:
        for word in node.keywords:
            if word.arg == "default":
                return self.expressions.eval(word.value, scope)
            if word.arg == "default_factory" and isinstance(word.value, ast.Name) and word.value.id in ("list", "dict"):
                return [] if word.value.id == "list" else {}
        return UNKNOWN

    def _super(self, node: ast.Call, scope: Scope) -> Value:  # noqa: ARG002
        return UNKNOWN

    def invoke(self, func: Func, args: list[Value], named: Mapping[str, Value]) -> Value:
        """Run a function of the source. Raises RaisedError, TooLongError."""
        if self.world.depth >= MAX_DEPTH:
            raise TooLongError
        spec = func.node.args
        names = [part.arg for part in (*spec.posonlyargs, *spec.args)]
        given = [*([func.bound] if func.bound is not None else []), *args]
        here: dict[str, Value] = dict(zip(names, given, strict=False))
        if spec.vararg:
            here[spec.vararg.arg] = tuple(given[len(names) :])
        more = [part.arg for part in spec.kwonlyargs]
        here |= {name: value for name, value in named.items() if name in names or name in more}
        if spec.kwarg:
            here[spec.kwarg.arg] = {name: v for name, v in named.items() if name and name not in here}
        own = Scope(func.module, {})
        defaults = dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True))
        defaults |= {name: part for name, part in zip(more, spec.kw_defaults, strict=True) if part is not None}
        for name in (*names, *more):
            if name not in here:
                here[name] = self.expressions.eval(defaults[name], own) if name in defaults else UNKNOWN
        self.world.depth += 1
        try:
            return self.body(func, here)
        finally:
            self.world.depth -= 1

    def make(self, cls: Cls, args: list[Value], named: Mapping[str, Value]) -> Value:
        """A new object of a class of the source, its constructor followed."""
        made = self.world.add(Obj(cls=cls))
        constructor = method_of(cls, "__init__", self.expressions)
        if constructor is not None:
            self.invoke(Func(constructor.node, constructor.module, constructor.owner, made), args, named)
            return made
        names = list(fields_of(cls))
        if not names:
            made.attrs.update({name: value for name, value in named.items() if name})
            return made
        values = {**dict(zip(names, args, strict=False)), **{n: v for n, v in named.items() if n}}
        if "" in named:
            values = {**self._by_name(names), **values}
        for name in names:
            made.attrs[name] = values[name] if name in values else self.field_default(cls, name)
        made.arguments = any(name in self.namespace().attrs for name in names)
        after = method_of(cls, "__post_init__", self.expressions)
        if after is not None:
            self.invoke(Func(after.node, after.module, after.owner, made), [], {})
        return made

    def of_arguments(self, cls: Cls) -> Obj:
        """An object of this class as the command line fills it, before anything has been checked."""
        held = self.world.defaults.get(id(cls.node))
        if held is None:
            held = self.world.defaults[id(cls.node)] = {name: self.field_default(cls, name) for name in fields_of(cls)}
        return self.world.add(Obj(cls=cls, arguments=True, attrs={**held, **self.namespace().attrs}, given=self.given))

    def _by_name(self, names: list[str]) -> dict[str, Value]:
        held = self.namespace().attrs
        return {name: held[name] for name in names if name in held}

    def field_default(self, cls: Cls, name: str) -> Value:
        """The default of a field, as far as the source says it."""
        node = fields_of(cls).get(name)
        if node is None:
            return Unknown(frozenset({name}))
        try:
            value = self._plain(self.expressions.eval(node, Scope(cls.module, {})))
        except RaisedError:
            return Unknown(frozenset({name}))
        return value if known(value) else Unknown(frozenset({name}))

    def class_attribute(self, cls: Cls, name: str, on: Obj | None) -> Value:
        """A method, a property's value, a constant of the class, or something unknown."""
        func = method_of(cls, name, self.expressions)
        if func is not None:
            marks = {_last(mark) for mark in func.node.decorator_list}
            if "property" in marks or "cached_property" in marks:
                return UNKNOWN if on is None else self.invoke(Func(func.node, func.module, func.owner, on), [], {})
            bound: Value = cls if "classmethod" in marks else (None if "staticmethod" in marks else on)
            return Func(func.node, func.module, func.owner, bound)
        for home in lineage(cls, self.expressions):
            for node in home.node.body:
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and any(
                    isinstance(target, ast.Name) and target.id == name for target in targets
                ):  # fmt: skip
                    return self._plain(self.expressions.eval(node.value, Scope(home.module, {})))
        return Method(Unknown(frozenset({name})), name) if on is None else Unknown(frozenset({name}))

    def assign(self, target: ast.AST, value: Value, scope: Scope) -> None:
        """`target = value`."""
        value = self._plain(value) if not isinstance(value, Builtin) else value
        match target:
            case ast.Name(id=name):
                scope.locals[name] = value
            case ast.Attribute(value=holder, attr=name):
                on = self.expressions.eval(holder, scope)
                if isinstance(on, Obj):
                    on.attrs[name] = value
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items = self.expressions.items(value)
                alike = items is not None and len(items) == len(parts) and isinstance(value, tuple | list)
                for at, part in enumerate(parts):
                    self.assign(part, items[at] if alike and items is not None else unknown(value), scope)
            case ast.Subscript(value=holder, slice=key):
                on, name_ = self.expressions.eval(holder, scope), self._plain(self.expressions.eval(key, scope))
                if isinstance(on, dict) and isinstance(name_, str | int):
                    self.assign(holder, {**on, name_: value}, scope)
                elif isinstance(on, dict | list):
                    self.assign(holder, unknown(on, value), scope)
            case ast.Starred(value=inner):
                self.assign(inner, unknown(value), scope)

    def _plain(self, value: Value) -> Value:
        return self.expressions.plain(value)


def fields_of(cls: Cls) -> dict[str, ast.expr | None]:
    """The fields of a class in the order of its source, with their defaults; empty where it is no dataclass."""
    held = cls.module.fields.get(id(cls.node))
    if held is None:
        marked = any(_last(mark) in ("dataclass", "config") for mark in cls.node.decorator_list)
        held = {
            node.target.id: node.value
            for node in (cls.node.body if marked else ())
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
        cls.module.fields[id(cls.node)] = held
    return held


def lineage(cls: Cls, expressions: Expressions) -> list[Cls]:
    """The class and those of its bases that are at hand."""
    found = [cls]
    for home in found:
        for base in home.node.bases:
            if isinstance(base, ast.Name) and len(found) < _BASES:
                value = expressions.name(base.id, home.module)
                if isinstance(value, Cls) and all(value.node is not one.node for one in found):
                    found.append(value)
    return found


def method_of(cls: Cls, name: str, expressions: Expressions) -> Func | None:
    """A function of the class or of one of its bases."""
    for home in lineage(cls, expressions):
        held = home.module.methods.get(id(home.node))
        if held is None:
            functions = (n for n in home.node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
            held = home.module.methods[id(home.node)] = {node.name: node for node in functions}
        if name in held:
            return Func(held[name], home.module, home)
    return None


def _last(mark: ast.AST) -> str:
    if isinstance(mark, ast.Call):
        mark = mark.func
    return mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", "")
