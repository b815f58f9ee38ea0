"""Tell the log what the sender does, in the words of its event registry.

Nothing is decided here, and nothing of what a user wrote is ever told: rows go by their numbers,
and Telegram's descriptions come without what they quote.
"""

from dataclasses import dataclass
from typing import assert_never

from sender import policy
from sender.claiming import Inherited, Picked, Taken, lease_name
from sender.settling import Settled, Settling
from storage.lifecycle import BotName, OutboxState
from storage.telemetry import event


@dataclass(frozen=True, slots=True)
class Told:
    """A settled call, and what its settlement changed; None when the row was no longer ours."""

    taken: Taken
    settling: Settling
    settled: Settled | None
    is_refusal: bool
    now_ms: int


def tell_picked(bot: BotName, picked: Picked, now_ms: int) -> None:
    """What a look at the outbox has brought."""
    for ended in picked.ended:
        if ended.state is OutboxState.EXPIRED:
            event("outbox.expired", bot=bot, outbox_id=ended.id, count=1, late_ms=ended.late_ms)
        else:
            event("outbox.cancelled", bot=bot, outbox_id=ended.id, count=1, reason=ended.reason)
    for taken in picked.taken:
        item = taken.claim.item
        event(
            "outbox.claimed",
            bot=bot,
            outbox_id=item.id,
            attempt=item.attempts + 1,
            lane=item.lane,
            waited_ms=now_ms - max(item.created_at_ms, item.due_ms),
        )


def tell_inherited(bot: BotName, owner: str, inherited: Inherited) -> None:
    """This process owns the bot from now on, and has sorted out what was left in hand."""
    epoch = inherited.lease.epoch
    event("lease.taken", bot=bot, name=lease_name(bot), owner=owner, epoch=epoch)
    if inherited.rescued:
        uncertain = inherited.uncertain
        event("outbox.rescued", bot=bot, count=inherited.rescued, uncertain=uncertain, epoch=epoch)


def tell_waits(settling: Settling) -> None:
    """Who has to wait since this answer."""
    for wait in settling.waits:
        event(
            "cooldown.set",
            bot=settling.claim.item.bot,
            scope=wait.scope,
            until_ms=wait.deadline.wall_ms,
            wait_ms=wait.deadline.wait_ms,
            reason=wait.reason,
        )


def tell_call(told: Told) -> None:
    """One call, its answer, and what became of its row."""
    item, end = told.taken.claim.item, told.settling.end
    if told.is_refusal:
        event(
            "sender.refusal",
            bot=item.bot,
            outbox_id=item.id,
            attempt=item.attempts + 1,
            attempt_id=told.taken.claim.attempt_id,
            method=item.method,
            chat_id=item.chat_id,
            stage=end.stage,
            status=end.status,
            code=end.code,
            description=end.description,
            wait_ms=end.wait_ms,
            duration_ms=end.duration_ms,
            verdict=end.verdict,
        )
    if told.settled is None:
        return
    match told.settling.fate:
        case policy.MarkSent() as fate:
            _tell_sent(told, fate)
        case policy.Requeue() as fate:
            _tell_requeued(told, fate)
        case policy.Hold() as fate:
            _tell_held(told, fate)
        case policy.Bury() as fate:
            _tell_dead(told, fate.reason)
        case policy.CloseChat() as fate:
            _tell_dead(told, fate.reason)
            cancelled = told.settled.cancelled
            event(
                "chat.unreachable",
                bot=item.bot,
                chat_id=item.chat_id,
                reason=fate.reason,
                cancelled=cancelled,
            )
        case policy.Expire():
            event("outbox.expired", bot=item.bot, outbox_id=item.id, count=1)
        case policy.Move() as fate:
            count = told.settled.moved
            to = fate.new_chat_id
            event("outbox.moved", bot=item.bot, chat_id=item.chat_id, to_chat_id=to, count=count)
        case policy.StopBot() as fate:
            event("sender.bot_stopped", bot=item.bot, reason=fate.reason, code=end.code)
        case _ as unreachable:
            assert_never(unreachable)


def _tell_sent(told: Told, fate: policy.MarkSent) -> None:
    item = told.taken.claim.item
    event(
        "outbox.sent",
        bot=item.bot,
        outbox_id=item.id,
        attempt=item.attempts + 1,
        method=item.method,
        lag_ms=told.now_ms - item.created_at_ms,
        duration_ms=told.settling.end.duration_ms,
        message_id=fate.message_id,
    )


def _tell_requeued(told: Told, fate: policy.Requeue) -> None:
    item = told.taken.claim.item
    wait_ms = fate.due_ms - told.now_ms
    if told.settling.waits:
        scope = told.settling.waits[0].scope
        event("outbox.cooled", bot=item.bot, outbox_id=item.id, wait_ms=wait_ms, scope=scope)
        return
    event(
        "outbox.backed_off",
        bot=item.bot,
        outbox_id=item.id,
        attempt=item.attempts + 1,
        wait_ms=wait_ms,
        reason=fate.reason,
    )


def _tell_held(told: Told, fate: policy.Hold) -> None:
    item = told.taken.claim.item
    attempt = item.attempts + 1
    if fate.state is OutboxState.UNCERTAIN:
        event(
            "outbox.uncertain",
            bot=item.bot,
            outbox_id=item.id,
            attempt=attempt,
            method=item.method,
            reason=fate.reason,
            policy=item.on_uncertain,
        )
        return
    event(
        "outbox.review",
        bot=item.bot,
        outbox_id=item.id,
        attempt=attempt,
        method=item.method,
        reason=fate.reason,
    )


def _tell_dead(told: Told, reason: str) -> None:
    item = told.taken.claim.item
    event(
        "outbox.dead",
        bot=item.bot,
        outbox_id=item.id,
        attempt=item.attempts + 1,
        method=item.method,
        reason=reason,
        code=told.settling.end.code,
    )
