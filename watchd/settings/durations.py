"""Durations, sizes and rates as people write them: a number and a unit, in a string."""

from __future__ import annotations

import re

from watchd.settings.types import Flapping

UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
"""Seconds in each unit of time."""

SIZES = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
"""Bytes in each unit of size."""

LONGEST_S = 3650 * UNITS["d"]
"""Ten years. Longer times are mistakes, and timers further down do not take them."""

# 10s    1.5h    250ms
DURATION_PATTERN = r"^[0-9]{1,12}(\.[0-9]{1,6})?(ms|s|m|h|d)$"
# 512MiB
SIZE_PATTERN = r"^[0-9]{1,9}(KiB|MiB|GiB)$"
# 4 in 10m
FLAPPING_PATTERN = r"^[0-9]{1,6} in [0-9]{1,12}(\.[0-9]{1,6})?(ms|s|m|h|d)$"

_DURATION_WANTED = 'must be a string with one number and one unit (ms, s, m, h, d), e.g. "10s"'
_SIZE_WANTED = 'must be a string with a whole number and a unit (KiB, MiB, GiB), e.g. "512MiB"'
_FLAPPING_WANTED = 'must be a number of changes and a duration, e.g. "4 in 10m"'


def duration(value: object) -> float:
    """Seconds. Raises ValueError with a reason for people."""
    if not isinstance(value, str) or not re.fullmatch(DURATION_PATTERN, value):
        raise ValueError(_DURATION_WANTED)
    number = value.rstrip("".join(UNITS))
    seconds = float(number) * UNITS[value[len(number) :]]
    if seconds > LONGEST_S:
        raise ValueError("must not be longer than 3650d")
    return seconds


def positive_duration(value: object) -> float:
    """Seconds, more than none. Raises ValueError with a reason for people."""
    seconds = duration(value)
    if seconds <= 0:
        raise ValueError("must be longer than nothing")
    return seconds


def optional_duration(value: object) -> float | None:
    """Seconds, or None for the empty string, which switches something off."""
    return None if value == "" else positive_duration(value)


def size(value: object) -> int:
    """Bytes, more than none. Raises ValueError with a reason for people."""
    if not isinstance(value, str) or not re.fullmatch(SIZE_PATTERN, value):
        raise ValueError(_SIZE_WANTED)
    found = int(value[:-3]) * SIZES[value[-3:]]
    if not found:
        raise ValueError("must be more than nothing")
    return found


def flapping(value: object) -> Flapping | None:
    """So many changes in so long, or None for the empty string. Raises ValueError with a reason for people."""
    if value == "":
        return None
    if not isinstance(value, str) or not re.fullmatch(FLAPPING_PATTERN, value):
        raise ValueError(_FLAPPING_WANTED)
    changes, _, within = value.partition(" in ")
    if int(changes) < 2:
        raise ValueError("must be at least two changes")
    return Flapping(changes=int(changes), within_s=positive_duration(within))
