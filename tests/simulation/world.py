"""One world: from its seed to its verdict, in one thread, on virtual time.

A world lives for some hours with whatever its swarm has in store, is then healed and drained, and
judged. The same seed gives the same world: its trace hashes to the same value wherever it is run.
"""

import asyncio
import gc
import hashlib
import logging
import random
import tempfile
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from storage import telemetry
from storage.database import connect
from storage.migrate import migrate
from tests.simulation import judgement
from tests.simulation.bells import Belfry
from tests.simulation.clocks import MachineClock, TrueClock
from tests.simulation.disk import Disk
from tests.simulation.house import (
    MAIN,
    OTHER,
    SECRET,
    SENDER,
    House,
    Surroundings,
    WorldBot,
    settings_of,
)
from tests.simulation.journal import keep_journal
from tests.simulation.loop import Deadlock, SpunAround, WorldLoop, passing
from tests.simulation.network import Network
from tests.simulation.swarm import LongestWait, Swarm, Troubles, draw
from tests.simulation.traffic import PRIVATE_WORD, People
from tests.simulation.trouble import Befallen, Trouble
from tests.simulation.watch import Trace, Watch
from tests.simulator.courier import Couriers
from tests.simulator.deliverer import Broken, Outcome
from tests.simulator.model import Telegram
from tests.simulator.posting import Post

HOUR_S: Final = 3_600
DRAIN_S: Final = 2.5 * HOUR_S
_LOOK_S: Final = 10.0
_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a world's own folder in it, gone with the world


@dataclass(slots=True)
class Verdict:
    """What has come of a world."""

    seed: int
    hours: float
    trace: str = ""
    breaches: list[str] = field(default_factory=list)
    sightings: "Counter[str]" = field(default_factory=Counter)
    calls: int = 0
    updates: int = 0
    drained_s: float = 0.0
    cpu_s: float = 0.0
    timeline: list[str] = field(default_factory=list)


class _Ears:
    """Hears every log line of the house, for what may not be in it."""

    def __init__(self, forbidden: tuple[str, ...], trace: Trace) -> None:
        self._forbidden = forbidden
        self._trace = trace
        self.leaks: list[str] = []

    def write(self, text: str) -> int:
        """Take a line."""
        for secret in self._forbidden:
            if secret in text:
                self.leaks.append(f"I15: a log line shows a secret or a user's word: {text[:200]}")
        if self._trace.lines is not None and text.strip():
            self._trace.remark(text.partition('"event":')[2].strip())
        return len(text)

    def flush(self) -> None:
        """Nothing waits."""

    def isatty(self) -> bool:
        """No terminal."""
        return False


def run_world(seed: int, hours: float, *, timeline: bool = False) -> Verdict:
    """Let a world run from its beginning to its judgement."""
    verdict = Verdict(seed, hours)
    gc.disable()
    with ExitStack() as stack:
        where = _MEMORY if _MEMORY.is_dir() else None
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=where)))
        loop = WorldLoop()
        stack.callback(loop.close)
        stack.callback(asyncio.set_event_loop, None)
        asyncio.set_event_loop(loop)
        world = World(loop, folder, verdict, timeline=timeline)
        try:
            loop.run_until_complete(world.live())
        except (Deadlock, SpunAround) as error:
            world.watch.breach("I11", f"the world stands still: {type(error).__name__}")
        finally:
            world.house.close()
        for failure in world.network.failures:
            raise failure
        world.judge()
    gc.enable()
    gc.collect()
    return verdict


class World:
    """All parts of one world."""

    def __init__(self, loop: WorldLoop, folder: Path, verdict: Verdict, *, timeline: bool) -> None:
        self.verdict = verdict
        dice = random.Random(verdict.seed)
        self.swarm: Swarm = draw(dice)
        self.bots: tuple[WorldBot, ...] = (MAIN, OTHER) if self.swarm.two_bots else (MAIN,)
        self.loop = loop
        self._digest = hashlib.blake2b(digest_size=16)
        self.trace = Trace(loop.now_ms, self._digest.update)
        self.trace.lines = verdict.timeline if timeline else None
        self._secrets = (SECRET, *(bot.token.partition(":")[2] for bot in self.bots))
        self._listen()
        self.clock = MachineClock(loop)
        self.telegram = self._telegram()
        self.watch = Watch(loop, self.clock, self.telegram.ledger, self.trace)
        self.watch.is_whole = self.swarm.limits.flood_scope == "bot"
        for bot in self.bots:
            self.watch.know(bot.token, bot.name)
        self.left_s = LongestWait()
        self.troubles = Troubles(self.swarm, random.Random(dice.random()), self.left_s)
        self.telegram.faults = self.troubles
        self.disk = Disk(
            loop,
            random.Random(dice.random()),
            self.watch.committed,
            self._saw,
            self.watch.breach,
        )
        self.disk.slow_share = self.swarm.slow_disk
        self.network = Network(loop, self.telegram, dice, self.troubles.passage, self.watch)
        self.settings = settings_of(folder, self.bots, self.swarm.limits)
        self._ring_dice = random.Random(dice.random())
        belfry = Belfry(loop, self._loses_ring)
        around = Surroundings(
            loop=loop,
            clock=self.clock,
            disk=self.disk,
            network=self.network,
            belfry=belfry,
            dice=random.Random(dice.random()),
            folder=folder,
            changes=lambda: self.watch.changes,
            tell=self._process_told,
        )
        self.house = House(around, self.bots, self.settings)
        self.house.restart_s = partial(_restart_s, random.Random(dice.random()))
        self.people = People(self.telegram, self.bots, random.Random(dice.random()))
        self.dice = dice
        self.deaths: dict[int, int] = {}
        self._is_healed = False

    def _telegram(self) -> Telegram:
        limits = self.swarm.strictness
        telegram = Telegram(TrueClock(self.loop), limits=limits, seed=self.verdict.seed)
        for bot in self.bots:
            telegram.bot(bot.token)
            wanted = {"url": bot.url, "secret_token": SECRET, "max_connections": "40"}
            telegram.call(bot.token, "setWebhook", wanted)
        return telegram

    def _listen(self) -> None:
        """Have the house log as in production, into our ears."""
        self.ears = _Ears((*self._secrets, PRIVATE_WORD), self.trace)
        telemetry.setup("world", "INFO", secrets=self._secrets, stream=self.ears)  # type: ignore[arg-type]  # as much of a stream as is used
        logging.raiseExceptions = True

    # From the beginning to the end

    async def live(self) -> None:
        """Begin, suffer, heal, drain."""
        migrate(self.settings.database_path, self.clock)
        raw = connect(self.settings.database_path)
        keep_journal(raw)
        raw.close()
        workers = 2 if self.swarm.two_workers else 1
        senders = 2 if self.swarm.two_senders else 1
        self.verdict.sightings["two senders"] += self.swarm.two_senders
        self.house.open(senders=senders, workers=workers)
        async with Couriers(self.telegram, _Poster(self)) as couriers:
            trouble = Trouble(self._befallen(couriers))
            trouble.begin()
            ends = self.loop.time() + self.verdict.hours * HOUR_S
            while self.loop.time() < ends:
                self.left_s.left_s = int(ends - self.loop.time()) + 60
                await passing(min(60.0, ends - self.loop.time() + 0.001))
            trouble.heal()
            self._heal()
            await passing(_LOOK_S)
            trouble.resume_all()
            await self._drain()

    def _befallen(self, couriers: Couriers) -> Befallen:
        return Befallen(
            swarm=self.swarm,
            dice=random.Random(self.dice.random()),
            house=self.house,
            network=self.network,
            disk=self.disk,
            clock=self.clock,
            watch=self.watch,
            people=self.people,
            couriers=couriers,
            left_s=self.left_s,
            sightings=self.verdict.sightings,
            trace=self.trace,
        )

    def _heal(self) -> None:
        """Nothing goes wrong any more, and every process begins anew."""
        self._is_healed = True
        self.trace.tell("heals")
        self.troubles.is_healed = True
        self.telegram.reachable = True
        self.telegram.release()
        self.disk.heal()
        self.watch.clock_moves_soon()
        self.clock.heal()
        self.watch.clock_moved()
        self.house.restart_s = lambda: 1.0
        for slot in self.house.slots:
            if slot.process is not None:
                slot.process.kill()

    async def _drain(self) -> None:
        """Wait until nothing waits any more."""
        began = self.loop.time()
        bots = self.telegram.state.bots.values()
        while self.loop.time() < began + DRAIN_S:
            await passing(_LOOK_S)
            pending = any(bot.deliverer.pending for bot in bots)
            if not pending and judgement.is_at_rest(self.watch.history, self.clock.now_ms()):
                break
        else:
            self.watch.breach("I11", "not everything has come to an end")
        self.verdict.drained_s = self.loop.time() - began
        # What was answered last is being written down.
        await passing(_LOOK_S)

    def judge(self) -> None:
        """Judge what is left."""
        verdict, history, path = self.verdict, self.watch.history, self.settings.database_path
        names = {bot.id: bot.name for bot in self.bots}
        reasons, spent = judgement.books_of(path)
        breaches = self.watch.breaches
        breaches += judgement.lost(history, self.telegram.ledger, names)
        breaches += judgement.untrue(history)
        breaches += judgement.beyond_limits(history, self.settings)
        breaches += judgement.unended(history, reasons, self.clock.now_ms())
        breaches += judgement.over_budget(history, self.settings, spent)
        breaches += judgement.unrecorded(history, self.deaths, self.loop.now_ms())
        breaches += judgement.unsound(path)
        breaches += judgement.told_secrets(path, self._secrets)
        breaches += self.ears.leaks
        breaches += (f"I11: {told}" for told in self.house.failures if not _is_allowed(told))
        verdict.breaches = breaches
        verdict.calls = sum(call.row is not None for call in history.calls)
        verdict.updates = len(history.inbox)
        verdict.sightings += self.watch.sightings + self.troubles.lost
        for told in (*sorted(verdict.sightings.items()), *breaches):
            self.trace.tell("end", told)
        verdict.trace = self._digest.hexdigest()

    # What is told

    def _saw(self, name: str) -> None:
        self.verdict.sightings[name] += 1
        self.trace.tell("trouble", name)

    def _loses_ring(self) -> bool:
        if self._is_healed or self._ring_dice.random() >= self.swarm.rate("lost ring"):
            return False
        self._saw("lost ring")
        return True

    def _process_told(self, what: str, process: str) -> None:
        self.trace.tell(what, process)
        role, _, number = process.partition("#")
        if what == "dies":
            self.deaths[int(number)] = self.loop.now_ms()
            self.verdict.sightings["kill"] += not self._is_healed
        if what == "begins" and role == SENDER and self.watch.is_cooling() and self.deaths:
            self.verdict.sightings["restart in a cooldown"] += 1


class _Poster:
    """Carries Telegram's posts to the house, and now and then loses the answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._dice = random.Random(world.dice.random())

    async def post(self, post: Post) -> Outcome:
        """Make the request."""
        await passing(self._dice.uniform(0.004, 0.06))
        outcome = await self._world.house.receive(post)
        world = self._world
        if world.troubles.is_healed or self._dice.random() >= world.swarm.rate("lost answer"):
            return outcome
        return Broken("Connection reset by peer")


def _restart_s(dice: random.Random) -> float:
    return 0.2 * float(100 ** dice.random())


def _is_allowed(told: str) -> bool:
    """A process may end by itself only for a database that fails for long."""
    return any(name in told for name in ("StorageBusy", "DiskFull", "StorageError"))
