"""The sender's timetable on virtual time: the real entries, by timers of the world's loop.

As APScheduler does it: one body of an entry at a time, late ones are run, a failed one is told. A
second in which nothing at all has changed is not looked at: a look depends on the database, on the
wall clock and on known moments for which the alarm is armed, so it would find what the last one
found. Every tenth second is looked at all the same.
"""

import asyncio
from collections.abc import Callable, Sequence

from sender.timetable import ALARM, Entry, Every, OnAlarm
from storage.clock import Clock
from storage.telemetry import event
from tests.simulation.loop import WorldLoop, process_here

TICK = "tick"
_SKIPPED_MAX = 9


class WorldTimetable:
    """Carries out a sender's timetable. `changes` counts what anybody has changed."""

    def __init__(self, loop: WorldLoop, clock: Clock, changes: Callable[[], int]) -> None:
        self._loop = loop
        self._clock = clock
        self._changes = changes
        self._alarm: Entry | None = None
        self._armed: asyncio.TimerHandle | None = None
        self._armed_ms = 0
        self._bodies: dict[str, asyncio.Task[None]] = {}
        self._seen = -1
        self._skipped = 0
        self._is_stopped = False

    def start(self, entries: Sequence[Entry]) -> None:
        """Carry out these entries from now on."""
        assert process_here() is not None
        for entry in entries:
            match entry.trigger:
                case Every(ms=ms):
                    self._loop.call_later(ms / 1000, self._due, entry, ms)
                case OnAlarm():
                    assert entry.name == ALARM
                    self._alarm = entry

    def arm(self, at_ms: int) -> None:
        """Run the alarm's entry at this moment unless it is to run sooner."""
        now_ms = self._clock.now_ms()
        at_ms = max(at_ms, now_ms + 1)
        if self._alarm is None or self._is_stopped:
            return
        if self._armed is not None:
            if now_ms - 1_000 < self._armed_ms <= at_ms:
                return
            self._armed.cancel()
        self._armed_ms = at_ms
        self._armed = self._loop.call_later((at_ms - now_ms) / 1000, self._sound)

    async def stop(self) -> None:
        """Carry out nothing more."""
        self._is_stopped = True
        if self._armed is not None:
            self._armed.cancel()
        for body in list(self._bodies.values()):
            body.cancel()

    def _sound(self) -> None:
        self._armed = None
        if self._alarm is not None and not self._is_stopped:
            self._run(self._alarm)

    def _due(self, entry: Entry, ms: int) -> None:
        if self._is_stopped:
            return
        self._loop.call_later(ms / 1000, self._due, entry, ms)
        if entry.name == TICK and self._finds_nothing_new():
            return
        self._run(entry)

    def _finds_nothing_new(self) -> bool:
        changes = self._changes()
        if changes == self._seen and self._skipped < _SKIPPED_MAX:
            self._skipped += 1
            return True
        self._seen = changes
        self._skipped = 0
        return False

    def _run(self, entry: Entry) -> None:
        running = self._bodies.get(entry.name)
        if running is not None and not running.done():
            return
        self._bodies[entry.name] = self._loop.create_task(_carried_out(entry))


async def _carried_out(entry: Entry) -> None:
    try:
        await entry.body()
    except Exception as error:  # noqa: BLE001 - told, as the scheduler does
        event("timer.failed", timer=entry.name, error=error)
