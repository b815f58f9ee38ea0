"""A wall clock that is set back makes nothing of ours wait for the time that was taken back."""

from functools import partial

import pytest

from storage import claims, heartbeats, leases, outbox, redating
from storage.database import Database, Tx
from storage.heartbeats import RoleState
from storage.leases import LEASE_MS
from storage.lifecycle import Priority
from tests.integration.storage.calls import BOT, call
from tests.integration.storage.hand import claimed, handed_back
from tests.simulator.clock import VirtualClock

MONTH_MS = 30 * 86_400_000


def _beat(tx: Tx, owner: str = "sender.1") -> None:
    heartbeats.beat(tx, owner, "sender", RoleState.READY)


def _is_due(tx: Tx) -> bool:
    return bool(claims.heads(tx, BOT, Priority.INTERACTIVE, limit=1))


async def _set_back(db: Database, clock: VirtualClock, by_ms: int) -> int:
    """Beat, set the clock back, and notice; how much was noticed."""
    await db.write(_beat)
    clock.step_wall_ms(-by_ms)
    return await db.write(redating.redate)


async def test_a_row_that_is_to_be_tried_again_waits_as_long_as_it_was_to(
    db: Database, clock: VirtualClock
) -> None:
    due_ms = clock.now_ms() + 30_000
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a")))
    await db.write(lambda tx: handed_back(tx, claimed(tx), due_ms))

    assert await _set_back(db, clock, MONTH_MS) == MONTH_MS

    clock.advance_ms(29_999)
    assert not await db.read(_is_due)
    clock.advance_ms(1)
    assert await db.read(_is_due)


async def test_what_a_person_has_scheduled_keeps_its_moment(
    db: Database, clock: VirtualClock
) -> None:
    at_ms = clock.now_ms() + 30_000
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a", not_before_ms=at_ms)))

    await _set_back(db, clock, MONTH_MS)

    clock.advance_ms(MONTH_MS + 29_999)
    assert await db.write(partial(outbox.join_scheduled, bot=BOT)) == 0
    clock.advance_ms(1)
    assert await db.write(partial(outbox.join_scheduled, bot=BOT)) == 1
    assert await db.read(_is_due)


async def test_a_lease_ends_when_it_was_to(db: Database, clock: VirtualClock) -> None:
    take = partial(leases.take, name="sender:main", is_dead=lambda _: False)
    await db.write(partial(take, owner="a"))

    await _set_back(db, clock, MONTH_MS)

    assert await db.write(partial(take, owner="b")) is None
    clock.advance_ms(LEASE_MS)
    assert await db.write(partial(take, owner="b")) is not None


@pytest.mark.parametrize("by_ms", [redating.SET_BACK_MS_MIN - 1, 0, -MONTH_MS])
async def test_a_clock_that_was_steered_or_set_forward_changes_nothing(
    db: Database, clock: VirtualClock, by_ms: int
) -> None:
    assert await _set_back(db, clock, by_ms) == 0


async def test_a_step_is_noticed_once_however_many_were_heard_before_it(
    db: Database, clock: VirtualClock
) -> None:
    await db.write(partial(_beat, owner="sender.2"))
    assert await _set_back(db, clock, MONTH_MS) == MONTH_MS
    assert await db.write(redating.redate) == 0


async def test_what_a_process_has_seen_itself_is_exact(db: Database, clock: VirtualClock) -> None:
    await db.write(_beat)
    clock.advance_ms(4_000)
    clock.step_wall_ms(-MONTH_MS)
    redate = partial(redating.redate, seen_ms=MONTH_MS)
    assert await db.write(redate) == MONTH_MS
    assert await db.write(redate) == 0


async def test_where_nobody_was_ever_heard_nothing_is_noticed(db: Database) -> None:
    assert await db.write(redating.redate) == 0
