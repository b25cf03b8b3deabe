"""The shape of a rung."""

from __future__ import annotations

from collections.abc import Callable, Generator

from watchd.model import Case, Finding, Question, Reply

Asking = Generator[tuple[Question, ...], tuple[Reply, ...], tuple[Finding, ...]]
"""Yields questions that may be asked together, receives their replies in order, returns what was learnt."""

Rung = Callable[[Case], Asking]
"""A rung never raises and never asks for more than it needs; with nothing learnt it returns an empty tuple."""
