"""Withdrawals: what has happened in a chat that takes the reason away from what waits there.

Plain functions of a transaction. What is noted stays until nothing that it concerns can wait any
more: a row that is made after it, by a turn that was late, meets it at its claim. What waits now is
ended at once as far as a short look finds it; the claim's check is the guarantee. One exception to
the words "waits now": a call already stamped may have arrived, and is counted as too late.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

from storage import cancelling
from storage.cancelling import Told
from storage.carriers import Params, Row
from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, Withdrawal
from storage.methods import says_something

LOOKED_MAX = 500
"""Rows of a lane that are looked at when something is noted: its transaction must stay short."""

REASONS: Mapping[Withdrawal, str] = MappingProxyType(
    {
        Withdrawal.MESSAGE_DELETED: "the message that it answers was deleted",
        Withdrawal.MESSAGE_EDITED: "the message that it answers was edited",
        Withdrawal.PERSON_ANSWERED: "a person has answered",
        Withdrawal.GENERATION_STOPPED: "the user stopped it",
    }
)


@dataclass(frozen=True, slots=True)
class Noted:
    """What a withdrawal has ended at once, and what was under way already.

    `maybe_more`: rows further behind were not looked at; they end when their turn comes, or when
    the same is noted again.
    """

    cancelled: Sequence[OutboxId] = ()
    too_late: Sequence[OutboxId] = ()
    maybe_more: bool = False


def note(
    tx: Tx, bot: BotName, lane: str, what: Withdrawal, *, at_ms: int, subject: str = ""
) -> Noted:
    """Remember what has happened in a chat, and end what waits there for no reason any more.

    `subject` is the message's id, or the generation's; `at_ms` is UTC. Of the same thing noted
    twice the later moment stays.
    """
    params: Params = {
        "bot": bot,
        "lane": lane,
        "what": what,
        "subject": subject,
        "at_ms": at_ms,
        "now_ms": tx.now_ms(),
        "limit": LOOKED_MAX,
    }
    tx.run("withdrawals.note", params)
    near = [*tx.rows("withdrawals.joined", params), *tx.rows("withdrawals.scheduled", params)]
    reached = [row for row in near if _is_reached(row, what, subject, at_ms)]
    answers = cancelling.carry_out(tx, bot, reached, reason=REASONS[what])
    return Noted(
        cancelled=[answer.id for answer in answers if answer.told is Told.CANCELLED],
        too_late=[answer.id for answer in answers if answer.told is Told.TOO_LATE],
        maybe_more=bool(reached) and len(near) >= LOOKED_MAX,
    )


def prune(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget up to `limit` things noted before `before_ms`, where nothing waits in their lane."""
    return tx.run("withdrawals.prune", {"before_ms": before_ms, "limit": limit})


def _is_reached(row: Row, what: Withdrawal, subject: str, at_ms: int) -> bool:
    if not says_something(row["method"]):
        return False
    since_ms = row["created_at_ms"] if row["caused_at_ms"] is None else row["caused_at_ms"]
    is_later = at_ms > int(since_ms)
    is_of_source = bool(
        row["source_lane"] == row["lane"] and str(row["source_message_id"]) == subject
    )
    match what:
        case Withdrawal.MESSAGE_DELETED:
            return is_of_source
        case Withdrawal.MESSAGE_EDITED:
            return is_of_source and bool(row["cancel_on_edit"]) and is_later
        case Withdrawal.PERSON_ANSWERED:
            return is_later
        case Withdrawal.GENERATION_STOPPED:
            return bool(row["generation"] == subject) and is_later
        case _:
            assert_never(what)
