"""Waits that Telegram ordered are kept, whatever is done to the wall clock."""

from storage import cooldowns, retention
from storage.clock import deadline_in
from storage.cooldowns import Cooldown
from storage.database import Database
from storage.lifecycle import BotName
from storage.retention import Kept
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
MONTH_MS = 30 * 86_400_000


async def _kept(db: Database, clock: VirtualClock) -> list[Cooldown]:
    await db.write(lambda tx: retention.prune(tx, Kept(7, 30), clock))
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
