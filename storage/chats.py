"""Chats: whom each bot has met, who opted out, and who can't be reached.

An opt-out stops broadcasts, never replies. An unreachable chat is revived by its next update: it
has written, so it can be written to.
"""

from dataclasses import dataclass

from storage.carriers import columns
from storage.database import Tx
from storage.lifecycle import BotName

# Being seen is written once in this time for each chat: each turn would else rewrite a row for
# nothing.
SEEN_REFRESH_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Chat:
    """What is known of a chat. Times are UTC milliseconds, None when the thing is not so."""

    bot: BotName
    chat_id: int
    kind: str
    first_seen_ms: int
    last_seen_ms: int
    opted_out_at_ms: int | None
    unreachable_at_ms: int | None
    unreachable_reason: str | None
    moved_to: int | None


def seen(tx: Tx, bot: BotName, chat_id: int, *, kind: str) -> None:
    """Remember that a chat has been heard of. `kind` is Telegram's chat type."""
    tx.run(
        "chats.seen",
        {
            "bot": bot,
            "chat_id": chat_id,
            "kind": kind,
            "now_ms": tx.now_ms(),
            "refresh_ms": SEEN_REFRESH_MS,
        },
    )


def revive(tx: Tx, bot: BotName, chat_id: int, *, heard_at_ms: int) -> bool:
    """A chat was heard of then (UTC): it can be reached, unless it was lost since.

    Tell whether it could not be reached before.
    """
    params = {"bot": bot, "chat_id": chat_id, "heard_at_ms": heard_at_ms, "now_ms": tx.now_ms()}
    return tx.run("chats.revive", params) == 1


def mark_unreachable(tx: Tx, bot: BotName, chat_id: int, *, reason: str) -> None:
    """Remember that this chat can't be written to, and why."""
    params = {"bot": bot, "chat_id": chat_id, "reason": reason, "now_ms": tx.now_ms()}
    tx.run("chats.mark_unreachable", params)


def opt_out(tx: Tx, bot: BotName, chat_id: int) -> None:
    """Stop broadcasts to this chat; replies still go."""
    tx.run("chats.opt_out", {"bot": bot, "chat_id": chat_id, "now_ms": tx.now_ms()})


def opt_in(tx: Tx, bot: BotName, chat_id: int) -> None:
    """Allow broadcasts to this chat again."""
    tx.run("chats.opt_in", {"bot": bot, "chat_id": chat_id})


def moved(tx: Tx, bot: BotName, chat_id: int, *, to: int) -> None:
    """A group has become the supergroup `to`."""
    tx.run("chats.moved", {"bot": bot, "chat_id": chat_id, "moved_to": to})


def show(tx: Tx, bot: BotName, chat_id: int) -> Chat | None:
    """What is known of a chat, or None when it was never heard of."""
    row = tx.row("chats.show", {"bot": bot, "chat_id": chat_id})
    if row is None:
        return None
    return Chat(**columns(row))
