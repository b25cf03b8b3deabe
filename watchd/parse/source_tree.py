"""A syntax tree of Python source, or of a piece of it that begins in the middle of a block.

The source comes from a host and may be hostile, cut, or written for a newer Python. It is parsed, never run; deep
nesting can kill the parser itself, so whoever reads what a stranger wrote calls this in a process of its own.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

_PIECE_LINES = 400
_PIECE_LIMIT = 100_000
"""So many lines up and down, and so many characters, are tried where the whole file does not parse."""
_HEADER = "if 1:"
"""Stands in for the blocks around a piece; `else` and `elif` may follow it as they may follow what it stands for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A parsed piece of a file.

    module   its tree; line `n` of it is line `n + shift` of the file
    shift    lines by which the tree's numbers fall short of the file's
    headers  numbers, in the tree, of the headers that stand in for the blocks around
    """

    module: ast.Module
    shift: int = 0
    headers: frozenset[int] = frozenset()


def parse(lines: list[str], line: int) -> Tree | None:
    """The tree that holds this 1-based line: of the whole file, or else of a piece around it; None where none parses."""
    whole = _parse("\n".join(lines))
    if whole is not None:
        return Tree(module=whole)
    for begin, end in _pieces(lines, line):
        if sum(map(len, lines[begin:end])) > _PIECE_LIMIT:
            continue
        headers = _headers(lines[begin:end])
        module = _parse("\n".join((*headers, *lines[begin:end])))
        if module is not None:
            return Tree(module=module, shift=begin - len(headers), headers=frozenset(range(1, len(headers) + 1)))
    return None


def _parse(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _pieces(lines: list[str], line: int) -> Iterator[tuple[int, int]]:
    """Ranges of lines to try, the widest first: the text around, the function, what lies before it is ended anywhere."""
    low, high = max(0, line - _PIECE_LINES), min(len(lines), line + _PIECE_LINES)
    low = next((at for at in range(low, line) if _is_code(lines[at])), low)
    begins = list(dict.fromkeys((low, _function(lines, low, line), _statement(lines, low, line))))
    for begin in begins:
        yield begin, high
    for begin in begins:
        for end in range(min(line + 12, high), line - 1, -1):
            yield begin, end


def _function(lines: list[str], low: int, line: int) -> int:
    """Index of the `def` that encloses the line, as far as indentation tells."""
    indent = _indent(lines[line - 1])
    for at in range(line - 1, low - 1, -1):
        if _is_code(lines[at]) and _indent(lines[at]) < indent:
            indent = _indent(lines[at])
            if re.match(r"\s*(?:async\s+)?def\s", lines[at]):
                return at
    return low


def _statement(lines: list[str], low: int, line: int) -> int:
    """Index of the line up to eight above where a check seems to begin."""
    for at in range(line - 1, max(low, line - 9) - 1, -1):
        if re.match(r"\s*(?:assert|raise|if|elif)\b", lines[at]):
            return at
    return line - 1


def _headers(lines: list[str]) -> tuple[str, ...]:
    """A header for each block that the piece leaves: one per smaller indentation to which it returns."""
    depths = [_indent(line) for line in lines if _is_code(line)]
    if not depths or depths[0] == 0:
        return ()
    outer = sorted({0, *(depth for depth in depths if depth < depths[0])})
    return tuple(" " * depth + _HEADER for depth in outer)


def _is_code(line: str) -> bool:
    bare = line.strip()
    return bool(bare) and not bare.startswith("#")


def _indent(line: str) -> int:
    text = line.expandtabs()
    return len(text) - len(text.lstrip())
