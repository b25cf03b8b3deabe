"""Which flag was meant: the nearest by spelling, never one that means the opposite; else those that share words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

_TYPO = 2
_SHORTEST = 5
_POLES = frozenset(("enable", "disable", "no", "not", "without", "skip"))
_DULL = frozenset(("size", "num", "max", "min", "enable", "disable", "no", "the", "path", "server"))


def folded(name: str) -> str:
    """A flag without what people mix up: its dashes in front, and `_` for `-`."""
    return name.lstrip("-").replace("_", "-").lower()


def same_but_for_signs(typed: str, names: Iterable[str]) -> str | None:
    """The only flag that differs from this one by `_` and `-` or by a dash in front."""
    found = [name for name in names if folded(name) == folded(typed) and name != typed]
    return found[0] if len(found) == 1 else None


def typo(typed: str, names: Iterable[str], longest: int = _TYPO) -> str | None:
    """The only nearest name within two edits, of the same pole; None where two are as near."""
    best: list[str] = []
    least = longest + 1
    for name in names:
        if name == typed or _pole(name) != _pole(typed) or len(folded(typed)) < _SHORTEST:
            continue
        away = distance(folded(typed), folded(name), longest)
        if away < least:
            best, least = [name], away
        elif away == least and away <= longest:
            best.append(name)
    return best[0] if len(best) == 1 and least <= longest else None


def alike(typed: str, names: Iterable[str], most: int = 3) -> tuple[str, ...]:
    """At most three flags that share the most words with this one."""
    wanted = _words(typed)
    scored: list[tuple[float, int, str]] = []
    for at, name in enumerate(dict.fromkeys(names)):
        words = _words(name)
        shared = sum(_weight(word) for word in wanted if _in(word, words))
        total = sum(map(_weight, wanted)) + sum(map(_weight, words))
        if shared >= 1 and _pole(name) == _pole(typed):
            scored.append((-2 * shared / total, at, name))
    return tuple(name for score, _, name in sorted(scored)[:most] if score <= -0.4)


def distance(one: str, other: str, most: int) -> int:
    """Edits between two texts (a swap of neighbours counts once), or `most + 1` where there are more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: Sequence[int] = []
    row: Sequence[int] = range(len(other) + 1)
    for i, a in enumerate(one, 1):
        new = [i]
        for j, b in enumerate(other, 1):
            cost = min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, before[j - 2] + 1)
            new.append(cost)
        if min(new) > most:
            return most + 1
        before, row = row, new
    return row[-1]


def _words(name: str) -> list[str]:
    return [word for word in folded(name).replace(".", "-").split("-") if word]


def _in(word: str, words: Collection[str]) -> bool:
    return word in words or any(word.rstrip("s") == other.rstrip("s") for other in words)


def _weight(word: str) -> float:
    return 0.5 if word in _DULL else 1.0


def _pole(name: str) -> frozenset[str]:
    """What makes a flag the opposite of another: `--disable-x`, `--no-x`."""
    first = _words(name)[:1]
    return frozenset(first) & _POLES
