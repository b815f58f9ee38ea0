"""What handlers leave for the sender, as public bug reports tell it, with the numbers of the cases.

 3  NousResearch/hermes-agent 76494: each step of a progress message became a call of its own
15  openclaw 135191, 16555: a reply has the life of a reply, a campaign may have a longer one
17  grammy-inline-menu 64, aiogram_dialog 145: a late answer to a button ended the whole handler
20  Telegram.Bot.Examples 96, courier 436: who blocked the bot is back after /start
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.ext import CallbackQueryHandler, MessageHandler, filters

from bot.turns.application import TurnApplication
from bot.turns.wishes import Send
from storage import chats, outbox
from storage.carriers import Row
from tests.integration.turns.stand import (
    BOT,
    RULES,
    Context,
    Handler,
    Register,
    Stand,
    membership,
    message,
    press,
    standing,
)

HOUR_MS = 3_600_000
STEPS = 130


def on_text(handler: Handler) -> Register:
    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.ALL, handler))

    return register


async def with_state(stand: Stand, state: str) -> list[Row]:
    """All rows in this state, whole, in order."""
    found: list[Row] = []
    for number in range(1, 1_000):
        rows = await stand.db.fetch("outbox.show", {"id": number})
        if not rows:
            break
        found += rows
    return [row for row in found if row["state"] == state]


# 3


@pytest.mark.parametrize("is_sent", [True, False], ids=["a sent message", "one that waits"])
@pytest.mark.parametrize("turns", [1, 5])
async def test_field_case_03_of_all_steps_of_a_progress_message_the_last_one_waits(
    tmp_path: Path, turns: int, *, is_sent: bool
) -> None:
    """However often a handler edits it, in one turn or in many."""
    steps = iter(range(1, STEPS + 1))
    ids: list[int] = [90] if is_sent else []

    async def work(update: Update, context: Context) -> None:
        if not ids:
            said = await context.bot.send_message(7, "starting")
            ids.append(said.message_id)
        for _ in range(STEPS // turns):
            await context.bot.edit_message_text(f"{next(steps)} of {STEPS}", 7, ids[0])

    async with standing(tmp_path, on_text(work)) as stand:
        for _ in range(turns):
            await stand.hears("go")
        assert await stand.texts() == [*([] if is_sent else ["starting"]), f"{STEPS} of {STEPS}"]
        assert len(await with_state(stand, "superseded")) == STEPS - 1


async def test_field_case_03_edits_of_two_messages_are_not_taken_for_one(tmp_path: Path) -> None:
    async def work(update: Update, context: Context) -> None:
        for chat_id, message_id in ((7, 90), (7, 91), (8, 90)):
            for step in ("begun", "done"):
                await context.bot.edit_message_text(step, chat_id, message_id)

    async with standing(tmp_path, on_text(work)) as stand:
        await stand.hears("go")
        assert await stand.texts() == ["done", "done", "done"]


# 15


@pytest.mark.parametrize("wish", [None, Send(urgency="bulk")], ids=["a reply", "a campaign"])
async def test_field_case_15_what_is_said_has_the_life_of_its_kind(
    tmp_path: Path, wish: Send | None
) -> None:
    async def say(update: Update, context: Context) -> None:
        await context.bot.send_message(7, "hello", rate_limit_args=wish)

    async with standing(tmp_path, on_text(say)) as stand:
        await stand.hears("go")
        (row,) = await stand.shown()
        ttl_ms = RULES.reply_ttl_ms if wish is None else RULES.bulk_ttl_ms
        assert row["expires_at_ms"] == stand.clock.now_ms() + ttl_ms
    assert RULES.bulk_ttl_ms > RULES.reply_ttl_ms


async def test_field_case_15_a_question_read_hours_late_is_not_answered_as_if_it_were_new(
    tmp_path: Path,
) -> None:
    """The worker was down: its reply is left, counted and visible, and its time is over."""

    async def say(update: Update, context: Context) -> None:
        await context.bot.send_message(7, "hello")

    async with standing(tmp_path, on_text(say)) as stand:
        update = await stand.says("go")
        stand.clock.advance_ms(15 * HOUR_MS)
        await stand.handle(update)
        (row,) = await stand.shown()
        assert row["expires_at_ms"] < stand.clock.now_ms()
        expired = await stand.db.write(lambda tx: outbox.expire(tx, BOT))
        assert [int(each) for each in expired] == [row["id"]]


# 17


@pytest.mark.parametrize("late_ms", [0, 20_000, 160_000, 15 * HOUR_MS])
async def test_field_case_17_the_rest_of_the_handler_runs_however_late_it_is(
    tmp_path: Path, late_ms: int
) -> None:
    """The answer ends when Telegram stops waiting for it, what is said beside it with its cause."""
    ran: list[str] = []

    async def pressed(update: Update, context: Context) -> None:
        assert update.callback_query is not None
        await update.callback_query.answer("noted")
        await context.bot.send_message(7, "the rest")
        ran.append("to the end")

    def register(application: TurnApplication) -> None:
        application.add_handler(CallbackQueryHandler(pressed))

    async with standing(tmp_path, register) as stand:
        heard_ms = stand.clock.now_ms()
        update = await stand.receive(callback_query=press("menu"))
        stand.clock.advance_ms(late_ms)
        await stand.handle(update)
        assert ran == ["to the end"]
        assert (await stand.record(update)).state == "done"
        answered, rest = await stand.shown()
        assert (answered["method"], rest["method"]) == ("answerCallbackQuery", "sendMessage")
        assert heard_ms < answered["expires_at_ms"] <= heard_ms + 150_000
        assert rest["expires_at_ms"] == heard_ms + RULES.reply_ttl_ms
        assert answered["lane"] != rest["lane"], "neither waits for the other"


# 20


async def is_unreachable(stand: Stand) -> bool:
    chat = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
    return chat is not None and chat.unreachable_reason is not None


RETURNS: Mapping[str, Mapping[str, Any]] = {
    "/start": {"message": message("/start")},
    "any word": {"message": message("hello again")},
    "a press": {"callback_query": press("menu")},
    "unblocking": {"my_chat_member": membership("member")},
}


@pytest.mark.parametrize("back", RETURNS)
async def test_field_case_20_who_blocked_the_bot_is_back_once_he_shows_himself(
    tmp_path: Path, back: str
) -> None:
    async def nothing(update: Update, context: Context) -> None:
        """Have nothing to say."""

    async with standing(tmp_path, on_text(nothing)) as stand:
        await stand.hears("hello")
        left = await stand.receive(my_chat_member=membership("kicked"))
        await stand.handle(left)
        assert await is_unreachable(stand)
        stand.clock.advance_ms(1_000)
        await stand.handle(await stand.receive(**RETURNS[back]))
        assert not await is_unreachable(stand)
