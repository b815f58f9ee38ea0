"""An application that its author built serves a bot, again and again: factories and scripts."""

import asyncio
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from telegram import Update
from telegram.ext import (
    Application,
    CallbackContext,
    CommandHandler,
    ConversationHandler,
    MessageHandler,
    filters,
)

from bot.turns.adopted import AdoptedApplication, Berth
from bot.turns.adoption import adopting
from bot.turns.app import run_worker
from bot.turns.loading import Factory, Ready, Registrar, Source, load_handlers
from storage import leases
from storage.clock import SystemClock
from storage.database import Database
from storage.doorbell import Doorbell
from storage.errors import ConfigurationError, NotAdopted
from storage.lifecycle import BotName, InboxState
from tests.integration.turns.stand import Context
from tests.integration.turns.test_app import (
    BOT,
    NOWHERE,
    TOKEN,
    database,
    says,
    settings,
    until_state,
)

BERTH = Berth(BOT, TOKEN, NOWHERE)
NAMED = "handlers_of_a_test:register"


class Script:
    """A script's application, and what it has seen of its life."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        with adopting(lambda _: BERTH):
            built: Any = (
                Application.builder()
                .token(TOKEN.reveal())
                .post_init(partial(self._note, "post_init"))
                .post_stop(partial(self._note, "post_stop"))
                .post_shutdown(partial(self._note, "post_shutdown"))
                .build()
            )
        assert isinstance(built, AdoptedApplication)
        self.application: AdoptedApplication = built
        conversation: ConversationHandler[Any] = ConversationHandler(
            entry_points=[CommandHandler("begin", self.begin)],
            states={0: [MessageHandler(filters.TEXT, self.step)]},
            fallbacks=[],
            name="talk",
            persistent=True,
        )
        built.add_handler(conversation)
        self.ticked = asyncio.Event()
        self.came_back = asyncio.Event()
        assert built.job_queue is not None
        built.job_queue.run_repeating(self.tick, 0.05, first=0.01, name="tick")

    async def _note(self, what: str, _: object) -> None:
        self.seen.append(what)
        if self.seen.count("post_init") > 1:
            self.came_back.set()

    async def tick(self, _: CallbackContext[Any, Any, Any, Any]) -> None:
        self.ticked.set()

    async def begin(self, _: Update, __: Context) -> int:
        self.seen.append("begin")
        return 0

    async def step(self, _: Update, __: Context) -> int:
        self.seen.append("step")
        return 0


class Role:
    """A worker in a task, given an application."""

    def __init__(self, folder: Path, source: Source) -> None:
        self.stop = asyncio.Event()
        work = run_worker(
            settings(folder), clock=SystemClock(), stop=self.stop, handed_over={BOT: source}
        )
        self.task = asyncio.get_running_loop().create_task(work)

    async def end(self) -> None:
        self.stop.set()
        async with asyncio.timeout(20):
            await self.task


async def _taken_by_another_that_dies(db: Database, folder: Path) -> None:
    """Take the bot from its worker, and leave it to be taken back."""
    ghost = Doorbell(folder, "worker")
    take = partial(leases.take, name="worker:main", owner=ghost.name, is_dead=lambda _: True)
    assert await db.write(take) is not None
    ghost.close()


async def test_the_same_application_serves_again_when_its_bot_was_lost_and_came_back(
    tmp_path: Path,
) -> None:
    """Its hooks are called each time, its conversation goes on, and its jobs are still there."""
    async with database(tmp_path, SystemClock()) as db:
        script = Script()
        role = Role(tmp_path, Ready(script.application))
        await until_state(db, await says(db, "/begin", 1), InboxState.DONE)
        await script.ticked.wait()
        await _taken_by_another_that_dies(db, tmp_path)
        async with asyncio.timeout(10):
            await script.came_back.wait()
        script.ticked.clear()
        await until_state(db, await says(db, "on", 1_000_001, user=1), InboxState.DONE)
        async with asyncio.timeout(5):
            await script.ticked.wait()
        await role.end()
    assert script.seen == [
        "post_init",
        "begin",
        "post_stop",
        "post_shutdown",
        "post_init",
        "step",
        "post_stop",
        "post_shutdown",
    ]
    assert not script.application.seat.is_taken


async def test_what_post_stop_raises_does_not_keep_the_house_from_going_down(
    tmp_path: Path,
) -> None:
    async with database(tmp_path, SystemClock()) as db:
        script = Script()

        async def broken(_: object) -> None:
            raise ValueError("the author's own")

        script.application.post_stop = broken
        role = Role(tmp_path, Ready(script.application))
        await until_state(db, await says(db, "/begin", 1), InboxState.DONE)
        await role.end()
    assert script.seen[-1] == "post_shutdown"


def _named(monkeypatch: pytest.MonkeyPatch, found: object) -> None:
    module = ModuleType("handlers_of_a_test")
    vars(module)["register"] = found
    monkeypatch.setitem(sys.modules, module.__name__, module)


def _builder() -> Any:  # noqa: ANN401  # the library's, of many types
    return Application.builder().token(TOKEN.reveal())


@pytest.mark.parametrize("give", [_builder, lambda: _builder().build()])
def test_a_factory_gives_an_application_or_its_builder(
    give: Any,  # noqa: ANN401  # a factory
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _named(monkeypatch, give)
    loaded = load_handlers(BOT, NAMED, BERTH)
    assert isinstance(loaded, Factory)
    assert isinstance(loaded.application(BERTH), AdoptedApplication)


async def test_the_application_of_a_factory_serves_its_bot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripts: list[Script] = []

    def make() -> AdoptedApplication:
        scripts.append(Script())
        return scripts[-1].application

    async with database(tmp_path, SystemClock()) as db:
        _named(monkeypatch, make)
        role = Role(tmp_path, load_handlers(BOT, NAMED, BERTH))
        await until_state(db, await says(db, "/begin", 1), InboxState.DONE)
        await role.end()
    assert [script.seen[:2] for script in scripts] == [["post_init", "begin"]]


def test_what_takes_the_application_is_a_registrar(monkeypatch: pytest.MonkeyPatch) -> None:
    _named(monkeypatch, lambda application: application.add_handler)
    assert isinstance(load_handlers(BOT, NAMED), Registrar)


def test_a_coroutine_function_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def register(application: object) -> None: ...

    _named(monkeypatch, register)
    with pytest.raises(ConfigurationError, match="coroutine function"):
        load_handlers(BOT, NAMED)


def test_a_factory_that_gives_something_else_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    factory = Factory(NAMED, lambda: None)
    with pytest.raises(NotAdopted, match="it returned a NoneType"):
        factory.application(BERTH)


def test_a_factory_that_gives_two_bots_one_application_is_explained() -> None:
    application = Script().application
    other = Berth(BotName("second"), TOKEN, NOWHERE)
    with pytest.raises(NotAdopted, match="needs one of its own"):
        Factory(NAMED, lambda: application).application(other)
