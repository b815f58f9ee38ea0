"""Rows in a sender's hand: from the head of a lane to what was answered.

A row is claimed, then stamped, and only then called; so a sender that finds rows of a dead one
knows which calls can't have left (`claimed`) and which may have (`stamped`). Nothing here decides:
verdict and policy are the sender's. Every end of a claimed row is fenced by its own claim epoch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage import ending, lanes
from storage.carriers import Row, columns
from storage.database import Tx
from storage.ending import Waiting
from storage.errors import LeaseLost
from storage.lifecycle import AttemptStage, BotName, OnUncertain, OutboxId, OutboxState, Priority
from storage.outgoing import TELEGRAM, Fallback, Source, unpacked_fallback

LONGEST_CALL_MS = 1_210_000
"""No call is under way for longer: twice the longest read timeout that may be configured."""

CAME_LATE = "its answer came after another sender had taken over"
"""Why a row that was in doubt is sent after all."""


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """A row as the sender works on it. `params` are the form fields; never log them.

    `is_heard`: a handler waits for its answer, or is to be told of its end.
    """

    id: OutboxId
    bot: BotName
    method: str
    params: Mapping[str, str]
    lane: str
    chat_id: int | None
    priority: Priority
    on_uncertain: OnUncertain
    attempts: int
    attempts_max: int | None
    due_ms: int
    expires_at_ms: int | None
    created_at_ms: int
    placeholder: int | None
    key: str = ""
    channel: str = TELEGRAM
    items: int = 1
    source: Source | None = None
    cancel_on_edit: bool = False
    generation: str | None = None
    caused_at_ms: int | None = None
    fallback: Fallback | None = None
    follows: int | None = None
    is_heard: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """What has happened that may take away the reason for a row; None for what has not.

    `has_newer`: another row that waits takes its place. Times are UTC milliseconds. `deleted` and
    `edited` are of the message that it answers, `stopped` of its generation, the rest of its chat.
    """

    has_newer: bool = False
    deleted_at_ms: int | None = None
    edited_at_ms: int | None = None
    stopped_at_ms: int | None = None
    answered_at_ms: int | None = None
    unreachable_at_ms: int | None = None
    opted_out_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A row in a sender's hand, and the attempt that it is for."""

    item: OutboxItem
    attempt_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Orphan:
    """A row that an earlier owner had in hand. `stamped`: its call may have left."""

    claim: Claim
    stamped: bool


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended, as evidence: stage reached, what was answered, how long it took.

    `verdict`: None when the call was given back before it left. `items_told`: JSON, what is known
    of each item of a call that failed in part. `request_id`: the other end's own name for the call.
    """

    stage: AttemptStage
    verdict: str | None
    duration_ms: int | None = None
    status: int | None = None
    code: int | None = None
    description: str | None = None
    wait_ms: int | None = None
    items_told: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call that was accepted. Its lane is not looked at before `lane_due_ms` (UTC).

    `result`: the body of the accepting answer, UTF-8, which may hold users' words; never log it.
    """

    claim: Claim
    message_id: int | None
    lane_due_ms: int = 0
    reason: str | None = None
    result: bytes | None = None


@dataclass(frozen=True, slots=True)
class RecentCall:
    """A call that left lately, as Telegram's windows may still count it.

    `is_abandoned`: its sender died; when it ended is only when that was noticed.
    """

    lane: str
    chat_id: int | None
    method: str
    items: int
    priority: Priority
    stamped_at_ms: int
    ended_at_ms: int | None
    is_abandoned: bool = False


def heads(
    tx: Tx, bot: BotName, priority: Priority, *, limit: int, not_telegrams: bool = False
) -> Sequence[OutboxItem]:
    """The due heads of lanes in whose chat nothing is in flight, longest due first.

    `not_telegrams`: only those of other channels.
    """
    params = {"bot": bot, "priority": priority, "now_ms": tx.now_ms(), "limit": limit}
    statement = "claims.other_heads" if not_telegrams else "claims.heads"
    return [_item(row) for row in tx.rows(statement, params)]


def answer_heads(tx: Tx, bot: BotName, *, limit: int) -> Sequence[OutboxItem]:
    """The due answers to queries, which wait for nobody, longest due first."""
    params = {"bot": bot, "now_ms": tx.now_ms(), "limit": limit}
    return [_item(row) for row in tx.rows("claims.answer_heads", params)]


def standings(tx: Tx, items: Sequence[OutboxItem]) -> Mapping[OutboxId, Standing]:
    """What has happened in the meantime that concerns these rows, asked for all at once."""
    ids = json.dumps([item.id for item in items])
    found = {}
    for row in tx.rows("claims.standings", {"ids": ids}):
        told = columns(row, has_newer=bool)
        row_id = OutboxId(told.pop("id"))
        found[row_id] = Standing(**told)
    return found


def defer(tx: Tx, item: OutboxItem, *, due_ms: int) -> None:
    """Leave the row at the head of its lane, not to be looked at before `due_ms`."""
    lanes.defer(tx, item.bot, item.lane, item.priority, due_ms=due_ms)


def put_off(tx: Tx, item: OutboxItem, *, due_ms: int, reason: str) -> None:
    """Leave the row at the head of its lane until `due_ms`, and say why."""
    tx.run("claims.put_off", {"id": item.id, "due_ms": due_ms, "reason": reason})
    defer(tx, item, due_ms=due_ms)


def claim(tx: Tx, items: Sequence[OutboxItem], epoch: int) -> Sequence[Claim]:
    """Take heads for one attempt each. Nothing may leave before `stamp` has committed."""
    ids = json.dumps([item.id for item in items])
    taken = tx.run("claims.claim", {"ids": ids, "epoch": epoch})
    assert taken == len(items), f"of {ids}, heads of their lanes, only {taken} were queued"
    lanes.hold_claimed(tx, ids)
    opened = tx.insert_all(
        "claims.open_attempts", {"ids": ids, "epoch": epoch, "now_ms": tx.now_ms()}
    )
    return [Claim(item, number, epoch) for item, number in zip(items, opened, strict=True)]


def stamp(tx: Tx, claims: Sequence[Claim]) -> frozenset[OutboxId]:
    """Record that these calls may leave at any moment from now on; the rows of those that may.

    A row that somebody has asked to cancel is left out: it may not leave any more.
    """
    packed = json.dumps([(claimed.attempt_id, claimed.epoch) for claimed in claims])
    rows = tx.rows("claims.stamp", {"claims": packed, "now_ms": tx.now_ms()})
    return frozenset(OutboxId(row["outbox_id"]) for row in rows)


def close_attempts(tx: Tx, ends: Sequence[tuple[Claim, AttemptEnd]]) -> None:
    """Record how attempts ended. Evidence is kept even when the row has moved on without it."""
    packed = json.dumps([_packed_end(claimed, end) for claimed, end in ends])
    tx.run("claims.close_attempts", {"ends": packed, "now_ms": tx.now_ms()})


def mark_sent(tx: Tx, accepted: Sequence[Accepted]) -> None:
    """Telegram accepted these calls. Each lane goes on, not before its `lane_due_ms`.

    Raises LeaseLost when any row is no longer in this sender's hand.
    """
    packed = json.dumps([_packed_accepted(it) for it in accepted])
    changed = tx.run("claims.mark_sent", {"accepted": packed, "now_ms": tx.now_ms()})
    if changed != len(accepted):
        raise LeaseLost(f"of {len(accepted)} rows only {changed} are in this sender's hand")
    lanes.reopen(tx, [_freed(it.claim.item, it.lane_due_ms) for it in accepted])
    lanes.step_in(tx, [it.claim.item.id for it in accepted])


def lane_now(tx: Tx, row: OutboxId) -> str | None:
    """The lane of a row, which its chat may have moved since it was claimed; None without one."""
    found = tx.row("claims.lane", {"id": row})
    return None if found is None else str(found["lane"])


def accept_late(tx: Tx, accepted: Accepted) -> bool:
    """Settle a doubt by an answer that reached a sender which had lost the row; False without one.

    Only for the row's last attempt, and while nobody has decided about it.
    """
    claimed = accepted.claim
    params = {
        "id": claimed.item.id,
        "attempt_id": claimed.attempt_id,
        "message_id": accepted.message_id,
        "result": accepted.result,
        "reason": CAME_LATE,
        "now_ms": tx.now_ms(),
    }
    if tx.run("claims.accept_late", params) != 1:
        return False
    lanes.step_in(tx, [claimed.item.id])
    return True


def requeue(
    tx: Tx, claimed: Claim, *, due_ms: int, spend_attempt: bool, reason: str | None
) -> str | None:
    """Give the row back to the head of its lane, which waits until `due_ms`.

    A row that somebody has asked to cancel ends instead, and the reason for that is given.

    Raises LeaseLost when the row is no longer in this sender's hand.
    """
    params = _hand(tx, claimed) | {"due_ms": due_ms, "spent": int(spend_attempt), "reason": reason}
    found = tx.rows("claims.requeue", params)
    is_cancelled = any(row["state"] == OutboxState.CANCELLED for row in found)
    # The next row of the lane need not wait for the sake of one that has ended.
    _left_hand(tx, claimed, len(found), 0 if is_cancelled else due_ms)
    if not is_cancelled:
        return None
    lanes.step_in(tx, [claimed.item.id])
    return str(found[0]["reason"])


def hold(tx: Tx, claimed: Claim, state: OutboxState, *, reason: str, lane_due_ms: int = 0) -> None:
    """Take the row out of its lane as uncertain or for review: nobody behind it waits for a person.

    Raises LeaseLost when the row is no longer in this sender's hand.
    """
    params = _hand(tx, claimed) | {"state": state, "reason": reason, "spent": 1}
    _left_hand(tx, claimed, tx.run("claims.hold", params), lane_due_ms)


def end(
    tx: Tx, claimed: Claim, state: OutboxState, *, reason: str, lane_due_ms: int = 0, spent: int = 1
) -> None:
    """End a claimed row as dead, expired or cancelled.

    Raises LeaseLost when the row is no longer in this sender's hand.
    """
    params = _hand(tx, claimed) | {"state": state, "reason": reason, "spent": spent}
    _left_hand(tx, claimed, tx.run("claims.end", params), lane_due_ms)
    lanes.step_in(tx, [claimed.item.id])


def end_head(tx: Tx, item: OutboxItem, state: OutboxState, *, reason: str) -> None:
    """End a head that will not be claimed, and let its lane go on."""
    ending.end_all(tx, item.bot, [Waiting(item.id, item.lane, item.priority)], state, reason)


def orphans(tx: Tx, bot: BotName, epoch: int) -> Sequence[Orphan]:
    """What senders of earlier epochs had in hand when they ended, in order."""
    found = []
    for row in tx.rows("claims.claimed_before", {"bot": bot, "epoch": epoch}):
        claimed = Claim(_item(row), int(row["attempt_id"]), int(row["claim_epoch"]))
        found.append(Orphan(claimed, stamped=row["stage"] != AttemptStage.CLAIMED))
    return found


def recent_calls(tx: Tx, bot: BotName, *, since_ms: int) -> Sequence[RecentCall]:
    """The calls under way at `since_ms` or since, oldest first: pacing's memory after a restart.

    When a call arrived is known no better than that it was over by its end.
    """
    params = {"bot": bot, "since_ms": since_ms, "longest_ms": LONGEST_CALL_MS}
    rows = tx.rows("claims.recent_attempts", params)
    return [
        RecentCall(
            lane=row["lane"],
            chat_id=row["chat_id"],
            method=row["method"],
            items=row["items"],
            priority=Priority(row["priority"]),
            stamped_at_ms=row["stamped_at_ms"],
            ended_at_ms=row["ended_at_ms"],
            is_abandoned=bool(row["is_abandoned"]),
        )
        for row in rows
    ]


def _hand(tx: Tx, claimed: Claim) -> dict[str, str | int | None]:
    return {"id": claimed.item.id, "epoch": claimed.epoch, "now_ms": tx.now_ms()}


def _left_hand(tx: Tx, claimed: Claim, changed: int, lane_due_ms: int) -> None:
    item = claimed.item
    if changed != 1:
        raise LeaseLost(f"outbox row {item.id} is no longer in this sender's hand")
    lanes.reopen(tx, [_freed(item, lane_due_ms)])


def _packed_end(claimed: Claim, end: AttemptEnd) -> tuple[int | str | None, ...]:
    return (
        *(claimed.attempt_id, end.stage, end.verdict, end.duration_ms),
        *(end.status, end.code, end.description, end.wait_ms),
        *(end.items_told, end.request_id),
    )


def _packed_accepted(it: Accepted) -> tuple[int | str | None, ...]:
    result = None if it.result is None else it.result.decode("utf-8", "replace")
    return (it.claim.item.id, it.claim.epoch, it.message_id, it.reason, result)


def _freed(item: OutboxItem, due_ms: int) -> lanes.Freed:
    return lanes.Freed(item.bot, item.lane, item.priority, due_ms)


def _item(row: Row) -> OutboxItem:
    return OutboxItem(
        id=OutboxId(row["id"]),
        bot=BotName(row["bot"]),
        method=row["method"],
        params=json.loads(row["params"]),
        lane=row["lane"],
        chat_id=row["chat_id"],
        priority=Priority(row["priority"]),
        on_uncertain=OnUncertain(row["on_uncertain"]),
        attempts=row["attempts"],
        attempts_max=row["attempts_max"],
        due_ms=row["due_ms"],
        expires_at_ms=row["expires_at_ms"],
        created_at_ms=row["created_at_ms"],
        placeholder=row["placeholder"],
        key=row["key"],
        channel=row["channel"],
        items=row["items"],
        source=_source(row),
        cancel_on_edit=bool(row["cancel_on_edit"]),
        generation=row["generation"],
        caused_at_ms=row["caused_at_ms"],
        fallback=unpacked_fallback(row["fallback"]),
        follows=row["follows"],
        is_heard=bool(row["is_heard"]),
    )


def _source(row: Row) -> Source | None:
    if row["source_lane"] is None:
        return None
    return Source(row["source_lane"], row["source_message_id"])
