"""What handlers remember between turns, as opaque bytes by scope (`user:7`, `chat:-100`).

Written only in the transaction of the turn that changed it, and read again before the next turn of
the same scope: what a failed turn changed in memory is gone with it.
"""

from collections.abc import Iterable, Mapping

from storage.database import Tx
from storage.lifecycle import BotName


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
