"""Tell once of each name that something under it can't be kept, and lives in memory only.

Handlers that keep a job or a client do so at every turn: one event for each name is enough. The
value is never told, and of a key only what looks like a name in a program: a handler may use
anything that a user wrote as a key.
"""

from collections.abc import Iterable
from typing import Final

from storage.lifecycle import BotName
from storage.telemetry import event

# Handlers that make a new key for each user must not make this grow for ever.
NAMES_MAX: Final = 256
_NAME_LENGTH_MAX: Final = 64


class Unkept:
    """What has been told of one bot."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def tell(self, bot: BotName, kind: str, names: Iterable[object]) -> None:
        """Say of these keys of a `kind` of memory that their values live in memory only."""
        for each in names:
            told = (kind, _name_of(each))
            if told not in self._told and len(self._told) < NAMES_MAX:
                self._told.add(told)
                event("memory.unkept", bot=bot, kind=kind, key=told[1])


def _name_of(key: object) -> str:
    if isinstance(key, str) and key.isidentifier() and len(key) <= _NAME_LENGTH_MAX:
        return key
    return f"<{type(key).__name__}>"
