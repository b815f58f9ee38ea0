"""An update arrives: it is stored, and what it tells the sender at once is written with it.

Plain functions of a transaction. Whoever answers Telegram with a yes (the webhook) or asks for more
(polling) has by that promised both. A redelivery tells nothing again: what was said since would
lose its reason by an old story.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from storage import chats, inbox, withdrawals
from storage.database import Tx
from storage.inbox import Received, Reception
from storage.lifecycle import BotName
from storage.telemetry import event
from storage.tidings import Reach, Tidings, Withdrawn, tidings_of
from storage.withdrawals import REASONS


@dataclass(frozen=True, slots=True)
class Silenced:
    """Calls that waited in a chat and have lost their reason by an update."""

    bot: BotName
    count: int
    reason: str


@dataclass(frozen=True, slots=True)
class Arrival:
    """What became of updates, in their order, and what of calls that waited."""

    receptions: Sequence[Reception]
    silenced: Sequence[Silenced]


def receive_all(tx: Tx, updates: Sequence[Received]) -> Arrival:
    """Store updates, each once, and write what the new ones tell; what became of each."""
    receptions = inbox.receive_all(tx, updates)
    silenced: list[Silenced] = []
    for update, reception in zip(updates, receptions, strict=True):
        if reception is Reception.STORED:
            silenced += _listen(tx, update)
    return Arrival(receptions, silenced)


def tell(arrival: Arrival) -> None:
    """Log which calls were cancelled, once it is committed."""
    for each in arrival.silenced:
        event("outbox.cancelled", bot=each.bot, count=each.count, reason=each.reason)


def _listen(tx: Tx, update: Received) -> Sequence[Silenced]:
    found = [_write(tx, update, told) for told in tidings_of(update.kind, update.body)]
    return [each for each in found if each is not None]


def _write(tx: Tx, update: Received, told: Tidings) -> Silenced | None:
    match told:
        case Withdrawn(what, subject):
            if update.chat_lane is None:
                return None
            noted = withdrawals.note(
                tx, update.bot, update.chat_lane, what, subject=subject, at_ms=tx.now_ms()
            )
            count = len(noted.cancelled)
            return Silenced(update.bot, count, REASONS[what]) if count else None
        case Reach(chat_id, gone):
            _reach(tx, update.bot, chat_id, gone)
            return None
        case _:
            assert_never(told)


def _reach(tx: Tx, bot: BotName, chat_id: int, gone: str | None) -> None:
    if gone is None:
        chats.revive(tx, bot, chat_id, heard_at_ms=tx.now_ms())
    else:
        chats.mark_unreachable(tx, bot, chat_id, reason=gone)
