"""The house of a world: its processes, each begun again some seconds after it has ended.

Every role runs the product's own code, put together by the product's own composition root; only
what a role lives in (clock, dice, disk, network, bells, timetable) is the world's.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from starlette.requests import Request

from bot.settings import WorkerSettings
from bot.turns import app as turns
from bot.web.backpressure import BackPressure, Marks
from bot.web.intake import Intake
from bot.web.meter import Meter
from bot.web.webhook import Door, Webhook
from sender import app as sending
from sender.settings import SenderSettings
from storage.database import Database, opened
from storage.lifecycle import BotName
from storage.options import BotOptions, DeliveryOptions, Limits, Settings, WorkerOptions
from storage.secret import Token
from storage.settings import ServiceEnvironment
from tests.simulation.bells import Belfry
from tests.simulation.clocks import MachineClock
from tests.simulation.disk import Disk, carrier, connector
from tests.simulation.loop import Process, WorldLoop, process_here
from tests.simulation.network import Network
from tests.simulation.timetable import WorldTimetable
from tests.simulation.watch import OPERATOR
from tests.simulator.deliverer import Answered, Broken, Outcome, Unconnected
from tests.simulator.posting import Post

WEB, WORKER, SENDER = "web", "worker", "sender"
SECRET: Final = "world-secret-which-nobody-may-see"
TURN_TIMEOUT_S: Final = 60
_HANDLERS: Final = "tests.simulation.handlers:register"
_ADDRESS: Final = "https://world.example/telegram/"


@dataclass(frozen=True, slots=True)
class WorldBot:
    """A bot of the house."""

    name: BotName
    token: str

    @property
    def id(self) -> int:
        """Telegram's number for it."""
        return int(self.token.partition(":")[0])

    @property
    def url(self) -> str:
        """Where its updates are posted."""
        return _ADDRESS + self.name


MAIN: Final = WorldBot(BotName("main"), "7000000001:AAmainmainmainmainmainmainmainmain1")
OTHER: Final = WorldBot(BotName("other"), "7000000002:AAotherotherotherotherotherother22")


class ProcessDice:
    """Seeded dice, as the product throws them."""

    def __init__(self, source: random.Random) -> None:
        self.random = source.random


@dataclass
class Surroundings:
    """What the processes live in."""

    loop: WorldLoop
    clock: MachineClock
    disk: Disk
    network: Network
    belfry: Belfry
    dice: random.Random
    folder: Path
    changes: Callable[[], int]
    tell: Callable[[str, str], None]
    """Something happened to a process: what, and to which."""


@dataclass(eq=False)
class Slot:
    """A place for one process, filled again whenever it is empty."""

    role: str
    begin: Callable[["Slot"], Any]
    process: Process | None = None
    webhook: Webhook | None = None
    database: Database | None = None

    @property
    def number(self) -> int:
        """Number of the process that fills it."""
        return 0 if self.process is None else self.process.number

    @property
    def lives(self) -> bool:
        """Whether a process is there that runs."""
        return self.process is not None and not self.process.is_dead


class House:
    """All processes."""

    def __init__(
        self, around: Surroundings, bots: tuple[WorldBot, ...], settings: Settings
    ) -> None:
        self.around = around
        self.bots = bots
        self.settings = settings
        self.slots: list[Slot] = []
        self.failures: list[str] = []
        """Processes that ended by themselves, each with why."""

        self.restart_s: Callable[[], float] = lambda: 2.0
        self.is_closed = False
        self._acts: set[asyncio.Task[object]] = set()
        self._graveyard: list[Process] = []
        self._numbers = 0
        self._outside = Context()
        self._tokens = {bot.name: Token(bot.token) for bot in bots}
        self._names = {bot.url: bot.name for bot in bots}

    def open(self, *, senders: int, workers: int) -> None:
        """Begin everything."""
        roles: Mapping[str, tuple[int, Callable[[Slot], Any]]] = {
            WEB: (1, self._web),
            WORKER: (workers, self._worker),
            SENDER: (senders, self._sender),
            OPERATOR: (1, self._operator),
        }
        for role, (count, main) in roles.items():
            self.slots += [Slot(role, main) for _ in range(count)]
        for slot in self.slots:
            self._begin(slot)

    def close(self) -> None:
        """End everything at once, and close what is left open."""
        self.is_closed = True
        for slot in self.slots:
            if slot.process is not None:
                slot.process.kill()
        for process in self._graveyard:
            process.bury()

    def of(self, role: str) -> list[Slot]:
        """The places of one role."""
        return [slot for slot in self.slots if slot.role == role]

    def _begin(self, slot: Slot) -> None:
        if self.is_closed:
            return
        around = self.around
        self._numbers += 1
        process = Process(around.loop, slot.role, self._numbers)
        self._graveyard.append(process)
        slot.process = process
        process.ends.append(partial(self._ended, slot, process))
        around.tell("begins", repr(process))
        task = process.spawn(slot.begin(slot))
        task.add_done_callback(partial(self._over, process), context=self._outside)

    def _over(self, process: Process, task: "asyncio.Task[None]") -> None:
        """The role's own code has come to an end."""
        if process.is_dead:
            return
        error = None if task.cancelled() else task.exception()
        self.around.tell("ends", f"{process!r} {type(error).__name__}")
        self.failures.append(f"{process!r}: {error!r}")
        process.kill()

    def _ended(self, slot: Slot, process: Process) -> None:
        slot.webhook = slot.database = None
        self.around.tell("dies", repr(process))
        if slot.process is process and not self.is_closed:
            self.around.loop.call_later(self.restart_s(), self._begin, slot, context=self._outside)

    # Roles

    def _service(self) -> ServiceEnvironment:
        return ServiceEnvironment()

    async def _sender(self, slot: Slot) -> None:  # noqa: ARG002 - as all roles
        around = self.around
        world = sending.World(
            dice=ProcessDice(random.Random(around.dice.random())),
            driver=lambda clock: WorldTimetable(around.loop, clock, around.changes),
            carrier=carrier(around.disk),
            connector=connector(around.disk),
            transport=around.network.open_transport,
            doorbell=around.belfry.of(),
        )
        given = SenderSettings(self.settings, self._tokens, self._service())
        await sending.run_sender(given, clock=around.clock, stop=asyncio.Event(), world=world)

    async def _worker(self, slot: Slot) -> None:  # noqa: ARG002 - as all roles
        around = self.around
        world = turns.World(
            carrier=carrier(around.disk),
            connector=connector(around.disk),
            reading=around.network.reading,
            doorbell=around.belfry.of(),
        )
        given = WorkerSettings(self.settings, self._tokens, self._service())
        await turns.run_worker(given, clock=around.clock, stop=asyncio.Event(), world=world)

    async def _web(self, slot: Slot) -> None:
        """The web role without its server: the door itself."""
        around = self.around
        path = self.settings.database_path
        async with opened(
            path, around.clock, carrier=carrier(around.disk), connector=connector(around.disk)
        ) as database:
            bell = around.belfry.of()(self.settings.state_dir, WEB)
            names = [bot.name for bot in self.bots]
            slot.webhook = Webhook(
                Intake(database, around.clock),
                Door({name: (SECRET.encode(),) for name in names}),
                BackPressure(database, self.settings.state_dir, names, Marks(100_000, 0)),
                meter=Meter(),
                clock=around.clock,
                on_stored=partial(bell.ring, WORKER),
            )
            await asyncio.Event().wait()

    async def _operator(self, slot: Slot) -> None:
        """A shell on the house's machine, in which commands are typed."""
        around = self.around
        path = self.settings.database_path
        async with opened(
            path, around.clock, carrier=carrier(around.disk), connector=connector(around.disk)
        ) as slot.database:
            await asyncio.Event().wait()

    def act(self, work: Callable[[Database], Coroutine[Any, Any, object]]) -> None:
        """Have an operator type something, if there is a shell."""
        slot = self.of(OPERATOR)[0]
        if slot.lives and slot.process is not None and slot.database is not None:
            self._acts.add(slot.process.spawn(work(slot.database)))

    def ring(self, role: str) -> None:
        """Ring a role's bells, as a command does after its commit."""
        prefix = f"{role}."
        for name, bell in list(self.around.belfry.bells.items()):
            if name.startswith(prefix) and not bell.is_silent:
                bell.sound()

    # The door

    async def receive(self, post: Post) -> Outcome:
        """Have a post received by whoever serves the web role."""
        slot = self.of(WEB)[0]
        process, webhook = slot.process, slot.webhook
        if process is None or process.is_dead or webhook is None:
            return Unconnected("Connection refused")
        name = self._names.get(post.url, post.url.removeprefix(_ADDRESS))
        told: asyncio.Future[Outcome] = self.around.loop.create_future()
        hang_up = partial(_tell, told, Broken("Connection reset by peer"))
        process.ends.append(hang_up)
        receiving = process.spawn(_receive(webhook, _request(name, post), told))
        try:
            return await told
        finally:
            process.ends.remove(hang_up)
            if receiving.done() and not receiving.cancelled():
                # A door that raises is the product's fault.
                receiving.result()


def _request(name: str, post: Post) -> Request:
    headers = [(key.lower().encode(), value.encode()) for key, value in post.headers.items()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"/telegram/{name}",
        "headers": [*headers, (b"content-length", str(len(post.body)).encode())],
        "path_params": {"bot": name},
        "client": ("127.0.0.1", 1),
    }

    async def body() -> dict[str, object]:
        return {"type": "http.request", "body": post.body, "more_body": False}

    return Request(scope, body)


async def _receive(webhook: Webhook, request: Request, told: "asyncio.Future[Outcome]") -> None:
    assert process_here() is not None
    response = await webhook.receive(request)
    retry_after = response.headers.get("retry-after")
    _tell(
        told,
        Answered(
            response.status_code,
            retry_after_s=None if retry_after is None else int(retry_after),
            body=bytes(response.body),
        ),
    )


def _tell(told: "asyncio.Future[Outcome]", outcome: Outcome) -> None:
    if not told.done():
        told.set_result(outcome)


def settings_of(folder: Path, bots: tuple[WorldBot, ...], limits: Limits) -> Settings:
    """The house's configuration."""
    return Settings(
        state_dir=folder,
        bots={bot.name: BotOptions(handlers=_HANDLERS) for bot in bots},
        limits=limits,
        delivery=DeliveryOptions(reply_ttl_s=1_800, broadcast_ttl_s=7_200),
        worker=WorkerOptions(turn_timeout_s=TURN_TIMEOUT_S),
    )
