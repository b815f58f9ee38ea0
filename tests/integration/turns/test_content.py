"""What a handler says is checked as it says it, and a long text is left as one unit."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from telegram import (
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    Message,
    ReplyParameters,
    Update,
)
from telegram.constants import ParseMode
from telegram.error import BadRequest
from telegram.ext import Defaults, MessageHandler, filters

from bot.turns.application import TurnApplication
from bot.turns.wishes import Send
from tests.integration.turns.stand import Builder, Context, Handler, Register, standing

BUTTONS = InlineKeyboardMarkup([[InlineKeyboardButton("More", callback_data="more")]])
LONG = "word " * 1500


def hearing(handler: Handler) -> Register:
    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, handler))

    return register


async def test_a_handler_sees_what_telegram_would_refuse_and_goes_on(tmp_path: Path) -> None:
    told: list[str] = []

    async def say(update: Update, context: Context) -> None:
        assert update.message is not None
        photos = [InputMediaPhoto("file-id-of-a-photo") for _ in range(11)]
        for saying in (
            update.message.reply_text("a" * 4097),
            update.message.reply_html("<b>never closed"),
            update.message.reply_text(""),
            update.message.reply_media_group(photos),
        ):
            with pytest.raises(BadRequest) as caught:
                await saying
            told.append(caught.value.message)
        await update.message.reply_text("that went wrong")

    async with standing(tmp_path, hearing(say)) as stand:
        await stand.hears("go")
        assert [words.partition(":")[0] for words in told] == [
            "Message is too long",
            "Can't parse entities",
            "Message text is empty",
            "Too many messages to send as an album",
        ]
        assert await stand.texts() == ["that went wrong"], "and what was refused has left nothing"


async def test_the_defaults_of_the_bot_say_how_a_text_is_marked_up(tmp_path: Path) -> None:
    told: list[str] = []

    async def say(update: Update, context: Context) -> None:
        assert update.message is not None
        with pytest.raises(BadRequest) as caught:
            await update.message.reply_text("1 < 2")
        told.append(caught.value.message)

    def configure(built: Builder) -> Builder:
        return built.defaults(Defaults(parse_mode=ParseMode.HTML))

    async with standing(tmp_path, hearing(say), configure=configure) as stand:
        await stand.hears("go")
        (words,) = told
        assert words.startswith('Can\'t parse entities: unsupported start tag "" at byte offset 2')


async def test_a_long_text_is_one_unit(tmp_path: Path) -> None:
    made: list[Message] = []

    async def say(update: Update, context: Context) -> None:
        made.append(
            await context.bot.send_message(
                7,
                f"<b>{LONG}</b>",
                parse_mode=ParseMode.HTML,
                reply_parameters=ReplyParameters(5),
                reply_markup=BUTTONS,
                rate_limit_args=Send(split=True),
            )
        )

    async with standing(tmp_path, hearing(say)) as stand:
        await stand.hears("go")
        first, last = stand.whole()
        assert [first["follows"], last["follows"]] == [None, first["placeholder"]]
        assert first["lane"] == last["lane"]
        assert first["key"] != last["key"]
        assert made[0].message_id == last["placeholder"], "the caller gets the last part's message"
        assert made[0].reply_markup == BUTTONS
        one, other = json.loads(first["params"]), json.loads(last["params"])
        assert f"{one['text']} {other['text']}" == LONG.strip()
        assert ("reply_parameters" in one, "reply_parameters" in other) == (True, False)
        assert ("reply_markup" in one, "reply_markup" in other) == (False, True)


async def test_a_long_text_said_outside_a_turn_is_one_unit_too(tmp_path: Path) -> None:
    ran = asyncio.Event()

    async def job(context: Context) -> None:
        await context.bot.send_message(8, LONG * 2, rate_limit_args=Send(split=True))
        ran.set()

    async def arm(update: Update, context: Context) -> None:
        context.job_queue.run_once(job, timedelta(milliseconds=1))
        await ran.wait()

    async with standing(tmp_path, hearing(arm)) as stand:
        await stand.hears("go")
        first, second, third, fourth = stand.whole()
        assert [row["follows"] for row in (first, second, third, fourth)] == [
            None,
            first["placeholder"],
            second["placeholder"],
            third["placeholder"],
        ]
        assert stand.rings == ["sender"], "one transaction, told of once"
