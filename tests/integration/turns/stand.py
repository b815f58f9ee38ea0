"""A bot's turns over a real database, with a Telegram that answers reads as it is told.

Nothing of ours is replaced: the database is SQLite in a temporary directory, the library's
application is built as in production. Only the HTTP client at the end is a canned one.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from telegram import Update
from telegram.ext import ApplicationBuilder
from telegram.request import BaseRequest, RequestData

from bot.turns.application import TurnApplication, builder
from bot.turns.awaiting import Answers
from bot.turns.calls import Rules
from bot.turns.capture import OutboxRequest, Surroundings
from bot.turns.handling import Again, Allowance, Finish, Handling
from bot.turns.identity import Identity
from bot.turns.memory import Memory
from bot.turns.outside import Outside
from bot.turns.persistence import TurnPersistence
from bot.turns.reads import FloodMemory, Reads
from bot.turns.reports import Audience
from bot.turns.uploads import FILE_BYTES_MAX, Uploads
from bot.turns.worker import Signals, Worker
from storage import arrival, bots, inbox, leases
from storage.blobs import Blobs
from storage.carriers import Row
from storage.database import Database, connect, opened
from storage.envelope import Envelope, read_envelope
from storage.failpoint import Failpoints
from storage.inbox import InboxItem, Received
from storage.leases import Lease
from storage.lifecycle import BotName, InboxId, OnUncertain
from storage.migrate import migrate
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
BOT_ID = 7_000_000_001
ME = {"id": BOT_ID, "is_bot": True, "first_name": "Ferry", "username": "ferry_bot"}
RULES = Rules(reply_ttl_ms=3_600_000, bulk_ttl_ms=86_400_000, on_uncertain=OnUncertain.HOLD)
Register = Callable[[TurnApplication], object]
Builder = ApplicationBuilder[Any, Any, Any, Any, Any, Any]
Context = Any
"""The library's context as a test's handlers take it: what is in it may be of any class."""
Handler = Callable[[Update, Context], Coroutine[Any, Any, object]]


class CannedTelegram(BaseRequest):
    """Answers each method as told, and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.answers: dict[str, tuple[int, object] | Exception] = {}

    @property
    def read_timeout(self) -> float:
        return 5.0

    async def initialize(self) -> None:
        pass

    async def shutdown(self) -> None:
        pass

    async def do_request(  # type: ignore[override]  # time-outs mean nothing to it
        self,
        url: str,
        method: str,  # noqa: ARG002  # the library's signature
        request_data: RequestData | None = None,
        **_: object,
    ) -> tuple[int, bytes]:
        name = url.rsplit("/", 1)[-1]
        params = {} if request_data is None else request_data.json_parameters
        self.asked.append((name, params))
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        status, result = answer
        body = {"ok": True, "result": result} if status == 200 else result
        return status, json.dumps(body).encode()


@dataclass
class Stand:
    """One bot, owned by this process."""

    db: Database
    clock: VirtualClock
    telegram: CannedTelegram
    application: TurnApplication
    handling: Handling
    lease: Lease
    rings: list[str] = field(default_factory=list)
    _update_ids: int = 700

    async def receive(self, **content: object) -> InboxId:
        """Store an update as the webhook does."""
        self._update_ids += 1
        return await self.receive_raw({"update_id": self._update_ids, **content})

    async def receive_raw(self, update: Mapping[str, Any]) -> InboxId:
        body = json.dumps(update).encode()
        envelope = read_envelope(body)
        assert isinstance(envelope, Envelope)
        received = Received(
            BOT, envelope.update_id, envelope.kind, envelope.chat_lane, envelope.user_lane, body
        )
        await self.db.write(partial(arrival.receive_all, updates=[received]))
        (stored,) = await self.db.fetch("inbox.same", {"bot": BOT, "update_id": received.update_id})
        return InboxId(stored["id"])

    async def says(self, text: str, *, user: int = 7, chat: int | None = None) -> InboxId:
        """A user writes."""
        return await self.receive(message=message(text, user=user, chat=chat))

    async def claim(self, update: InboxId) -> InboxItem:
        """Take one update, as the worker does."""
        items = await self.db.write(partial(inbox.claim, ids=[update], epoch=self.lease.epoch))
        return items[0]

    async def handle(self, update: InboxId) -> Finish | Again:
        """Claim one update and handle it to its end."""
        return await self.handling.handle(await self.claim(update), self.lease)

    async def hears(self, text: str, *, user: int = 7, chat: int | None = None) -> InboxId:
        """A user writes, and the update is handled."""
        update = await self.says(text, user=user, chat=chat)
        await self.handle(update)
        return update

    async def rows(self) -> Sequence[Row]:
        """All that was left for the sender, in order."""
        found = await self.db.fetch("outbox.queue", {"bot": BOT, "after_id": 0, "limit": 1000})
        return sorted(found, key=lambda row: int(row["id"]))

    async def shown(self) -> list[Row]:
        """The same, whole."""
        found = []
        for row in await self.rows():
            found += await self.db.fetch("outbox.show", {"id": row["id"]})
        return found

    def whole(self) -> list[Row]:
        """The rows with all their columns, as another process sees them."""
        connection = connect(self.db.path)
        try:
            return connection.execute("select * from outbox order by id", {}).fetchall()
        finally:
            connection.close()

    async def texts(self) -> list[str]:
        """The texts that wait to be sent."""
        return [json.loads(row["params"]).get("text", "") for row in await self.shown()]

    async def record(self, update: InboxId) -> inbox.InboxRecord:
        """An update as it stands."""
        found = await self.db.read(partial(inbox.show, update=update))
        assert found is not None
        return found

    def worker(self, *, lanes_max: int = 64) -> Worker:
        """The loop over this bot's inbox."""

        async def round_done(running: int, waiting: int) -> None:
            """Nobody listens."""

        signals = Signals(partial(self.rings.append, "sender"), round_done)
        return Worker(self.handling, self.lease, lanes_max=lanes_max, signals=signals)


def message(text: str, *, user: int = 7, chat: int | None = None) -> dict[str, Any]:
    """A message as Telegram sends it; in private unless a chat is given."""
    place: dict[str, Any] = (
        {"id": user, "type": "private", "first_name": "Ann"}
        if chat is None
        else {"id": chat, "type": "supergroup", "title": "Crew"}
    )
    found: dict[str, Any] = {
        "message_id": 5,
        "date": 1_800_000_000,
        "chat": place,
        "from": {"id": user, "is_bot": False, "first_name": "Ann"},
        "text": text,
    }
    if text.startswith("/"):
        length = len(text.split(maxsplit=1)[0])
        found["entities"] = [{"type": "bot_command", "offset": 0, "length": length}]
    return found


def press(data: str, *, user: int = 7, message_id: int = 90) -> dict[str, Any]:
    """A pressed button under a message of the bot."""
    shown = message("What would you like?", user=user) | {"message_id": message_id, "from": ME}
    return {
        "id": "press-1",
        "from": {"id": user, "is_bot": False, "first_name": "Ann"},
        "chat_instance": "1",
        "message": shown,
        "data": data,
    }


def membership(status: str, *, user: int = 7, chat: int | None = None) -> dict[str, Any]:
    """The bot's membership in a chat has changed."""
    told = message("", user=user, chat=chat)
    old = {"status": "member", "user": ME}
    new = {"status": status, "user": ME, "until_date": 0}
    return {
        "chat": told["chat"],
        "from": told["from"],
        "date": 1,
        "old_chat_member": old,
        "new_chat_member": new,
    }


@asynccontextmanager
async def standing(
    folder: Path,
    register: Register,
    *,
    limit_s: float = 5.0,
    retries: int = 0,
    clock: VirtualClock | None = None,
    configure: Callable[[Builder], Builder] = lambda built: built,
) -> AsyncIterator[Stand]:
    """A bot with these handlers, its lease taken, its application running."""
    clock = clock or VirtualClock()
    path = folder / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as db:
        await db.write(partial(bots.bind, name=BOT, bot_id=BOT_ID))
        lease = await db.write(
            partial(leases.take, name=f"worker:{BOT}", owner="here", is_dead=lambda _: True)
        )
        assert lease is not None
        rings: list[str] = []
        outside = Outside(db, BOT, ring=partial(rings.append, "sender"))
        outside.own(lease)
        telegram = CannedTelegram()
        identity = Identity(BOT, BOT_ID, json.dumps(ME))
        reads = Reads(telegram, FloodMemory(db, BOT, clock, "adaptive"))
        answers = Answers(db, BOT)
        audience = Audience()
        uploads = Uploads(Blobs(folder / "blobs"), bytes_max=FILE_BYTES_MAX)
        here = Surroundings(identity, RULES, outside, answers, uploads, clock, audience.tell)
        request = OutboxRequest(reads, here)
        persistence = TurnPersistence()
        built = configure(
            builder(request, persistence, alias="A-TOKEN", base_url="http://telegram")
        )
        application = built.build()
        assert isinstance(application, TurnApplication)
        audience.seat(application)
        application.equip(Memory(db, BOT, persistence), outside)
        register(application)
        handling = Handling(BOT, db, clock, application, Failpoints(), Allowance(limit_s, retries))
        async with application:
            await application.start()
            try:
                yield Stand(db, clock, telegram, application, handling, lease, rings)
            finally:
                await application.stop()


async def until(condition: Callable[[], bool], *, within_s: float = 10.0) -> None:
    """Let others run until the condition holds."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # whatever it is about, nobody tells
            await asyncio.sleep(0)
