"""Values that must not be seen: tokens and webhook secrets.

They show themselves only when asked to by name, so that no log line, page, traceback or `repr` of
what holds them can give them away.
"""

import hmac
from typing import Any


class Secret:
    """A value that shows itself only when asked to."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The value itself: for the wire, never for a log, a page or an error."""
        return self._value

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hidden)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("a secret is not to be stored")


class Token(Secret):
    """A bot's token."""

    __slots__ = ()

    @property
    def bot_id(self) -> int:
        """The bot's numeric id, which is not secret: the part before the colon."""
        return int(self._value.partition(":")[0])
