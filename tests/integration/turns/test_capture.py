"""The seam: what is said through the library is what the library would have sent."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx
import pytest
from telegram import (
    Bot,
    ForceReply,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    LinkPreviewOptions,
    MessageEntity,
    ReplyKeyboardMarkup,
    ReplyParameters,
    Update,
    User,
)
from telegram.constants import ChatAction, ParseMode
from telegram.error import RetryAfter
from telegram.ext import Defaults, ExtBot, MessageHandler, filters
from telegram.request import HTTPXRequest

from bot.turns.application import TurnApplication
from bot.turns.wishes import Send
from sender.calls import Call, render
from storage import cooldowns
from storage.errors import UnsupportedCall
from tests.integration.turns.stand import BOT, ME, Builder, Context, Register, standing

AnyBot = Any
Saying = Callable[[AnyBot], Awaitable[Any]]
BUTTONS = InlineKeyboardMarkup([[InlineKeyboardButton("Fares ☕", callback_data="menu:fares")]])
ALL_KINDS: dict[str, Saying] = {
    "plain": lambda bot: bot.send_message(7, "a b+c~*(é)😀'\"&=\n"),
    "name": lambda bot: bot.send_message("@harbour", "hi"),
    "html": lambda bot: bot.send_message(7, "<b>x</b>", parse_mode=ParseMode.HTML),
    "entities": lambda bot: bot.send_message(
        7, "bold", entities=[MessageEntity(MessageEntity.BOLD, 0, 4)]
    ),
    "reply": lambda bot: bot.send_message(
        7, "x", reply_parameters=ReplyParameters(5, allow_sending_without_reply=True, quote="q")
    ),
    "buttons": lambda bot: bot.send_message(7, "x", reply_markup=BUTTONS),
    "keyboard": lambda bot: bot.send_message(
        7, "x", reply_markup=ReplyKeyboardMarkup([["a", "b"]], one_time_keyboard=True)
    ),
    "force reply": lambda bot: bot.send_message(7, "x", reply_markup=ForceReply(selective=True)),
    "preview": lambda bot: bot.send_message(
        7, "http://a.b", link_preview_options=LinkPreviewOptions(is_disabled=True)
    ),
    "silent": lambda bot: bot.send_message(
        7, "x", disable_notification=True, protect_content=True, message_thread_id=3
    ),
    "business": lambda bot: bot.send_message(7, "x", business_connection_id="bc"),
    "future": lambda bot: bot.send_message(7, "x", api_kwargs={"moon": {"phase": [1, 2]}}),
    "edit": lambda bot: bot.edit_message_text("y", 7, 33, reply_markup=BUTTONS),
    "inline edit": lambda bot: bot.edit_message_text("y", inline_message_id="abc"),
    "markup": lambda bot: bot.edit_message_reply_markup(7, 33, reply_markup=BUTTONS),
    "no markup": lambda bot: bot.edit_message_reply_markup(7, 33),
    "delete": lambda bot: bot.delete_message(7, 33),
    "answer": lambda bot: bot.answer_callback_query("55", "done", show_alert=True, cache_time=3),
    "action": lambda bot: bot.send_chat_action(7, ChatAction.TYPING),
    "by name": lambda bot: bot.do_api_request("send_message", {"chat_id": 7, "text": "x"}),
}


def say_once(saying: Saying) -> Register:
    async def say(update: Update, context: Context) -> None:
        await saying(context.bot)

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, say))

    return register


async def sent_by_the_library(saying: Saying, defaults: Defaults | None) -> tuple[str, bytes]:
    """The method and the body that the library posts itself."""
    posted = []

    def answer(request: httpx.Request) -> httpx.Response:
        method = request.url.path.rsplit("/", 1)[-1]
        if method == "getMe":
            return httpx.Response(200, json={"ok": True, "result": ME})
        posted.append((method, request.content))
        message = {"message_id": 1, "date": 1, "chat": {"id": 7, "type": "private"}}
        return httpx.Response(200, json={"ok": True, "result": message})

    request = HTTPXRequest(httpx_kwargs={"transport": httpx.MockTransport(answer)})
    bot: Bot = ExtBot("1:a", request=request, get_updates_request=request, defaults=defaults)
    async with bot:
        await saying(bot)
    return posted[0]


# The library advises against calling by name what it has a method for.
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBUserWarning")
@pytest.mark.parametrize("kind", ALL_KINDS)
async def test_what_will_be_sent_is_what_the_library_would_have_sent(
    kind: str, tmp_path: Path
) -> None:
    await compare(ALL_KINDS[kind], tmp_path, None)


async def test_defaults_of_the_bot_are_in_the_row(tmp_path: Path) -> None:
    defaults = Defaults(parse_mode=ParseMode.HTML, disable_notification=True)
    await compare(ALL_KINDS["plain"], tmp_path, defaults)


async def compare(saying: Saying, folder: Path, defaults: Defaults | None) -> None:
    method, body = await sent_by_the_library(saying, defaults)

    def configure(built: Builder) -> Builder:
        return built if defaults is None else built.defaults(defaults)

    async with standing(folder, say_once(saying), configure=configure) as stand:
        await stand.hears("go")
        (row,) = await stand.shown()
        call = render(row["method"], json.loads(row["params"]), {})
        assert isinstance(call, Call)
        assert call.method.casefold() == method.casefold()
        assert call.body == body
        assert parse_qsl(body.decode()), "the comparison compares something"


async def test_a_wish_travels_with_its_call_and_no_further(tmp_path: Path) -> None:
    async def say(bot: AnyBot) -> None:
        await bot.send_message(7, "one", rate_limit_args=Send(urgency="bulk", supersede="p"))
        await bot.send_message(7, "two")

    async with standing(tmp_path, say_once(say)) as stand:
        await stand.hears("go")
        one, two = await stand.shown()
        assert (one["priority"], one["supersede_key"]) == ("bulk", "c:7/p")
        assert (two["priority"], two["supersede_key"]) == ("interactive", None)


async def test_a_newer_call_supersedes_the_one_that_waits(tmp_path: Path) -> None:
    async def say(update: Update, context: Context) -> None:
        assert update.message is not None
        await context.bot.send_message(
            update.message.chat_id, update.message.text, rate_limit_args=Send(supersede="answer")
        )

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, say))

    async with standing(tmp_path, register) as stand:
        await stand.hears("old question")
        await stand.hears("somebody else's", user=8)
        await stand.hears("new question")
        assert await stand.texts() == ["somebody else's", "new question"]


async def test_what_would_take_the_updates_away_raises_by_name_and_reaches_nobody(
    tmp_path: Path,
) -> None:
    caught = []

    async def say(bot: AnyBot) -> None:
        try:
            await bot.set_webhook("https://a.b", secret_token="secret")
        except UnsupportedCall as error:
            caught.append(str(error))

    async with standing(tmp_path, say_once(say)) as stand:
        await stand.hears("go")
        assert "setWebhook" in caught[0]
        assert "ferryman webhook set" in caught[0], "it says what to do instead"
        assert stand.telegram.asked == []
        assert await stand.rows() == []


async def test_a_read_goes_through_to_telegram(tmp_path: Path) -> None:
    counted = []

    async def ask(bot: AnyBot) -> None:
        counted.append(await bot.get_chat_member_count(-5))

    async with standing(tmp_path, say_once(ask)) as stand:
        stand.telegram.answers["getChatMemberCount"] = (200, 12)
        await stand.hears("go")
        assert counted == [12]
        assert stand.telegram.asked == [("getChatMemberCount", {"chat_id": "-5"})]


async def test_who_the_bot_is_needs_no_telegram(tmp_path: Path) -> None:
    names = []

    async def ask(bot: AnyBot) -> None:
        names.append((await bot.get_me()).username)

    async with standing(tmp_path, say_once(ask)) as stand:
        await stand.hears("go")
        assert names == ["ferry_bot"]
        assert stand.telegram.asked == []


# The library warns of its own future whenever a flood is met.
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
async def test_a_flood_on_a_read_cools_the_bot(tmp_path: Path) -> None:
    caught = []

    async def ask(bot: AnyBot) -> None:
        try:
            await bot.get_chat_member_count(-5)
        except RetryAfter as error:
            caught.append(error)

    async with standing(tmp_path, say_once(ask)) as stand:
        flood = {
            "ok": False,
            "error_code": 429,
            "description": "flood",
            "parameters": {"retry_after": 3},
        }
        stand.telegram.answers["getChatMemberCount"] = (429, flood)
        await stand.hears("go")
        assert len(caught) == 1
        (cooldown,) = await stand.db.read(lambda tx: cooldowns.of_bot(tx, BOT))
        assert (cooldown.scope, cooldown.inferred) == (cooldowns.INFERRED_SCOPE, True)
        assert cooldown.deadline.wall_ms == stand.clock.now_ms() + 3_000


async def test_an_echo_knows_the_updates_chat_and_the_time(tmp_path: Path) -> None:
    told = []

    async def say(update: Update, context: Context) -> None:
        assert update.message is not None
        told.append(await update.message.reply_text("hi"))

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, say))

    async with standing(tmp_path, register) as stand:
        await stand.hears("go", chat=-1007)
        assert told[0].chat.title == "Crew"
        assert told[0].date == datetime.fromtimestamp(stand.clock.now_ms() // 1000, UTC)
        assert told[0].from_user == User.de_json(ME, None)
