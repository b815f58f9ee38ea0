"""Bots: a configured name is bound to its token's numeric id at first use, and stays bound.

Everything in the database is filed under the name. A token of another bot under the same name would
send one bot's queue from another one; so would two names for one bot.
"""

from dataclasses import dataclass

from storage.carriers import columns
from storage.database import Tx
from storage.errors import IdentityChanged
from storage.lifecycle import BotName


@dataclass(frozen=True, slots=True)
class BoundBot:
    """A bot as it was bound. `me` is Telegram's description (getMe) as JSON, once known."""

    name: BotName
    bot_id: int
    me: str | None
    webhook_fingerprint: str | None
    bound_at_ms: int


def bind(tx: Tx, name: BotName, bot_id: int) -> BoundBot:
    """Bind the name to the bot, or confirm that it is bound to it.

    Raises IdentityChanged when the name stands for another bot, or the bot has another name.
    """
    tx.run("bots.bind", {"name": name, "bot_id": bot_id, "now_ms": tx.now_ms()})
    bound = show(tx, name)
    if bound is None:
        other = tx.row("bots.by_id", {"bot_id": bot_id})
        known = other["name"] if other is not None else "?"
        raise IdentityChanged(
            f"bots.{name}: this token's bot {bot_id} is known here as bots.{known}; "
            "keep its old name"
        )
    if bound.bot_id != bot_id:
        raise IdentityChanged(
            f"bots.{name}: the token belongs to bot {bot_id}, but this name was first used for "
            f"bot {bound.bot_id}; use the right token, or give the new bot a name of its own"
        )
    return bound


def show(tx: Tx, name: BotName) -> BoundBot | None:
    """The bot behind a name, or None when the name was never used."""
    row = tx.row("bots.by_name", {"name": name})
    if row is None:
        return None
    return BoundBot(**columns(row))


def set_me(tx: Tx, name: BotName, me: str) -> None:
    """Remember Telegram's description of the bot, so that a worker can start without Telegram."""
    tx.run("bots.set_me", {"name": name, "me": me})


def set_webhook_fingerprint(tx: Tx, name: BotName, fingerprint: str | None) -> None:
    """Remember a fingerprint of the secret with which the webhook was set; never the secret."""
    tx.run("bots.set_webhook_fingerprint", {"name": name, "fingerprint": fingerprint})
