"""Withdrawals: what has happened in a chat ends what waits there for it, and is remembered."""

from functools import partial
from typing import Any

import pytest

from storage import claims, outbox, reports, withdrawals
from storage.claims import Standing
from storage.database import Database, Tx
from storage.lifecycle import OutboxId, OutboxState, Priority, Withdrawal
from storage.outgoing import Outgoing, Source
from storage.withdrawals import LOOKED_MAX, Noted
from tests.integration.storage import hand
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

ANSWERS: dict[str, Any] = {"source": Source("c:7", 55)}
EDITED, DELETED = Withdrawal.MESSAGE_EDITED, Withdrawal.MESSAGE_DELETED
STOPPED, ANSWERED = Withdrawal.GENERATION_STOPPED, Withdrawal.PERSON_ANSWERED


async def _leave(db: Database, *calls: Outgoing) -> list[OutboxId]:
    return [(await db.write(partial(outbox.enqueue, bot=BOT, outgoing=each))).id for each in calls]


async def _note(
    db: Database, what: Withdrawal, subject: str = "", *, at_ms: int, lane: str = "c:7"
) -> Noted:
    return await db.write(
        lambda tx: withdrawals.note(tx, BOT, lane, what, subject=subject, at_ms=at_ms)
    )


async def _state(db: Database, row: OutboxId) -> tuple[OutboxState, str | None]:
    found = await db.read(lambda tx: reports.show(tx, row))
    assert found is not None
    return found.state, found.reason


@pytest.mark.parametrize(
    ("what", "subject", "wishes", "is_ended"),
    [
        (DELETED, "55", ANSWERS, True),
        (DELETED, "56", ANSWERS, False),
        (DELETED, "55", {}, False),
        (DELETED, "55", {"source": Source("c:8", 55)}, False),
        (EDITED, "55", ANSWERS, False),
        (EDITED, "55", {**ANSWERS, "cancel_on_edit": True}, True),
        (EDITED, "56", {**ANSWERS, "cancel_on_edit": True}, False),
        (STOPPED, "9", {"generation": "9"}, True),
        (STOPPED, "9", {"generation": "8"}, False),
        (STOPPED, "9", {}, False),
        (ANSWERED, "", {}, True),
        (ANSWERED, "", {"priority": Priority.BULK}, True),
        (ANSWERED, "", {"not_before_ms": 1 << 50}, True),
        (ANSWERED, "", {"chat_id": 8, "lane": "c:8"}, False),
    ],
)
async def test_what_waits_ends_when_its_reason_goes(
    db: Database,
    clock: VirtualClock,
    what: Withdrawal,
    subject: str,
    wishes: dict[str, Any],
    *,
    is_ended: bool,
) -> None:
    [row] = await _leave(db, call("a", **wishes))
    noted = await _note(db, what, subject, at_ms=clock.now_ms() + 1)
    assert (noted.cancelled, noted.too_late) == ([row] if is_ended else [], [])
    expected = (OutboxState.CANCELLED, withdrawals.REASONS[what])
    assert await _state(db, row) == (expected if is_ended else (OutboxState.QUEUED, None))


@pytest.mark.parametrize("what", [ANSWERED, STOPPED, EDITED])
async def test_a_cause_later_than_that_is_another_one(
    db: Database, clock: VirtualClock, what: Withdrawal
) -> None:
    now_ms = clock.now_ms()
    wishes: dict[str, Any] = {**ANSWERS, "cancel_on_edit": True, "generation": "55"}
    rows = await _leave(
        db,
        call("a", caused_at_ms=now_ms - 10, **wishes),
        call("b", caused_at_ms=now_ms + 10, **wishes),
    )
    noted = await _note(db, what, "55" if what is not ANSWERED else "", at_ms=now_ms)
    assert noted.cancelled == rows[:1]


async def test_a_row_in_hand_is_left_out_of_the_stamp_and_one_under_way_is_too_late(
    db: Database, clock: VirtualClock
) -> None:
    await _leave(db, call("a"), call("b", priority=Priority.BULK), call("c", chat_id=8))
    claim = await db.write(hand.claimed)
    noted = await _note(db, ANSWERED, at_ms=clock.now_ms() + 1)
    assert sorted(noted.cancelled) == [1, 2]
    assert await db.write(lambda tx: claims.stamp(tx, [claim])) == frozenset()
    under_way = await db.write(hand.stamped)
    noted = await _note(db, ANSWERED, at_ms=clock.now_ms() + 1, lane="c:8")
    assert (noted.cancelled, noted.too_late) == ([], [under_way.item.id])


async def test_what_was_noted_meets_a_row_that_is_left_after_it(
    db: Database, clock: VirtualClock
) -> None:
    """A turn that was late answers a message that is gone: the claim is told."""
    at_ms = clock.now_ms()
    await _note(db, ANSWERED, at_ms=at_ms)
    await _note(db, ANSWERED, at_ms=at_ms - 5)
    await _note(db, DELETED, "55", at_ms=at_ms + 1)
    await _note(db, EDITED, "55", at_ms=at_ms + 2)
    await _note(db, STOPPED, "9", at_ms=at_ms + 3)
    await _leave(db, call("a", generation="9", **ANSWERS), call("b", chat_id=8))

    def look(tx: Tx) -> list[Standing]:
        heads = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9)
        return list(claims.standings(tx, heads).values())

    assert await db.write(look) == [
        Standing(
            answered_at_ms=at_ms,
            deleted_at_ms=at_ms + 1,
            edited_at_ms=at_ms + 2,
            stopped_at_ms=at_ms + 3,
        ),
        Standing(),
    ]


async def test_a_long_queue_is_looked_at_in_part_and_the_rest_at_the_next_call(
    db: Database, clock: VirtualClock
) -> None:
    def fill(tx: Tx) -> None:
        for number in range(LOOKED_MAX + 10):
            outbox.enqueue(tx, BOT, call(f"k{number}"))

    await db.write(fill)
    first = await _note(db, ANSWERED, at_ms=clock.now_ms() + 1)
    assert (len(first.cancelled), first.maybe_more) == (LOOKED_MAX, True)
    second = await _note(db, ANSWERED, at_ms=clock.now_ms() + 1)
    assert (len(second.cancelled), second.maybe_more) == (10, False)


@pytest.mark.parametrize("not_before_ms", [0, 1 << 50])
async def test_what_was_noted_is_kept_as_long_as_something_waits_there(
    db: Database, clock: VirtualClock, not_before_ms: int
) -> None:
    await _note(db, DELETED, "55", at_ms=clock.now_ms())
    await _note(db, DELETED, "55", at_ms=clock.now_ms(), lane="c:8")
    await _leave(db, call("a", not_before_ms=not_before_ms))
    clock.advance_ms(1_000)
    forgotten = await db.write(
        lambda tx: withdrawals.prune(tx, before_ms=tx.now_ms() - 2_000, limit=9)
    )
    assert forgotten == 0
    assert await db.write(lambda tx: withdrawals.prune(tx, before_ms=tx.now_ms(), limit=9)) == 1
    await db.write(lambda tx: outbox.cancel_lane(tx, BOT, "c:7", reason="r"))
    expected = 0 if not_before_ms else 1
    assert (
        await db.write(lambda tx: withdrawals.prune(tx, before_ms=tx.now_ms(), limit=9)) == expected
    )
