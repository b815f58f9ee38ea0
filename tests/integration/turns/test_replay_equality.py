"""What a server decodes of each call is the same from the library itself and from our sender.

Ours goes the whole way: a handler, the seam, a row in SQLite, the sender, a socket. All calls of a
round are made at once, in one turn, and answered; a test looks at one method.
"""

import asyncio
import itertools
import json
import re
import sys
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType

import aiohttp
import pytest
from telegram import Update
from telegram.ext import ExtBot, MessageHandler, filters
from telegram.request import HTTPXRequest
from telegram.warnings import PTBUserWarning

from bot.settings import WorkerSettings
from bot.turns.app import run_worker
from bot.turns.application import TurnApplication
from bot.turns.classes import CLASSES, CallClass
from sender.app import run_sender
from sender.settings import SenderSettings
from storage import inbox
from storage.clock import SystemClock
from storage.database import Database, opened
from storage.doorbell import Doorbell
from storage.envelope import Envelope, read_envelope
from storage.inbox import Received
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.options import BotOptions, Limits, Settings, TelegramOptions
from storage.settings import ServiceEnvironment, Token
from tests.integration.turns.library_calls import Saying, saying, saying_with_files, takes_files
from tests.integration.turns.recorder import Decoded, Recorder, recording
from tests.integration.turns.stand import Context, message
from tests.simulator.arguments import METHODS

BOT = BotName("main")
OURS = Token("7000000001:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
THEIRS = "7000000002:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
MODULE = "handlers_of_replay_equality"
WITHIN_S = 60
# Everything at once: what is looked at is what leaves, not when.
LIMITS = Limits(
    chat_per_second=10_000,
    chat_burst=1_000,
    group_per_minute=100_000,
    bot_per_second=10_000,
    bulk_per_second=10_000,
    paid_per_second=1_000,
    stars_budget=1_000,
)

NO_ROW = (CallClass.READ, CallClass.REFUSED)
MADE = sorted(name for name, found in CLASSES.items() if found not in NO_ROW)
WITH_FILES = [name for name in MADE if takes_files(name)]
ROUNDS: Mapping[str, Sequence[str]] = {
    "only what is needed": MADE,
    "all that may be said": MADE,
    "files": WITH_FILES,
}
RATES = {"only what is needed": 0.0, "all that may be said": 1.0}
# The library's own warnings about what is newer than itself, and about the names of files.
pytestmark = pytest.mark.filterwarnings("ignore::telegram.warnings.PTBUserWarning")


def sayings_of(turn: str, folder: Path) -> Mapping[str, Saying]:
    """The calls of one round, by their methods; the same ones each time."""
    if turn in RATES:
        return {name: saying(name, Random(f"{name} {turn}"), RATES[turn]) for name in MADE}
    return {name: saying_with_files(name, f"{name} {turn}", folder) for name in WITH_FILES}


@dataclass
class Replayed:
    """What has arrived in each round, from the library and from us; and what went wrong here."""

    theirs: dict[tuple[str, str], list[Decoded]] = field(default_factory=dict)
    ours: dict[tuple[str, str], list[Decoded]] = field(default_factory=dict)
    errors: dict[tuple[str, str], str] = field(default_factory=dict)


async def say_all(bot: object, turn: str, folder: Path, errors: dict[tuple[str, str], str]) -> None:
    """Make the calls of one round; one that fails takes no other with it."""
    for name, say in sayings_of(turn, folder).items():
        try:
            await say(bot)
        except Exception as error:  # noqa: BLE001  # told by the test of its method
            errors[turn, name] = repr(error)


@dataclass
class House:
    """A worker and a sender, with a bot that makes the calls of the round that it is told."""

    db: Database
    bell: Doorbell
    handled: int = 0

    async def plays(self, turn: str) -> None:
        """Have the handler play a round; all its calls have ended when this returns."""
        self.handled += 1
        told = {"update_id": self.handled, "message": message(turn)}
        body = json.dumps(told).encode()
        envelope = read_envelope(body)
        assert isinstance(envelope, Envelope)
        received = Received(
            BOT, self.handled, envelope.kind, envelope.chat_lane, envelope.user_lane, body
        )
        update = await self.db.write(partial(inbox.receive, update=received))
        self.bell.ring("worker")
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await self.db.read(partial(inbox.show, update=update.id))
                rows = await self.db.read(
                    lambda tx: tx.rows("outbox.queue", {"bot": BOT, "after_id": 0, "limit": 1})
                )
                if found is not None and found.state.value == "done" and not rows:
                    return
                await SystemClock().sleep_ms(20)


@asynccontextmanager
async def running(folder: Path, url: str) -> AsyncIterator[House]:
    clock = SystemClock()
    path = folder / "ferryman.db"
    migrate(path, clock)
    settings = Settings(
        state_dir=folder,
        telegram=TelegramOptions(base_url=url),
        bots={"main": BotOptions(handlers=f"{MODULE}:register")},
        limits=LIMITS,
    )
    stop = asyncio.Event()
    worker = WorkerSettings(settings, {BOT: OURS}, ServiceEnvironment())
    sender = SenderSettings(settings, {BOT: OURS}, ServiceEnvironment(), {})
    bell = Doorbell(folder, "web")
    async with opened(path, clock) as db, asyncio.TaskGroup() as roles:
        roles.create_task(run_worker(worker, clock=clock, stop=stop))
        roles.create_task(run_sender(sender, clock=clock, stop=stop))
        try:
            yield House(db, bell)
        finally:
            stop.set()
            bell.close()


async def replay_all(folder: Path) -> Replayed:
    """Play all rounds, by the library and by us."""
    found = Replayed()
    async with recording() as recorder:
        await play_by_the_library(recorder, folder, found)
        await play_by_us(recorder, folder, found)
    return found


async def play_by_the_library(recorder: Recorder, folder: Path, found: Replayed) -> None:
    request = HTTPXRequest()
    bot = ExtBot(THEIRS, f"{recorder.url}/bot", request=request, get_updates_request=HTTPXRequest())
    async with bot:
        for turn in ROUNDS:
            await say_all(bot, turn, folder, found.errors)
            sort(turn, recorder.posted.pop(THEIRS), found.theirs)


async def play_by_us(recorder: Recorder, folder: Path, found: Replayed) -> None:
    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        await say_all(context.bot, update.message.text or "", folder, found.errors)

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, handle))

    sys.modules[MODULE] = ModuleType(MODULE)
    vars(sys.modules[MODULE])["register"] = register
    try:
        async with running(folder, recorder.url) as house:
            for turn in ROUNDS:
                await house.plays(turn)
                sort(turn, recorder.posted.pop(OURS.reveal()), found.ours)
    finally:
        del sys.modules[MODULE]


def sort(turn: str, posted: Sequence[Decoded], into: dict[tuple[str, str], list[Decoded]]) -> None:
    for call in posted:
        into.setdefault((turn, call.method), []).append(call)


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PTBUserWarning)
        return asyncio.run(replay_all(tmp_path_factory.mktemp("replay")))


@pytest.mark.parametrize(
    ("turn", "method"), [(turn, name) for turn, names in ROUNDS.items() for name in names]
)
def test_a_server_decodes_the_same_call(replayed: Replayed, turn: str, method: str) -> None:
    assert (turn, method) not in replayed.errors, replayed.errors[turn, method]
    (ours,), (theirs,) = replayed.ours[turn, method], replayed.theirs[turn, method]
    assert ours == theirs
    assert bool(ours.files) is (turn not in RATES)


# It has no classes for what is in them.
NO_FILES_IN_THE_LIBRARY = {"sendRichMessage", "sendRichMessageDraft"}


def test_every_method_that_becomes_a_row_is_looked_at() -> None:
    assert set(MADE) == {name for name in METHODS if CLASSES.get(name) not in NO_ROW}
    given = {name for name in MADE if "InputFile" in "".join(METHODS[name].values())}
    assert given <= set(WITH_FILES)
    assert NO_FILES_IN_THE_LIBRARY.isdisjoint(WITH_FILES)


async def test_what_is_wrong_with_a_call_is_seen() -> None:
    """Two forms that differ in a name, a title, a type, an order or a file's place do differ."""
    files = [("a", "1.png", "image/png", b"one"), ("b", "2.png", "image/png", b"two")]
    plain = [("x", "1"), ("y", '["attach://a", "attach://b"]')]
    swapped = [("x", "1"), ("y", '["attach://b", "attach://a"]')]
    forms = [
        (plain, files),
        (swapped, files),
        (plain[::-1], files),
        ([("z", "1"), plain[1]], files),
        (plain, [("a", "9.png", *files[0][2:]), files[1]]),
        (plain, [(*files[0][:2], "image/gif", files[0][3]), files[1]]),
        (plain, [(*files[0][:3], b"One"), files[1]]),
    ]
    async with recording() as recorder, aiohttp.ClientSession() as session:
        for fields, brought in [*forms, renamed(*forms[0])]:
            form = aiohttp.FormData()
            for name, text in fields:
                form.add_field(name, text, content_type="text/plain")
            for part, title, mime, content in brought:
                form.add_field(part, content, filename=title, content_type=mime)
            async with session.post(f"{recorder.url}/bot1/sendMessage", data=form) as response:
                assert response.status == 200
        *told, again = recorder.posted["1"]
    assert all(one != other for one, other in itertools.combinations(told, 2))
    assert again == told[0], "the names of attached files are chance"


def renamed(
    fields: Sequence[tuple[str, str]], brought: Sequence[tuple[str, str, str, bytes]]
) -> tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str, str, bytes]]]:
    names = {"a": "chance7", "b": "chance3"}
    return (
        [(name, re.sub(r"//(\w)", lambda at: "//" + names[at[1]], text)) for name, text in fields],
        [(names[part], *rest) for part, *rest in brought],  # type: ignore[misc]  # of three
    )
