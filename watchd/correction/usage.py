"""What argparse refused, from its one line and the usage text before it, and the launch command without that mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from watchd.correction import near
from watchd.correction.flags import Flag, Known
from watchd.model import Edit, Fix

_MARKS = (": error: ", "error: unexpected argument", "error: invalid value", "error: invalid argument", "o such option",
    "nknown flag", "nrecognized option")  # fmt: skip
"""One of these stands in every line by which a parser refuses a command."""
_LINES = 1500
# launch.py: error: unrecognized arguments: --modle x      serve: error: argument --dtype: invalid choice: 'x' (choose from 'a')
_ERROR = re.compile(
    r": error: (?P<what>unrecognized arguments: |argument [^:]{1,200}: |the following arguments are required: |ambiguous option: )(?P<rest>.{1,8000})"
)
_CHOICE = re.compile(
    r"invalid choice: (?P<value>'[^']{0,200}'|\"[^\"]{0,200}\"|\S{1,200}) \((?:choose from|choices:) (?P<choices>.{1,4000})\)"
)
# [--dtype {auto,half}]   [--port PORT]   --weights DIR   [--log]
_OPTION = re.compile(r"(?<![\w-])(?P<name>--?[A-Za-z][\w.-]*)(?:[ =](?P<value>\{[^}]{0,4000}\}|\[?[A-Z][\w.]*))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One line of argparse: `what` is `unrecognized`, `choice`, `value`, `required`, `ambiguous` or `other`."""

    what: str
    flag: str = ""
    text: str = ""
    words: tuple[str, ...] = ()
    usage: str = ""


# error: unexpected argument '--max-batch-prefil-tokens' found      error: invalid argument: --ctx-sise
# Error: No such option: --max_batch_siz (Did you mean --max_batch_size?)      Error: unknown flag: --prot
_OTHERS = re.compile(
    r"(?i)\berror: (?:unexpected argument|invalid argument:|no such option:|unknown flag:|unrecognized option:?) ['\"`]?(?P<flag>--?[A-Za-z][\w.-]{0,200})"
)
# error: invalid value 'fp9' for '--quantize <QUANTIZE>'
_VALUE = re.compile(r"\berror: invalid value '(?P<value>[^']{0,200})' for '(?P<flag>--[\w.-]{1,200})")
# [possible values: awq, fp8]
_VALUES = re.compile(r"\[possible values: (?P<choices>[^\]]{1,4000})\]")
_FLAGS_NEAR = 6
"""Lines behind a refusal in which a parser says what it may have been."""


def refuses(line: str) -> bool:
    """Whether a parser of command lines may have written this line."""
    return any(mark in line for mark in _MARKS)


def read(lines: Sequence[str]) -> Refused | None:
    """The last refusal in these lines, with the usage text that stands before it."""
    for at in range(len(lines) - 1, max(-1, len(lines) - _LINES), -1):
        if not refuses(lines[at]):
            continue
        match = _ERROR.search(lines[at])
        if match is not None:
            return replace(_refused(match["what"], match["rest"].strip()), usage=_usage(lines, at))
        behind = " ".join(lines[at : at + _FLAGS_NEAR])
        other, value = _OTHERS.search(lines[at]), _VALUE.search(lines[at])
        if other is not None:
            told = " ".join(f"[{name}]" for name, _ in _OPTION.findall(behind) if name != other["flag"])
            return Refused(what="unrecognized", text=other["flag"], words=(other["flag"],), usage=told)
        choices = _VALUES.search(behind) if value is not None else None
        if value is not None and choices is not None:
            words = tuple(word.strip() for word in choices["choices"].split(","))
            return Refused(what="choice", flag=value["flag"], text=value["value"], words=words)
    return None


def _refused(what: str, rest: str) -> Refused:
    if what.startswith("unrecognized"):
        return Refused(what="unrecognized", text=rest, words=tuple(rest.split()))
    if what.startswith("the following"):
        return Refused(what="required", text=rest, words=tuple(word.strip() for word in rest.split(",")))
    if what.startswith("ambiguous"):
        option, _, others = rest.partition(" could match ")
        return Refused(what="ambiguous", flag=option, text=rest, words=tuple(w.strip() for w in others.split(",")))
    flag = what.removeprefix("argument ").removesuffix(": ").split("/")[-1].strip()
    choice = _CHOICE.search(rest)
    if choice is not None:
        words = tuple(word.strip().strip("'\"") for word in choice["choices"].split(","))
        return Refused(what="choice", flag=flag, text=choice["value"].strip("'\""), words=words)
    return Refused(what="value" if rest.startswith("expected") else "other", flag=flag, text=rest)


def _usage(lines: Sequence[str], end: int) -> str:
    for at in range(end, max(-1, end - _LINES), -1):
        begin = lines[at].find("usage: ")
        if begin >= 0:
            return " ".join(" ".join(line[begin:].split()) for line in lines[at:end])[:200_000]
    return ""


def known_in(usage: str) -> Known:
    """The flags that a usage text names; what stands in no bracket is required."""
    found: dict[str, Flag] = {}
    for match in _OPTION.finditer(usage):
        name, value = match["name"], match["value"] or ""
        choices = tuple(value[1:-1].split(",")) if value.startswith("{") else None
        depth = usage.count("[", 0, match.start()) - usage.count("]", 0, match.start())
        found.setdefault(
            name,
            Flag(
                names=(name,),
                dest=name.lstrip("-").replace("-", "_"),
                kind="value" if value else "on",
                choices=choices,
                required=depth == 0,
                metavar="" if choices else value.strip("["),
            ),
        )
    by_dest = {flag.dest: flag for flag in found.values()}
    return Known(flags=tuple(found.values()), by_name=found, by_dest=by_dest)


def fix(refused: Refused, argv: tuple[str, ...], known: Known, texts: Mapping[str, str]) -> Fix | None:
    """The launch command as argparse would take it, or what may have been meant."""
    run = {
        "unrecognized": _unrecognized, "choice": _choice, "required": _required, "value": _value,
        "ambiguous": _ambiguous,
    }.get(refused.what)  # fmt: skip
    return run(refused, argv, known, texts) if run is not None else None


def _unrecognized(refused: Refused, argv: tuple[str, ...], known: Known, texts: Mapping[str, str]) -> Fix | None:
    joined = [word for word in argv if " " in word.strip() and word.startswith("--") and word in refused.text]
    typed = [word for word in refused.words if word.startswith("-") and not word[1:2].isdigit()]
    own = [word for word in dict.fromkeys(typed) if any(_is_word(word, text) for text in argv)]
    if joined:
        return _split(joined, argv, known)
    if not own or len(own) < len(set(typed)):
        return None  # this is not the command that was refused
    words = list(argv)
    edits: list[Edit] = []
    possible: list[str] = []
    notes: list[str] = []
    for word in own:
        name = word.partition("=")[0]
        meant, basis, why = _meant(name, known, texts)
        if not meant:
            possible += near.alike(name, _long(known))
            notes.append(_absent(name, near.alike(name, _long(known))))
            continue
        at = next(at for at, text in enumerate(words) if _is_word(word, text))
        equals = words[at].partition("=")[1]
        words[at] = meant + words[at][len(name) :]
        value = words[at].partition("=")[2] if equals else _value_after(words, at)
        edits += (
            Edit(flag=name, action="drop", value=None, basis=basis),  # type: ignore[arg-type]
            Edit(flag=meant, action="add", value=value, basis=basis),  # type: ignore[arg-type]
        )
        notes.append(why)
    if possible or len(edits) < 2 * len(own):
        return Fix(possible=tuple(dict.fromkeys(possible))[:3], unknown=tuple(own), notes=tuple(notes))
    return Fix(argv=tuple(words), edits=tuple(edits), unknown=tuple(own), notes=tuple(notes))


def _is_word(refused: str, word: str) -> bool:
    """Whether this word of the command is what was refused; some parsers name the flag without its `=value`."""
    return word == refused or word.startswith(f"{refused}=")


def _meant(name: str, known: Known, texts: Mapping[str, str]) -> tuple[str, str, str]:
    """The flag that was meant, on what basis, and why; empty where none is near enough."""
    renamed = _renamed(name, known, texts)
    if renamed:
        return renamed, "derived", f"The source on the host says that {name} is now {renamed}."
    signs = near.same_but_for_signs(name, _all(known))
    if signs:
        return signs, "proven", f"{name} is written {signs} here."
    nearest = near.typo(name, _long(known))
    if nearest:
        return nearest, "derived", f"{name} is no flag of this version; {nearest} differs by a typing mistake."
    return "", "", ""


def _absent(name: str, possible: Sequence[str]) -> str:
    more = f"; it may be meant: {', '.join(possible)}" if possible else ""
    return f"{name} is not in this version{more}."


def _renamed(name: str, known: Known, texts: Mapping[str, str]) -> str:
    """The flag that the source names beside the old one: in a table of renames, a deprecation, or a comment."""
    # {"--old-name": "--new-name"}     # --old-name was renamed to --new-name     new_flag="--new-name"
    found: set[str] = set()
    says = re.compile(r"(?i)\b(?:renamed?|replaced|instead|use|now|moved|deprecated|new_\w+)\b")
    for text in texts.values():
        for line in text.split("\n"):
            if name not in line or not re.search(rf"{re.escape(name)}(?![\w-])", line):
                continue
            others = {other for other in _OPTION.findall(line) if other[0] != name and other[0] in known.by_name}
            table = re.search(rf"[\"']{re.escape(name)}[\"']\s{{0,4}}[:,]\s{{0,4}}[\"'](--[\w-]+)[\"']", line)
            if table and table[1] in known.by_name:
                found.add(table[1])
            elif says.search(line):
                found |= {other[0] for other in others}
    return found.pop() if len(found) == 1 else ""


def _split(joined: Sequence[str], argv: tuple[str, ...], known: Known) -> Fix | None:
    """One word that should be two: `"--host 127.0.0.1"`."""
    words: list[str] = []
    edits: list[Edit] = []
    for word in argv:
        name, _, value = word.strip().partition(" ")
        if word in joined and name in known.by_name:
            words += (name, value.strip())
            edits.append(Edit(flag=name, action="set", value=value.strip(), basis="proven"))
        else:
            words.append(word)
    if not edits:
        return None
    note = "A flag and its value stand in one word; they have to be two."
    return Fix(argv=tuple(words), edits=tuple(edits), unknown=tuple(joined), notes=(note,))


def _choice(refused: Refused, argv: tuple[str, ...], known: Known, texts: Mapping[str, str]) -> Fix | None:  # noqa: ARG001
    at = _place(refused.flag, argv, known, refused.text)
    if at is None:
        return None
    nearest = near.typo(refused.text, refused.words)
    chosen = nearest or (refused.words[0] if len(refused.words) == 1 else "")
    notes = (f"{refused.flag} takes {', '.join(refused.words[:12])}.",)
    if not chosen:
        return Fix(possible=near.alike(refused.text, refused.words), unknown=(refused.text,), notes=notes)
    words = list(argv)
    name, equals, _ = words[at].partition("=")
    words[at] = f"{name}={chosen}" if equals else chosen
    flag = name if equals else argv[at - 1]
    edit = Edit(flag=flag, action="set", value=chosen, basis="derived")
    return Fix(argv=tuple(words), edits=(edit,), unknown=(refused.text,), notes=notes)


def _place(flag: str, argv: tuple[str, ...], known: Known, value: str) -> int | None:
    """Index of the word that holds the refused value."""
    own = known.by_name.get(flag)
    names = {flag, *(own.names if own else ())}
    for at, word in enumerate(argv):
        name, equals, text = word.partition("=")
        if not _means(name, names):
            continue
        if equals and text == value:
            return at
        if not equals and at + 1 < len(argv) and argv[at + 1] == value:
            return at + 1
    return None


def _means(typed: str, names: set[str]) -> bool:
    return any(
        typed == name or near.folded(typed) == near.folded(name) or (typed.startswith("--") and name.startswith(typed))
        for name in names
    )


def _required(refused: Refused, argv: tuple[str, ...], known: Known, texts: Mapping[str, str]) -> Fix | None:  # noqa: ARG001
    names = [word.split("/")[0] for word in refused.words]
    if not all(name.startswith("-") for name in names) or any(name in argv for name in names):
        return Fix(notes=(f"It asks for {', '.join(refused.words)}.",))
    edits: list[Edit] = []
    words: list[str] = []
    for name in names:
        flag = known.by_name.get(name)
        hole = f"<{(flag.metavar if flag and flag.metavar else name.lstrip('-')).upper().replace('-', '_')}>"
        value = next(iter(flag.choices)) if flag and flag.choices and len(flag.choices) == 1 else hole
        words += (name, str(value))
        edits.append(Edit(flag=name, action="add", value=str(value), basis="suggestion"))
    return Fix(argv=(*argv, *words), edits=tuple(edits), notes=(f"It asks for {', '.join(names)}.",))


def _value(refused: Refused, argv: tuple[str, ...], known: Known, texts: Mapping[str, str]) -> Fix | None:  # noqa: ARG001
    """`expected one argument`: what follows begins with a dash, so it has to be tied to the flag."""
    flag = known.by_name.get(refused.flag)
    names = {refused.flag, *(flag.names if flag else ())}
    at = next((at for at, word in enumerate(argv) if _means(word, names)), None)
    if at is None:
        return None
    following = argv[at + 1] if at + 1 < len(argv) else ""
    if re.fullmatch(r"-[\d.]\S*|-[^-\s]\S*", following) and following not in known.by_name:
        tied = f"{argv[at]}={following}"
        edit = Edit(flag=argv[at], action="set", value=following, basis="proven")
        return Fix(argv=(*argv[:at], tied, *argv[at + 2 :]), edits=(edit,), unknown=(following,),
            notes=("A value that begins with a dash has to be tied to its flag with `=`.",))  # fmt: skip
    hole = f"<{near.folded(argv[at]).upper().replace('-', '_')}>"
    edit = Edit(flag=argv[at], action="set", value=hole, basis="suggestion")
    return Fix(argv=(*argv[: at + 1], hole, *argv[at + 1 :]), edits=(edit,), notes=(f"{argv[at]} needs a value.",))


def _ambiguous(refused: Refused, argv: tuple[str, ...], known: Known, texts: Mapping[str, str]) -> Fix | None:  # noqa: ARG001
    typed = refused.flag.partition("=")[0]
    if not any(word.partition("=")[0] == typed for word in argv):
        return None
    note = f"{typed} may stand for {', '.join(refused.words[:6])}."
    return Fix(possible=refused.words[:3], unknown=(typed,), notes=(note,))


def _value_after(words: Sequence[str], at: int) -> str | None:
    following = words[at + 1] if at + 1 < len(words) else "-"
    return None if following.startswith("-") and not following[1:2].isdigit() else following


def _all(known: Known) -> Iterator[str]:
    yield from known.by_name


def _long(known: Known) -> list[str]:
    return [name for name in known.by_name if name.startswith("--")]
