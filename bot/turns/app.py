"""The worker role, put together: one database, one doorbell, and the turns of each bot.

Telegram need not be reachable for anything here: who a bot is comes from the database, and what has
to be asked of Telegram is asked until it answers.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Final

from telegram.request import BaseRequest

from bot.settings import WorkerSettings
from bot.turns import local_paths
from bot.turns.adopted import Berth
from bot.turns.alias import reading_request
from bot.turns.loading import Source, load_handlers
from bot.turns.serving import BotTurns, Ground
from bot.turns.worker import Signals
from storage import heartbeats
from storage.carriers import CarrierFactory, ThreadCarrier
from storage.clock import Clock
from storage.database import Connector, Database, connect, opened, require_sound_sqlite
from storage.doorbell import Doorbell
from storage.failpoint import Failpoints
from storage.heartbeats import RoleState
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.notify import Notifier
from storage.settings import Token
from storage.telemetry import event

ROLE: Final = "worker"
_SENDER: Final = "sender"


@dataclass(frozen=True, slots=True)
class World:
    """What a worker lives in besides its clock; simulated worlds bring their own."""

    carrier: CarrierFactory = ThreadCarrier
    connector: Connector = connect
    reading: Callable[[Token], BaseRequest] = reading_request
    doorbell: type[Doorbell] = Doorbell


async def run_worker(
    settings: WorkerSettings,
    *,
    clock: Clock,
    stop: asyncio.Event,
    world: World | None = None,
    handed_over: Mapping[BotName, Source] = MappingProxyType({}),
) -> None:
    """Run the worker until `stop` is set; what runs then is finished or handed back within 20 s.

    `handed_over` has the bots whose application a script has built: nothing is loaded for them.
    Raises ConfigurationError for handlers that can't be loaded, IdentityChanged for a token of
    another bot, UnsupportedLibrary, StorageError, and what ended a turn by accident.
    """
    world = world or World()
    sources = {bot: handed_over.get(bot) or _load(settings, bot) for bot in settings.tokens}
    require_sound_sqlite(accept_affected=settings.settings.storage.accept_affected_sqlite)
    path = settings.settings.database_path
    failpoints = Failpoints(settings.settings.testing.failpoint)
    migrate(path, clock, connector=world.connector, failpoints=failpoints)
    async with opened(
        path, clock, carrier=world.carrier, connector=world.connector, failpoints=failpoints
    ) as db:
        bell = world.doorbell(settings.settings.state_dir, ROLE)
        try:
            role = _Role(settings, db, clock, bell, stop)
            turns = [
                BotTurns(role.ground, bot, settings.tokens[bot], source, reading=world.reading)
                for bot, source in sources.items()
            ]
            with local_paths.guarded(local_files=settings.settings.worker.local_files):
                await role.run(turns)
        finally:
            bell.close()


def _load(settings: WorkerSettings, bot: BotName) -> Source:
    berth = Berth(bot, settings.tokens[bot], settings.settings.telegram.base_url)
    return load_handlers(bot, settings.settings.bots[bot].handlers, berth)


class _Role:
    """What the process as a whole does beside the turns: it says how it is."""

    def __init__(
        self,
        settings: WorkerSettings,
        db: Database,
        clock: Clock,
        bell: Doorbell,
        stop: asyncio.Event,
    ) -> None:
        self._db = db
        self._clock = clock
        self._bell = bell
        self._stop = stop
        self._notifier = Notifier(settings.service, clock)
        self._state = RoleState.STARTING
        self._turns: Sequence[BotTurns] = ()
        self._beat_due_ms = 0
        self.ground = Ground(
            settings=settings.settings,
            db=db,
            clock=clock,
            bell=bell,
            failpoints=db.failpoints,
            signals=Signals(partial(bell.ring, _SENDER), self._round_done),
            stop=stop,
            on_change=self._changed,
        )

    async def run(self, turns: Sequence[BotTurns]) -> None:
        """Serve all bots until stopped."""
        self._turns = turns
        for bot in turns:
            await bot.bind()
        self._bell.on_ring(self._rung)
        await self._beat({})
        async with asyncio.TaskGroup() as group:
            for bot in turns:
                group.create_task(bot.serve(), name="bot-turns")
            group.create_task(self._see_off(), name="see-off")
        await self._db.write(partial(heartbeats.leave, owner=self._bell.name), point="worker.leave")

    def _rung(self) -> None:
        for bot in self._turns:
            bot.wake()

    def _changed(self) -> None:
        """A bot was taken over or lost."""
        if self._stop.is_set():
            return
        owned = sum(bot.owns for bot in self._turns)
        if owned and self._state is not RoleState.READY:
            event("role.ready", owner=self._bell.name)
        self._enter(RoleState.READY if owned else RoleState.STANDBY)
        self._notifier.status(f"owns {owned} of {len(self._turns)} bots")

    def _enter(self, state: RoleState) -> None:
        if self._state is RoleState.STARTING:
            # Standing by is work too: the service manager need not wait for the other process.
            self._notifier.ready()
        self._state = state
        self._beat_due_ms = 0

    async def _round_done(self, running: int, waiting: int) -> None:
        """A loop has gone round: this process lives, and says so."""
        if self._state is RoleState.STARTING:
            self._enter(RoleState.STANDBY)
        self._notifier.progress()
        if self._clock.monotonic_ms() >= self._beat_due_ms:
            await self._beat({"running": running, "waiting": waiting})

    async def _beat(self, facts: Mapping[str, int | str]) -> None:
        self._beat_due_ms = self._clock.monotonic_ms() + heartbeats.BEAT_EVERY_MS
        await self._db.write(
            partial(
                heartbeats.beat, owner=self._bell.name, role=ROLE, state=self._state, facts=facts
            ),
            point="worker.beat",
        )

    async def _see_off(self) -> None:
        """Say that the role stops, when it does."""
        await self._stop.wait()
        self._state = RoleState.DRAINING
        self._notifier.stopping()
