"""Tell the log what the sender does, in the words of its event registry.

Nothing is decided here, and nothing of what a user wrote is ever told: rows go by their numbers,
and Telegram's descriptions come without what they quote.
"""

from dataclasses import dataclass
from typing import assert_never

from sender import guards, policy
from sender.claiming import Inherited, Picked, Taken, kind_of
from sender.examining import Ended, Findings
from sender.paying import BALANCE_DOUBTS
from sender.settling import Settled, Settling
from sender.sharing import lease_name
from storage.claims import OutboxItem
from storage.lifecycle import AttemptStage, BotName, OutboxState
from storage.methods import CallKind
from storage.telemetry import event

_REFUSED = "refused"


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
    _tell_findings(bot, picked.findings)
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
        if taken.paced.is_canary:
            event("canary.sent", bot=bot, outbox_id=item.id, lane=item.lane)


def _tell_findings(bot: BotName, findings: Findings) -> None:
    for ended in findings.ended:
        _tell_ended(bot, ended)
    for out in findings.stepped_out:
        event("outbox.stepped_out", bot=bot, outbox_id=out.id, waits_for=out.waits_for)
    for put_off in findings.put_off:
        reason, wait_ms = put_off.reason, guards.PUT_OFF_MS
        event("guard.failed", bot=bot, outbox_id=put_off.id, reason=reason, wait_ms=wait_ms)
    if findings.guard_ms > guards.SLOW_MS:
        event("guard.slow", bot=bot, duration_ms=findings.guard_ms)


def _tell_ended(bot: BotName, ended: Ended) -> None:
    item = ended.item
    match ended.state:
        case OutboxState.EXPIRED if _is_answer(item):
            # No noise: the person has gone on, and nothing was lost but a moment.
            event(
                "outbox.answer_late",
                bot=bot,
                outbox_id=item.id,
                method=item.method,
                late_ms=ended.late_ms,
                instead=ended.instead,
            )
        case OutboxState.EXPIRED:
            event("outbox.expired", bot=bot, outbox_id=item.id, count=1, late_ms=ended.late_ms)
        case OutboxState.SUPERSEDED:
            event("outbox.superseded", bot=bot, outbox_id=item.id, count=1)
        case OutboxState.DEAD:
            reason = ended.reason
            event("outbox.dead", bot=bot, outbox_id=item.id, method=item.method, reason=reason)
        case _:
            event("outbox.cancelled", bot=bot, outbox_id=item.id, count=1, reason=ended.reason)


def _is_answer(item: OutboxItem) -> bool:
    return kind_of(item.method, item.lane) is CallKind.ANSWER


def tell_withdrawn(item: OutboxItem, reason: str) -> None:
    """A row ended in a sender's hand, since somebody had asked for that."""
    event("outbox.cancelled", bot=item.bot, outbox_id=item.id, count=1, reason=reason)


def tell_inherited(bot: BotName, owner: str, inherited: Inherited) -> None:
    """This process owns the bot from now on, and has sorted out what was left in hand."""
    epoch = inherited.lease.epoch
    event("lease.taken", bot=bot, name=lease_name(bot), owner=owner, epoch=epoch)
    if inherited.rescued:
        uncertain = inherited.uncertain
        event("outbox.rescued", bot=bot, count=inherited.rescued, uncertain=uncertain, epoch=epoch)


def tell_lessons(settling: Settling) -> None:
    """Who has to wait since this answer, and what else it taught."""
    bot, lessons = settling.claim.item.bot, settling.lessons
    for wait in lessons.waits:
        event(
            "cooldown.set",
            bot=bot,
            scope=wait.scope,
            until_ms=wait.deadline.wall_ms,
            wait_ms=wait.deadline.wait_ms,
            reason=wait.reason,
        )
    for scope in lessons.lifted:
        event("cooldown.lifted", bot=bot, scope=scope, reason="a canary got through")
    if lessons.rate is not None:
        name = "rate.raised" if lessons.rate.has_risen else "rate.lowered"
        rate, reason = lessons.rate.bulk_per_second, lessons.rate.reason
        event(name, bot=bot, bulk_per_second=rate, reason=reason)
    if lessons.doubts_balance:
        event("paid.check_balance", bot=bot, count=BALANCE_DOUBTS)


def tell_call(told: Told) -> None:
    """One call, its answer, and what became of its row."""
    item, end = told.taken.claim.item, told.settling.end
    if told.is_refusal and not _is_late_answer(told):
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
            request_id=end.request_id,
        )
    if told.settled is None:
        return
    if told.settled.withdrawn is not None:
        tell_withdrawn(item, told.settled.withdrawn)
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
            _tell_expired(told)
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
    if told.settled is None or told.settled.withdrawn is not None:
        return
    if told.settling.end.stage is AttemptStage.HANDED_BACK:
        event("outbox.handed_back", bot=item.bot, outbox_id=item.id, reason=fate.reason)
        return
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


def _is_late_answer(told: Told) -> bool:
    """Whether Telegram said that the query is too old: that is nobody's failure."""
    is_refused = told.settling.end.verdict == _REFUSED
    is_over = isinstance(told.settling.fate, policy.Expire)
    return is_refused and is_over and _is_answer(told.taken.claim.item)


def _tell_expired(told: Told) -> None:
    item, end = told.taken.claim.item, told.settling.end
    if told.settled is None:
        return
    if not _is_answer(item):
        event("outbox.expired", bot=item.bot, outbox_id=item.id, count=1)
        return
    event(
        "outbox.answer_late",
        bot=item.bot,
        outbox_id=item.id,
        method=item.method,
        instead=told.settled.instead,
        attempt_id=told.taken.claim.attempt_id,
        status=end.status,
        code=end.code,
        description=end.description,
        duration_ms=end.duration_ms,
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
