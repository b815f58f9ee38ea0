"""The timetable as APScheduler carries it out, in real milliseconds."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from apscheduler.events import EVENT_JOB_ADDED

from sender.sharing import Sharer
from sender.timetable import ALARM, STEP_MS, ApschedulerDriver, Entry, Every, OnAlarm, entries
from sender.upkeep import Upkeep
from storage.blobs import Blobs
from storage.clock import SystemClock
from storage.retention import Kept
from tests.integration.sender.house import House

_FOREVER = Kept(inbox_days=3650, outbox_days=3650, placeholders_days=3650)


class SteppedClock(SystemClock):
    """The machine's clock, whose wall may be set and whose sleepers are woken by hand."""

    def __init__(self) -> None:
        self.set_by_ms = 0
        self.tick = asyncio.Event()

    def now_ms(self) -> int:
        return super().now_ms() + self.set_by_ms

    async def sleep_ms(self, ms: int) -> None:
        if ms <= 0:
            await super().sleep_ms(0)
            return
        await self.tick.wait()
        self.tick.clear()


class Bell:
    """Counts its rings."""

    def __init__(self) -> None:
        self.rings = 0
        self._rung = asyncio.Event()

    async def ring(self) -> None:
        self.rings += 1
        self._rung.set()

    async def rung(self) -> None:
        async with asyncio.timeout(5):
            await self._rung.wait()
        self._rung.clear()


@pytest.fixture
async def driver() -> AsyncIterator[ApschedulerDriver]:
    """A driver that has not begun."""
    driver = ApschedulerDriver(SystemClock())
    yield driver
    await driver.stop()


def entry(name: str, trigger: Every | OnAlarm, bell: Bell) -> Entry:
    return Entry(name, trigger, reason="a test", body=bell.ring)


async def test_the_alarm_rings_at_its_moment_and_can_be_armed_again(
    driver: ApschedulerDriver,
) -> None:
    bell, clock = Bell(), SystemClock()
    driver.start([entry(ALARM, OnAlarm(), bell)])
    for _ in range(20):
        due_ms = clock.now_ms() + 10
        driver.arm(due_ms)
        await bell.rung()
        assert clock.now_ms() >= due_ms - 1
    assert bell.rings == 20


async def test_of_several_moments_the_earliest_stands(driver: ApschedulerDriver) -> None:
    bell, clock = Bell(), SystemClock()
    driver.start([entry(ALARM, OnAlarm(), bell)])
    now_ms = clock.now_ms()
    driver.arm(now_ms + 60_000)
    driver.arm(now_ms + 20)
    driver.arm(now_ms + 50_000)
    await bell.rung()
    assert clock.now_ms() < now_ms + 5_000


async def test_a_moment_that_has_passed_rings_at_once(driver: ApschedulerDriver) -> None:
    bell = Bell()
    driver.start([entry(ALARM, OnAlarm(), bell)])
    driver.arm(0)
    await bell.rung()


async def test_a_late_alarm_is_never_dropped(driver: ApschedulerDriver) -> None:
    """Its grace is None: a loop that was blocked for longer must not lose its only wake."""
    bell, clock = Bell(), SystemClock()
    driver.start([entry(ALARM, OnAlarm(), bell)])
    due_ms = clock.now_ms() + 5
    driver.arm(due_ms)
    while clock.now_ms() < due_ms + 1_200:
        pass
    await bell.rung()


async def test_what_is_to_be_done_again_and_again_is(driver: ApschedulerDriver) -> None:
    bell = Bell()
    driver.start([entry("tick", Every(20), bell)])
    for _ in range(3):
        await bell.rung()


async def test_a_body_that_raises_is_told_and_done_again(
    driver: ApschedulerDriver, caplog: pytest.LogCaptureFixture
) -> None:
    bell = Bell()

    async def fail() -> None:
        await bell.ring()
        raise ValueError("no")

    driver.start([Entry("bad", Every(20), reason="a test", body=fail)])
    with caplog.at_level(logging.ERROR, logger="ferryman"):
        await bell.rung()
        await bell.rung()
    assert "timer.failed" in caplog.text


@pytest.mark.parametrize(
    ("step_ms", "planned"), [(-3_600_000, ["tick"]), (3_600_000, ["tick"]), (STEP_MS // 2, [])]
)
async def test_a_wall_clock_that_was_set_has_everything_planned_anew(
    step_ms: int, planned: list[str]
) -> None:
    """APScheduler waits for a wall clock that was set back, for as long as it was set back."""
    clock = SteppedClock()
    driver = ApschedulerDriver(clock)
    driver.start([entry("tick", Every(60_000), Bell()), entry(ALARM, OnAlarm(), Bell())])
    try:
        added: list[str] = []
        driver._scheduler.add_listener(lambda event: added.append(event.job_id), EVENT_JOB_ADDED)
        clock.set_by_ms = step_ms
        for _ in range(10):
            clock.tick.set()
            await clock.sleep_ms(0)
        assert added == planned
    finally:
        await driver.stop()


async def test_every_line_of_the_timetable_has_a_name_and_a_reason(house: House) -> None:
    nobody = Sharer("nobody", frozenset(), is_dead=lambda _: True)
    upkeep = Upkeep(
        house.db, house.clock, [], sharer=nobody, kept=_FOREVER, blobs=Blobs(house.folder / "blobs")
    )
    lines = entries(upkeep)
    assert len({line.name for line in lines}) == len(lines)
    assert all(line.reason and line.coalesce and line.grace_ms is None for line in lines)
    assert [line.name for line in lines if isinstance(line.trigger, OnAlarm)] == [ALARM]
    for line in lines:
        await line.body()
