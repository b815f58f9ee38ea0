"""What befalls a world: kills, stops, clock steps, failing disks, outages, and what people do.

Each trouble has a task of its own that waits, acts, and waits again; all end when the world heals.
"""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from storage.database import Database
from storage.lifecycle import BotName, OutboxId
from tests.simulation.clocks import MachineClock
from tests.simulation.disk import FULL, IOERR, Disk
from tests.simulation.history import Row
from tests.simulation.house import SENDER, WEB, WORKER, House, Slot
from tests.simulation.loop import Process, passing
from tests.simulation.network import Network
from tests.simulation.swarm import LongestWait, Swarm
from tests.simulation.traffic import People, Producer
from tests.simulation.watch import Trace, Watch
from tests.simulator.courier import Couriers
from tests.simulator.deliverer import Attempt
from tests.simulator.posting import SECRET_HEADER, Post
from tests.simulator.state import Told

_HOUR_S: Final = 3_600.0
_ROLES: Final = (SENDER, SENDER, WORKER, WEB)
_BIG_STEP_S: Final = 3_600
_CANCEL_AT_CLAIM: Final = 0.05
_LEAVES_WITHIN_S: Final = 120.0


@dataclass
class Befallen:
    """All that trouble may touch."""

    swarm: Swarm
    dice: random.Random
    house: House
    network: Network
    disk: Disk
    clock: MachineClock
    watch: Watch
    people: People
    couriers: Couriers
    left_s: LongestWait
    sightings: "Counter[str]"
    trace: Trace


class Trouble:
    """Brings every trouble that this world's swarm has, until it is healed."""

    def __init__(self, befallen: Befallen) -> None:
        self._b = befallen
        self._tasks: list[asyncio.Task[None]] = []
        self._is_over = False
        self._awaited: dict[Process, asyncio.Event] = {}

    def begin(self) -> None:
        """Let it all begin."""
        b = self._b
        acts: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "kill": self._kill,
            "stopped process": self._stop,
            "disk": self._harm_disk,
            "clock": self._set_clock,
            "reboot": self._reboot,
            "outage": self._outage,
            "admin": self._operate,
            "block": self._block,
            "migration": self._migrate,
            "duplicate": self._duplicate,
            "stranger": self._stranger,
        }
        for name, act in acts.items():
            rate = b.swarm.rate(name)
            if rate > 0:
                self._start(self._again(act, rate))
        self._start(self._again(self._say, b.swarm.updates_per_hour))
        self._start(self._again(self._broadcast, 2.0))
        b.network.telegram.state.listen(self._hear)
        b.watch.on_leave = self._call_left
        if b.swarm.rate("admin") > 0:
            b.watch.on_claim = self._cancel_at_claim

    def heal(self) -> None:
        """Let everything be well again; what was begun ends."""
        self._is_over = True
        b = self._b
        b.watch.on_claim = b.watch.on_leave = _deaf
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._b.network.landed)
        self._tasks.append(task)

    async def _again(self, act: Callable[[], Coroutine[Any, Any, None]], per_hour: float) -> None:
        while True:
            await passing(self._b.dice.expovariate(per_hour / _HOUR_S))
            await act()

    def _saw(self, name: str) -> None:
        self._b.sightings[name] += 1
        self._b.trace.tell("trouble", name)

    # People

    async def _say(self) -> None:
        """Somebody says something; they often do so several at a time."""
        b = self._b
        for _ in range(b.dice.choice((1, 1, 1, 2, 4))):
            odd = ""
            if b.dice.random() < b.swarm.rate("bad handler"):
                odd = b.dice.choice(("fail", "fail", "hang", "slow"))
                names = {"fail": "raised", "hang": "hung", "slow": "slow"}
                self._saw(f"handler {names[odd]}")
            b.people.say(odd=odd)

    def _hear(self, told: Told) -> None:
        if told.kind == "message" and not self._is_over:
            self._b.network.fly(self._press_soon(told))

    async def _press_soon(self, told: Told) -> None:
        b = self._b
        wanted = told.data.get("message_id")
        ledger = b.network.telegram.ledger
        for message in ledger.messages(told.bot_id or 0, told.chat_id or 0)[-3:]:
            if message.message_id == wanted and message.text.endswith("a menu"):
                await passing(b.dice.uniform(0.5, 60.0))
                b.people.press(message)

    async def _block(self) -> None:
        self._b.people.block()

    async def _migrate(self) -> None:
        if self._b.people.migrate():
            self._b.trace.tell("trouble", "migration")

    async def _duplicate(self) -> None:
        """An update that was delivered comes again, old ones too."""
        b = self._b
        bot = b.dice.choice(list(b.network.telegram.state.bots.values()))
        known = list(bot.archive)
        if not known:
            return
        for _ in range(b.dice.choice((1, 1, 5))):
            if b.couriers.repeat(bot, b.dice.choice(known)):
                self._saw("duplicate update")

    async def _stranger(self) -> None:
        """A post for another bot, or with another's secret: it must not be kept."""
        b = self._b
        body = (
            b'{"update_id":1,"message":{"message_id":1,"date":1,"chat":{"id":1,"type":"private"}}}'
        )
        bot = b.house.bots[0]
        url, secret = b.dice.choice(
            ((bot.url, "not-the-secret"), (bot.url + "x", "not-the-secret"), (bot.url, ""))
        )
        post = Post(url, {SECRET_HEADER: secret}, body, Attempt(1, 1, body, 0, -1))
        before = len(b.watch.history.inbox)
        outcome = await b.house.receive(post)
        del before
        self._saw("update of a stranger")
        if getattr(outcome, "status", 401) == 200:
            b.watch.breach("I1", "an update of a stranger was taken")

    # Operators

    async def _broadcast(self) -> None:
        b = self._b
        bot = b.dice.choice(b.house.bots)

        async def leave(database: Database) -> None:
            producer = Producer(database, b.people, b.watch, b.clock, b.dice)
            await producer.broadcast(bot, partial(b.house.ring, SENDER))

        b.house.act(leave)

    async def _operate(self) -> None:
        b = self._b
        bot = b.dice.choice(b.house.bots)

        async def operate(database: Database) -> None:
            producer = Producer(database, b.people, b.watch, b.clock, b.dice)
            done = await producer.operate(bot.name)
            if done:
                self._saw("admin")
                b.trace.tell("operator", done)
                b.house.ring(SENDER)

        b.house.act(operate)

    def _cancel_at_claim(self, row: Row) -> None:
        """Somebody cancels a row at the very moment at which it is taken."""
        b = self._b
        if b.dice.random() >= _CANCEL_AT_CLAIM:
            return

        async def cancel(database: Database) -> None:
            producer = Producer(database, b.people, b.watch, b.clock, b.dice)
            await producer.cancel_row(BotName(row.bot), OutboxId(row.id))

        b.house.act(cancel)

    def resume_all(self) -> None:
        """Nothing stays paused by hand."""
        b = self._b

        async def resume(database: Database) -> None:
            producer = Producer(database, b.people, b.watch, b.clock, b.dice)
            await producer.resume_all(b.house.bots)
            b.house.ring(SENDER)

        b.house.act(resume)

    # Processes

    def _slot(self, role: str = "") -> Slot | None:
        dice = self._b.dice
        slots = self._b.house.of(role or dice.choice(_ROLES))
        living = [slot for slot in slots if slot.lives]
        return dice.choice(living) if living else None

    def _owner(self) -> Slot | None:
        """A sender that owns a bot."""
        house, leases = self._b.house, self._b.watch.history.leases
        bot = self._b.dice.choice(house.bots)
        _, owner = leases.get(f"sender:{bot.name}", (0, None))
        number = (owner or ".0.").split(".")[1]
        owning = (slot for slot in house.of(SENDER) if slot.lives)
        return next((slot for slot in owning if slot.number == int(number)), None)

    async def _kill(self) -> None:
        """SIGKILL at a moment, at any callback soon, or at a commit."""
        b, dice = self._b, self._b.dice
        if dice.random() < 0.15:
            victims = [slot for role in (SENDER, WORKER) for slot in b.house.of(role)]
            for victim in victims:
                if victim.process is not None:
                    victim.process.kill()
            self._saw("two killed")
            return
        how = dice.random()
        if how < 0.25:
            owner = self._owner()
            if owner is not None and owner.process is not None:
                await self._left(owner.process)
                # At once, while it travels, or when its answer is being written down.
                await passing(dice.uniform(0.0, 0.15))
                owner.process.kill()
            return
        if how < 0.45:
            b.disk.kill_at_commit = (dice.choice(_ROLES), dice.choice(("before", "after")))
            return
        slot = self._slot()
        if slot is None or slot.process is None:
            return
        if how < 0.75:
            slot.process.steps_left = int(3 * 300 ** dice.random())
        else:
            slot.process.kill()

    async def _stop(self) -> None:
        """SIGSTOP, and some time later SIGCONT."""
        b = self._b
        is_contested = len(b.house.of(SENDER)) > 1 and b.dice.random() < 0.7
        slot = self._owner() if is_contested else self._slot()
        if slot is None or slot.process is None:
            return
        process = slot.process
        if is_contested and b.dice.random() < 0.7:
            await self._left(process)
        if process.is_dead:
            return
        process.stop()
        b.trace.tell("stops", process)
        if is_contested:
            self._saw("stopped owner")
        await passing(120 ** b.dice.random())
        b.trace.tell("goes on", process)
        process.go_on()

    async def _left(self, process: Process) -> None:
        """Wait, not for long, until this process has a call under way."""
        left = self._awaited.setdefault(process, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVES_WITHIN_S):
                await left.wait()

    def _call_left(self, process: Process) -> None:
        awaited = self._awaited.pop(process, None)
        if awaited is not None:
            awaited.set()

    async def _reboot(self) -> None:
        """The machine is started anew; its clock may be wrong then."""
        b = self._b
        for slot in b.house.slots:
            if slot.process is not None:
                slot.process.kill()
        b.clock.reboot()
        b.watch.rebooted()
        if b.dice.random() < 0.3:
            self._step(b.dice.choice((-1, 1)) * int(600 ** b.dice.random()) * 1_000)
        self._saw("reboot")

    # The machine

    async def _harm_disk(self) -> None:
        b, dice, now_ms = self._b, self._b.dice, self._b.house.around.loop.now_ms()
        match dice.choice(("busy", "busy", "full", "ioerr", "nth")):
            case "busy":
                b.disk.busy_until_ms = now_ms + int(200 * 75 ** (dice.random() ** 2))
            case "full":
                b.disk.full_until_ms = now_ms + int(5_000 * dice.random())
            case "ioerr":
                b.disk.fails_in, b.disk.fails_with = dice.randint(1, 60), IOERR
            case _:
                b.disk.fails_in, b.disk.fails_with = dice.randint(1, 60), FULL
        b.disk.settle()

    async def _set_clock(self) -> None:
        """A step from a second to 30 days, an hour of summer time, or a drift."""
        b, dice = self._b, self._b.dice
        self._saw("clock")
        if dice.random() < 0.2:
            b.clock.drift(1 + dice.uniform(-0.05, 0.05))
            b.watch.clock_moved()
            return
        step_s = dice.choice((3_600, int(2_592_000 ** dice.random()), int(60 ** dice.random())))
        step_s *= dice.choice((-1, 1))
        self._step(step_s * 1_000)
        if step_s >= _BIG_STEP_S or -step_s >= _BIG_STEP_S:
            # Somebody notices.
            await passing(5 * 60 ** dice.random())
            self._step(-step_s * 1_000)

    def _step(self, ms: int) -> None:
        self._b.watch.clock_moves_soon()
        self._b.clock.step(ms)
        self._b.watch.clock_moved()
        self._b.trace.tell("clock", f"{ms:+}")

    async def _outage(self) -> None:
        """Telegram can't be reached for a while."""
        b = self._b
        longest_s = max(20.0, min(21_600.0, float(b.left_s())))
        self._saw("outage")
        b.network.telegram.reachable = False
        try:
            await passing(10 * (longest_s / 10) ** b.dice.random())
        finally:
            b.network.telegram.reachable = True


def _deaf(_: object) -> None:
    """Nobody listens any more."""
