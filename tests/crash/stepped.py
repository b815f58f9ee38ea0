"""The sender with a wall clock that somebody sets: `python -m tests.crash.stepped CONFIG FILE`.

FILE holds by how many milliseconds the clock has been set. The clock that counts from boot goes on
as ever, as the kernel's does. APScheduler asks for the time itself, so it is given the same one;
otherwise this is the role as it is, with its own timetable, on the machine's own loop and disk.
"""

import asyncio
import signal
import sys
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import apscheduler.executors.base
import apscheduler.schedulers.base
import apscheduler.triggers.date
import apscheduler.triggers.interval

from sender.app import run_sender
from sender.settings import load_sender
from storage import telemetry
from storage.clock import SystemClock


class SteppedClock(SystemClock):
    """The kernel's clocks, the wall clock set by what a file says."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def set_by_ms(self) -> int:
        """By how much it has been set."""
        return int(self._file.read_text(encoding="ascii") or 0)

    def now_ms(self) -> int:
        """Wall time as the machine believes it to be."""
        return super().now_ms() + self.set_by_ms


def give_to_apscheduler(clock: SteppedClock) -> None:
    """Let the library's own look at the time see the same clock."""

    class Stepped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(milliseconds=clock.set_by_ms)

    for module in (
        apscheduler.executors.base,
        apscheduler.schedulers.base,
        apscheduler.triggers.date,
        apscheduler.triggers.interval,
    ):
        module.datetime = Stepped


async def _until_signal(config: Path, clock: SteppedClock) -> None:
    settings = load_sender(config)
    telemetry.setup(
        "sender", settings.settings.log_level, secrets=settings.secret_values(), no_color="1"
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await run_sender(settings, clock=clock, stop=stop)


if __name__ == "__main__":
    its_clock = SteppedClock(Path(sys.argv[2]))
    give_to_apscheduler(its_clock)
    asyncio.run(_until_signal(Path(sys.argv[1]), its_clock))
