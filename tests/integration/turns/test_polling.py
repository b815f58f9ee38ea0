"""Long polling stores as the webhook does, and confirms only what is stored."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs

import httpx
import pytest

from bot.turns.polling import Line, Poller, TokenRejected, WebhookIsSet
from storage import chats, inbox, outbox
from storage.database import Database, opened
from storage.doorbell import Doorbell
from storage.lifecycle import InboxState
from storage.migrate import migrate
from storage.outgoing import Outgoing, Source
from storage.settings import Token
from tests.integration.turns.stand import BOT, membership, message, until
from tests.simulator.clock import VirtualClock

TOKEN = Token("4242:AAsecretSECRETsecretSECRETsecretSECRET")
Answer = httpx.Response | Exception
# An answer that waits for the sender; its question was heard long ago.
ANSWER = Outgoing(
    method="sendMessage",
    params={"chat_id": "7", "text": "hi"},
    lane="c:7",
    key="turn:1:0:0",
    source=Source("c:7", 5),
    cancel_on_edit=True,
    caused_at_ms=1,
)


class Telegram:
    """Gives the answers it was told to, then keeps the line open."""

    def __init__(self, *answers: Answer, webhook: str = "") -> None:
        self.answers = list(answers)
        self.webhook = webhook
        self.offsets: list[str] = []
        self.paths: list[str] = []
        self.on_poll: Callable[[], None] = lambda: None

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.paths.append(request.url.path)
        if request.url.path.endswith("getWebhookInfo"):
            return httpx.Response(200, json={"ok": True, "result": {"url": self.webhook}})
        form = parse_qs(request.content.decode())
        self.offsets += form.get("offset", ["none"])
        self.on_poll()
        if not self.answers:
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def updates(*found: object) -> httpx.Response:
    return httpx.Response(200, json={"ok": True, "result": list(found)})


def refusal(code: int, **parameters: int) -> httpx.Response:
    body = {"ok": False, "error_code": code, "description": "no", "parameters": parameters}
    return httpx.Response(code, json=body)


@asynccontextmanager
async def polling(
    folder: Path,
    telegram: Telegram,
    clock: VirtualClock | None = None,
    *,
    answer: Outgoing | None = None,
) -> AsyncIterator[tuple[Database, "asyncio.Task[None]"]]:
    clock = clock or VirtualClock()
    path = folder / "ferryman.db"
    migrate(path, clock)
    bell = Doorbell(folder, "polling")
    async with opened(path, clock) as db:
        if answer is not None:
            await db.write(partial(outbox.enqueue, bot=BOT, outgoing=answer))
        line = Line(TOKEN, "http://telegram", httpx.MockTransport(telegram.answer))
        poller = Poller(db, clock, BOT, line, bell)
        task = asyncio.get_running_loop().create_task(poller.run())
        try:
            yield db, task
        finally:
            task.cancel()
            await asyncio.wait((task,))
            bell.close()


async def test_what_is_fetched_is_stored_and_then_confirmed(tmp_path: Path) -> None:
    first = {"update_id": 10, "message": message("hi ☕")}
    second = {"update_id": 12, "moon_landing": {"crew": 3}}
    telegram = Telegram(updates(first, second))
    async with polling(tmp_path, telegram) as (db, _):
        await until(lambda: telegram.offsets == ["none", "13"])
        rows = await db.read(lambda tx: inbox.pending(tx, BOT, after_id=0, limit=9))
        assert [(row.chat_lane, row.user_lane) for row in rows] == [("c:7", "u:7"), (None, None)]
        stored = await db.read(lambda tx: inbox.show(tx, rows[0].id))
        assert stored is not None
        assert (stored.update_id, stored.kind) == (10, "message")
        assert json.loads(stored.body) == first
        assert b"\\u2615" in stored.body, "as Telegram's webhook writes it"


async def test_what_comes_again_is_stored_once(tmp_path: Path) -> None:
    again = {"update_id": 10, "message": message("hi")}
    telegram = Telegram(updates(again), updates(again))
    async with polling(tmp_path, telegram) as (db, _):
        await until(lambda: len(telegram.offsets) == 3)
        rows = await db.read(lambda tx: inbox.pending(tx, BOT, after_id=0, limit=9))
        assert len(rows) == 1


async def test_nothing_is_confirmed_that_could_not_be_stored(tmp_path: Path) -> None:
    telegram = Telegram(updates({"update_id": 10, "message": message("hi")}))
    async with polling(tmp_path, telegram) as (db, task):
        await db.close()
        await asyncio.wait((task,))
        assert telegram.offsets == ["none"]
        assert task.exception() is not None


async def test_what_is_fetched_tells_the_sender_at_once_as_a_delivery_does(tmp_path: Path) -> None:
    """A question is edited, an odd update tells nothing, a user blocks the bot."""
    edited = {"update_id": 10, "edited_message": message("else")}
    odd = {"update_id": 11, "deleted_business_messages": {"message_ids": "all"}}
    blocked = {"update_id": 12, "my_chat_member": membership("kicked", user=8)}
    telegram = Telegram(updates(edited, odd, blocked))
    async with polling(tmp_path, telegram, answer=ANSWER) as (db, _):
        await until(lambda: telegram.offsets == ["none", "13"])
        assert await db.fetch("outbox.queue", {"bot": BOT, "limit": 9}) == []
        lost = await db.read(lambda tx: chats.show(tx, BOT, 8))
        assert lost is not None
        assert lost.unreachable_reason == "the user blocked the bot"
        assert await db.read(lambda tx: inbox.depth(tx, BOT, limit=9)) == 3


async def test_what_is_no_update_is_kept_for_a_person(tmp_path: Path) -> None:
    telegram = Telegram(updates({"message": {}}, {"update_id": 4, "message": message("hi")}))
    async with polling(tmp_path, telegram) as (db, _):
        await until(lambda: telegram.offsets == ["none", "5"])
        (kept,) = await db.read(lambda tx: inbox.dead_list(tx, limit=9))
        assert kept.state is InboxState.QUARANTINED


async def test_it_refuses_while_a_webhook_is_set(tmp_path: Path) -> None:
    telegram = Telegram(webhook="https://bot.example.org/telegram/secret-path")
    async with polling(tmp_path, telegram) as (_, task):
        await asyncio.wait((task,))
        error = task.exception()
        assert isinstance(error, WebhookIsSet)
        assert "bot.example.org" in str(error)
        assert "secret-path" not in str(error)
        assert "ferryman webhook delete" in str(error)
        assert telegram.offsets == []


async def test_a_token_that_telegram_does_not_know_ends_it(tmp_path: Path) -> None:
    telegram = Telegram(refusal(401))
    async with polling(tmp_path, telegram) as (_, task):
        await asyncio.wait((task,))
        error = task.exception()
        assert isinstance(error, TokenRejected)
        assert "bot 4242" in str(error)
        assert "AAsecret" not in str(error)


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        refusal(409),
        refusal(500),
        httpx.Response(502, html="<h1>Bad Gateway</h1>"),
        httpx.Response(200, text="no JSON"),
        httpx.Response(200, json={"ok": True, "result": "no list"}),
    ],
    ids=repr,
)
async def test_trouble_is_waited_out(trouble: Answer, tmp_path: Path) -> None:
    clock = VirtualClock()
    telegram = Telegram(trouble, updates({"update_id": 10, "message": message("hi")}))
    async with polling(tmp_path, telegram, clock):
        await until(lambda: clock.next_due_ms() == 1_000)
        assert telegram.offsets == ["none"]
        clock.advance_ms(1_000)
        await until(lambda: telegram.offsets == ["none", "none", "11"])


async def test_a_flood_is_waited_out_as_long_as_telegram_says(tmp_path: Path) -> None:
    clock = VirtualClock()
    telegram = Telegram(refusal(429, retry_after=97))
    async with polling(tmp_path, telegram, clock):
        await until(lambda: clock.next_due_ms() == 97_000)


async def test_the_wait_grows_while_the_trouble_lasts(tmp_path: Path) -> None:
    clock = VirtualClock()
    telegram = Telegram(*[httpx.ConnectError("refused")] * 3)
    async with polling(tmp_path, telegram, clock):
        for wait_ms in (1_000, 2_000, 4_000):
            await until(partial(_waits, clock, wait_ms))
            clock.advance_ms(wait_ms)


def _waits(clock: VirtualClock, wait_ms: int) -> bool:
    return clock.next_due_ms() == wait_ms


async def test_telegram_sees_the_token(tmp_path: Path) -> None:
    telegram = Telegram()
    async with polling(tmp_path, telegram):
        await until(lambda: len(telegram.paths) == 2)
        assert telegram.paths[0] == f"/bot{TOKEN.reveal()}/getWebhookInfo"
