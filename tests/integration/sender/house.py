"""A sender on virtual time: the real role with a real database, its alarm driven by the test."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from sender.app import World, run_sender
from sender.drain import Drain
from sender.rereading import Rereading
from sender.settings import SenderSettings
from sender.timetable import Entry, Every, OnAlarm
from sender.upkeep import Upkeep
from storage import outbox, reports
from storage.clock import Clock
from storage.database import BUSY_RETRY_MS, Database, Tx, opened
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.migrate import migrate
from storage.options import (
    BotOptions,
    ChannelOptions,
    DeliveryOptions,
    Limits,
    SenderOptions,
    Settings,
)
from storage.outgoing import Outgoing
from storage.reports import RowReport
from storage.secret import Secret, Token
from storage.settings import ServiceEnvironment
from tests.integration.sender.stub import Stub
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
TOKEN = Token("7000000001:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
CHANNEL_TOKEN = Secret("channel-token-of-nobody")
# Real time, in which threads, sockets and a busy disk have done what they are waited for.
LOOK_S = 20.0


def looks() -> Iterator[None]:
    """Look again and again until a busy machine has had its time."""
    ends = monotonic() + LOOK_S
    while monotonic() < ends:
        yield


class HouseClock(VirtualClock):
    """Virtual time, in which two database connections may still get in each other's way.

    They do so in real time, so the millisecond they then wait only lets the other one run.
    """

    async def sleep_ms(self, ms: int) -> None:
        await super().sleep_ms(0 if ms <= BUSY_RETRY_MS else ms)


class FairDice:
    """Dice that always show the same, as jitter is nothing to wait for here.

    Only the first throw, by which a process names itself, differs from house to house.
    """

    def __init__(self, number: int = 0) -> None:
        self._next = number / 16**8

    def random(self) -> float:
        shown, self._next = self._next, 0.0
        return shown


class VirtualDriver:
    """Drives the timetable by a clock that only the test moves."""

    def __init__(self, clock: Clock) -> None:
        assert isinstance(clock, VirtualClock)
        self._clock = clock
        self._entries: Sequence[Entry] = ()
        self._due: dict[str, int] = {}
        self._alarm_ms: int | None = None
        self.armed: list[int] = []

    @property
    def drains(self) -> Sequence[Drain]:
        """The drains that the timetable rings."""
        upkeeps = [getattr(entry.body, "__self__", None) for entry in self._entries]
        return next((found._drains for found in upkeeps if isinstance(found, Upkeep)), ())

    def start(self, entries: Sequence[Entry]) -> None:
        self._entries = entries
        for entry in entries:
            if isinstance(entry.trigger, Every):
                self._due[entry.name] = self._clock.now_ms() + entry.trigger.ms

    def arm(self, at_ms: int) -> None:
        at_ms = max(at_ms, self._clock.now_ms() + 1)
        self.armed.append(at_ms)
        if self._alarm_ms is None or at_ms < self._alarm_ms:
            self._alarm_ms = at_ms

    async def stop(self) -> None:
        self._entries = ()

    def next_ms(self) -> int | None:
        moments = list(self._due.values())
        if self._alarm_ms is not None:
            moments.append(self._alarm_ms)
        return min(moments, default=None)

    async def fire(self) -> None:
        """Carry out whatever is due now."""
        now_ms = self._clock.now_ms()
        for entry in self._entries:
            match entry.trigger:
                case OnAlarm():
                    if self._alarm_ms is not None and self._alarm_ms <= now_ms:
                        self._alarm_ms = None
                        await entry.body()
                case Every(ms=ms):
                    if self._due[entry.name] <= now_ms:
                        self._due[entry.name] = now_ms + ms
                        await entry.body()


@dataclass
class House:
    """One sender's surroundings; a sender may be started in it again and again."""

    folder: Path
    clock: VirtualClock
    stub: Stub
    db: Database
    limits: Limits = field(default_factory=Limits)
    delivery: DeliveryOptions = field(default_factory=DeliveryOptions)
    channels: dict[str, ChannelOptions] = field(default_factory=dict)
    in_flight_max: int = 8
    rereading: Rereading | None = None
    started: int = 0
    drivers: list[VirtualDriver] = field(default_factory=list)
    running: list[tuple[asyncio.Task[None], asyncio.Event]] = field(default_factory=list)

    def settings(self) -> SenderSettings:
        settings = Settings(
            state_dir=self.folder,
            bots={BOT: BotOptions()},
            limits=self.limits,
            delivery=self.delivery,
            channels=self.channels,
            sender=SenderOptions(in_flight_max=self.in_flight_max),
            telegram={"base_url": self.stub.url},  # type: ignore[arg-type]  # pydantic reads it
        )
        tokens = dict.fromkeys(self.channels, CHANNEL_TOKEN)
        return SenderSettings(settings, {BOT: TOKEN}, ServiceEnvironment(), tokens)

    async def start(self) -> None:
        """Start a sender; it stands by while another one owns the bot."""

        def driver(clock: Clock) -> VirtualDriver:
            made = VirtualDriver(clock)
            self.drivers.append(made)
            return made

        stop = asyncio.Event()
        self.started += 1
        world = World(dice=FairDice(self.started), driver=driver)
        task = asyncio.get_running_loop().create_task(
            run_sender(
                self.settings(),
                clock=self.clock,
                stop=stop,
                world=world,
                rereading=self.rereading,
            )
        )
        self.running.append((task, stop))
        before = len(self.drivers)
        while not task.done() and not (len(self.drivers) > before and self.drivers[-1].drains):
            await self.breathes()

    async def stop(self) -> None:
        """Stop all senders and see that they ended in order."""
        running, self.running = self.running, []
        for _, stop in running:
            stop.set()
        for task, _ in running:
            async with asyncio.timeout(25):
                await task
        self.drivers.clear()

    async def stop_first(self) -> None:
        """Stop the sender that was started first; the others stay."""
        task, stop = self.running.pop(0)
        stop.set()
        async with asyncio.timeout(25):
            await task
        self.drivers.pop(0)

    async def says(self, *outgoings: Outgoing) -> list[OutboxId]:
        """Leave calls as a turn does, and ring."""
        ids = await self.db.write(
            lambda tx: [outbox.enqueue(tx, BOT, outgoing).id for outgoing in outgoings]
        )
        await self.ring()
        return ids

    async def ring(self) -> None:
        """Ring as a doorbell does."""
        for driver in self.drivers:
            for entry in driver._entries:
                if entry.name == "tick":
                    await entry.body()

    async def passes(self, ms: int) -> None:
        """Let time pass, from one due moment to the next."""
        end_ms = self.clock.now_ms() + ms
        while True:
            await self.rests()
            moments = [due for driver in self.drivers if (due := driver.next_ms()) is not None]
            due_ms = min(moments, default=end_ms)
            if due_ms > end_ms:
                break
            self.clock.advance_ms(max(0, due_ms - self.clock.now_ms()))
            for driver in self.drivers:
                await driver.fire()
            if due_ms == end_ms and self.clock.now_ms() >= end_ms:
                break
        self.clock.advance_ms(max(0, end_ms - self.clock.now_ms()))
        await self.rests()

    async def rests(self) -> None:
        """Let all drains come to rest: only what the stub is silent on is still under way."""
        for _ in looks():
            drains = [drain for driver in self.drivers for drain in driver.drains]
            under_way = sum(drain.in_flight for drain in drains)
            if all(drain.is_resting for drain in drains) and under_way == self.stub.silent:
                return
            await self.breathes()
        stand = [
            (drain.state, drain.is_resting, drain.in_flight, self.clock.now_ms())
            for driver in self.drivers
            for drain in driver.drains
        ]
        raise AssertionError(f"the drains do not come to rest: {stand}, {self.stub.silent} silent")

    async def breathes(self) -> None:
        """Let threads and sockets do something."""
        await self.db.read(_nothing)

    async def row(self, row: OutboxId) -> RowReport:
        """One row, whole."""
        found = await self.db.read(lambda tx: reports.show(tx, row))
        assert found is not None
        return found

    async def becomes(self, row: OutboxId, state: OutboxState) -> RowReport:
        """Wait until a row is in this state."""
        return await self.sees(row, lambda found: found.state is state, f"{state}")

    async def sees(
        self, row: OutboxId, condition: Callable[[RowReport], bool], what: str
    ) -> RowReport:
        """Wait until a row meets a condition."""
        for _ in looks():
            found = await self.row(row)
            if condition(found):
                return found
        found = await self.row(row)
        raise AssertionError(f"row {row} is {found.state} ({found.reason}), not {what}")


def _nothing(tx: Tx) -> None:
    """Read nothing."""


@asynccontextmanager
async def house_of(folder: Path, clock: VirtualClock, stub: Stub) -> AsyncIterator[House]:
    """Surroundings for senders; whatever still runs in the end is stopped."""
    path = folder / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as db:
        house = House(folder, clock, stub, db)
        try:
            yield house
        finally:
            stub.release()
            await house.stop()
