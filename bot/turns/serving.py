"""One bot's turns, from taking its lease to giving it back.

While another process owns the bot this one stands by: nothing of the library runs then, no job of
the handlers either. Each time the bot is taken over, its application is built anew, or, where its
author built it, made ready anew; its `post_init`, `post_stop` and `post_shutdown` are called each
time, where the library's `run_polling` calls them.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, assert_never

from telegram.request import BaseRequest

from bot.turns import ownership
from bot.turns.adopted import AdoptedApplication, Berth
from bot.turns.alias import alias_of, reading_request
from bot.turns.application import TurnApplication, builder
from bot.turns.awaiting import Answers
from bot.turns.calls import Rules
from bot.turns.capture import OutboxRequest, Surroundings
from bot.turns.handling import Allowance, Handling
from bot.turns.identity import Identity
from bot.turns.loading import Factory, Ready, Registrar, Source
from bot.turns.memory import Memory
from bot.turns.outside import Outside
from bot.turns.persistence import TurnPersistence
from bot.turns.reads import FloodMemory, Reads
from bot.turns.reports import Audience
from bot.turns.uploads import Uploads, file_bytes_max
from bot.turns.worker import Signals, Worker
from storage import bots
from storage.blobs import Blobs
from storage.clock import Clock
from storage.database import Database
from storage.doorbell import Doorbell
from storage.errors import LeaseLost
from storage.failpoint import Failpoints
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.options import DeliveryOptions
from storage.settings import Settings, Token
from storage.telemetry import event

# What still runs of the library when the turns have ended gets no more than this.
STOP_S: Final = 2.0
# What the author wants done at the end, each: connections closed, files written.
HOOK_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Ground:
    """What the bots of this process share."""

    settings: Settings
    db: Database
    clock: Clock
    bell: Doorbell
    failpoints: Failpoints
    signals: Signals
    stop: asyncio.Event
    on_change: Callable[[], None]
    """A bot was taken over, or lost."""


def rules_of(delivery: DeliveryOptions) -> Rules:
    """What the configuration says about calls that wish nothing else."""
    return Rules(
        reply_ttl_ms=delivery.reply_ttl_s * 1000,
        bulk_ttl_ms=delivery.broadcast_ttl_s * 1000,
        on_uncertain=delivery.on_uncertain,
        late_as_message=delivery.late_answers == "message",
        cancel_on_edit=delivery.cancel_on_edit,
    )


class BotTurns:
    """The turns of one bot."""

    def __init__(
        self,
        ground: Ground,
        bot: BotName,
        token: Token,
        source: Source,
        *,
        reading: Callable[[Token], BaseRequest] = reading_request,
    ) -> None:
        """`reading` makes the way on which reads get to Telegram."""
        self._reading = reading
        self._ground = ground
        self._bot = bot
        self._token = token
        self._source = source
        self._worker: Worker | None = None
        self._answers: Answers | None = None

    @property
    def owns(self) -> bool:
        """Whether this process takes the bot's updates now."""
        return self._worker is not None

    def wake(self) -> None:
        """There may be new updates, or answers to what was said."""
        if self._answers is not None:
            self._answers.ring()
        if self._worker is not None:
            self._worker.wake()

    async def bind(self) -> None:
        """Bind the bot's name to its token. Raises IdentityChanged."""
        await self._ground.db.write(
            partial(bots.bind, name=self._bot, bot_id=self._token.bot_id), point="worker.bind"
        )

    async def serve(self) -> None:
        """Take the bot's updates whenever nobody else does, until the process stops."""
        ground = self._ground
        candidate = ownership.Candidate(
            ground.bell.name, ground.bell.is_dead, partial(ground.signals.round_done, 0, 0)
        )
        while not ground.stop.is_set():
            lease = await _unless_stopped(
                ground.stop, ownership.take(ground.db, ground.clock, self._bot, candidate)
            )
            if lease is None:
                return
            try:
                await self._own(lease)
            except LeaseLost:
                # Another process goes on; this one stands by.
                continue
            except Exception as error:
                event("worker.failed", bot=self._bot, reason=type(error).__name__, error=error)
                raise
            finally:
                self._worker = None
                ground.on_change()
            await ownership.give_back(ground.db, self._bot, lease)

    async def _own(self, lease: Lease) -> None:
        """Run the turns under this lease until the process stops."""
        ground = self._ground
        keeper = asyncio.ensure_future(ownership.keep(ground.db, ground.clock, self._bot, lease))
        try:
            async with self._running_application(lease) as handling:
                worker = Worker(
                    handling,
                    lease,
                    lanes_max=ground.settings.worker.lanes_max,
                    signals=ground.signals,
                )
                self._worker = worker
                ground.on_change()
                try:
                    await self._work(worker, keeper)
                finally:
                    await worker.abandon()
        finally:
            await _end(keeper)

    async def _work(self, worker: Worker, keeper: "asyncio.Task[None]") -> None:
        """Take updates until the process stops; the lease is kept until the last turn has ended.

        Raises LeaseLost, and whatever ended a turn by accident.
        """
        running = asyncio.ensure_future(worker.run())
        stopped = asyncio.ensure_future(self._ground.stop.wait())
        try:
            await asyncio.wait((keeper, running, stopped), return_when=asyncio.FIRST_COMPLETED)
            worker.stop()
            if keeper.done():
                keeper.result()
            await running
            started_ms = self._ground.clock.monotonic_ms()
            drained = await worker.drain()
            event(
                "drain.report",
                bot=self._bot,
                finished=drained.finished,
                handed_back=drained.handed_back,
                uncertain=0,
                duration_ms=self._ground.clock.monotonic_ms() - started_ms,
            )
        finally:
            await _end(stopped)
            await _end(running)

    @contextlib.asynccontextmanager
    async def _running_application(self, lease: Lease) -> AsyncIterator[Handling]:
        ground = self._ground
        outside = Outside(ground.db, self._bot, ring=ground.signals.ring_sender)
        outside.own(lease)
        known = await ground.db.read(partial(bots.show, name=self._bot))
        identity = Identity(self._bot, self._token.bot_id, None if known is None else known.me)
        application, reads = self._build(identity, outside)
        handling = Handling(
            self._bot,
            ground.db,
            ground.clock,
            application,
            ground.failpoints,
            Allowance(ground.settings.worker.turn_timeout_s, ground.settings.worker.retries),
        )
        await application.initialize()
        learning = asyncio.ensure_future(self._learn(identity, application, reads))
        try:
            if application.post_init is not None:
                await application.post_init(application)
            await application.start()
            yield handling
        finally:
            error = await _end(learning)
            if error is not None:
                event("task.failed", bot=self._bot, task="learning who the bot is", error=error)
            await _stop(application, handling)
            if isinstance(application, AdoptedApplication):
                application.seat.leave()

    def _build(self, identity: Identity, outside: Outside) -> tuple[TurnApplication, Reads]:
        ground = self._ground
        floods = FloodMemory(
            ground.db, self._bot, ground.clock, ground.settings.limits_for(self._bot).flood_scope
        )
        reads = Reads(self._reading(self._token), floods)
        rules = rules_of(ground.settings.delivery)
        base_url = ground.settings.telegram.base_url
        audience = Audience()
        self._answers = Answers(ground.db, self._bot)
        uploads = Uploads(Blobs(ground.settings.blobs_dir), bytes_max=file_bytes_max(base_url))
        request = OutboxRequest(
            reads,
            Surroundings(
                identity, rules, outside, self._answers, uploads, ground.clock, audience.tell
            ),
        )
        application = self._application(request)
        audience.seat(application)
        persistence = application.persistence
        assert isinstance(persistence, TurnPersistence)
        application.equip(Memory(ground.db, self._bot, persistence), outside)
        return application, reads

    def _application(self, request: OutboxRequest) -> TurnApplication:
        """An application that speaks through `request`, with its author's handlers on it."""
        base_url = self._ground.settings.telegram.base_url
        match self._source:
            case Registrar(register):
                alias = alias_of(self._token)
                application = builder(request, TurnPersistence(), alias=alias, base_url=base_url)
                built = application.build()
                assert isinstance(built, TurnApplication)
                register(built)
                return built
            case Factory() as factory:
                adopted = factory.application(Berth(self._bot, self._token, base_url))
            case Ready(adopted):
                pass
            case _:
                assert_never(self._source)
        adopted.seat.take(request)
        return adopted

    async def _learn(self, identity: Identity, application: TurnApplication, reads: Reads) -> None:
        """Ask Telegram who the bot is, and let the library know."""
        base = self._ground.settings.telegram.base_url
        url = f"{base}/bot{alias_of(self._token)}/getMe"
        await identity.learn(self._ground.db, self._ground.clock, partial(reads.get_me, url))
        await application.bot.get_me()


async def _stop(application: TurnApplication, handling: Handling) -> None:
    """End the library: its jobs and late tasks get a moment."""
    was_running = application.running
    try:
        async with asyncio.timeout(STOP_S):
            if was_running:
                await application.stop()
            if handling.followers:
                await asyncio.wait(handling.followers)
    except TimeoutError:
        event("task.failed", bot=handling.bot, task="late tasks were cut off")
    for follower in handling.followers:
        follower.cancel()
    if application.running:
        return
    if was_running:
        await _hook(application, handling.bot, "post_stop")
    await application.shutdown()
    await _hook(application, handling.bot, "post_shutdown")


async def _hook(
    application: TurnApplication, bot: BotName, name: Literal["post_stop", "post_shutdown"]
) -> None:
    """Call what the author wants done at the end; the end comes whatever becomes of it."""
    hook = application.post_stop if name == "post_stop" else application.post_shutdown
    if hook is None:
        return
    try:
        async with asyncio.timeout(HOOK_S):
            await hook(application)
    except Exception as error:  # noqa: BLE001  # the author's; told, and the house goes down in order
        event("task.failed", bot=bot, task=name, error=error)


async def _end(task: "asyncio.Future[Any]") -> BaseException | None:
    """Cancel a task and wait for its end; give what it had raised before."""
    task.cancel()
    await asyncio.wait((task,))
    return None if task.cancelled() else task.exception()


async def _unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, Lease]) -> Lease | None:
    """The result of `work`, or None when the process was told to stop first."""
    stopped = asyncio.ensure_future(stop.wait())
    working = asyncio.ensure_future(work)
    try:
        await asyncio.wait((stopped, working), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        await _end(stopped)
        await _end(working)
