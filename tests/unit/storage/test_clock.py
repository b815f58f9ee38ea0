"""Deadlines that outlive the process, and the doors to time and chance."""

import asyncio
from pathlib import Path

from storage import clock as doors
from storage.clock import SystemClock, SystemDice, deadline_in, hex_name, remaining_ms
from tests.simulator.clock import VirtualClock

HOUR_MS = 3_600_000


def test_a_deadline_comes_nearer_as_time_passes() -> None:
    clock = VirtualClock()
    deadline = deadline_in(5_000, clock)
    assert remaining_ms(deadline, clock) == 5_000
    clock.advance_ms(4_999)
    assert remaining_ms(deadline, clock) == 1
    clock.advance_ms(10_000)
    assert remaining_ms(deadline, clock) == 0


def test_a_clock_set_forward_makes_nobody_early() -> None:
    """Within one boot the wall clock is not believed."""
    clock = VirtualClock()
    deadline = deadline_in(HOUR_MS, clock)
    clock.step_wall_ms(24 * HOUR_MS)
    assert remaining_ms(deadline, clock) == HOUR_MS


def test_a_clock_set_back_makes_nobody_late() -> None:
    clock = VirtualClock()
    deadline = deadline_in(HOUR_MS, clock)
    clock.step_wall_ms(-24 * HOUR_MS)
    clock.advance_ms(HOUR_MS)
    assert remaining_ms(deadline, clock) == 0


def test_after_a_reboot_wall_time_counts() -> None:
    clock = VirtualClock()
    deadline = deadline_in(HOUR_MS, clock)
    clock.reboot("boot-2")
    clock.advance_ms(HOUR_MS // 2)
    assert remaining_ms(deadline, clock) == HOUR_MS // 2


def test_after_a_reboot_into_the_past_the_wait_is_at_most_the_whole_one() -> None:
    """A dead clock battery must not hold a chat for years."""
    clock = VirtualClock()
    deadline = deadline_in(HOUR_MS, clock)
    clock.reboot("boot-2")
    clock.step_wall_ms(-365 * 24 * HOUR_MS)
    assert remaining_ms(deadline, clock) == HOUR_MS


def test_the_system_clock_agrees_with_itself() -> None:
    clock = SystemClock()
    before = (clock.now_ms(), clock.monotonic_ms(), clock.boot_ms())
    asyncio.run(clock.sleep_ms(2))
    asyncio.run(clock.sleep_ms(-5))
    after = (clock.now_ms(), clock.monotonic_ms(), clock.boot_ms())
    assert after[1] > before[1]
    assert after[2] > before[2]
    assert clock.boot_id == SystemClock().boot_id


def test_a_system_without_boot_ids_gets_one_that_equals_no_stored_one(tmp_path: Path) -> None:
    made_up = doors._boot_id(tmp_path / "none")
    assert made_up.startswith("process-")
    assert made_up != doors._boot_id(tmp_path / "neither")


def test_dice_fall_between_zero_and_one_and_name_things() -> None:
    dice = SystemDice()
    assert all(0 <= dice.random() < 1 for _ in range(100))
    name = hex_name(dice)
    assert len(name) == 8
    int(name, 16)


def test_the_extreme_dice_still_make_eight_digits() -> None:
    class Fixed:
        def __init__(self, value: float) -> None:
            self._value = value

        def random(self) -> float:
            return self._value

    assert hex_name(Fixed(0.0)) == "00000000"
    assert hex_name(Fixed(1 - 2**-53)) == "ffffffff"
