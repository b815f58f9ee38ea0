"""The inbox: every update that was answered with 200, until its turn has committed.

Plain functions of a transaction. Updates are deduplicated by (bot, update_id) as a set, never by a
high-water mark, since Telegram may start its numbers anew (Bot API, Update.update_id); turns follow
our own arrival number.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from storage.carriers import Params, columns
from storage.database import Tx
from storage.errors import LeaseLost
from storage.lifecycle import BotName, InboxId, InboxState
from storage.sieve import ALL, Sieve

REMEMBERED = 100_000
"""So many of the newest updates stay known by their digests, however old the clock says they are.

Telegram brings an update again for a day at most (Bot API, "Getting updates"), but a wall clock may
be set ahead by a month: age alone must not decide what may come back as if it were new.
"""


class Received(NamedTuple):
    """An update as it came: its identity, its lanes, and its raw bytes.

    A lane is None when the update belongs to no chat or no user.
    """

    bot: BotName
    update_id: int
    kind: str
    chat_lane: str | None
    user_lane: str | None
    body: bytes

    def __repr__(self) -> str:
        """Everything but the body, which holds users' words."""
        return f"Received({self.bot!r}, {self.update_id}, {self.kind!r})"


class Reception(StrEnum):
    """What became of a delivery."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a delivery: what became of it, and the row that holds it."""

    reception: Reception
    id: InboxId


@dataclass(frozen=True, slots=True)
class PendingUpdate:
    """An update that waits: its place and its lanes."""

    id: InboxId
    chat_lane: str | None
    user_lane: str | None
    not_before_ms: int


@dataclass(frozen=True, slots=True)
class InboxItem:
    """An update in a worker's hand. `claims` counts how often it was taken, this time included.

    `meant_at_ms`: when it came in, or when a person let it be handled again after it had died.
    """

    id: InboxId
    bot: BotName
    update_id: int
    kind: str
    body: bytes = field(repr=False)
    claims: int
    received_at_ms: int
    meant_at_ms: int


@dataclass(frozen=True, slots=True)
class InboxRecord:
    """An update as an operator sees it. `body` is the update itself: never log it."""

    id: InboxId
    bot: BotName
    update_id: int | None
    kind: str
    chat_lane: str | None
    user_lane: str | None
    body: bytes = field(repr=False)
    state: InboxState
    claims: int
    received_at_ms: int
    claimed_at_ms: int | None
    finished_at_ms: int | None
    reason: str | None
    trace: str | None


@dataclass(frozen=True, slots=True)
class DeadUpdate:
    """An update that was given up or put into quarantine, without its body."""

    id: InboxId
    bot: BotName
    update_id: int | None
    kind: str
    state: InboxState
    claims: int
    received_at_ms: int
    finished_at_ms: int
    reason: str


def receive(tx: Tx, update: Received) -> Receipt:
    """Store the update unless it is already there.

    The same id with another content is no redelivery: it is kept in quarantine, so that nothing
    authentic is lost.
    """
    inserted = tx.insert(
        "inbox.receive",
        {
            "bot": update.bot,
            "update_id": update.update_id,
            "kind": update.kind,
            "chat_lane": update.chat_lane,
            "user_lane": update.user_lane,
            "body": update.body,
            "now_ms": tx.now_ms(),
        },
    )
    if inserted is not None:
        return Receipt(Reception.STORED, InboxId(inserted))
    stored = tx.row("inbox.same", {"bot": update.bot, "update_id": update.update_id})
    assert stored is not None, "an update that was not inserted must be there"
    said = _digest(update.body) if stored["forgotten"] else update.body
    if bytes(stored["body"]) == said:
        return Receipt(Reception.DUPLICATE, InboxId(stored["id"]))
    return quarantine(
        tx, update.bot, update.body, f"update_id {update.update_id} came before with other content"
    )


def pack(updates: Sequence[Received], now_ms: int) -> Params:
    """What the statement `inbox.receive_all` takes: all bodies in one blob, and where each lies."""
    rows: list[tuple[str | int | None, ...]] = []
    # SQLite counts the bytes of a blob from 1.
    start = 1
    for bot, update_id, kind, chat_lane, user_lane, body in updates:
        rows.append((bot, update_id, kind, chat_lane, user_lane, start, len(body)))
        start += len(body)
    bodies = b"".join([each.body for each in updates])
    return {"updates": json.dumps(rows), "bodies": bodies, "now_ms": now_ms}


def receive_all(tx: Tx, updates: Sequence[Received]) -> Sequence[Reception]:
    """Store many updates as `receive` does, in their order; what became of each."""
    return tell_apart(tx, updates, tx.run("inbox.receive_all", pack(updates, tx.now_ms())))


def tell_apart(tx: Tx, updates: Sequence[Received], stored: int) -> Sequence[Reception]:
    """What became of each of these, of which `inbox.receive_all` has just stored so many."""
    if stored == len(updates):
        return [Reception.STORED] * stored
    return _told_apart([receive(tx, each) for each in updates], stored)


def _told_apart(receipts: Sequence[Receipt], stored: int) -> Sequence[Reception]:
    """Tell which of these, all in the inbox by now, came just now: the newest ids, as ids grow."""
    known = sorted({each.id for each in receipts if each.reception is Reception.DUPLICATE})
    fresh = set(known[len(known) - stored :])
    receptions = []
    for each in receipts:
        receptions.append(Reception.STORED if each.id in fresh else each.reception)
        fresh.discard(each.id)
    return receptions


def quarantine(tx: Tx, bot: BotName, body: bytes, reason: str) -> Receipt:
    """Keep the raw bytes of an authentic delivery that is no update; the same ones only once."""
    known = tx.row("inbox.same_quarantined", {"bot": bot, "body": body})
    if known is not None:
        return Receipt(Reception.QUARANTINED, InboxId(known["id"]))
    added = tx.insert(
        "inbox.quarantine", {"bot": bot, "body": body, "reason": reason, "now_ms": tx.now_ms()}
    )
    assert added is not None, "a quarantined row is always inserted"
    return Receipt(Reception.QUARANTINED, InboxId(added))


def pending(tx: Tx, bot: BotName, *, after_id: int, limit: int) -> Sequence[PendingUpdate]:
    """The oldest waiting updates after `after_id`, in order of arrival."""
    rows = tx.rows("inbox.pending", {"bot": bot, "after_id": after_id, "limit": limit})
    return [PendingUpdate(**columns(row)) for row in rows]


def claim(tx: Tx, ids: Sequence[InboxId], epoch: int) -> Sequence[InboxItem]:
    """Take updates for their turns; those that someone else took or finished are left out."""
    items = []
    for update in ids:
        row = tx.row("inbox.claim", {"id": update, "epoch": epoch, "now_ms": tx.now_ms()})
        if row is not None:
            items.append(InboxItem(**columns(row)))
    return items


def finish(tx: Tx, update: InboxId, epoch: int) -> None:
    """Mark the update done, in the transaction that carries all of its turn's effects.

    Raises LeaseLost when the update is no longer in this worker's hand.
    """
    _require_one(
        tx.run("inbox.finish", {"id": update, "epoch": epoch, "now_ms": tx.now_ms()}), update
    )


def bury(tx: Tx, update: InboxId, epoch: int, *, reason: str, trace: str | None) -> None:
    """Give the update up. `reason` and `trace` hold no words of a user.

    Raises LeaseLost when the update is no longer in this worker's hand.
    """
    params = {"id": update, "epoch": epoch, "now_ms": tx.now_ms(), "reason": reason, "trace": trace}
    _require_one(tx.run("inbox.bury", params), update)


def release(tx: Tx, update: InboxId, epoch: int, *, not_before_ms: int = 0) -> None:
    """Give a claimed update back untried; the claim is not counted."""
    tx.run(
        "inbox.release",
        {"id": update, "epoch": epoch, "not_before_ms": not_before_ms, "refund": 1},
    )


def retry(tx: Tx, update: InboxId, epoch: int, *, not_before_ms: int) -> None:
    """Give a claimed update back after a try that failed in passing; the claim stays counted."""
    tx.run(
        "inbox.release",
        {"id": update, "epoch": epoch, "not_before_ms": not_before_ms, "refund": 0},
    )


def rescue(tx: Tx, bot: BotName, epoch: int) -> int:
    """Free what workers of earlier epochs had claimed; give their number."""
    return tx.run("inbox.rescue", {"bot": bot, "epoch": epoch})


def requeue(tx: Tx, update: InboxId) -> bool:
    """Revive a dead update at its old place; False when there is no such dead update."""
    return tx.run("inbox.requeue", {"id": update, "now_ms": tx.now_ms()}) == 1


def depth(tx: Tx, bot: BotName, *, limit: int) -> int:
    """How many updates wait, counted no further than `limit`."""
    row = tx.row("inbox.depth", {"bot": bot, "limit": limit})
    return int(row["depth"]) if row is not None else 0


def show(tx: Tx, update: InboxId) -> InboxRecord | None:
    """One update with everything known of it."""
    row = tx.row("inbox.show", {"id": update})
    return None if row is None else InboxRecord(**columns(row, state=InboxState))


def dead_list(tx: Tx, *, limit: int, sieve: Sieve = ALL) -> Sequence[DeadUpdate]:
    """What was given up or quarantined, newest first."""
    return [
        DeadUpdate(**columns(row, state=InboxState))
        for row in tx.rows("inbox.dead_list", {**sieve.params(), "limit": limit})
    ]


def dead_among(tx: Tx, sieve: Sieve, *, after_id: int, limit: int) -> Sequence[InboxId]:
    """The numbers of dead updates after `after_id`, in order; quarantined ones are none."""
    params = {**sieve.params(), "after_id": after_id, "limit": limit}
    return [InboxId(row["id"]) for row in tx.rows("inbox.dead_among", params)]


def forget(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget what up to `limit` updates said that were done before `before_ms`; not that they came.

    Give their number. A digest is kept in place of each body, so that a redelivery is known.
    """
    rows = tx.rows("inbox.to_forget", {"before_ms": before_ms, "limit": limit})
    tx.many(
        "inbox.forget",
        [{"id": row["id"], "digest": _digest(bytes(row["body"]))} for row in rows],
    )
    return len(rows)


def prune(tx: Tx, *, limit: int) -> int:
    """Forget that up to `limit` updates ever came, the newest `REMEMBERED` excepted."""
    newest = tx.row("inbox.newest", {})
    assert newest is not None, "an aggregate has one row"
    through_id = (newest["id"] or 0) - REMEMBERED
    return tx.run("inbox.prune", {"through_id": through_id, "limit": limit})


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=16).digest()


def _require_one(changed: int, update: InboxId) -> None:
    if changed != 1:
        raise LeaseLost(f"update {update} is no longer in this worker's hand")
