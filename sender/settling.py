"""Write down what became of a claimed row: one transaction for it and all that follows from it.

The row's own claim epoch is the fence: a row that another sender has sorted out meanwhile is not in
this one's hand any more, and nothing is changed. What was learned of Telegram (the attempt's
evidence, an ordered wait) is true whoever owns the bot, and can be kept without the row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from sender import lessons, policy
from sender.floods import edits_scope
from sender.lessons import NO_LESSONS, Deadlined, Lessons
from storage import chats, claims, cooldowns, files, outbox, pauses
from storage.claims import AttemptEnd, Claim
from storage.database import Tx
from storage.lifecycle import OutboxId, OutboxState

_OWN_CHAT_LANE = "c:"
_DOUBT = "uncertain"


@dataclass(frozen=True, slots=True)
class Settling:
    """All that follows from one answer. The lane is not looked at before `lane_due_ms` (UTC).

    `result`: the body of an accepting answer, which may hold users' words; never log it.
    `has_files`: files went with the call, or were named in it.
    """

    claim: Claim
    end: AttemptEnd
    fate: policy.Fate
    lessons: Lessons = NO_LESSONS
    lane_due_ms: int = 0
    result: bytes | None = None
    has_files: bool = False

    @property
    def waits(self) -> Sequence[Deadlined]:
        """Who has to wait since this answer."""
        return self.lessons.waits


@dataclass(frozen=True, slots=True)
class Settled:
    """What else was changed: other rows of the chat, cancelled or addressed anew.

    `withdrawn`: why the row ended where it would have been tried again; somebody has asked for it.
    `instead`: the message that says what an answer came too late to say.
    """

    cancelled: int = 0
    moved: int = 0
    withdrawn: str | None = None
    instead: OutboxId | None = None


def settle_all(tx: Tx, settlings: Sequence[Settling]) -> Sequence[Settled]:
    """Write the consequences of many answers; those that were sent, nearly all, in one go.

    Raises LeaseLost, with nothing kept, when any row is no longer in this sender's hand.
    """
    sent = [(each, each.fate) for each in settlings if isinstance(each.fate, policy.MarkSent)]
    if sent:
        claims.close_attempts(tx, [(each.claim, each.end) for each, _ in sent])
        claims.mark_sent(tx, [_accepted(each, fate) for each, fate in sent])
        lessons.charge(tx, [(each.claim, each.end) for each, _ in sent])
        _release_files(tx, [each for each, _ in sent])
        for each, _ in sent:
            lessons.keep(tx, each.claim.item.bot, each.lessons)
    return [
        Settled() if isinstance(each.fate, policy.MarkSent) else settle(tx, each)
        for each in settlings
    ]


def settle(tx: Tx, settling: Settling) -> Settled:
    """Write the consequence of an answer.

    Raises LeaseLost, with nothing kept, when the row is no longer in this sender's hand.
    """
    _keep_evidence(tx, settling)
    lessons.charge(tx, [(settling.claim, settling.end)])
    claim, fate, lane_due_ms = settling.claim, settling.fate, settling.lane_due_ms
    match fate:
        case policy.MarkSent():
            claims.mark_sent(tx, [_accepted(settling, fate)])
            _release_files(tx, [settling])
        case policy.Requeue():
            spend = fate.spend is policy.Spend.ATTEMPT
            due_ms = max(fate.due_ms, lane_due_ms)
            return Settled(
                withdrawn=claims.requeue(
                    tx, claim, due_ms=due_ms, spend_attempt=spend, reason=fate.reason
                )
            )
        case policy.Hold():
            claims.hold(tx, claim, fate.state, reason=fate.reason, lane_due_ms=lane_due_ms)
        case policy.Bury():
            _end(tx, settling, OutboxState.DEAD, fate.reason)
        case policy.Expire():
            _end(tx, settling, OutboxState.EXPIRED, fate.reason)
            return Settled(instead=_fall_back(tx, settling))
        case policy.StopBot():
            return Settled(
                withdrawn=claims.requeue(
                    tx, claim, due_ms=0, spend_attempt=False, reason=fate.reason
                )
            )
        case policy.Move():
            return Settled(moved=_move(tx, claim, fate.new_chat_id))
        case policy.CloseChat():
            return Settled(cancelled=_close_chat(tx, settling, fate.reason))
        case _:
            assert_never(fate)
    return Settled()


def settle_late(tx: Tx, settling: Settling) -> bool:
    """Keep what was learned by a sender that had lost the row; whether that ended a doubt.

    The truth is accepted from whoever brings it: a row that the next owner could only call
    uncertain is sent when its own last attempt was accepted. A wait is kept for the chat as it is
    called by now: it may have moved since.
    """
    lane = claims.lane_now(tx, settling.claim.item.id)
    if lane is not None:
        settling = replace(settling, lessons=_moved(settling.lessons, settling.claim, lane))
    _keep_evidence(tx, settling)
    fate = settling.fate
    return isinstance(fate, policy.MarkSent) and claims.accept_late(tx, _accepted(settling, fate))


def _release_files(tx: Tx, sent: Sequence[Settling]) -> None:
    """What was sent is not sent again: its files need not be kept for it."""
    rows = [each.claim.item.id for each in sent if each.has_files]
    if rows:
        files.release(tx, rows)


def _moved(learned: Lessons, claim: Claim, lane: str) -> Lessons:
    """The same lessons, with the waits of the claim's lane kept for this one."""
    was = claim.item.lane
    renamed = {was: lane, edits_scope(was): edits_scope(lane)}
    waits = [replace(wait, scope=renamed.get(wait.scope, wait.scope)) for wait in learned.waits]
    return replace(learned, waits=waits)


def _keep_evidence(tx: Tx, settling: Settling) -> None:
    """Keep what was learned of Telegram, whoever owns the row by now."""
    claims.close_attempts(tx, [(settling.claim, settling.end)])
    lessons.keep(tx, settling.claim.item.bot, settling.lessons)


def _fall_back(tx: Tx, settling: Settling) -> OutboxId | None:
    """Leave the message that says what an answer came too late to say.

    None where there is none, and where the answer may have been shown: it is not said once more.
    """
    item = settling.claim.item
    if settling.end.verdict == _DOUBT:
        return None
    return outbox.fall_back(tx, item.bot, item.key, item.fallback, caused_at_ms=item.caused_at_ms)


def _accepted(settling: Settling, fate: policy.MarkSent) -> claims.Accepted:
    return claims.Accepted(
        settling.claim,
        fate.message_id,
        settling.lane_due_ms,
        reason=fate.note or None,
        result=settling.result,
    )


def _end(tx: Tx, settling: Settling, state: OutboxState, reason: str) -> None:
    claims.end(tx, settling.claim, state, reason=reason, lane_due_ms=settling.lane_due_ms)


def _move(tx: Tx, claim: Claim, new_chat_id: int) -> int:
    item = claim.item
    claims.requeue(tx, claim, due_ms=0, spend_attempt=True, reason=f"moved to {new_chat_id}")
    new_lane = moved_lane(item.lane, new_chat_id)
    count = outbox.move_lane(tx, item.bot, item.lane, new_lane=new_lane, chat_id=new_chat_id)
    pauses.move(tx, item.bot, item.lane, new_lane=new_lane)
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
