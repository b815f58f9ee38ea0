"""Everything that the sender does by the clock, in one visible list.

APScheduler 3.11 drives it, with its traps in mind (each proved before it was relied on): a job that
comes due while its body still runs is deleted, so the alarm's body only rings; a late date job is
dropped unless its grace is None; shutting down cancels bodies, so they are short and can be cut off
anywhere; and its timers go by the wall clock, so that a clock set back would silence it for as long
as it was set back, which is watched for here. A simulated world drives the same list through an
alarm of its own.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from apscheduler.events import EVENT_JOB_ERROR, EVENT_JOB_MISSED, JobExecutionEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from sender.upkeep import Upkeep
from storage.clock import Clock
from storage.heartbeats import BEAT_EVERY_MS
from storage.leases import RENEW_EVERY_MS
from storage.telemetry import event

TICK_MS = 1_000
SWEEP_MS = 5_000
CHECKPOINT_MS = 5 * 60_000
PRUNE_MS = 10 * 60_000
STEP_MS = 500
"""A wall clock that moved this far against the boot clock has been set, not merely steered."""

ALARM = "next"

Body = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again, this far apart."""

    ms: int


@dataclass(frozen=True, slots=True)
class OnAlarm:
    """Once, at the moment that `arm` was last given."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the timetable.

    `grace_ms`: how late it may still run; None = however late. `coalesce`: of several times that
    were missed only one is made up for. A line that is dropped for being late would be no chore.
    """

    name: str
    trigger: Every | OnAlarm
    reason: str
    body: Body
    grace_ms: int | None = None
    coalesce: bool = True


class Driver(Protocol):
    """What carries the timetable out: APScheduler, or the virtual time of a simulated world."""

    def start(self, entries: Sequence[Entry]) -> None:
        """Carry out these entries from now on."""

    def arm(self, at_ms: int) -> None:
        """Run the alarm's entry at this moment (UTC milliseconds) unless it is to run sooner."""

    async def stop(self) -> None:
        """Carry out nothing more."""


def entries(upkeep: Upkeep) -> Sequence[Entry]:
    """The timetable of the sender."""

    async def ring() -> None:
        upkeep.ring()

    async def look_around() -> None:
        upkeep.look_around()

    return (
        Entry(
            ALARM,
            OnAlarm(),
            reason="a row, a window or a wait is due at a known moment; the body only rings",
            body=ring,
        ),
        Entry(
            "tick",
            Every(TICK_MS),
            reason="a lost bell or alarm costs a second; a standby tries to take over",
            body=look_around,
        ),
        Entry(
            "renew-leases",
            Every(RENEW_EVERY_MS),
            reason="an owner that falls silent is taken over from",
            body=upkeep.renew_leases,
        ),
        Entry(
            "heartbeat",
            Every(BEAT_EVERY_MS),
            reason="the status page and the alerts tell who is there",
            body=upkeep.beat,
        ),
        Entry(
            "share-out",
            Every(BEAT_EVERY_MS),
            reason="many bots are spread evenly over the senders that there are",
            body=upkeep.share_out,
        ),
        Entry(
            "sweep-expired",
            Every(SWEEP_MS),
            reason="what has gone stale behind a waiting head is ended and counted in time",
            body=upkeep.sweep_expired,
        ),
        Entry(
            "checkpoint",
            Every(CHECKPOINT_MS),
            reason="SQLite's log is folded in while little happens, not by a webhook's commit",
            body=upkeep.checkpoint,
        ),
        Entry(
            "prune",
            Every(PRUNE_MS),
            reason="finished rows are kept for as long as configured and no longer",
            body=upkeep.prune,
        ),
    )


class ApschedulerDriver:
    """Drives the timetable by APScheduler, in the running event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scheduler = AsyncIOScheduler(timezone=UTC)
        self._entries: Sequence[Entry] = ()
        self._alarm: Entry | None = None
        self._armed_ms: int | None = None
        self._watch: asyncio.Task[None] | None = None

    def start(self, entries: Sequence[Entry]) -> None:
        """Carry out these entries from now on."""
        self._entries = entries
        self._scheduler.add_listener(self._trouble, EVENT_JOB_ERROR | EVENT_JOB_MISSED)
        self._schedule_all()
        self._scheduler.start()
        self._watch = asyncio.get_running_loop().create_task(self._watch_clock(self._apart_ms()))

    def arm(self, at_ms: int) -> None:
        """Run the alarm's entry at this moment unless it is to run sooner."""
        now_ms = self._clock.now_ms()
        at_ms = max(at_ms, now_ms + 1)
        # One that is due and has not sounded yet must not be put off; one long due is lost.
        lost_ms = now_ms - TICK_MS
        stands = self._armed_ms is not None and lost_ms < self._armed_ms <= at_ms
        if self._alarm is None or stands:
            return
        self._armed_ms = at_ms
        self._add(self._alarm, DateTrigger(_moment(at_ms)), self._sound)

    async def stop(self) -> None:
        """Carry out nothing more; a body that runs is cut off."""
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
            # It stops in a callback of the loop's.
            await self._clock.sleep_ms(0)

    async def _sound(self) -> None:
        self._armed_ms = None
        assert self._alarm is not None
        await self._alarm.body()

    def _schedule_all(self) -> None:
        now_ms = self._clock.now_ms()
        for entry in self._entries:
            match entry.trigger:
                case Every(ms=ms):
                    first = _moment(now_ms + ms)
                    trigger = IntervalTrigger(seconds=ms / 1000, start_date=first, timezone=UTC)
                    self._add(entry, trigger, entry.body)
                case OnAlarm():
                    self._alarm = entry

    def _add(self, entry: Entry, trigger: DateTrigger | IntervalTrigger, body: Body) -> None:
        grace_s = None if entry.grace_ms is None else max(1, entry.grace_ms // 1000)
        self._scheduler.add_job(
            body,
            trigger,
            id=entry.name,
            name=entry.name,
            misfire_grace_time=grace_s,
            coalesce=entry.coalesce,
            max_instances=1,
            replace_existing=True,
        )

    def _apart_ms(self) -> int:
        return self._clock.now_ms() - self._clock.boot_ms()

    async def _watch_clock(self, apart_ms: int) -> None:
        """Plan everything anew when the wall clock was set: APScheduler would wait for it."""
        while True:
            await self._clock.sleep_ms(TICK_MS)
            now_apart_ms = self._apart_ms()
            if abs(now_apart_ms - apart_ms) >= STEP_MS:
                self._armed_ms = None
                self._schedule_all()
            apart_ms = now_apart_ms

    def _trouble(self, happened: JobExecutionEvent) -> None:
        if happened.code == EVENT_JOB_MISSED:
            due_ms = int(happened.scheduled_run_time.timestamp() * 1000)
            event("timer.missed", timer=happened.job_id, late_ms=self._clock.now_ms() - due_ms)
        else:
            event("timer.failed", timer=happened.job_id, error=happened.exception)


def _moment(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
