"""The outbox: every call we intend to make, from its cause until a sender takes it in hand.

Plain functions of a transaction. `enqueue` runs in the turn's own transaction; what a sender does
with a row is in `storage/claims.py`, how waiting rows end in `storage/ending.py`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from storage import ending, files, lanes, message_ids
from storage.carriers import Params, Row
from storage.database import Tx
from storage.ending import Waiting
from storage.errors import KeyTaken
from storage.lifecycle import BotName, OutboxId, OutboxState, Priority
from storage.methods import METHODS
from storage.outgoing import (
    TELEGRAM,
    Fallback,
    Outgoing,
    coalesced_keys,
    digest,
    packed_fallback,
    priority_for,
    unpacked_fallback,
)

# Placeholders of rows outside any turn are numbered down from here: far from those of turns
# (bot/turns/turn.py), and above -2^53, so that they survive every JSON parser.
_FREE_PLACEHOLDERS_BELOW = -(1 << 52)
FREE_ITEMS_MAX = 128
"""Placeholders that each of them owns: no call makes more messages (Bot API: 100 copies)."""
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
class Forgotten:
    """How many rows one batch has forgotten; `maybe_more`: another one should follow."""

    rows: int
    maybe_more: bool


def enqueue(tx: Tx, bot: BotName, outgoing: Outgoing) -> Enqueued:
    """Leave a call to be made; the same cause with the same content is a no-op.

    Returns the row of that cause, new or not. Raises KeyTaken where the call's key is exclusive and
    stands for another one, or for the same with another placeholder.
    """
    outgoing = replace(outgoing, priority=_priority_of(outgoing))
    fingerprint = digest(outgoing.method, outgoing.params, outgoing.files)
    earlier = tx.rows("outbox.by_key", {"bot": bot, "key": outgoing.key})
    for row in earlier:
        if row["digest"] == fingerprint:
            if outgoing.exclusive and outgoing.placeholder not in (None, row["placeholder"]):
                raise KeyTaken(f"{outgoing.key} was left meanwhile", is_same=True)
            return _left_before(tx, bot, outgoing, row)
    if earlier and outgoing.exclusive:
        raise KeyTaken(f"{outgoing.key} stands for another call already, row {earlier[0]['id']}")
    if outgoing.placeholder is not None:
        _free_places(tx, bot, outgoing.placeholder, outgoing.items)
    joined = outgoing.not_before_ms <= tx.now_ms()
    added = tx.insert("outbox.enqueue", _row_of(tx, bot, outgoing, fingerprint, joined=joined))
    assert added is not None, "the key was looked up in this transaction"
    row_id = OutboxId(added)
    if outgoing.files:
        files.attach(tx, row_id, outgoing.files)
    if joined:
        lanes.join(tx, bot, outgoing.lane, outgoing.priority, row=row_id, due_ms=tx.now_ms())
    superseded = _replace(tx, bot, outgoing, row_id)
    return Enqueued(
        row_id,
        fresh=True,
        changed=bool(earlier),
        superseded=superseded,
        placeholder=outgoing.placeholder,
    )


def _left_before(tx: Tx, bot: BotName, outgoing: Outgoing, row: Row) -> Enqueued:
    """The row of this very call; it stands for the messages that were handed out last.

    They are others when a turn that runs again says less or more before it, or what it once said.
    """
    row_id, placeholder = OutboxId(row["id"]), outgoing.placeholder
    if placeholder is None or placeholder == row["placeholder"]:
        return Enqueued(row_id, placeholder=row["placeholder"])
    _free_places(tx, bot, placeholder, outgoing.items)
    tx.run("outbox.set_placeholder", {"id": row_id, "placeholder": placeholder})
    return Enqueued(row_id, placeholder=placeholder)


def _free_places(tx: Tx, bot: BotName, first: int, items: int) -> None:
    """Let no other row stand for these messages."""
    places: Params = {"bot": bot, "first": first, "last": first - items + 1}
    tx.run("outbox.give_up_placeholders", places)


def enqueue_free(tx: Tx, bot: BotName, outgoing: Outgoing) -> Enqueued:
    """Leave a call outside any turn; its placeholder is made from the row's own number.

    So are those of the messages that it makes beyond the first, each one below the one before. A
    call that was left before keeps what it has. Raises KeyTaken.
    """
    assert outgoing.items <= FREE_ITEMS_MAX, outgoing.items
    left = enqueue(tx, bot, outgoing)
    if left.placeholder is not None:
        return left
    placeholder = _FREE_PLACEHOLDERS_BELOW - left.id * FREE_ITEMS_MAX
    tx.run("outbox.set_placeholder", {"id": left.id, "placeholder": placeholder})
    return replace(left, placeholder=placeholder)


def _priority_of(outgoing: Outgoing) -> Priority:
    """What may be paid for is paid if it says so; of all else Telegram takes no Stars."""
    facts = METHODS.get(outgoing.method)
    is_telegrams = outgoing.channel == TELEGRAM
    is_payable = is_telegrams and facts is not None and facts.may_be_paid
    return priority_for(outgoing.params if is_payable else {}, outgoing.priority)


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
        "fallback": packed_fallback(outgoing.fallback),
        "placeholder": outgoing.placeholder,
        "attempts_max": outgoing.attempts_max,
        "inbox_id": outgoing.inbox_id,
        "follows": outgoing.follows,
        "awaited": int(outgoing.awaited),
        "tell": outgoing.tell,
        "now_ms": tx.now_ms(),
    }


def _replace(tx: Tx, bot: BotName, outgoing: Outgoing, row_id: OutboxId) -> Sequence[OutboxId]:
    """End what still waits and is made pointless by this row."""
    found: list[Row] = []
    params: Params = {"bot": bot, "id": row_id, "now_ms": tx.now_ms()}
    if outgoing.supersede_key is not None:
        wish: Params = {**params, "supersede_key": outgoing.supersede_key}
        found += tx.rows("outbox.supersede", wish)
    if outgoing.coalesce_key is not None:
        keys = json.dumps(coalesced_keys(outgoing.coalesce_key))
        found += tx.rows("outbox.coalesce", {**params, "keys": keys})
    gone = ending.waiting(found)
    ending.leave_lanes(tx, bot, gone)
    return tuple(row.id for row in gone)


def expire(tx: Tx, bot: BotName) -> Sequence[OutboxId]:
    """End rows that wait although their time is over, some hundred at a time."""
    params: Params = {"bot": bot, "now_ms": tx.now_ms(), "limit": _SWEEP_ROWS_MAX}
    found = tx.rows("outbox.expiring", params)
    rows = [Waiting(row["id"], row["lane"], row["priority"], bool(row["joined"])) for row in found]
    reason = "its time was over before it could be sent"
    ended = ending.end_all(tx, bot, rows, OutboxState.EXPIRED, reason)
    for row in found:
        fallback = unpacked_fallback(row["fallback"])
        fall_back(tx, bot, row["key"], fallback, caused_at_ms=row["caused_at_ms"])
    return ended


def fall_back(
    tx: Tx, bot: BotName, key: str, fallback: Fallback | None, *, caused_at_ms: int | None
) -> OutboxId | None:
    """Leave the message that says what a query's answer, with this key, came too late to say.

    None where the answer has none.
    """
    if fallback is None:
        return None
    message = Outgoing(
        method=fallback.method,
        params=fallback.params,
        lane=fallback.lane,
        key=f"{key}/late",
        chat_id=fallback.chat_id,
        expires_at_ms=tx.now_ms() + fallback.ttl_ms,
        caused_at_ms=caused_at_ms,
    )
    return enqueue(tx, bot, message).id


def cancel_lane(tx: Tx, bot: BotName, lane: str, *, reason: str) -> Sequence[OutboxId]:
    """Cancel everything that waits for a chat, in one statement, as it may be much."""
    params: Params = {"bot": bot, "lane": lane, "reason": reason, "now_ms": tx.now_ms()}
    gone = ending.waiting(tx.rows("outbox.cancel_lane", params))
    ending.leave_lanes(tx, bot, gone)
    return [row.id for row in gone]


def join_scheduled(tx: Tx, bot: BotName) -> int:
    """Let rows whose `not_before_ms` has come join their lanes; give their number.

    Some hundred at a time, as thousands may be scheduled for one moment: the rest is due still.
    """
    params: Params = {"bot": bot, "now_ms": tx.now_ms(), "limit": _SWEEP_ROWS_MAX}
    joining = tx.rows("outbox.join_scheduled", params)
    for row in sorted(joining, key=lambda found: int(found["id"])):
        lanes.join(
            tx, bot, row["lane"], row["priority"], row=OutboxId(row["id"]), due_ms=tx.now_ms()
        )
    return len(joining)


def next_due_ms(tx: Tx, bot: BotName) -> int | None:
    """The next moment at which anything of this bot is due, or None.

    What is due already does not count: a head that was not claimed waits for a call under way. But
    scheduled rows do, which could not join all at once.
    """
    now_ms = tx.now_ms()
    moments = [
        row["due_ms"]
        for priority in Priority
        for row in tx.rows("outbox.next_due", {"bot": bot, "priority": priority, "now_ms": now_ms})
    ]
    moments += [row["due_ms"] for row in tx.rows("outbox.next_scheduled", {"bot": bot})]
    return min((int(moment) for moment in moments if moment is not None), default=None)


def move_lane(tx: Tx, bot: BotName, old_lane: str, *, new_lane: str, chat_id: int) -> int:
    """Address what waits for a chat that has moved to its new id; give the number of rows."""
    params: Params = {"bot": bot, "lane": old_lane, "to_lane": new_lane, "chat_id": chat_id}
    count = tx.run("outbox.move", params) + tx.run("outbox.move_scheduled", params)
    for priority in Priority:
        lanes.advance(tx, bot, old_lane, priority)
        lanes.open_anew(tx, bot, new_lane, priority)
    return count


def prune(tx: Tx, *, before_ms: int, limit: int) -> Forgotten:
    """Forget up to `limit` rows that ended before `before_ms`, and what belongs to them.

    What their placeholders stand for is kept. Rows count by the messages that they made.
    """
    ended = tx.rows("outbox.to_prune", {"before_ms": before_ms, "limit": limit})
    rows: list[OutboxId] = []
    items = 0
    for row in ended:
        items += row["items"]
        if rows and items > limit:
            break
        rows.append(OutboxId(row["id"]))
    message_ids.keep(tx, rows)
    files.release(tx, rows)
    params: Params = {"ids": json.dumps(rows)}
    tx.run("outbox.prune_attempts", params)
    tx.run("outbox.prune", params)
    return Forgotten(len(rows), maybe_more=len(rows) < len(ended) or len(ended) >= limit)
