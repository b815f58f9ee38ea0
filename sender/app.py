"""Put the sender role together: the one place where its parts meet.

Used alike by `ferryman sender`, by `ferryman run` and by tests, which bring their own clock, dice
and timetable. Ends in order: nothing new is claimed, what is under way is finished within
`FINISH_MS`, then its connections are closed, so that each call still open says how far it got.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial

from sender.contracts import BOT_API, CONTRACTS
from sender.delivery import Channel, Sender, Tools
from sender.drain import Drain, House
from sender.guards import load_guard
from sender.limits import pace_of
from sender.memory import ANSWER_SLOTS
from sender.rereading import Rereader, Rereading
from sender.settings import SenderSettings
from sender.sharing import ROLE, Sharer
from sender.timetable import ApschedulerDriver, Driver, entries
from sender.transport import Address, Transport, TransportOptions, open_transport
from sender.upkeep import Upkeep
from storage import bots, heartbeats
from storage.blobs import Blobs
from storage.carriers import CarrierFactory, ThreadCarrier
from storage.clock import Clock, Dice, SystemDice
from storage.database import Connector, connect, opened, require_sound_sqlite
from storage.doorbell import Doorbell
from storage.failpoint import Failpoints
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.notify import Notifier
from storage.outgoing import TELEGRAM
from storage.retention import BLOBS_MS_MIN, Kept
from storage.telemetry import event

_WORKER = "worker"
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
    transport: Callable[[TransportOptions, Clock], AbstractAsyncContextManager[Transport]] = (
        open_transport
    )
    doorbell: type[Doorbell] = Doorbell


async def run_sender(
    settings: SenderSettings,
    *,
    clock: Clock,
    stop: asyncio.Event,
    world: World | None = None,
    rereading: Rereading | None = None,
) -> None:
    """Send what the outbox holds until `stop` is set, then drain within 20 s.

    `rereading`: how the configuration is read once more when somebody asks for it.
    Raises IdentityChanged for a token of another bot, StorageError, and what ended a drain by
    accident.
    """
    async with _parts(settings, clock, world or World()) as role:
        await role.run(stop, rereading)


@contextlib.asynccontextmanager
async def _parts(given: SenderSettings, clock: Clock, world: World) -> AsyncIterator["SenderRole"]:
    settings = given.settings
    require_sound_sqlite(accept_affected=settings.storage.accept_affected_sqlite)
    path, failpoints = settings.database_path, Failpoints(settings.testing.failpoint)
    migrate(path, clock, connector=world.connector, failpoints=failpoints)
    options = TransportOptions(
        read_timeout_s=settings.delivery.read_timeout_s,
        connections_max=(settings.sender.in_flight_max + ANSWER_SLOTS) * len(given.tokens),
    )
    async with (
        opened(
            path,
            clock,
            carrier=world.carrier,
            connector=world.connector,
            failpoints=failpoints,
        ) as db,
        world.transport(options, clock) as transport,
    ):
        for name, token in given.tokens.items():
            await db.write(partial(bots.bind, name=name, bot_id=token.bot_id), point="sender.bind")
        doorbell = world.doorbell(settings.state_dir, ROLE, dice=world.dice)
        failpoints = Failpoints(settings.testing.failpoint)
        guard = load_guard(settings.delivery.guard)
        blobs = Blobs(settings.blobs_dir)
        ring_worker = partial(doorbell.ring, _WORKER)
        tools = Tools(db, clock, world.dice, transport, failpoints, blobs, guard, ring_worker)
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
        self._sharer = Sharer(doorbell.name, frozenset(given.tokens), doorbell.is_dead)
        self._drains = [self._drain(given, name) for name in given.tokens]
        self._rereader = Rereader(given, tools, self._drains)
        retention = given.settings.retention
        self._upkeep = Upkeep(
            tools.db,
            tools.clock,
            self._drains,
            sharer=self._sharer,
            kept=Kept(
                retention.inbox_days,
                retention.outbox_days,
                retention.placeholders_days,
                # A turn keeps its files before it commits its rows.
                blobs_ms=max(BLOBS_MS_MIN, 2_000 * given.settings.worker.turn_timeout_s),
            ),
            blobs=tools.blobs,
        )

    async def run(self, stop: asyncio.Event, rereading: Rereading | None = None) -> None:
        """Send until `stop` is set or a drain fails, then end in order."""
        self._doorbell.on_ring(self._upkeep.look_around)
        self._driver.start(entries(self._upkeep))
        loop = asyncio.get_running_loop()
        drains = [
            loop.create_task(drain.run(), name=f"drain of {drain.bot}") for drain in self._drains
        ]
        beside: list[asyncio.Task[object]] = [loop.create_task(stop.wait(), name="stop")]
        if rereading is not None:
            beside.append(loop.create_task(self._rereader.serve(rereading), name="rereading"))
        try:
            # Standing by is work too: the service manager need not wait for the other process.
            await self._upkeep.beat()
            self._notifier.ready()
            await asyncio.wait([*beside, *drains], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in beside:
                task.cancel()
            await self._end(drains, beside)

    async def _end(
        self, drains: Sequence[asyncio.Task[object]], beside: Sequence[asyncio.Task[object]]
    ) -> None:
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
        ended = await asyncio.gather(*drains, *beside, return_exceptions=True)
        await self._driver.stop()
        self._report(self._tools.clock.monotonic_ms() - began_ms)
        if self._beats:
            await asyncio.wait(self._beats)
        await self._tools.db.write(
            partial(heartbeats.leave, owner=self._doorbell.name), point="sender.leave"
        )
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
            channels=channels_of(given, name),
            attempts_max=settings.delivery.attempts_max,
        )
        house = House(
            sharer=self._sharer,
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


def channels_of(given: SenderSettings, name: BotName) -> Mapping[str, Channel]:
    """Where the calls of this bot go, channel by channel."""
    settings = given.settings
    found = {
        channel: Channel(
            CONTRACTS[options.contract],
            Address(options.base_url, given.channel_tokens[channel], token_in_header=True),
        )
        for channel, options in settings.channels.items()
    }
    found[TELEGRAM] = Channel(BOT_API, Address(settings.telegram.base_url, given.tokens[name]))
    return found
