"""A house of real processes under load, for tests that end processes in every way there is.

People of several private chats and groups ask numbered questions, one at a time in each chat, and
real updates of all kinds come in between. Limits are out of the way on both sides, so that there is
always something in flight. May judge nothing: that is for the checkers.
"""

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, Literal

import httpx

from storage.clock import Clock, SystemClock
from tests.crash.books import read_books
from tests.crash.checkers import Evidence
from tests.live.house import (
    ROLES,
    House,
    LiveBot,
    Plan,
    Role,
    house,
    made_up_bot,
    script_environment,
)
from tests.live.process import LiveProcess, until
from tests.simulator.control import Control
from tests.simulator.run import simulator_process

HANDLERS: Final = "tests.crash.handlers:register"
# What waits is done at once: a test has no time to be polite.
SETTINGS: Final = """
[limits]
chat_per_second = 1000.0
chat_burst = 1000
group_per_minute = 100000
bot_per_second = 10000.0
bulk_per_second = 10000.0
"""
API_TOKEN: Final = "of-a-program-that-may-leave-calls"
PRIVATE_CHATS: Final = 9
GROUPS: Final = 3
_DRAINED_WITHIN_MS: Final = 60_000
_AGAIN_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class Chat:
    """A chat in which somebody asks; `group` is None in a private one."""

    user: int
    group: int | None

    @property
    def id(self) -> int:
        """The chat's own id."""
        return self.user if self.group is None else self.group


@dataclass(slots=True)
class Load:
    """Who asks, how long each waits before the next question, and what was asked so far."""

    sim: Control
    bot: LiveBot
    chats: Sequence[Chat]
    corpus: Sequence[dict[str, Any]]
    pause_ms: tuple[int, int] = (50, 600)
    asked: dict[int, list[int]] = field(default_factory=dict)
    injected: int = 0
    redelivered: int = 0
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def questions(self) -> int:
        """How many questions were asked."""
        return sum(map(len, self.asked.values()))

    async def ask(self, chat: Chat) -> int:
        """Ask the next question in this chat; the update that tells of it."""
        number = next(self.numbers)
        self.asked.setdefault(chat.id, []).append(number)
        bot = self.bot.id if chat.group is None else None
        said = await self.sim.says(chat.user, f"question {number}", bot=bot, chat=chat.group)
        return said.update_ids[0]

    async def ask_all(self, rounds: int) -> None:
        """A fixed number of questions in each chat."""
        for _ in range(rounds):
            for chat in self.chats:
                await self.ask(chat)

    async def run(self, stop: asyncio.Event, dice: random.Random, clock: Clock) -> None:
        """Keep asking everywhere until `stop` is set."""
        seeds = [dice.random() for _ in self.chats]
        async with asyncio.TaskGroup() as group:
            for chat, seed in zip(self.chats, seeds, strict=True):
                group.create_task(self._keep_asking(chat, stop, random.Random(seed), clock))
            group.create_task(self._keep_injecting(stop, clock))

    async def _keep_asking(
        self, chat: Chat, stop: asyncio.Event, dice: random.Random, clock: Clock
    ) -> None:
        while not stop.is_set():
            update_id = await self.ask(chat)
            if dice.random() < _AGAIN_SHARE:
                await self._bring_again(update_id)
            await clock.sleep_ms(dice.randint(*self.pause_ms))

    async def _bring_again(self, update_id: int) -> None:
        """Let Telegram deliver an update again although it was acknowledged."""
        await self.sim.wait_end(self.bot.id, update_id, timeout_s=_DRAINED_WITHIN_MS / 1_000)
        await self.sim.redeliver(self.bot.id, update_id)
        self.redelivered += 1

    async def _keep_injecting(self, stop: asyncio.Event, clock: Clock) -> None:
        for update in itertools.cycle(self.corpus):
            if stop.is_set():
                return
            await self.sim.inject(self.bot.id, update)
            self.injected += 1
            await clock.sleep_ms(400)


@dataclass(frozen=True, slots=True)
class Living:
    """The house, Telegram, and the load."""

    house: House
    sim: Control
    load: Load
    clock: Clock

    async def start(
        self, role: Role | Literal["run"], *words: str, failpoint: str = ""
    ) -> LiveProcess:
        """Start one role, or all in one process, without waiting for it."""
        environment = dict(self.house.plan.environment)
        if failpoint:
            environment["FERRYMAN_TESTING__FAILPOINT"] = failpoint
        process = await LiveProcess.start(
            role,
            self.house.words(role, *words),
            log=self.house.log_of(role),
            environment=environment,
        )
        self.house.running[role] = process
        return process

    async def ready(self, process: LiveProcess) -> None:
        """Wait until a process says that it is ready.

        Raises NotReady when it ends instead, or takes too long.
        """

        async def said() -> bool:
            return process.times_said("role.ready") > 0

        await process.ready(said)

    async def all_ready(self, process: LiveProcess) -> None:
        """Wait until all roles in one process say that they are ready."""

        async def said() -> bool:
            return process.times_said("role.ready") == len(ROLES)

        await process.ready(said)

    async def start_all(self, *roles: Role) -> None:
        """Start roles and wait until each is ready."""
        for process in [await self.start(role) for role in roles or ROLES]:
            await self.ready(process)

    @asynccontextmanager
    async def under_load(self, dice: random.Random) -> AsyncIterator[None]:
        """People keep asking for as long as the block takes."""
        enough = asyncio.Event()
        asking = asyncio.create_task(self.load.run(enough, dice, self.clock))
        try:
            yield
        finally:
            enough.set()
            await asking

    async def drained(self) -> Evidence:
        """Wait until nothing waits anywhere, then take both sides' evidence."""
        await self.sim.wait_idle(self.load.bot.id, timeout_s=_DRAINED_WITHIN_MS / 1_000)
        await until(
            self._at_rest, within_ms=_DRAINED_WITHIN_MS, what="all updates and calls have ended"
        )
        return await self.evidence()

    async def evidence(self) -> Evidence:
        """Both sides as they are."""
        books = await asyncio.to_thread(read_books, self.house.database_path)
        return Evidence(await self.sim.ledger(), books)

    async def _at_rest(self) -> bool:
        return (await asyncio.to_thread(read_books, self.house.database_path)).at_rest

    def events(self, role: str, name: str) -> list[dict[str, Any]]:
        """Every event of that name in a role's log, over all its lives."""
        lines = self.house.log_of(role).read_text(encoding="utf-8").splitlines()
        told = (json.loads(line) for line in lines if f'"{name}"' in line)
        return [event for event in told if event.get("event") == name]


def corpus() -> list[dict[str, Any]]:
    """Real updates that people collected."""
    folder = resources.files("tests") / "data" / "updates"
    return [
        entry["update"]
        for file in sorted(folder.iterdir(), key=lambda each: each.name)
        if file.name.endswith(".json")
        for entry in json.loads(file.read_text(encoding="utf-8"))
    ]


async def set_webhook(built: House, bot: LiveBot, *, connections: int = 40) -> None:
    """Tell Telegram where to post this bot's updates."""
    wanted = {
        "url": f"{built.url}/telegram/{bot.name}",
        "secret_token": bot.secret,
        "max_connections": connections,
    }
    async with httpx.AsyncClient(trust_env=False) as http:
        address = f"{built.plan.telegram_url}/bot{bot.token}/setWebhook"
        answer = await http.post(address, data=wanted)
    assert answer.json()["ok"], answer.text


def _at(plan: Plan, telegram_url: str) -> Plan:
    """The plan, at this Telegram, with what its script finds in its environment."""
    (bot,) = plan.bots
    environment = {
        "FERRYMAN_WEB__API_TOKEN_FILE": str(plan.folder / "api.token"),
        **script_environment(bot.token, telegram_url, plan.folder),
    }
    return replace(plan, telegram_url=telegram_url, environment=environment)


@asynccontextmanager
async def living(
    folder: Path,
    *,
    settings: str = SETTINGS,
    has_webhook: bool = True,
    handlers: str = HANDLERS,
    script: Path | None = None,
) -> AsyncIterator[Living]:
    """A house with nothing started yet, its webhook set, and people who know the bot.

    `script`: a bot's own script, which the worker runs instead of handlers of ours.
    """
    bot = made_up_bot(handlers=handlers)
    clock = SystemClock()
    (folder / "api.token").write_text(API_TOKEN, encoding="ascii")
    (folder / "api.token").chmod(0o600)
    plan = Plan(folder, "", bots=(bot,), settings=settings, script=script)
    async with simulator_process(limits="off") as sim, house(_at(plan, sim.api_url)) as built:
        control = sim.control
        await control.add_bot(bot.token)
        await control.delivery(delay_scale=0.05, single_after_ms=600_000)
        chats = [
            Chat((await control.add_user(f"Person {n}")).id, None) for n in range(PRIVATE_CHATS)
        ]
        for n in range(GROUPS):
            user = (await control.add_user(f"Member {n}")).id
            group = await control.add_chat("group", f"Group {n}", users=(user,), bots=(bot.id,))
            chats.append(Chat(user, group.id))
        if has_webhook:
            await set_webhook(built, bot)
        yield Living(built, control, Load(control, bot, chats, corpus()), clock)
