"""The worker and the sender, whole, in one process, with a stub of Telegram at the end.

On the system's clock, as two connections share the file here, and who finds it busy waits.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bot.settings import WorkerSettings
from bot.turns.app import run_worker
from bot.turns.application import TurnApplication
from sender.app import run_sender
from sender.settings import SenderSettings
from storage import inbox
from storage.carriers import Row
from storage.clock import SystemClock
from storage.database import Database, connect, opened
from storage.doorbell import Doorbell
from storage.envelope import Envelope, read_envelope
from storage.inbox import InboxRecord, Received
from storage.lifecycle import BotName, InboxId, InboxState
from storage.migrate import migrate
from storage.options import BotOptions, DeliveryOptions, Settings, TelegramOptions, WorkerOptions
from storage.settings import ServiceEnvironment, Token
from tests.integration.sender.stub import Reply, Stub, serving
from tests.integration.turns.stand import Register, message

BOT = BotName("main")
TOKEN = Token("7000000001:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
MODULE = "handlers_of_both"
WITHIN_S = 20.0


def accepted(result: object) -> Reply:
    """An acceptance with this result."""
    return Reply(200, json.dumps({"ok": True, "result": result}).encode(), {})


def message_of(**content: object) -> Mapping[str, Any]:
    """A message as Telegram answers with it."""
    return {"message_id": 4001, "date": 1, "chat": {"id": 7, "type": "private"}, **content}


@dataclass
class Both:
    """A worker and a sender of one bot."""

    folder: Path
    clock: SystemClock
    stub: Stub
    db: Database
    bell: Doorbell
    roles: list[tuple[asyncio.Task[None], asyncio.Event]] = field(default_factory=list)

    def settings(self) -> Settings:
        return Settings(
            state_dir=self.folder,
            telegram=TelegramOptions(base_url=self.stub.url),
            bots={"main": BotOptions(handlers=f"{MODULE}:register")},
            worker=WorkerOptions(turn_timeout_s=30),
            delivery=DeliveryOptions(),
        )

    def start_worker(self) -> None:
        given = WorkerSettings(self.settings(), {BOT: TOKEN}, ServiceEnvironment())
        self._start(partial(run_worker, given))

    def start_sender(self) -> None:
        given = SenderSettings(self.settings(), {BOT: TOKEN}, ServiceEnvironment(), {})
        self._start(partial(run_sender, given))

    def _start(self, role: Any) -> None:  # noqa: ANN401  # either role's main function
        stop = asyncio.Event()
        task = asyncio.get_running_loop().create_task(role(clock=self.clock, stop=stop))
        self.roles.append((task, stop))

    async def stop(self) -> None:
        """Stop all roles, the first one last, and see that they ended in order."""
        roles, self.roles = self.roles, []
        for task, stop in reversed(roles):
            stop.set()
            async with asyncio.timeout(25):
                await task

    async def hears(self, text: str, number: int = 1) -> InboxId:
        """A user writes; the worker is told."""
        body = json.dumps({"update_id": number, "message": message(text)}).encode()
        envelope = read_envelope(body)
        assert isinstance(envelope, Envelope)
        received = Received(
            BOT, number, envelope.kind, envelope.chat_lane, envelope.user_lane, body
        )
        update = await self.db.write(partial(inbox.receive, update=received))
        self.bell.ring("worker")
        return update.id

    async def ends(self, update: InboxId, state: InboxState = InboxState.DONE) -> InboxRecord:
        """Wait until an update has ended so."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await self.db.read(partial(inbox.show, update=update))
                assert found is not None
                if found.state is state:
                    return found

    def rows(self) -> Sequence[Row]:
        """All rows with all their columns."""
        connection = connect(self.db.path)
        try:
            return connection.execute("select * from outbox order by id", {}).fetchall()
        finally:
            connection.close()


@asynccontextmanager
async def both(
    folder: Path, register: Register, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Both]:
    """A worker with these handlers; a sender is started by the test, when it is to be there."""
    module = ModuleType(MODULE)
    vars(module)["register"] = register
    monkeypatch.setitem(sys.modules, MODULE, module)
    clock = SystemClock()
    path = folder / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as db, serving(clock) as stub:
        me = {"id": TOKEN.bot_id, "is_bot": True, "first_name": "Ferry", "username": "ferry_bot"}
        stub.will("getMe", *[accepted(me)] * 5)
        bell = Doorbell(folder, "web")
        house = Both(folder, clock, stub, db, bell)
        house.start_worker()
        try:
            yield house
        finally:
            await house.stop()
            bell.close()


def only(handler: Any) -> Register:  # noqa: ANN401  # any handler of the library
    """Registers this handler."""

    def register(application: TurnApplication) -> None:
        application.add_handler(handler)

    return register
