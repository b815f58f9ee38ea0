"""The role as a whole: it starts without Telegram, takes over, and ends in order.

On the system's clock, as two connections share the file here, and who finds it busy waits.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from telegram import Update
from telegram.ext import CommandHandler, MessageHandler, filters

from bot.settings import WorkerSettings
from bot.turns.app import run_worker
from bot.turns.application import TurnApplication
from bot.turns.loading import load_handlers
from storage import bots, heartbeats, inbox, leases
from storage.clock import SystemClock
from storage.database import Database, opened
from storage.doorbell import Doorbell
from storage.envelope import Envelope, read_envelope
from storage.errors import ConfigurationError, IdentityChanged
from storage.inbox import Received
from storage.lifecycle import BotName, InboxId, InboxState
from storage.migrate import migrate
from storage.options import BotOptions, Settings, TelegramOptions, WorkerOptions
from storage.settings import ServiceEnvironment, Token
from tests.integration.turns.stand import Context, message, until

BOT = BotName("main")
TOKEN = Token("4242:AAsecretSECRETsecretSECRETsecretSECRET")
# Nobody listens there, so every call to Telegram fails at once.
NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def handlers(monkeypatch: pytest.MonkeyPatch) -> dict[str, asyncio.Event]:
    """A module of handlers: an echo, and one that waits for its gate."""
    gates: dict[str, asyncio.Event] = {"begun": asyncio.Event(), "gate": asyncio.Event()}

    async def echo(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text(update.message.text or "")

    async def wait(update: Update, context: Context) -> None:
        gates["begun"].set()
        await gates["gate"].wait()
        await echo(update, context)

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("wait", wait))
        application.add_handler(MessageHandler(filters.TEXT, echo))

    module = ModuleType("handlers_of_a_test")
    vars(module)["register"] = register
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return gates


def settings(folder: Path, token: Token = TOKEN) -> WorkerSettings:
    options = Settings(
        state_dir=folder,
        telegram=TelegramOptions(base_url=NOWHERE),
        bots={"main": BotOptions(handlers="handlers_of_a_test:register")},
        worker=WorkerOptions(turn_timeout_s=30),
    )
    return WorkerSettings(options, {BOT: token}, ServiceEnvironment())


@asynccontextmanager
async def database(folder: Path, clock: SystemClock) -> AsyncIterator[Database]:
    path = folder / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as db:
        yield db


async def says(db: Database, text: str, number: int, user: int | None = None) -> InboxId:
    said = message(text, user=number if user is None else user)
    body = json.dumps({"update_id": number, "message": said}).encode()
    envelope = read_envelope(body)
    assert isinstance(envelope, Envelope)
    received = Received(BOT, number, envelope.kind, envelope.chat_lane, envelope.user_lane, body)
    return (await db.write(partial(inbox.receive, update=received))).id


async def until_state(db: Database, update: InboxId, state: InboxState) -> None:
    async with asyncio.timeout(10):
        while True:
            found = await db.read(partial(inbox.show, update=update))
            assert found is not None
            if found.state is state:
                return


class Role:
    """A worker in a task."""

    def __init__(self, given: WorkerSettings, clock: SystemClock) -> None:
        self.stop = asyncio.Event()
        self.task = asyncio.get_running_loop().create_task(
            run_worker(given, clock=clock, stop=self.stop)
        )

    async def end(self) -> None:
        """Stop it, and see that it ended well."""
        self.stop.set()
        async with asyncio.timeout(20):
            await self.task


async def test_updates_are_handled_while_telegram_can_not_be_reached(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    clock = SystemClock()
    async with database(tmp_path, clock) as db:
        update = await says(db, "hello", 1)
        role = Role(settings(tmp_path), clock)
        await until_state(db, update, InboxState.DONE)
        (row,) = await db.fetch("outbox.queue", {"bot": BOT, "after_id": 0, "limit": 9})
        assert row["lane"] == "c:1"
        (beat,) = await db.read(heartbeats.everyone)
        assert (beat.role, beat.state) == ("worker", heartbeats.RoleState.READY)
        await role.end()
        assert await db.read(heartbeats.everyone) == []
        owner = await db.read(partial(leases.current, name="worker:main"))
        assert owner is not None
        assert owner.owner is None


async def test_a_ring_is_answered_at_once(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    clock = SystemClock()
    bell = Doorbell(tmp_path, "web")
    async with database(tmp_path, clock) as db:
        role = Role(settings(tmp_path), clock)
        await until_state(db, await says(db, "first", 1), InboxState.DONE)
        update = await says(db, "second", 2)
        bell.ring("worker")
        async with asyncio.timeout(0.9):
            await until_state(db, update, InboxState.DONE)
        await role.end()
    bell.close()


async def test_a_stop_lets_a_running_turn_finish_and_starts_no_other(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    clock = SystemClock()
    async with database(tmp_path, clock) as db:
        running = await says(db, "/wait", 1)
        role = Role(settings(tmp_path), clock)
        await handlers["begun"].wait()
        role.stop.set()
        await asyncio.sleep(0)
        late = await says(db, "too late", 2)
        handlers["gate"].set()
        await role.end()
        await until_state(db, running, InboxState.DONE)
        await until_state(db, late, InboxState.RECEIVED)


async def test_a_second_worker_stands_by_and_takes_over(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    clock = SystemClock()
    async with database(tmp_path, clock) as db:
        first = Role(settings(tmp_path), clock)
        await until_state(db, await says(db, "one", 1), InboxState.DONE)
        second = Role(settings(tmp_path), clock)
        expected = [heartbeats.RoleState.READY, heartbeats.RoleState.STANDBY]
        async with asyncio.timeout(10):
            while sorted(beat.state for beat in await db.read(heartbeats.everyone)) != expected:
                """Look again: reading takes its time."""
        await first.end()
        update = await says(db, "two", 2)
        await until_state(db, update, InboxState.DONE)
        await second.end()


async def test_a_worker_that_loses_its_bot_stands_by_and_comes_back(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    """Another process had taken over, and died: what it had in hand is handled after all."""
    clock = SystemClock()
    async with database(tmp_path, clock) as db:
        running = await says(db, "/wait", 1)
        role = Role(settings(tmp_path), clock)
        await handlers["begun"].wait()
        ghost = Doorbell(tmp_path, "worker")
        taken = await db.write(
            partial(leases.take, name="worker:main", owner=ghost.name, is_dead=lambda _: True)
        )
        assert taken is not None
        ghost.close()
        handlers["gate"].set()
        await until_state(db, running, InboxState.DONE)
        assert len(await db.fetch("outbox.queue", {"bot": BOT, "after_id": 0, "limit": 9})) == 1
        await role.end()


async def test_a_token_of_another_bot_is_refused(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    clock = SystemClock()
    async with database(tmp_path, clock) as db:
        await db.write(partial(bots.bind, name=BOT, bot_id=1))
        role = Role(settings(tmp_path), clock)
        with pytest.raises(IdentityChanged):
            await role.task


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("no_such_module:register", "no_such_module"),
        ("bot.no_such_module:register", "no_such_module"),
        ("bot.handlers:no_such_callable", "no_such_callable"),
        ("bot.texts:WELCOME", "WELCOME"),
    ],
)
def test_handlers_that_are_not_there_are_a_fault_of_the_configuration(
    named: str, expected: str
) -> None:
    with pytest.raises(ConfigurationError) as fault:
        load_handlers(BOT, named)
    assert "bots.main.handlers" in str(fault.value)
    assert expected in str(fault.value)


def test_what_breaks_inside_a_module_of_handlers_is_its_authors_to_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_handlers.py").write_text("import a_module_that_is_missing\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_missing"):
        load_handlers(BOT, "broken_handlers:register")


def test_the_handlers_that_ship_are_found() -> None:
    found: Any = load_handlers(BOT, "bot.handlers:register")
    assert found.register.__module__ == "bot.handlers.conversation"


async def test_a_bell_is_heard_by_nobody_once_the_worker_has_ended(
    tmp_path: Path, handlers: dict[str, asyncio.Event]
) -> None:
    clock = SystemClock()
    role = Role(settings(tmp_path), clock)
    await until((tmp_path / "bells").exists)
    await role.end()
    assert list((tmp_path / "bells").iterdir()) == []
