"""Waits that Telegram ordered are kept, whatever is done to the wall clock."""

from storage import cooldowns, retention
from storage.clock import deadline_in, remaining_ms
from storage.cooldowns import Cooldown
from storage.database import Database
from storage.lifecycle import BotName
from storage.retention import Kept
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
MONTH_MS = 30 * 86_400_000


async def _kept(db: Database, clock: VirtualClock) -> list[Cooldown]:
    await db.write(lambda tx: retention.prune(tx, Kept(7, 30, 400), clock))
    return list(await db.read(lambda tx: cooldowns.of_bot(tx, BOT)))


async def test_a_wait_outlives_a_wall_clock_that_is_set_ahead(
    db: Database, clock: VirtualClock
) -> None:
    """The wall says that it was over weeks ago; the boot clock, that it has hardly begun."""
    deadline = deadline_in(600_000, clock)
    await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", deadline, reason="flood"))
    clock.step_wall_ms(MONTH_MS)
    assert len(await _kept(db, clock)) == 1


async def test_a_wait_that_is_over_by_both_clocks_is_forgotten(
    db: Database, clock: VirtualClock
) -> None:
    deadline = deadline_in(600_000, clock)
    await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", deadline, reason="flood"))
    clock.advance_ms(2 * 86_400_000)
    assert await _kept(db, clock) == []


async def test_after_a_reboot_the_wall_clock_alone_tells(db: Database, clock: VirtualClock) -> None:
    deadline = deadline_in(600_000, clock)
    await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", deadline, reason="flood"))
    clock.reboot("boot-2")
    clock.step_wall_ms(MONTH_MS)
    assert await _kept(db, clock) == []


async def test_a_wait_from_before_a_reboot_into_the_past_is_waited_out_once(
    db: Database, clock: VirtualClock
) -> None:
    """However often its owner looks; found in a world in which a chat was never spoken to again."""
    deadline = deadline_in(600_000, clock)
    await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", deadline, reason="flood"))
    clock.reboot("boot-2")
    clock.step_wall_ms(-MONTH_MS)
    left_ms = []
    for _ in range(3):
        await db.write(lambda tx: cooldowns.redate(tx, BOT, clock))
        (kept,) = await db.read(lambda tx: cooldowns.of_bot(tx, BOT))
        left_ms.append(remaining_ms(kept.deadline, clock))
        clock.advance_ms(300_000)
    assert left_ms == [600_000, 300_000, 0]


async def test_a_wait_from_before_a_reboot_keeps_the_end_that_the_wall_clock_tells(
    db: Database, clock: VirtualClock
) -> None:
    """One that is ahead for a moment, until it is set right, must not cost the rest of the wait."""
    deadline = deadline_in(600_000, clock)
    await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", deadline, reason="flood"))
    clock.reboot("boot-2")
    clock.step_wall_ms(MONTH_MS)
    await db.write(lambda tx: cooldowns.redate(tx, BOT, clock))
    clock.step_wall_ms(-MONTH_MS)
    clock.advance_ms(200_000)
    await db.write(lambda tx: cooldowns.redate(tx, BOT, clock))
    (kept,) = await db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert remaining_ms(kept.deadline, clock) == 400_000


async def test_a_wait_that_only_seems_far_off_gives_way_to_a_longer_one(
    db: Database, clock: VirtualClock
) -> None:
    """It was dated before the clock was set back by a month, and lasts no longer than it was to."""
    first = deadline_in(60_000, clock)
    await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", first, reason="flood"))
    clock.reboot("boot-2")
    clock.step_wall_ms(-MONTH_MS)
    shorter, longer = deadline_in(59_000, clock), deadline_in(600_000, clock)
    assert not await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", shorter, reason="flood"))
    assert await db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", longer, reason="flood"))
