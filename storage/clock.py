"""The only door to time and chance.

Everything that waits, dates or rolls dice takes a `Clock` or a `Dice` through its constructor, so
that tests and simulated worlds can hand in their own. `SystemClock` has no setter: production
time cannot be stubbed. No other module may read a clock, sleep for time to pass, or draw a random
number.
"""

import asyncio
import random
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Protocol

BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
# Where the system has no clock that counts through suspension, the monotonic one must do.
_BOOT_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_NS_PER_MS = 1_000_000


class Clock(Protocol):
    """Time, as everything in the house sees it. All values are integer milliseconds."""

    def now_ms(self) -> int:
        """Wall time, UTC, since 1970. It may step either way."""

    def monotonic_ms(self) -> int:
        """Time that never steps back; its zero has no meaning and differs between processes."""

    def boot_ms(self) -> int:
        """Time since this machine booted, suspension included; comparable within one boot."""

    @property
    def boot_id(self) -> str:
        """Name of this boot: equal ids mean that two `boot_ms` may be compared."""

    async def sleep_ms(self, ms: int) -> None:
        """Wait `ms` milliseconds; zero or less only lets others run."""


class SystemClock:
    """The kernel's clocks."""

    def now_ms(self) -> int:
        """Wall time, UTC, in milliseconds since 1970."""
        return time.time_ns() // _NS_PER_MS

    def monotonic_ms(self) -> int:
        """Milliseconds that never step back."""
        return time.monotonic_ns() // _NS_PER_MS

    def boot_ms(self) -> int:
        """Milliseconds since boot, suspension included where the system can count it."""
        return time.clock_gettime_ns(_BOOT_CLOCK) // _NS_PER_MS

    @property
    def boot_id(self) -> str:
        """The kernel's boot id, or one of this process where the kernel names none."""
        return _boot_id(BOOT_ID_FILE)

    async def sleep_ms(self, ms: int) -> None:
        """Wait `ms` milliseconds; zero or less only lets others run."""
        await asyncio.sleep(max(0, ms) / 1000)


class Dice(Protocol):
    """Chance, as everything in the house sees it."""

    def random(self) -> float:
        """A number in [0, 1)."""


class SystemDice:
    """The operating system's randomness: unguessable, and unlike in any two processes."""

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def random(self) -> float:
        """A number in [0, 1)."""
        return self._source.random()


def hex_name(dice: Dice) -> str:
    """Eight random hexadecimal digits, for names that two processes must not share."""
    return f"{int(dice.random() * 16**8):08x}"


@dataclass(frozen=True, slots=True)
class BootMoment:
    """A moment by the clock that counts from boot; comparable with others of the same boot."""

    boot_id: str
    boot_ms: int


NO_BOOT: Final = BootMoment("", 0)
"""A moment of no known boot: only wall time tells."""


def boot_moment(clock: Clock) -> BootMoment:
    """Now, by the clock that counts from boot."""
    return BootMoment(clock.boot_id, clock.boot_ms())


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment that outlives the process: the same instant on two clocks, and the wait it ends."""

    wall_ms: int
    boot_id: str
    boot_ms: int
    wait_ms: int


def deadline_in(wait_ms: int, clock: Clock) -> Deadline:
    """The deadline `wait_ms` milliseconds from now."""
    return Deadline(
        wall_ms=clock.now_ms() + wait_ms,
        boot_id=clock.boot_id,
        boot_ms=clock.boot_ms() + wait_ms,
        wait_ms=wait_ms,
    )


def remaining_ms(deadline: Deadline, clock: Clock) -> int:
    """Milliseconds left until the deadline, zero once it has passed.

    Within one boot the boot clock alone is believed, as wall time may have been stepped. After a
    reboot only wall time is left; the wait is then at most the whole original one, so that a clock
    that was set back cannot hold a chat for days. That is so of one look: who looks again and again
    has the deadline dated anew first (`storage.cooldowns.redate`).
    """
    if deadline.boot_id == clock.boot_id:
        return max(0, deadline.boot_ms - clock.boot_ms())
    return min(max(0, deadline.wall_ms - clock.now_ms()), deadline.wait_ms)


@cache
def _boot_id(file: Path) -> str:
    try:
        return file.read_text("ascii").strip()
    except OSError:
        # A made-up id equals no stored one, so that stored deadlines fall back to wall time.
        return f"process-{random.SystemRandom().getrandbits(64):016x}"
