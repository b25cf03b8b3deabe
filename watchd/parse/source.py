"""The check in a source file that failed: the statement around a line, its condition, and the names in it.

Python's versions report different lines of a check that is written over several: the first, that of the first
operand, or the last. Whatever line of it is named, the whole statement is found.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise

from watchd.model import Guard, SourceExcerpt, SourceFile
from watchd.parse import source_names, source_tree

TEXT_LIMIT = 1024 * 1024
"""Characters of a source file that are read at most."""
_NEAR = 3
"""Lines up and down in which the line that the log quotes is looked for."""
_ABOVE, _BELOW, _MOST = 7, 4, 24
_LINE_LIMIT = 400
_CONDITION_LIMIT = 600
_ENCLOSING = 16


def excerpt(source: SourceFile) -> SourceExcerpt | None:
    """The lines around the frame and the check among them; None where the file is too long or has no such line."""
    if len(source.text) > TEXT_LIMIT:
        return None
    guard, first_line, lines, matches_log = read_guard(source.text, source.line, source.code)
    return _shown(source, guard, first_line, lines, matches_log)


def plain_excerpt(source: SourceFile) -> SourceExcerpt | None:
    """The lines around the frame without a look at what they say: for source that kills the parser."""
    lines = source.text[: TEXT_LIMIT + 1].split("\n")
    if len(source.text) > TEXT_LIMIT or not 1 <= source.line <= len(lines):
        return None
    line, matches_log = _place(lines, source.line, source.code)
    first_line, kept = _around(lines, line, line, line)
    return _shown(source, None, first_line, kept, matches_log)


def _shown(
    source: SourceFile, guard: Guard | None, first_line: int, lines: tuple[str, ...], matches_log: bool | None
) -> SourceExcerpt | None:
    if not lines:
        return None
    return SourceExcerpt(
        path=source.path,
        first_line=first_line,
        lines=lines,
        guard=guard,
        sha256=source.sha256,
        matches_log=matches_log,
    )


def read_guard(text: str, line: int, code: str | None) -> tuple[Guard | None, int, tuple[str, ...], bool | None]:
    """The check around a 1-based line, the lines around it with the number of the first, and whether the log agrees.

    `code` is the line as the log quotes it. Where it does not stand in the file near that place, the file changed since
    the crash: then no check is read out of it.
    """
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return None, line, (), None
    line, matches_log = _place(lines, line, code)
    found = None if matches_log is False else _find(lines, line)
    guard, last = found if found else (None, line)
    first_line, kept = _around(lines, line, guard.line if guard else line, last)
    return guard, first_line, kept, matches_log


def _place(lines: list[str], line: int, code: str | None) -> tuple[int, bool | None]:
    """Where the quoted line stands, the nearest first, and whether it does."""
    quoted = " ".join((code or "").strip().partition("\n")[0].split())
    if not quoted:
        return line, None
    for distance in sorted(range(-_NEAR, _NEAR + 1), key=abs):
        at = line + distance
        if 1 <= at <= len(lines) and " ".join(lines[at - 1].split()) == quoted:
            return at, True
    return line, False


def _find(lines: list[str], line: int) -> tuple[Guard, int] | None:
    """The check around a line and the number of its last line."""
    try:
        tree = source_tree.parse(lines, line)
        return _guard(tree, lines, line) if tree else None
    except (RecursionError, MemoryError, ValueError):
        return None  # nested more deeply than can be walked


def _guard(tree: source_tree.Tree, lines: list[str], line: int) -> tuple[Guard, int] | None:
    around = list(_path(tree.module, line - tree.shift))
    check = _check(around, line - tree.shift)
    if check is None:
        return None
    statement, test, negated = check
    scope = source_names.scope(tree.module, around, statement.lineno)
    branches = _branches(around[: around.index(statement) + 1])
    enclosing = [(branch, other) for branch, other in branches if branch.lineno not in tree.headers][-_ENCLOSING:]
    own = source_names.names(test, scope)
    if isinstance(around[-1], ast.If) and not any(attribute for _, attribute in own):
        return None  # a condition over values of the moment checks no setting
    behind = [name for branch, _ in reversed(enclosing) for name in source_names.names(branch.test, scope)]
    return Guard(
        condition=_written(test, lines, tree.shift, negated=negated),
        names=tuple(name for name, _ in own),
        requires=tuple(dict.fromkeys(name for name, attribute in (*own, *behind) if attribute)),
        enclosing=tuple(_written(branch.test, lines, tree.shift, negated=other) for branch, other in enclosing),
        line=statement.lineno + tree.shift,
    ), (test.end_lineno or test.lineno) + tree.shift


def _path(module: ast.AST, line: int) -> Iterator[ast.AST]:
    """The statements and clauses that enclose a line, outermost first."""
    node: ast.AST | None = module
    while node is not None:
        yield node
        node = next(
            (
                child
                for child in ast.iter_child_nodes(node)
                if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
                and _first_line(child) <= line <= _last_line(child)
            ),
            None,
        )


def _first_line(node: ast.stmt | ast.ExceptHandler | ast.match_case) -> int:
    return node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno


def _last_line(node: ast.stmt | ast.ExceptHandler | ast.match_case | ast.expr) -> int:
    if isinstance(node, ast.match_case):
        return _last_line(node.body[-1])
    return node.end_lineno or node.lineno


def _check(around: list[ast.AST], line: int) -> tuple[ast.stmt, ast.expr, bool] | None:
    """The statement that checks, its condition, and whether the condition has to fail for the branch to be taken."""
    innermost = around[-1]
    if isinstance(innermost, ast.Assert):
        return innermost, innermost.test, False
    if isinstance(innermost, ast.If) and innermost.test.lineno <= line <= _last_line(innermost.test):
        # The condition itself failed: it compares what cannot be compared.
        return innermost, innermost.test, False
    if isinstance(innermost, ast.Raise):
        for node, below in zip(reversed(around[:-1]), reversed(around[1:]), strict=True):
            if isinstance(node, ast.If):
                return node, node.test, below in node.orelse
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
                return None
    return None


def _branches(around: list[ast.AST]) -> list[tuple[ast.If, bool]]:
    """The `if`s that enclose the last of these nodes, up to its function, and whether it lies in their `else`."""
    found: list[tuple[ast.If, bool]] = []
    for node, below in pairwise(around):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.clear()
        elif isinstance(node, ast.If):
            found.append((node, below in node.orelse))
    return found


def _written(test: ast.expr, lines: list[str], shift: int, *, negated: bool) -> str:
    """A condition as the source has it, on one line."""
    if test.lineno == test.end_lineno:
        line = lines[test.lineno + shift - 1].encode()
        text = line[test.col_offset : test.end_col_offset].decode("utf-8", "replace").strip()
    else:
        text = " ".join(ast.unparse(test).split("\n"))
    return (f"not ({text})" if negated else text)[:_CONDITION_LIMIT]


def _around(lines: list[str], line: int, first: int, last: int) -> tuple[int, tuple[str, ...]]:
    """Some dozen lines around the check, without empty ones at either end, and the number of the first."""
    begin = max(1, first - _ABOVE)
    end = min(len(lines), last + _BELOW)
    if end - begin >= _MOST:
        begin = max(1, line - _MOST // 2)
        end = min(len(lines), begin + _MOST - 1)
    while begin < line and not lines[begin - 1].strip():
        begin += 1
    while end > line and not lines[end - 1].strip():
        end -= 1
    return begin, tuple(text.rstrip("\r")[:_LINE_LIMIT] for text in lines[begin - 1 : end])
