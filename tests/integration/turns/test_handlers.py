"""The conversation that ships."""

import json
from pathlib import Path
from typing import Any

from telegram.ext import CallbackQueryHandler, CommandHandler

from bot import texts
from bot.handlers import register
from bot.handlers.conversation import MENU
from bot.turns.application import TurnApplication
from storage import chats
from storage.carriers import Row
from storage.lifecycle import InboxState
from tests.integration.turns.stand import BOT, message, press, standing


def params(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row["params"])
    return found


async def test_start_welcomes_and_stop_says_that_it_stops(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        await stand.hears("/start")
        await stand.hears("/stop")
        assert await stand.texts() == [texts.WELCOME, texts.STOPPED]
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.opted_out_at_ms is not None
        await stand.hears("/start")
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.opted_out_at_ms is None


async def test_help_tells_every_command(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        await stand.hears("/help")
        (told,) = await stand.texts()
        assert all(command in told for command in ("/start", "/stop", "/menu"))


async def test_a_question_is_quoted_and_answered(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        await stand.hears("When do you leave?")
        (row,) = await stand.shown()
        assert params(row)["text"] == texts.TOPICS["departures"]
        quoted = json.loads(params(row)["reply_parameters"])
        assert quoted == {"message_id": 5, "allow_sending_without_reply": True}


async def test_a_newer_question_takes_the_place_of_one_not_answered_yet(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        await stand.hears("When do you leave?")
        await stand.hears("How much is it?")
        assert await stand.texts() == [texts.TOPICS["fares"]]


async def test_the_menu_changes_its_own_message(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        await stand.hears("/menu")
        (shown,) = await stand.shown()
        assert json.loads(params(shown)["reply_markup"]) == MENU.to_dict()
        await stand.handle(await stand.receive(callback_query=press("menu:fares", message_id=90)))
        _, answered, edited = await stand.shown()
        assert answered["method"] == "answerCallbackQuery"
        assert params(answered)["callback_query_id"] == "press-1"
        assert edited["method"] == "editMessageText"
        assert params(edited)["message_id"] == "90"
        assert params(edited)["text"] == texts.TOPICS["fares"]


async def test_a_button_of_another_menu_is_left_alone(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        update = await stand.receive(callback_query=press("other"))
        await stand.handle(update)
        assert await stand.rows() == []
        assert (await stand.record(update)).state is InboxState.DONE


async def test_edits_and_channel_posts_are_not_questions(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        await stand.handle(await stand.receive(edited_message=message("When?")))
        await stand.handle(await stand.receive(channel_post=message("When?", chat=-1005)))
        assert await stand.rows() == []


async def test_an_answer_in_a_topic_stays_in_it(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        asked = message("When?", chat=-1005) | {"message_thread_id": 42, "is_topic_message": True}
        await stand.handle(await stand.receive(message=asked))
        (row,) = await stand.shown()
        assert params(row)["message_thread_id"] == "42"


async def broken(update: object, context: object) -> None:
    raise ValueError


def with_a_fault(application: TurnApplication) -> None:
    application.add_handler(CommandHandler("broken", broken))
    application.add_handler(CallbackQueryHandler(broken, pattern="broken"))
    register(application)


async def test_a_user_is_told_when_something_went_wrong(tmp_path: Path) -> None:
    async with standing(tmp_path, with_a_fault) as stand:
        await stand.hears("/broken")
        assert await stand.texts() == [texts.APOLOGY]


async def test_who_pressed_a_button_is_told_where_he_pressed(tmp_path: Path) -> None:
    async with standing(tmp_path, with_a_fault) as stand:
        await stand.handle(await stand.receive(callback_query=press("broken")))
        (row,) = await stand.shown()
        assert row["method"] == "answerCallbackQuery"
        assert params(row)["text"] == texts.APOLOGY
        assert len(texts.APOLOGY) <= 200, "Telegram refuses a longer one"
