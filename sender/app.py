"""Put the sender role together: the one place where its parts meet.

Used alike by `ferryman sender`, by `ferryman run` and by tests, which bring their own clock, dice
and timetable. Ends in order: nothing new is claimed, what is under way is finished within
`FINISH_MS`, then its connections are closed, so that each call still open says how far it got.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from sender.delivery import Sender, Tools
from sender.drain import Drain, House
from sender.memory import Pace
from sender.pacing import Rates
from sender.settings import SenderSettings
from sender.timetable import ApschedulerDriver, Driver, entries
from sender.transport import Address, TransportOptions, open_transport
from sender.upkeep import ROLE, Upkeep
from storage import bots, heartbeats
from storage.carriers import CarrierFactory, ThreadCarrier
from storage.clock import Clock, Dice, SystemDice
from storage.database import Connector, connect, opened, require_sound_sqlite
from storage.doorbell import Doorbell
from storage.failpoint import Failpoints
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.notify import Notifier
from storage.retention import Kept
from storage.settings import Settings
from storage.telemetry import event

FINISH_MS = 15_000
GIVE_UP_MS = 3_000
"""Together within the 20 s that a role may take to end."""


@dataclass(frozen=True, slots=True)
class World:
    """What a sender lives in besides its clock; simulated worlds bring their own."""

    dice: Dice = field(default_factory=SystemDice)
    driver: Callable[[Clock], Driver] = ApschedulerDriver
    carrier: CarrierFactory = ThreadCarrier
    connector: Connector = connect


async def run_sender(
    settings: SenderSettings,
    *,
    clock: Clock,
    stop: asyncio.Event,
    world: World | None = None,
) -> None:
    """Send what the outbox holds until `stop` is set, then drain within 20 s.

    Raises IdentityChanged for a token of another bot, StorageError, and what ended a drain by
    accident.
    """
    async with _parts(settings, clock, world or World()) as role:
        await role.run(stop)


@contextlib.asynccontextmanager
async def _parts(given: SenderSettings, clock: Clock, world: World) -> AsyncIterator["SenderRole"]:
    settings = given.settings
    require_sound_sqlite(accept_affected=settings.storage.accept_affected_sqlite)
    path = settings.database_path
    migrate(path, clock, connector=world.connector)
    options = TransportOptions(
        read_timeout_s=settings.delivery.read_timeout_s,
        connections_max=settings.sender.in_flight_max * len(given.tokens),
    )
    async with (
        opened(path, clock, carrier=world.carrier, connector=world.connector) as db,
        open_transport(options, clock) as transport,
    ):
        for name, token in given.tokens.items():
            await db.write(partial(bots.bind, name=name, bot_id=token.bot_id))
        doorbell = Doorbell(settings.state_dir, ROLE, dice=world.dice)
        failpoints = Failpoints(settings.testing.failpoint)
        tools = Tools(db, clock, world.dice, transport, failpoints)
        try:
            yield SenderRole(given, tools, doorbell, world.driver(clock))
        finally:
            doorbell.close()


class SenderRole:
    """The sender of this process, with a drain for each bot."""

    def __init__(
        self, given: SenderSettings, tools: Tools, doorbell: Doorbell, driver: Driver
    ) -> None:
        self._tools = tools
        self._doorbell = doorbell
        self._driver = driver
        self._notifier = Notifier(given.service, tools.clock)
        self._silent = set(given.tokens)
        self._is_ready = False
        self._beats: set[asyncio.Task[None]] = set()
        self._drains = [self._drain(given, name) for name in given.tokens]
        retention = given.settings.retention
        self._upkeep = Upkeep(
            tools.db,
            tools.clock,
            self._drains,
            owner=doorbell.name,
            kept=Kept(retention.inbox_days, retention.outbox_days),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Send until `stop` is set or a drain fails, then end in order."""
        self._doorbell.on_ring(self._upkeep.look_around)
        self._driver.start(entries(self._upkeep))
        loop = asyncio.get_running_loop()
        drains = [
            loop.create_task(drain.run(), name=f"drain of {drain.bot}") for drain in self._drains
        ]
        stopping = loop.create_task(stop.wait(), name="stop")
        try:
            # Standing by is work too: the service manager need not wait for the other process.
            await self._upkeep.beat()
            self._notifier.ready()
            await asyncio.wait([stopping, *drains], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            await self._end(drains)

    async def _end(self, drains: Sequence[asyncio.Task[object]]) -> None:
        began_ms = self._tools.clock.monotonic_ms()
        self._notifier.stopping()
        self._upkeep.drain()
        for drain in self._drains:
            drain.stop()
        _, running = await asyncio.wait(drains, timeout=FINISH_MS / 1000)
        if running:
            await self._tools.transport.give_up()
            _, running = await asyncio.wait(running, timeout=GIVE_UP_MS / 1000)
        for task in running:
            task.cancel()
        ended = await asyncio.gather(*drains, return_exceptions=True)
        await self._driver.stop()
        self._report(self._tools.clock.monotonic_ms() - began_ms)
        if self._beats:
            await asyncio.wait(self._beats)
        await self._tools.db.write(partial(heartbeats.leave, owner=self._doorbell.name))
        for outcome in ended:
            if isinstance(outcome, Exception):
                event("sender.failed", error=outcome, reason=type(outcome).__name__)
                raise outcome

    def _report(self, duration_ms: int) -> None:
        for drain in self._drains:
            report = drain.report
            event(
                "drain.report",
                bot=drain.bot,
                finished=report.finished,
                handed_back=report.handed_back,
                uncertain=report.uncertain,
                duration_ms=duration_ms,
            )

    def _drain(self, given: SenderSettings, name: BotName) -> Drain:
        settings = given.settings
        sender = Sender(
            bot=name,
            address=Address(settings.telegram.base_url, given.tokens[name]),
            attempts_max=settings.delivery.attempts_max,
        )
        house = House(
            owner=self._doorbell.name,
            is_dead=self._doorbell.is_dead,
            arm=self._driver.arm,
            progress=partial(self._progress, name),
            changed=self._changed,
        )
        return Drain(sender, pace_of(settings, name), self._tools, house)

    def _changed(self) -> None:
        """A bot was taken over, lost or stopped: say so at once."""
        owned = sum(drain.state.owns for drain in self._drains)
        self._notifier.status(f"owns {owned} of {len(self._drains)} bots")
        if owned and not self._is_ready:
            self._is_ready = True
            event("role.ready", owner=self._doorbell.name)
        beat = asyncio.get_running_loop().create_task(self._upkeep.beat(), name="beat")
        self._beats.add(beat)
        beat.add_done_callback(self._beaten)

    def _beaten(self, beat: asyncio.Task[None]) -> None:
        self._beats.discard(beat)
        if not beat.cancelled() and (error := beat.exception()) is not None:
            event("task.failed", task=beat.get_name(), error=error)

    def _progress(self, name: BotName) -> None:
        """Give a life sign when every drain has made a round: one that is stuck must be seen."""
        self._silent.discard(name)
        if not self._silent:
            self._silent = {BotName(drain.bot) for drain in self._drains}
            self._notifier.progress()


def pace_of(settings: Settings, name: BotName) -> Pace:
    """How fast this bot may be, by its own limits where it has them."""
    limits = settings.limits_for(name)
    rates = Rates(
        chat_per_second=limits.chat_per_second,
        chat_burst=limits.chat_burst,
        group_per_minute=limits.group_per_minute,
        bot_per_second=limits.bot_per_second,
        bulk_per_second=limits.bulk_per_second,
    )
    return Pace(rates, limits.flood_scope, settings.sender.in_flight_max)
