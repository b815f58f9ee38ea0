"""The virtual clock: nothing moves by itself, and sleepers wake in order."""

import asyncio

import pytest

from tests.simulator.clock import RealClock, VirtualClock


async def test_sleepers_wake_in_the_order_of_their_due_times_whoever_began_first() -> None:
    clock = VirtualClock()
    woken: list[tuple[str, int]] = []

    async def doze(name: str, ms: int) -> None:
        await clock.sleep_ms(ms)
        woken.append((name, clock.monotonic_ms()))

    sleepers = [asyncio.create_task(doze(*each)) for each in (("late", 70), ("soon", 20))]
    await clock.travel_ms(100)

    assert woken == [("soon", 20), ("late", 70)]
    assert clock.monotonic_ms() == 100
    await asyncio.gather(*sleepers)


async def test_a_sleeper_that_sleeps_again_is_woken_again_on_the_same_journey() -> None:
    clock = VirtualClock()
    ticks: list[int] = []

    async def tick() -> None:
        while True:
            await clock.sleep_ms(10)
            ticks.append(clock.monotonic_ms())

    ticking = asyncio.create_task(tick())
    await clock.travel_ms(35)
    ticking.cancel()

    assert ticks == [10, 20, 30]


async def test_a_leap_wakes_everybody_at_its_end() -> None:
    clock = VirtualClock()
    sleeper = asyncio.create_task(clock.sleep_ms(10))
    await asyncio.sleep(0)

    clock.advance_ms(50)
    await sleeper

    assert clock.monotonic_ms() == 50
    assert clock.next_due_ms() is None


async def test_a_cancelled_sleeper_is_no_longer_due() -> None:
    clock = VirtualClock()
    sleeper = asyncio.create_task(clock.sleep_ms(10))
    await asyncio.sleep(0)
    sleeper.cancel()
    await asyncio.gather(sleeper, return_exceptions=True)

    assert clock.next_due_ms() is None


def test_the_wall_clock_can_be_stepped_without_time_passing() -> None:
    clock = VirtualClock(start_ms=1_000_000)
    clock.advance_ms(5)
    clock.step_wall_ms(-400)

    assert (clock.now_ms(), clock.monotonic_ms(), clock.boot_ms()) == (999_605, 5, 5)


def test_a_reboot_starts_the_boot_clock_anew_under_another_name() -> None:
    clock = VirtualClock()
    clock.advance_ms(5)
    clock.reboot("boot-2")
    clock.advance_ms(2)

    assert (clock.boot_ms(), clock.boot_id, clock.monotonic_ms()) == (2, "boot-2", 7)


def test_the_same_boot_cannot_happen_twice() -> None:
    with pytest.raises(AssertionError):
        VirtualClock().reboot("boot-1")


async def test_the_real_clock_tells_all_times_in_milliseconds() -> None:
    clock = RealClock()
    before_ms = clock.monotonic_ms()
    await clock.sleep_ms(1)

    assert clock.monotonic_ms() >= before_ms
    assert clock.now_ms() > 1_700_000_000_000
    assert clock.boot_ms() > 0
    assert clock.boot_id == RealClock().boot_id
