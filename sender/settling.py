"""Write down what became of a claimed row: one transaction for it and all that follows from it.

The row's own claim epoch is the fence: a row that another sender has sorted out meanwhile is not in
this one's hand any more, and nothing is changed. What was learned of Telegram (the attempt's
evidence, an ordered wait) is true whoever owns the bot, and can be kept without the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from sender import policy
from sender.floods import edits_scope
from storage import chats, cooldowns, outbox
from storage.clock import Deadline
from storage.database import Tx
from storage.lifecycle import OutboxState
from storage.outbox import AttemptEnd, Claim

_OWN_CHAT_LANE = "c:"


@dataclass(frozen=True, slots=True)
class Deadlined:
    """A wait that a scope has to keep, as a moment that outlives the process."""

    scope: str
    deadline: Deadline
    reason: str


@dataclass(frozen=True, slots=True)
class Settling:
    """All that follows from one answer. The lane is not looked at before `lane_due_ms` (UTC)."""

    claim: Claim
    end: AttemptEnd
    fate: policy.Fate
    waits: Sequence[Deadlined] = ()
    lane_due_ms: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """What else was changed: other rows of the chat, cancelled or addressed anew."""

    cancelled: int = 0
    moved: int = 0


def settle_all(tx: Tx, settlings: Sequence[Settling]) -> Sequence[Settled]:
    """Write the consequences of many answers; those that were sent, nearly all, in one go.

    Raises LeaseLost, with nothing kept, when any row is no longer in this sender's hand.
    """
    sent = [(each, each.fate) for each in settlings if isinstance(each.fate, policy.MarkSent)]
    if sent:
        outbox.close_attempts(tx, [(each.claim, each.end) for each, _ in sent])
        outbox.mark_sent(tx, [_accepted(each, fate) for each, fate in sent])
    return [
        Settled() if isinstance(each.fate, policy.MarkSent) else settle(tx, each)
        for each in settlings
    ]


def settle(tx: Tx, settling: Settling) -> Settled:
    """Write the consequence of an answer.

    Raises LeaseLost, with nothing kept, when the row is no longer in this sender's hand.
    """
    keep_evidence(tx, settling)
    claim, fate, lane_due_ms = settling.claim, settling.fate, settling.lane_due_ms
    match fate:
        case policy.MarkSent():
            outbox.mark_sent(tx, [_accepted(settling, fate)])
        case policy.Requeue():
            spend = fate.spend is policy.Spend.ATTEMPT
            due_ms = max(fate.due_ms, lane_due_ms)
            outbox.requeue(tx, claim, due_ms=due_ms, spend_attempt=spend, reason=fate.reason)
        case policy.Hold():
            outbox.hold(tx, claim, fate.state, reason=fate.reason, lane_due_ms=lane_due_ms)
        case policy.Bury():
            _end(tx, settling, OutboxState.DEAD, fate.reason)
        case policy.Expire():
            _end(tx, settling, OutboxState.EXPIRED, fate.reason)
        case policy.StopBot():
            outbox.requeue(tx, claim, due_ms=0, spend_attempt=False, reason=fate.reason)
        case policy.Move():
            return Settled(moved=_move(tx, claim, fate.new_chat_id))
        case policy.CloseChat():
            return Settled(cancelled=_close_chat(tx, settling, fate.reason))
        case _:
            assert_never(fate)
    return Settled()


def keep_evidence(tx: Tx, settling: Settling) -> None:
    """Keep what was learned of Telegram, whoever owns the row by now."""
    outbox.close_attempts(tx, [(settling.claim, settling.end)])
    for wait in settling.waits:
        bot = settling.claim.item.bot
        cooldowns.merge(tx, bot, wait.scope, wait.deadline, reason=wait.reason)


def _accepted(settling: Settling, fate: policy.MarkSent) -> outbox.Accepted:
    return outbox.Accepted(
        settling.claim, fate.message_id, settling.lane_due_ms, reason=fate.note or None
    )


def _end(tx: Tx, settling: Settling, state: OutboxState, reason: str) -> None:
    outbox.end(tx, settling.claim, state, reason=reason, lane_due_ms=settling.lane_due_ms)


def _move(tx: Tx, claim: Claim, new_chat_id: int) -> int:
    item = claim.item
    outbox.requeue(tx, claim, due_ms=0, spend_attempt=True, reason=f"moved to {new_chat_id}")
    new_lane = moved_lane(item.lane, new_chat_id)
    count = outbox.move_lane(tx, item.bot, item.lane, new_lane=new_lane, chat_id=new_chat_id)
    cooldowns.move(tx, item.bot, item.lane, new_scope=new_lane)
    cooldowns.move(tx, item.bot, edits_scope(item.lane), new_scope=edits_scope(new_lane))
    if item.chat_id is not None:
        chats.moved(tx, item.bot, item.chat_id, to=new_chat_id)
    return count


def _close_chat(tx: Tx, settling: Settling, reason: str) -> int:
    item = settling.claim.item
    _end(tx, settling, OutboxState.DEAD, reason)
    cancelled = outbox.cancel_lane(tx, item.bot, item.lane, reason=f"its chat is closed: {reason}")
    # A chat of a business connection is another chat than the bot's own with the same number.
    if item.chat_id is not None and item.lane.startswith(_OWN_CHAT_LANE):
        chats.mark_unreachable(tx, item.bot, item.chat_id, reason=reason)
    return len(cancelled)


def moved_lane(lane: str, new_chat_id: int) -> str:
    """Name the lane of a chat after it has moved: the chat id is the last part of the name."""
    return f"{lane.rpartition(':')[0]}:{new_chat_id}"
