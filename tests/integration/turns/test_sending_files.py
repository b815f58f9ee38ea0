"""Files from a handler to Telegram: worker and sender in one house, a simulated Telegram beyond."""

import asyncio
import json
import os
import sys
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from telegram import InputMediaDocument, InputMediaPhoto, Update
from telegram.error import BadRequest
from telegram.ext import CommandHandler

from bot.settings import WorkerSettings
from bot.turns.app import run_worker
from bot.turns.application import TurnApplication
from sender.app import run_sender
from sender.settings import SenderSettings
from sender.tidying import Tidying
from storage import arrival
from storage.blobs import FOLDERS, Blobs
from storage.clock import SystemClock
from storage.database import Database, opened
from storage.doorbell import Doorbell
from storage.envelope import Envelope, read_envelope
from storage.inbox import Received
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.options import BotOptions, Limits, Settings
from storage.settings import ServiceEnvironment, Token
from tests.integration.turns.stand import Context, message, until
from tests.simulator.ledger import Arrival
from tests.simulator.limits import OFF
from tests.simulator.media import file_id
from tests.simulator.server import Server

BOT = BotName("main")
TOKEN = Token("4242:AAsecretSECRETsecretSECRETsecretSECRET")
GREEN, RED = b"green picture", b"red picture"
QUICK = Limits(chat_per_second=1000, bot_per_second=1000, bulk_per_second=1000)
HOUR_MS = 3_600_000


@dataclass
class Town:
    """A house with its worker and its sender, one person, and what the bot is to send."""

    folder: Path
    db: Database
    server: Server
    bell: Doorbell
    user: int
    refused: list[str] = field(default_factory=list)
    downloaded: list[bytes] = field(default_factory=list)
    _updates: int = 0

    async def says(self, text: str, *, calls: int) -> list[Arrival]:
        """The person writes; all calls that have come at Telegram once these have come too."""
        before = len(self.sent)
        self._updates += 1
        told = {"update_id": self._updates, "message": message(text, user=self.user)}
        body = json.dumps(told).encode()
        envelope = read_envelope(body)
        assert isinstance(envelope, Envelope)
        received = Received(
            BOT, self._updates, envelope.kind, envelope.chat_lane, envelope.user_lane, body
        )
        await self.db.write(partial(arrival.receive_all, updates=[received]))
        self.bell.ring("worker")
        await until(lambda: len(self.sent) >= before + calls, within_s=15)
        return self.sent[before:]

    @property
    def sent(self) -> list[Arrival]:
        """What has come at Telegram and changes a chat."""
        return [
            each for each in self.server.telegram.ledger.arrivals() if each.method[:4] == "send"
        ]


def handlers_for(town: Town) -> ModuleType:
    """A bot that sends files, as its developer would write it."""
    picture = town.folder / "picture.png"
    picture.write_bytes(GREEN)

    async def photo(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_photo(GREEN, caption="look", filename="a.png")

    async def album(update: Update, context: Context) -> None:
        assert update.message is not None
        media = [InputMediaPhoto(GREEN, filename="a.png"), InputMediaPhoto(RED, filename="b.png")]
        sent = await update.message.reply_media_group(media, caption="both")
        assert len({each.message_id for each in sent}) == 2

    async def document(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_document(picture)
        await update.message.reply_media_group([InputMediaDocument(picture)] * 2)

    async def leak(update: Update, context: Context) -> None:
        assert update.message is not None
        try:
            await update.message.reply_document(str(picture))
        except BadRequest as error:
            town.refused.append(error.message)
        try:
            InputMediaPhoto(str(picture))
        except BadRequest as error:
            town.refused.append(error.message)
        await update.message.reply_text("no")

    async def fetch(update: Update, context: Context) -> None:
        assert update.message is not None
        file = await context.bot.get_file(context.args[0])
        town.downloaded.append(bytes(await file.download_as_bytearray()))
        await update.message.reply_text("got it")

    def register(application: TurnApplication) -> None:
        for name, handler in {
            "photo": photo,
            "album": album,
            "document": document,
            "leak": leak,
            "fetch": fetch,
        }.items():
            application.add_handler(CommandHandler(name, handler))

    module = ModuleType("handlers_that_send_files")
    vars(module)["register"] = register
    return module


@asynccontextmanager
async def running(town: Town, url: str, clock: SystemClock) -> AsyncIterator[None]:
    settings = Settings(
        state_dir=town.folder,
        telegram={"base_url": url},  # type: ignore[arg-type]  # pydantic reads it
        bots={"main": BotOptions(handlers="handlers_that_send_files:register")},
        limits=QUICK,
    )
    stop = asyncio.Event()
    tokens = {BOT: TOKEN}
    worker = WorkerSettings(settings, tokens, ServiceEnvironment())
    sender = SenderSettings(settings, tokens, ServiceEnvironment())
    async with asyncio.TaskGroup() as group:
        group.create_task(run_worker(worker, clock=clock, stop=stop))
        group.create_task(run_sender(sender, clock=clock, stop=stop))
        try:
            yield
        finally:
            stop.set()


@pytest.fixture
async def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Town]:
    clock = SystemClock()
    path = tmp_path / "ferryman.db"
    migrate(path, clock)
    bell = Doorbell(tmp_path, "web")
    async with Server(limits=OFF) as server, opened(path, clock) as db:
        bot = server.telegram.bot(TOKEN.reveal(), username="ferry_bot")
        ada = server.telegram.people.add_user("Ada")
        server.telegram.people.says(ada.id, "/start", bot_id=bot.id)
        town = Town(tmp_path, db, server, bell, ada.id)
        module = handlers_for(town)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        async with running(town, server.api_url, clock):
            yield town
    bell.close()


def named(kind: str, content: bytes) -> str:
    """What the simulator calls a file."""
    return file_id(kind, TOKEN.bot_id, zlib.crc32(content))


async def test_a_photo_is_uploaded_the_first_time_and_named_the_second(town: Town) -> None:
    [first] = await town.says("/photo", calls=1)
    assert first.params["photo"] == f"({len(GREEN)} bytes)"
    assert first.params["caption"] == "look"
    [second] = await town.says("/photo", calls=1)
    assert second.params["photo"] == named("photo", GREEN)
    assert not town.server.telegram.ledger.client_bugs()


async def test_an_album_brings_only_what_is_new(town: Town) -> None:
    await town.says("/photo", calls=1)
    [arrival] = await town.says("/album", calls=1)
    first, second = json.loads(str(arrival.params["media"]))
    assert (first["media"], first["caption"]) == (named("photo", GREEN), "both")
    assert second["media"] == "attach://file1"
    assert arrival.params["file1"] == f"({len(RED)} bytes)"
    assert set(town.server.telegram.state.files.values()) == {GREEN, RED}


async def test_a_path_given_on_purpose_is_sent_and_a_string_that_names_it_is_not(
    town: Town,
) -> None:
    document, album = await town.says("/document", calls=2)
    assert document.params["document"] == f"({len(GREEN)} bytes)"
    assert named("document", GREEN) in str(album.params["media"])
    await town.says("/leak", calls=1)
    assert len(town.refused) == 2
    assert all("names a file of this machine" in told for told in town.refused)


async def test_a_file_is_downloaded_by_a_handler(town: Town) -> None:
    await town.says("/photo", calls=1)
    await town.says(f"/fetch {named('photo', GREEN)}", calls=1)
    assert town.downloaded == [GREEN]


async def test_what_no_row_needs_is_removed_and_what_came_to_no_row_too(town: Town) -> None:
    """A process killed between keeping a file and committing its row leaves such an orphan."""
    await town.says("/photo", calls=1)
    blobs = Blobs(town.folder / "blobs")
    orphan, young = blobs.keep(RED), blobs.keep(b"its row is on the way")
    sent = next(
        path.name
        for path in (town.folder / "blobs").glob("??/*")
        if path.name not in {orphan, young}
    )
    for sha256 in (orphan, sent):
        os.utime(blobs.path(sha256), (1_000, 1_000))
    clock = SystemClock()
    await town.db.write(
        lambda tx: tx.run("files.keep_blob", {"content": sent, "size_bytes": 1, "now_ms": 0})
    )
    tidying = Tidying(town.db, clock, blobs, kept_ms=HOUR_MS)
    async with asyncio.timeout(15):
        while blobs.size_bytes(sent) is not None:
            # Its files are let go of with its settlement, which Telegram does not wait for.
            await tidying.round()
    for _ in range(len(FOLDERS)):
        await tidying.round()
    assert blobs.size_bytes(orphan) is None
    assert blobs.size_bytes(young) is not None
