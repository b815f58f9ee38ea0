"""The outbox: every call we intend to make, from the turn that caused it to Telegram's answer.

Plain functions of a transaction. `enqueue` runs in the turn's own transaction; everything else is
the sender's. A row is claimed, then stamped, and only then called; so a sender that finds rows of a
dead one knows which calls can't have left (`claimed`) and which may have (`stamped`). Nothing here
decides: verdict and policy are the sender's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from storage import lanes
from storage.carriers import Params, Row
from storage.database import Tx
from storage.errors import LeaseLost
from storage.lifecycle import (
    AttemptStage,
    BotName,
    OnUncertain,
    OutboxId,
    OutboxState,
    Priority,
)
from storage.outgoing import TELEGRAM, Fallback, Outgoing, Source, digest

# Placeholders of rows outside any turn are numbered down from here: far from those of turns
# (bot/turns/turn.py), and above -2^53, so that they survive every JSON parser.
_FREE_PLACEHOLDERS_BELOW = -(1 << 52)
_SWEEP_ROWS_MAX = 500


@dataclass(frozen=True, slots=True)
class Enqueued:
    """A row that was left, or was there already.

    `fresh`: inserted now. `changed`: another call had the same key before (the code changed between
    two runs of a turn). `superseded`: rows that this one made pointless. `placeholder`: the id
    handed out for its message.
    """

    id: OutboxId
    fresh: bool = False
    changed: bool = False
    superseded: Sequence[OutboxId] = ()
    placeholder: int | None = None


@dataclass(frozen=True, slots=True)
class OutboxItem:
    """A row as the sender works on it. `params` are the form fields; never log them."""

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

    `verdict`: None when the call was given back before it left.
    """

    stage: AttemptStage
    verdict: str | None
    duration_ms: int | None = None
    status: int | None = None
    code: int | None = None
    description: str | None = None
    wait_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """A call that Telegram accepted. Its lane is not looked at before `lane_due_ms` (UTC)."""

    claim: Claim
    message_id: int | None
    lane_due_ms: int = 0
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RecentCall:
    """A call that left lately, as Telegram's windows may still count it."""

    lane: str
    chat_id: int | None
    method: str
    items: int
    priority: Priority
    stamped_at_ms: int
    ended_at_ms: int | None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of the message behind a placeholder."""

    state: OutboxState
    message_id: int | None


def enqueue(tx: Tx, bot: BotName, outgoing: Outgoing) -> Enqueued:
    """Leave a call to be made; the same cause with the same content is a no-op.

    Returns the row of that cause, new or not.
    """
    fingerprint = digest(outgoing.method, outgoing.params)
    earlier = tx.rows("outbox.by_key", {"bot": bot, "key": outgoing.key})
    for row in earlier:
        if row["digest"] == fingerprint:
            return Enqueued(OutboxId(row["id"]), placeholder=outgoing.placeholder)
    if earlier and outgoing.placeholder is not None:
        tx.run("outbox.give_up_placeholder", {"bot": bot, "placeholder": outgoing.placeholder})
    joined = outgoing.not_before_ms <= tx.now_ms()
    added = tx.insert("outbox.enqueue", _row_of(tx, bot, outgoing, fingerprint, joined=joined))
    assert added is not None, "the key was looked up in this transaction"
    row_id = OutboxId(added)
    if joined:
        lanes.join(tx, bot, outgoing.lane, outgoing.priority, row=row_id, due_ms=tx.now_ms())
    superseded = _supersede(tx, bot, outgoing.supersede_key, row_id)
    return Enqueued(
        row_id,
        fresh=True,
        changed=bool(earlier),
        superseded=superseded,
        placeholder=outgoing.placeholder,
    )


def enqueue_free(tx: Tx, bot: BotName, outgoing: Outgoing) -> Enqueued:
    """Leave a call outside any turn; its placeholder is made from the row's own number."""
    left = enqueue(tx, bot, outgoing)
    placeholder = _FREE_PLACEHOLDERS_BELOW - left.id
    tx.run("outbox.set_placeholder", {"id": left.id, "placeholder": placeholder})
    return replace(left, placeholder=placeholder)


def _row_of(
    tx: Tx, bot: BotName, outgoing: Outgoing, fingerprint: str, *, joined: bool
) -> dict[str, str | int | None]:
    source = outgoing.source
    return {
        "bot": bot,
        "key": outgoing.key,
        "digest": fingerprint,
        "channel": outgoing.channel,
        "method": outgoing.method,
        "items": outgoing.items,
        "params": json.dumps(dict(outgoing.params), separators=(",", ":")),
        "lane": outgoing.lane,
        "chat_id": outgoing.chat_id,
        "priority": outgoing.priority,
        "on_uncertain": outgoing.on_uncertain,
        "joined": int(joined),
        "not_before_ms": outgoing.not_before_ms,
        "expires_at_ms": outgoing.expires_at_ms,
        "supersede_key": outgoing.supersede_key,
        "coalesce_key": outgoing.coalesce_key,
        "source_lane": None if source is None else source.lane,
        "source_message_id": None if source is None else source.message_id,
        "cancel_on_edit": int(outgoing.cancel_on_edit),
        "generation": outgoing.generation,
        "caused_at_ms": outgoing.caused_at_ms,
        "fallback": _packed_fallback(outgoing.fallback),
        "placeholder": outgoing.placeholder,
        "attempts_max": outgoing.attempts_max,
        "now_ms": tx.now_ms(),
    }


def _supersede(
    tx: Tx, bot: BotName, supersede_key: str | None, row_id: OutboxId
) -> Sequence[OutboxId]:
    if supersede_key is None:
        return ()
    params = {
        "bot": bot,
        "supersede_key": supersede_key,
        "id": row_id,
        "now_ms": tx.now_ms(),
    }
    gone = tx.rows("outbox.supersede", params)
    _leave_lanes(tx, bot, gone)
    return tuple(OutboxId(row["id"]) for row in gone)


def _leave_lanes(tx: Tx, bot: BotName, rows: Sequence[Row]) -> None:
    for lane, priority in {(row["lane"], row["priority"]) for row in rows if row["joined"]}:
        lanes.advance(tx, bot, lane, priority, due_ms=_lane_due_ms(tx, bot, lane, priority))


def _lane_due_ms(tx: Tx, bot: BotName, lane: str, priority: str) -> int:
    row = tx.row("outbox.lane_due", {"bot": bot, "lane": lane, "priority": priority})
    return 0 if row is None else int(row["due_ms"])


def heads(tx: Tx, bot: BotName, priority: Priority, *, limit: int) -> Sequence[OutboxItem]:
    """The due heads of lanes in whose chat nothing is in flight, longest due first."""
    params = {"bot": bot, "priority": priority, "now_ms": tx.now_ms(), "limit": limit}
    return [_item(row) for row in tx.rows("outbox.heads", params)]


def defer(tx: Tx, item: OutboxItem, *, due_ms: int) -> None:
    """Leave the row at the head of its lane, not to be looked at before `due_ms`."""
    lanes.defer(tx, item.bot, item.lane, item.priority, due_ms=due_ms)


def claim(tx: Tx, items: Sequence[OutboxItem], epoch: int) -> Sequence[Claim]:
    """Take heads for one attempt each. Nothing may leave before `stamp` has committed."""
    ids = json.dumps([item.id for item in items])
    taken = tx.run("outbox.claim", {"ids": ids, "epoch": epoch})
    assert taken == len(items), f"of {ids}, heads of their lanes, only {taken} were queued"
    lanes.hold_claimed(tx, ids)
    opened = tx.insert_all(
        "outbox.open_attempts", {"ids": ids, "epoch": epoch, "now_ms": tx.now_ms()}
    )
    return [Claim(item, number, epoch) for item, number in zip(items, opened, strict=True)]


def stamp(tx: Tx, claims: Sequence[Claim]) -> None:
    """Record that these calls may leave at any moment from now on."""
    packed = json.dumps([(claimed.attempt_id, claimed.epoch) for claimed in claims])
    tx.run("outbox.stamp", {"claims": packed, "now_ms": tx.now_ms()})


def close_attempts(tx: Tx, ends: Sequence[tuple[Claim, AttemptEnd]]) -> None:
    """Record how attempts ended. Evidence is kept even when the row has moved on without it."""
    packed = json.dumps([_packed_end(claimed, end) for claimed, end in ends])
    tx.run("outbox.close_attempts", {"ends": packed, "now_ms": tx.now_ms()})


def mark_sent(tx: Tx, accepted: Sequence[Accepted]) -> None:
    """Telegram accepted these calls. Each lane goes on, not before its `lane_due_ms`.

    Raises LeaseLost when any row is no longer in this sender's hand.
    """
    packed = json.dumps(
        [(it.claim.item.id, it.claim.epoch, it.message_id, it.reason) for it in accepted]
    )
    changed = tx.run("outbox.mark_sent", {"accepted": packed, "now_ms": tx.now_ms()})
    if changed != len(accepted):
        raise LeaseLost(f"of {len(accepted)} rows only {changed} are in this sender's hand")
    lanes.reopen(tx, [_freed(it.claim.item, it.lane_due_ms) for it in accepted])


def requeue(
    tx: Tx, claimed: Claim, *, due_ms: int, spend_attempt: bool, reason: str | None
) -> None:
    """Give the row back to the head of its lane, which waits until `due_ms`.

    Raises LeaseLost when the row is no longer in this sender's hand.
    """
    params = _hand(tx, claimed) | {"due_ms": due_ms, "spent": int(spend_attempt), "reason": reason}
    _left_hand(tx, claimed, tx.run("outbox.requeue", params), due_ms)


def hold(tx: Tx, claimed: Claim, state: OutboxState, *, reason: str, lane_due_ms: int = 0) -> None:
    """Take the row out of its lane as uncertain or for review: nobody behind it waits for a person.

    Raises LeaseLost when the row is no longer in this sender's hand.
    """
    params = _hand(tx, claimed) | {"state": state, "reason": reason, "spent": 1}
    _left_hand(tx, claimed, tx.run("outbox.hold", params), lane_due_ms)


def end(
    tx: Tx, claimed: Claim, state: OutboxState, *, reason: str, lane_due_ms: int = 0, spent: int = 1
) -> None:
    """End a claimed row as dead, expired or cancelled.

    Raises LeaseLost when the row is no longer in this sender's hand.
    """
    params = _hand(tx, claimed) | {"state": state, "reason": reason, "spent": spent}
    _left_hand(tx, claimed, tx.run("outbox.end_claimed", params), lane_due_ms)


def end_queued(tx: Tx, item: OutboxItem, state: OutboxState, *, reason: str) -> bool:
    """End a row that still waits, and let its lane go on; False when it no longer waits."""
    params = {"id": item.id, "state": state, "reason": reason, "now_ms": tx.now_ms()}
    if tx.run("outbox.end_queued", params) != 1:
        return False
    due_ms = _lane_due_ms(tx, item.bot, item.lane, item.priority)
    lanes.advance(tx, item.bot, item.lane, item.priority, due_ms=due_ms)
    return True


def expire(tx: Tx, bot: BotName) -> Sequence[OutboxId]:
    """End rows that wait although their time is over, some hundred at a time."""
    params: Params = {"bot": bot, "now_ms": tx.now_ms(), "limit": _SWEEP_ROWS_MAX}
    found = tx.rows("outbox.expiring", params)
    return _end_all(
        tx, bot, found, OutboxState.EXPIRED, "its time was over before it could be sent"
    )


def cancel_lane(tx: Tx, bot: BotName, lane: str, *, reason: str) -> Sequence[OutboxId]:
    """Cancel everything that waits for a chat, some hundred rows at a time."""
    found: list[OutboxId] = []
    params: Params = {"bot": bot, "lane": lane, "limit": _SWEEP_ROWS_MAX}
    while rows := tx.rows("outbox.waiting_in_lane", params):
        found.extend(_end_all(tx, bot, rows, OutboxState.CANCELLED, reason))
    return found


def _end_all(
    tx: Tx, bot: BotName, rows: Sequence[Row], state: OutboxState, reason: str
) -> Sequence[OutboxId]:
    now_ms = tx.now_ms()
    tx.many(
        "outbox.end_queued",
        [{"id": row["id"], "state": state, "reason": reason, "now_ms": now_ms} for row in rows],
    )
    _leave_lanes(tx, bot, rows)
    return [OutboxId(row["id"]) for row in rows]


def orphans(tx: Tx, bot: BotName, epoch: int) -> Sequence[Orphan]:
    """What senders of earlier epochs had in hand when they ended, in order."""
    found = []
    for row in tx.rows("outbox.claimed_before", {"bot": bot, "epoch": epoch}):
        claimed = Claim(_item(row), int(row["attempt_id"]), int(row["claim_epoch"]))
        found.append(Orphan(claimed, stamped=row["stage"] != AttemptStage.CLAIMED))
    return found


def join_scheduled(tx: Tx, bot: BotName) -> int:
    """Let rows whose `not_before_ms` has come join their lanes; give their number."""
    joining = tx.rows("outbox.join_scheduled", {"bot": bot, "now_ms": tx.now_ms()})
    for row in sorted(joining, key=lambda found: int(found["id"])):
        lanes.join(
            tx, bot, row["lane"], row["priority"], row=OutboxId(row["id"]), due_ms=tx.now_ms()
        )
    return len(joining)


def next_due_ms(tx: Tx, bot: BotName) -> int | None:
    """The next moment to come at which anything of this bot is due, or None.

    What is due already does not count: a head that was not claimed waits for a call under way.
    """
    now_ms = tx.now_ms()
    moments = [
        row["due_ms"]
        for priority in Priority
        for row in tx.rows("outbox.next_due", {"bot": bot, "priority": priority, "now_ms": now_ms})
    ]
    moments += [row["due_ms"] for row in tx.rows("outbox.next_scheduled", {"bot": bot})]
    return min((int(moment) for moment in moments if moment is not None), default=None)


def resolve(tx: Tx, bot: BotName, placeholder: int) -> Resolution | None:
    """What became of the message behind a placeholder; None when nothing is known of it."""
    row = tx.row("outbox.resolve", {"bot": bot, "placeholder": placeholder})
    if row is None:
        return None
    return Resolution(OutboxState(row["state"]), row["message_id"])


def recent_calls(tx: Tx, bot: BotName, *, since_ms: int) -> Sequence[RecentCall]:
    """The calls that left since `since_ms`, oldest first: the memory of pacing after a restart."""
    rows = tx.rows("outbox.recent_attempts", {"bot": bot, "since_ms": since_ms})
    return [
        RecentCall(
            lane=row["lane"],
            chat_id=row["chat_id"],
            method=row["method"],
            items=row["items"],
            priority=Priority(row["priority"]),
            stamped_at_ms=row["stamped_at_ms"],
            ended_at_ms=row["ended_at_ms"],
        )
        for row in rows
    ]


def move_lane(tx: Tx, bot: BotName, old_lane: str, *, new_lane: str, chat_id: int) -> int:
    """Address what waits for a chat that has moved to its new id; give the number of rows."""
    rows = tx.rows("outbox.moving", {"bot": bot, "lane": old_lane})
    for row in rows:
        params = json.loads(row["params"]) | {"chat_id": str(chat_id)}
        told = json.dumps(params, separators=(",", ":"))
        tx.run(
            "outbox.move", {"id": row["id"], "lane": new_lane, "chat_id": chat_id, "params": told}
        )
    for priority in Priority:
        lanes.advance(tx, bot, old_lane, priority)
    for row in rows:
        found = tx.row("outbox.show", {"id": row["id"]})
        assert found is not None, "a row that was just moved is there"
        lanes.join(
            tx, bot, new_lane, found["priority"], row=OutboxId(row["id"]), due_ms=found["due_ms"]
        )
    for priority in Priority:
        lanes.advance(tx, bot, new_lane, priority)
    return len(rows)


def prune(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget up to `limit` rows that ended before `before_ms`, and their attempts."""
    params = {"before_ms": before_ms, "limit": limit}
    tx.run("outbox.prune_attempts", params)
    return tx.run("outbox.prune", params)


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
    )


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
        fallback=_unpacked_fallback(row["fallback"]),
    )


def _source(row: Row) -> Source | None:
    if row["source_lane"] is None:
        return None
    return Source(row["source_lane"], row["source_message_id"])


def _packed_fallback(fallback: Fallback | None) -> str | None:
    if fallback is None:
        return None
    told = {
        "method": fallback.method,
        "params": dict(fallback.params),
        "lane": fallback.lane,
        "chat_id": fallback.chat_id,
        "ttl_ms": fallback.ttl_ms,
    }
    return json.dumps(told, separators=(",", ":"))


def _unpacked_fallback(packed: str | None) -> Fallback | None:
    return None if packed is None else Fallback(**json.loads(packed))
