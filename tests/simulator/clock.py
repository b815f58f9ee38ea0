"""Time for the simulator and for simulated worlds.

The simulator measures with its own watch: a fault in the product's clock must not hide itself in
the judge's. This is the only file here that reads the machine's time.
"""

import asyncio
import heapq
import itertools
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

# 2027-01-15T08:00:00Z: any fixed moment will do.
START_MS = 1_800_000_000_000

# Rounds of the event loop after which woken tasks have come to rest again in a virtual world.
SETTLE_ROUNDS = 50


class Clock(Protocol):
    """What the product and the simulator ask of a clock; all times are integer milliseconds."""

    def now_ms(self) -> int:
        """Wall time, UTC."""

    def monotonic_ms(self) -> int:
        """Time that never steps back within a process."""

    def boot_ms(self) -> int:
        """Time since the machine started, sleep included."""

    @property
    def boot_id(self) -> str:
        """Name of this start of the machine."""

    async def sleep_ms(self, ms: int) -> None:
        """Wait that long."""


async def settle(rounds: int = SETTLE_ROUNDS) -> None:
    """Let every task that is ready run until it waits again."""
    for _ in range(rounds):
        await asyncio.sleep(0)


class VirtualClock:
    """A clock that moves only when told to, and wakes sleepers in the order of their due times."""

    def __init__(self, start_ms: int = START_MS, boot_id: str = "boot-1") -> None:
        """Start at `start_ms` of wall time, on a machine that has just booted."""
        self._wall_offset_ms = start_ms
        self._boot_offset_ms = 0
        self._boot_id = boot_id
        self._elapsed_ms = 0
        self._order = itertools.count()
        self._sleepers: list[tuple[int, int, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        """Wall time, UTC."""
        return self._wall_offset_ms + self._elapsed_ms

    def monotonic_ms(self) -> int:
        """Milliseconds since this clock was made."""
        return self._elapsed_ms

    def boot_ms(self) -> int:
        """Milliseconds since the last `reboot`."""
        return self._elapsed_ms - self._boot_offset_ms

    @property
    def boot_id(self) -> str:
        """Name of the current start of the machine."""
        return self._boot_id

    async def sleep_ms(self, ms: int) -> None:
        """Wait until the clock has been moved that far."""
        if ms <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed_ms + ms, next(self._order), woken))
        await woken

    def next_due_ms(self) -> int | None:
        """Milliseconds until the next sleeper is due; None when nobody sleeps."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return max(0, self._sleepers[0][0] - self._elapsed_ms) if self._sleepers else None

    def advance_ms(self, ms: int) -> None:
        """Move in one leap: whoever was due meanwhile wakes and sees the time after the leap."""
        assert ms >= 0, ms
        self._elapsed_ms += ms
        while self._sleepers and self._sleepers[0][0] <= self._elapsed_ms:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)

    async def travel_ms(self, ms: int, rest: Callable[[], Awaitable[None]] = settle) -> None:
        """Move from due time to due time, letting the world come to `rest` at each of them."""
        end_ms = self._elapsed_ms + ms
        await rest()
        while (due_ms := self.next_due_ms()) is not None:
            if self._elapsed_ms + due_ms > end_ms:
                break
            self.advance_ms(due_ms)
            await rest()
        self.advance_ms(max(0, end_ms - self._elapsed_ms))
        await rest()

    def step_wall_ms(self, ms: int) -> None:
        """Set the wall clock forward (or back, if negative) without letting any time pass."""
        self._wall_offset_ms += ms

    def reboot(self, boot_id: str) -> None:
        """Start the machine anew: time since boot begins at zero under another name."""
        assert boot_id != self._boot_id, boot_id
        self._boot_id = boot_id
        self._boot_offset_ms = self._elapsed_ms


class RealClock:
    """The machine's own time, for the server on loopback."""

    def now_ms(self) -> int:
        """Wall time, UTC."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Time that never steps back."""
        return time.monotonic_ns() // 1_000_000

    def boot_ms(self) -> int:
        """Time since the machine started, sleep included."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000

    @property
    def boot_id(self) -> str:
        """Name of this start of the machine; the simulator never outlives it."""
        return "this-boot"

    async def sleep_ms(self, ms: int) -> None:
        """Wait that long."""
        await asyncio.sleep(ms / 1000)
