"""Cancelling: end what somebody does not want said any more, and tell exactly what was too late.

Plain functions of a transaction. A row that waits ends at once. A row in a sender's hand is asked
to end: not stamped yet, it is left out of the stamp and never leaves; stamped already, it may have
arrived, so that it keeps its truth, and is only not tried again. Since claim, stamp and cancel are
transactions on one file, each of them sees what committed before it, and no row is told cancelled
that is sent.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from storage import ending
from storage.carriers import Params, Row
from storage.database import Tx
from storage.lifecycle import AttemptStage, BotName, OutboxId, OutboxState, Priority

LOOKED_MAX = 500
"""Rows that one batch looks at, whether or not they fit: its transaction must stay short."""

_HIGHEST = "\U0010ffff"


class Told(StrEnum):
    """What became of the wish to cancel a row.

    cancelled  it will never be sent
    too_late   its call is under way; should it fail, it is not tried again
    held       it waits for a person's decision already, as it may have arrived
    ended      it had ended before
    unknown    this bot has no such row
    """

    CANCELLED = "cancelled"
    TOO_LATE = "too_late"
    HELD = "held"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a canceller is told of one row; `state` is the one that it was found in."""

    id: OutboxId
    told: Told
    state: OutboxState | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which waiting rows are meant: those that fit everything that is given here.

    `created_before_ms` is UTC. `lane` is one chat's, `lane_prefix` stands for many.
    """

    lane: str | None = None
    lane_prefix: str = ""
    priority: Priority | None = None
    method: str | None = None
    generation: str | None = None
    created_before_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a batch has looked: rows that stand in lanes first, then those not joined yet."""

    lane: str
    priority: str = ""
    id: int = 0
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Looked:
    """Rows that fit, of one batch; `after` is where the next one goes on, None at the end."""

    waiting: int
    in_hand: int
    after: Cursor | None


@dataclass(frozen=True, slots=True)
class Batch:
    """What was answered about the rows of one batch; `after` is None at the end."""

    answers: Sequence[Answer]
    after: Cursor | None


def by_ids(
    tx: Tx, bot: BotName, rows: Sequence[OutboxId], *, reason: str, is_dry: bool = False
) -> Sequence[Answer]:
    """Cancel these rows of a bot; one answer for each, in their order.

    `is_dry`: change nothing, and answer as if it were done now.
    """
    found = tx.rows("cancelling.by_ids", {"bot": bot, "ids": json.dumps(list(rows))})
    told = _told(found) if is_dry else carry_out(tx, bot, found, reason=reason)
    answers = {answer.id: answer for answer in told}
    return [answers.get(row, Answer(row, Told.UNKNOWN, None)) for row in rows]


def by_key(
    tx: Tx, bot: BotName, key: str, *, reason: str, is_dry: bool = False
) -> Sequence[Answer]:
    """Cancel what one cause has left; empty when nothing has that key. `is_dry` as in `by_ids`."""
    found = tx.rows("cancelling.by_key", {"bot": bot, "key": key})
    return _told(found) if is_dry else carry_out(tx, bot, found, reason=reason)


def by_lane(tx: Tx, bot: BotName, lane: str, *, reason: str) -> Sequence[Answer]:
    """Cancel all that waits for one chat, scheduled or not, in one transaction."""
    answers: list[Answer] = []
    wanted = Wanted(lane=lane)
    after: Cursor | None = start(wanted)
    while after is not None:
        batch = matching(tx, bot, wanted, after, reason=reason)
        answers += batch.answers
        after = batch.after
    return answers


def start(wanted: Wanted) -> Cursor:
    """Where the first batch begins."""
    return Cursor(wanted.lane_prefix if wanted.lane is None else wanted.lane)


def matching(tx: Tx, bot: BotName, wanted: Wanted, after: Cursor, *, reason: str) -> Batch:
    """Cancel one batch of the rows that fit."""
    rows, goes_on = _look(tx, bot, wanted, after)
    return Batch(carry_out(tx, bot, rows, reason=reason), goes_on)


def look(tx: Tx, bot: BotName, wanted: Wanted, after: Cursor) -> Looked:
    """Count one batch of the rows that fit, and change nothing."""
    rows, goes_on = _look(tx, bot, wanted, after)
    in_hand = sum(row["state"] == OutboxState.CLAIMED for row in rows)
    return Looked(len(rows) - in_hand, in_hand, goes_on)


def carry_out(tx: Tx, bot: BotName, rows: Sequence[Row], *, reason: str) -> Sequence[Answer]:
    """Cancel what may be cancelled of these rows, and tell what became of each.

    Each is given with its `id`, `lane`, `priority`, `joined`, `state`, and the `stage` of the last
    attempt where it is claimed.
    """
    answers = _told(rows)
    waiting = [
        ending.Waiting(row["id"], row["lane"], row["priority"], bool(row["joined"]))
        for row in rows
        if row["state"] == OutboxState.QUEUED
    ]
    ending.end_all(tx, bot, waiting, OutboxState.CANCELLED, reason)
    in_hand = [row["id"] for row in rows if row["state"] == OutboxState.CLAIMED]
    if in_hand:
        tx.run("cancelling.ask", {"ids": json.dumps(in_hand), "reason": reason})
    return answers


def _told(rows: Sequence[Row]) -> Sequence[Answer]:
    return [_answer(row) for row in rows]


def _answer(row: Row) -> Answer:
    state = OutboxState(row["state"])
    told = Told.ENDED
    if state is OutboxState.CLAIMED:
        is_unstamped = row["stage"] == AttemptStage.CLAIMED
        told = Told.CANCELLED if is_unstamped else Told.TOO_LATE
    elif state is OutboxState.QUEUED:
        told = Told.CANCELLED
    elif state in {OutboxState.UNCERTAIN, OutboxState.REVIEW}:
        told = Told.HELD
    return Answer(OutboxId(row["id"]), told, state)


def _look(
    tx: Tx, bot: BotName, wanted: Wanted, after: Cursor
) -> tuple[Sequence[Row], Cursor | None]:
    """The rows of one batch that fit, and where the next batch begins."""
    end = wanted.lane_prefix + _HIGHEST if wanted.lane is None else wanted.lane + "\x00"
    params: Params = {
        "bot": bot,
        "lane": after.lane,
        "priority": after.priority,
        "id": after.id,
        "end": end,
        "limit": LOOKED_MAX,
    }
    rows = tx.rows("cancelling.joined" if after.joined else "cancelling.scheduled", params)
    fitting = [row for row in rows if _fits(row, wanted)]
    if len(rows) == LOOKED_MAX:
        last = rows[-1]
        return fitting, replace(after, lane=last["lane"], priority=last["priority"], id=last["id"])
    return fitting, replace(start(wanted), joined=False) if after.joined else None


def _fits(row: Row, wanted: Wanted) -> bool:
    before_ms = wanted.created_before_ms
    return (
        (wanted.priority is None or row["priority"] == wanted.priority)
        and (wanted.method is None or row["method"] == wanted.method)
        and (wanted.generation is None or row["generation"] == wanted.generation)
        and (before_ms is None or row["created_at_ms"] < before_ms)
    )
