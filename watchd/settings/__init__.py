"""The configuration file: found, read, and checked until either every mistake is named or `Settings` says all of it.

Here belong the shape of the file, its defaults, and the places where secrets lie. What the settings are for does not:
no other room is known here, and nothing is opened but the file and, when they are asked for, its secrets.
"""

from __future__ import annotations

from watchd.errors import Mistake
from watchd.settings.published import schema
from watchd.settings.reading import find, load, usual_places
from watchd.settings.reveal import check_secrets, reveal_target
from watchd.settings.secrets import Secret
from watchd.settings.types import HostSettings, Settings, SinkSettings, StoreSettings, TargetRules

__all__ = [
    "HostSettings",
    "Secret",
    "Settings",
    "SinkSettings",
    "StoreSettings",
    "TargetRules",
    "check_secrets",
    "find",
    "load",
    "not_built",
    "reveal_target",
    "schema",
    "usual_places",
]


def not_built(settings: Settings) -> tuple[Mistake, ...]:
    """What the file asks for and this version does not build, in line order: `run` refuses to start with any of it."""
    return settings.unbuilt
