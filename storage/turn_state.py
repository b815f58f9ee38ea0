"""What handlers remember between turns, as opaque bytes by scope (`user:7`, `chat:-100`).

Written only in the transaction of the turn that changed it, and read again before the next turn of
the same scope: what a failed turn changed in memory is gone with it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from storage.database import Tx
from storage.lifecycle import BotName

KEYBOARD_PREFIX: Final = "keyboard:"
"""What the names of the scopes of keyboards begin with; the statements name it too."""
# A write for each press would say little more.
_AGED_MS: Final = 86_400_000


def load(tx: Tx, bot: BotName, scopes: Iterable[str]) -> dict[str, bytes]:
    """What is remembered in these scopes; a scope with nothing is left out."""
    found = {}
    for scope in scopes:
        row = tx.row("turn_state.load", {"bot": bot, "scope": scope})
        if row is not None:
            found[scope] = bytes(row["data"])
    return found


def load_prefix(tx: Tx, bot: BotName, prefix: str) -> dict[str, bytes]:
    """What is remembered in every scope whose name begins with `prefix`."""
    last = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    rows = tx.rows("turn_state.with_prefix", {"bot": bot, "first": prefix, "last": last})
    return {row["scope"]: bytes(row["data"]) for row in rows}


def save(tx: Tx, bot: BotName, changes: Mapping[str, bytes | None]) -> None:
    """Remember these; None forgets the scope."""
    for scope, data in changes.items():
        if data is None:
            tx.run("turn_state.forget", {"bot": bot, "scope": scope})
        else:
            tx.run(
                "turn_state.save",
                {"bot": bot, "scope": scope, "data": data, "now_ms": tx.now_ms()},
            )


def load_aged(tx: Tx, bot: BotName, scopes: Iterable[str]) -> dict[str, tuple[bytes, bool]]:
    """What is remembered in these scopes, each with whether it was written over a day ago."""
    found = {}
    for scope in scopes:
        row = tx.row("turn_state.load_aged", {"bot": bot, "scope": scope})
        if row is not None:
            is_old = row["changed_at_ms"] < tx.now_ms() - _AGED_MS
            found[scope] = (bytes(row["data"]), is_old)
    return found


def has_any(tx: Tx, bot: BotName) -> bool:
    """Tell whether anything of this bot is remembered."""
    return tx.row("turn_state.any", {"bot": bot}) is not None


def forget_keyboards(tx: Tx, bot: BotName, *, before_ms: int) -> None:
    """Forget what the buttons of a bot's keyboards stood for, shown or pressed before then."""
    tx.run("turn_state.forget_keyboards", {"bot": bot, "before_ms": before_ms})


def prune_keyboards(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget keyboards that nobody has pressed since then; tell how many."""
    return tx.run("turn_state.prune_keyboards", {"before_ms": before_ms, "limit": limit})
