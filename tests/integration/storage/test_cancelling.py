"""Cancelling: what waits ends at once, what is in hand is told apart, and no answer is untrue."""

from dataclasses import dataclass, field
from functools import partial
from itertools import product

import pytest

from storage import cancelling, claims, outbox, reports
from storage.cancelling import LOOKED_MAX, Answer, Cursor, Told, Wanted
from storage.claims import Claim
from storage.database import Database, Tx
from storage.lifecycle import OutboxId, OutboxState, Priority
from storage.outgoing import Outgoing
from tests.integration.storage import hand
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock


async def _leave(db: Database, *calls: Outgoing) -> list[OutboxId]:
    return [(await db.write(partial(outbox.enqueue, bot=BOT, outgoing=each))).id for each in calls]


async def _state(db: Database, row: OutboxId) -> tuple[OutboxState, str | None]:
    found = await db.read(lambda tx: reports.show(tx, row))
    assert found is not None
    return found.state, found.reason


async def _cancel(db: Database, *rows: OutboxId) -> list[Told]:
    answers = await db.write(lambda tx: cancelling.by_ids(tx, BOT, rows, reason="asked"))
    assert [answer.id for answer in answers] == list(rows)
    return [answer.told for answer in answers]


async def test_a_row_that_waits_is_cancelled_and_the_next_one_may_go(db: Database) -> None:
    first, second = await _leave(db, call("a"), call("b"))
    assert await _cancel(db, first) == [Told.CANCELLED]
    assert await _state(db, first) == (OutboxState.CANCELLED, "asked")
    [head] = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    assert head.id == second


async def test_every_row_asked_for_is_answered_for(db: Database) -> None:
    sent, doubtful, waits = await _leave(db, call("a"), call("b"), call("c"))
    await db.write(lambda tx: hand.sent(tx, hand.stamped(tx)))
    await db.write(lambda tx: hand.doubted(tx, hand.stamped(tx)))
    told = await _cancel(db, sent, doubtful, waits, OutboxId(4711))
    assert told == [Told.ENDED, Told.HELD, Told.CANCELLED, Told.UNKNOWN]
    assert await _cancel(db, waits) == [Told.ENDED]


async def test_another_bots_row_is_unknown(db: Database) -> None:
    [row] = await _leave(db, call("a"))
    other = type(BOT)("other")
    answers = await db.write(lambda tx: cancelling.by_ids(tx, other, [row], reason="asked"))
    assert answers == [Answer(row, Told.UNKNOWN, None)]
    assert (await _state(db, row))[0] is OutboxState.QUEUED


async def test_what_one_cause_has_left_is_cancelled_by_its_key(db: Database) -> None:
    first, changed = await _leave(db, call("a"), call("a", text="another"))
    answers = await db.write(lambda tx: cancelling.by_key(tx, BOT, "a", reason="asked"))
    assert {answer.id for answer in answers} == {first, changed}
    assert {answer.told for answer in answers} == {Told.CANCELLED}


async def test_a_chat_is_cancelled_with_its_scheduled_rows_and_no_other(db: Database) -> None:
    rows = await _leave(
        db,
        call("a"),
        call("b", priority=Priority.BULK),
        call("c", not_before_ms=1 << 50),
        call("d", chat_id=71),
    )
    answers = await db.write(lambda tx: cancelling.by_lane(tx, BOT, "c:7", reason="asked"))
    assert sorted(answer.id for answer in answers) == rows[:3]
    assert (await _state(db, rows[3]))[0] is OutboxState.QUEUED


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        (Wanted(), "abcde"),
        (Wanted(priority=Priority.BULK), "b"),
        (Wanted(method="editMessageText"), "c"),
        (Wanted(generation="9"), "d"),
        (Wanted(created_before_ms=0), ""),
        (Wanted(lane="c:8"), "e"),
        (Wanted(lane_prefix="c:"), "abcde"),
        (Wanted(lane_prefix="b:"), ""),
        (Wanted(lane="c:8", priority=Priority.BULK), ""),
    ],
)
async def test_a_dry_run_counts_exactly_what_is_cancelled_then(
    db: Database, wanted: Wanted, keys: str
) -> None:
    names = await _leave(
        db,
        call("a"),
        call("b", priority=Priority.BULK),
        call("c", method="editMessageText"),
        call("d", generation="9", not_before_ms=1 << 50),
        call("e", chat_id=8),
    )
    counted = 0
    cursor: Cursor | None = cancelling.start(wanted)
    while cursor is not None:
        looked = await db.read(partial(cancelling.look, bot=BOT, wanted=wanted, after=cursor))
        counted, cursor = counted + looked.waiting, looked.after
    cancelled: list[OutboxId] = []
    cursor = cancelling.start(wanted)
    while cursor is not None:
        batch = await db.write(
            partial(cancelling.matching, bot=BOT, wanted=wanted, after=cursor, reason="asked")
        )
        cancelled += [answer.id for answer in batch.answers]
        cursor = batch.after
    assert sorted(cancelled) == [names["abcde".index(key)] for key in keys]
    assert counted == len(cancelled)


async def test_much_is_cancelled_in_batches_of_a_bounded_size(db: Database) -> None:
    count = 2 * LOOKED_MAX + 3

    def fill(tx: Tx) -> None:
        for number in range(count):
            later = 1 << 50 if number % 3 == 0 else 0
            outbox.enqueue(tx, BOT, call(f"k{number}", chat_id=number % 5, not_before_ms=later))

    await db.write(fill)
    wanted, sizes = Wanted(), []
    after: Cursor | None = cancelling.start(wanted)
    while after is not None:
        batch = await db.write(
            partial(cancelling.matching, bot=BOT, wanted=wanted, after=after, reason="asked")
        )
        sizes.append(len(batch.answers))
        after = batch.after
    assert sum(sizes) == count
    assert max(sizes) == LOOKED_MAX
    assert await db.read(lambda tx: reports.queue(tx, BOT, limit=9)) == []


async def test_a_call_under_way_that_fails_is_not_tried_again(
    db: Database, clock: VirtualClock
) -> None:
    """It was told as too late; and nobody wants it any more."""
    first, second = await _leave(db, call("a"), call("b"))
    claim = await db.write(hand.stamped)
    assert await _cancel(db, first) == [Told.TOO_LATE]
    due_ms = clock.now_ms() + 60_000
    assert await db.write(lambda tx: hand.handed_back(tx, claim, due_ms)) == "asked"
    assert await _state(db, first) == (OutboxState.CANCELLED, "asked")
    [head] = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    assert head.id == second


@dataclass
class Crossing:
    """One row between a sender and a canceller, step by step."""

    row: OutboxId
    is_refused: bool
    claim: Claim | None = None
    left: int = 0
    told: list[Told] = field(default_factory=list)

    def take(self, tx: Tx) -> None:
        heads = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=1)
        if heads:
            [self.claim] = claims.claim(tx, heads, 1)

    def stamp(self, tx: Tx) -> None:
        if self.claim is None:
            return
        may_leave = bool(claims.stamp(tx, [self.claim]))
        self.left += may_leave
        if not may_leave:
            hand.handed_back(tx, self.claim)
            self.claim = None

    def settle(self, tx: Tx) -> None:
        if self.claim is None:
            return
        if self.is_refused:
            hand.handed_back(tx, self.claim)
        else:
            hand.sent(tx, self.claim)
        self.claim = None

    def cancel(self, tx: Tx) -> None:
        [answer] = cancelling.by_ids(tx, BOT, [self.row], reason="asked")
        self.told.append(answer.told)


STEPS = ("take", "stamp", "settle")


def orders(cancels: int) -> list[tuple[str, ...]]:
    """Every way in which so many cancels fall among two tries of a sender."""
    tries = STEPS * 2
    found = []
    for places in product(range(len(tries) + 1), repeat=cancels):
        if list(places) == sorted(places):
            order: list[str] = []
            for index in range(len(tries) + 1):
                order += ["cancel"] * places.count(index)
                order += tries[index : index + 1]
            found.append(tuple(order))
    return found


@pytest.mark.parametrize("is_refused", [False, True], ids=["accepted", "refused"])
async def test_a_cancel_is_told_the_truth_wherever_it_falls(
    db: Database, clock: VirtualClock, *, is_refused: bool
) -> None:
    """Every order of one or two cancels and two tries, each step a transaction of its own."""
    seen: set[tuple[Told, ...]] = set()
    for number, order in enumerate([*orders(1), *orders(2)]):
        [row] = await _leave(db, call(f"k{number}"))
        crossing = Crossing(row, is_refused)
        for step in order:
            left_before = crossing.left
            await db.write(getattr(crossing, step))
            if Told.CANCELLED in crossing.told and step == "stamp":
                assert crossing.left == left_before, f"{order}: it left after it was cancelled"
        state, _ = await _state(db, row)
        seen.add(tuple(crossing.told))
        if Told.CANCELLED in crossing.told:
            assert state is OutboxState.CANCELLED, order
        if crossing.told[0] is Told.CANCELLED and not is_refused:
            assert not crossing.left, order
        if crossing.told[0] is Told.TOO_LATE:
            assert crossing.left, order
            assert state is (OutboxState.CANCELLED if is_refused else OutboxState.SENT), order
        await db.write(lambda tx: cancelling.by_lane(tx, BOT, "c:7", reason="the next order"))
    assert {told[0] for told in seen} >= {Told.CANCELLED, Told.TOO_LATE}
