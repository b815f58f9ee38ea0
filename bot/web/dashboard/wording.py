"""Moments, spans and Telegram's answers, as a page shows them.

Pure. What Telegram answered may quote the message it refuses, and nobody's words belong on a page
without a login.
"""

import re
from datetime import UTC, datetime
from typing import Final

from storage.pauses import BOT_SCOPE, BULK_SCOPE

_QUOTED = re.compile(r'"[^"]*("|$)')
_UNITS: Final = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


def span(ms: int) -> str:
    """A length of time in at most two units, such as `3 min 20 s`."""
    for position, (unit_ms, unit) in enumerate(_UNITS):
        if ms < unit_ms:
            continue
        count, rest_ms = divmod(ms, unit_ms)
        if position + 1 == len(_UNITS):
            return f"{count} {unit}"
        finer_ms, finer = _UNITS[position + 1]
        rest = rest_ms // finer_ms
        return f"{count} {unit} {rest} {finer}" if rest else f"{count} {unit}"
    return f"{max(0, ms)} ms"


def since(at_ms: int | None, now_ms: int) -> str:
    """How long ago a moment was; nothing when there is none."""
    return "" if at_ms is None else span(max(0, now_ms - at_ms))


def moment(at_ms: int) -> str:
    """A moment in UTC, to the second."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def paused(scope: str) -> str:
    """What a pause stops, as a person would say it."""
    if scope == BOT_SCOPE:
        return "everything"
    return "bulk" if scope == BULK_SCOPE else f"chat {scope.rpartition(':')[2]}"


def unquoted(description: str | None) -> str | None:
    """Telegram's description of an error, without what it quotes."""
    return None if description is None else _QUOTED.sub("…", description)
