"""What is said remembers why, and is not said any more once its reason is gone.

Real turns, and a real sender where it matters that something leaves or never does.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from telegram import InlineQueryResultArticle, InputTextMessageContent, Update
from telegram.ext import (
    CallbackQueryHandler,
    CommandHandler,
    InlineQueryHandler,
    MessageHandler,
    PreCheckoutQueryHandler,
    ShippingQueryHandler,
    filters,
)

from bot.turns.application import TurnApplication
from bot.turns.turn import CAUSE_MS_MAX
from bot.turns.wishes import Send, answered
from storage.carriers import Row
from tests.integration.sender.house import House, HouseClock, house_of
from tests.integration.sender.stub import flood, refusal, serving
from tests.integration.turns.stand import (
    ME,
    Context,
    Handler,
    Register,
    Stand,
    message,
    press,
    standing,
    until,
)

BUSINESS = {"business_connection_id": "bc"}
OWNER = {"id": 8, "is_bot": False, "first_name": "Bo"}
CUSTOMER = {"id": 7, "is_bot": False, "first_name": "Ann"}
PRIVATE = {"id": 7, "type": "private", "first_name": "Ann"}
STORY = Send(generation=41)


def on_message(handler: Handler) -> Register:
    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.ALL, handler))

    return register


def replying(wish: Send | None = None) -> Register:
    """Answers every text with the same text, under this wish."""

    async def reply(update: Update, context: Context) -> None:
        asked = update.effective_message
        assert asked is not None
        connection = asked.business_connection_id
        await context.bot.send_message(
            asked.chat_id,
            f"to {asked.text}",
            business_connection_id=connection,
            rate_limit_args=wish,
        )

    return on_message(reply)


def edited(text: str, message_id: int = 5) -> dict[str, Any]:
    return message(text) | {"message_id": message_id, "edit_date": 1_800_000_100}


def business(text: str, message_id: int, sender: dict[str, Any] = CUSTOMER) -> dict[str, Any]:
    """A message in the chat of a business account with its customer."""
    return message(text) | BUSINESS | {"message_id": message_id, "from": sender}


def reason_of(row: Row) -> tuple[str | None, int | None, int | None]:
    """The message that a row answers, and when its cause came."""
    return row["source_lane"], row["source_message_id"], row["caused_at_ms"]


@asynccontextmanager
async def crossing(folder: Path, register: Register) -> AsyncIterator[tuple[Stand, House]]:
    """Turns and a sender over one database, and a stub of Telegram.

    The sender is started by the test, so that what waits waits until then.
    """
    clock = HouseClock()
    async with (
        serving(clock) as stub,
        house_of(folder, clock, stub) as house,
        standing(folder, register, clock=clock) as stand,
    ):
        yield stand, house


async def test_an_answer_remembers_its_message_and_when_it_came(tmp_path: Path) -> None:
    async with standing(tmp_path, replying()) as stand:
        heard_ms = stand.clock.now_ms()
        update = await stand.says("a question")
        stand.clock.advance_ms(90_000)
        await stand.handle(update)
        await stand.handle(await stand.receive(business_message=business("hi", 6)))
        own, customers = stand.whole()
        assert reason_of(own) == ("c:7", 5, heard_ms)
        assert reason_of(customers) == ("b:bc:7", 6, stand.clock.now_ms())


async def test_what_error_handlers_say_has_the_same_reason(tmp_path: Path) -> None:
    async def fail(update: Update, context: Context) -> None:
        raise ValueError

    async def apologise(update: object, context: Context) -> None:
        assert isinstance(update, Update)
        assert update.message is not None
        await update.message.reply_text("sorry")

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, fail))
        application.add_error_handler(apologise)

    async with standing(tmp_path, register) as stand:
        await stand.hears("a question")
        (row,) = stand.whole()
        assert reason_of(row) == ("c:7", 5, stand.clock.now_ms())


async def test_a_job_speaks_for_its_own_sake(tmp_path: Path) -> None:
    async def job(context: Context) -> None:
        await context.bot.send_message(7, "news")

    async def arm(update: Update, context: Context) -> None:
        context.job_queue.run_once(job, timedelta(milliseconds=1))

    async with standing(tmp_path, on_message(arm)) as stand:
        await stand.hears("arm")
        await until(lambda: stand.rings == ["sender"])
        (row,) = stand.whole()
        assert reason_of(row) == (None, None, stand.clock.now_ms())


@pytest.mark.parametrize(("later_ms", "for_its_sake"), [(90_000, True), (CAUSE_MS_MAX + 1, False)])
async def test_a_task_that_outlives_its_turn_answers_its_message_for_an_hour(
    tmp_path: Path, later_ms: int, *, for_its_sake: bool
) -> None:
    """One that goes on and on must not be silenced for what becomes of an old message."""
    go_on = asyncio.Event()
    tasks = []

    async def think(update: Update) -> None:
        await go_on.wait()
        assert update.message is not None
        await update.message.reply_text("at last")

    async def begin(update: Update, context: Context) -> None:
        tasks.append(asyncio.ensure_future(think(update)))

    async with standing(tmp_path, on_message(begin)) as stand:
        heard_ms = stand.clock.now_ms()
        await stand.hears("a question")
        stand.clock.advance_ms(later_ms)
        go_on.set()
        await asyncio.wait(tasks)
        (row,) = stand.whole()
        assert row["key"].startswith("late:")
        expected = ("c:7", 5, heard_ms) if for_its_sake else (None, None, stand.clock.now_ms())
        assert reason_of(row) == expected


async def test_an_edited_question_cancels_the_answer_that_waits_if_that_was_wished(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path, replying(Send(cancel_on_edit=True))) as stand:
        await stand.hears("a question")
        stand.clock.advance_ms(10)
        update = await stand.receive(edited_message=edited("another question"))
        assert await stand.texts() == [], "as soon as it is stored"
        await stand.handle(update)
        assert await stand.texts() == ["to another question"]


async def test_an_edit_does_nothing_to_an_answer_without_the_wish(tmp_path: Path) -> None:
    async with standing(tmp_path, replying()) as stand:
        await stand.hears("a question")
        stand.clock.advance_ms(10)
        await stand.receive(edited_message=edited("another question"))
        assert await stand.texts() == ["to a question"]


async def test_the_answer_to_an_edited_question_leaves_and_the_one_before_it_never_does(
    tmp_path: Path,
) -> None:
    """The worker is behind: it answers the question when the edit has long been stored."""
    async with crossing(tmp_path, replying(Send(cancel_on_edit=True))) as (stand, house):
        asked = await stand.says("a question")
        stand.clock.advance_ms(10)
        changed = await stand.receive(edited_message=edited("another question"))
        await house.passes(60_000)
        await stand.handle(asked)
        await stand.handle(changed)
        await house.start()
        await house.passes(5_000)
        assert house.stub.texts == ["to another question"]


async def test_a_deletion_in_a_business_chat_cancels_the_answer_to_that_message_only(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path, replying()) as stand:
        for number in (5, 6):
            await stand.handle(
                await stand.receive(business_message=business(f"question {number}", number))
            )
        await stand.hears("elsewhere")
        stand.clock.advance_ms(10)
        deleted = BUSINESS | {"chat": PRIVATE, "message_ids": [5]}
        await stand.receive(deleted_business_messages=deleted)
        assert await stand.texts() == ["to question 6", "to elsewhere"]


async def test_a_message_deleted_before_it_was_answered_is_never_answered(tmp_path: Path) -> None:
    async with crossing(tmp_path, replying()) as (stand, house):
        asked = await stand.receive(business_message=business("a question", 5))
        deleted = BUSINESS | {"chat": PRIVATE, "message_ids": [5]}
        await stand.receive(deleted_business_messages=deleted)
        await stand.handle(asked)
        await stand.hears("elsewhere")
        await house.start()
        await house.passes(5_000)
        assert house.stub.texts == ["to elsewhere"]


async def test_a_person_of_the_business_who_answers_silences_the_bot_until_the_next_question(
    tmp_path: Path,
) -> None:
    async def reply(update: Update, context: Context) -> None:
        assert update.business_message is not None
        sender = update.business_message.from_user
        if sender is not None and sender.id == OWNER["id"]:
            return
        await update.business_message.reply_text(f"to {update.business_message.text}")

    async with crossing(tmp_path, on_message(reply)) as (stand, house):
        asked = await stand.receive(business_message=business("a question", 5))
        stand.clock.advance_ms(10)
        said = await stand.receive(business_message=business("I'll do that", 6, OWNER))
        stand.clock.advance_ms(10)
        asked_again = await stand.receive(business_message=business("one more", 7))
        for update in (asked, said, asked_again):
            await stand.handle(update)
        await house.start()
        await house.passes(5_000)
        assert house.stub.texts == ["to one more"]


async def test_a_stopped_generation_cancels_its_drafts_and_what_completes_it(
    tmp_path: Path,
) -> None:
    async def generate(update: Update, context: Context) -> None:
        await context.bot.send_message_draft(7, 41, "It is")
        await context.bot.send_message_draft(7, 41, "It is a long")
        await context.bot.send_message(7, "It is a long story", rate_limit_args=STORY)
        await context.bot.send_message(7, "something else")

    async with standing(tmp_path, on_message(generate)) as stand:
        await stand.hears("tell me")
        assert await stand.texts() == ["It is a long", "It is a long story", "something else"]
        stand.clock.advance_ms(10)
        stopped = {"chat": PRIVATE, "draft_id": 41}
        await stand.receive(stopped_message_generation=stopped)
        assert await stand.texts() == ["something else"]


async def test_a_person_who_answers_by_another_way_silences_what_waits(tmp_path: Path) -> None:
    """The words that the same turn says for that person stay."""

    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.chat_id == 7:
            await update.message.reply_text("a machine's answer")
            return
        await answered(7)
        await context.bot.send_message(7, "a person's answer")
        await context.bot.send_message(9, "passed on")

    async with crossing(tmp_path, on_message(handle)) as (stand, house):
        await stand.hears("a question")
        stand.clock.advance_ms(10)
        update = await stand.says("let me answer that", user=9)
        stand.clock.advance_ms(500)
        await stand.handle(update)
        assert sorted(await stand.texts()) == ["a person's answer", "passed on"]
        await house.start()
        await house.passes(5_000)
        assert sorted(house.stub.texts) == ["a person's answer", "passed on"]


async def test_a_failed_turn_silences_nobody(tmp_path: Path) -> None:
    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.text == "fail":
            await answered(7)
            raise ValueError
        await update.message.reply_text("an answer")

    async with standing(tmp_path, on_message(handle)) as stand:
        await stand.hears("a question")
        stand.clock.advance_ms(10)
        await stand.hears("fail", user=9)
        assert await stand.texts() == ["an answer"]


QUERIES: dict[str, tuple[dict[str, Any], int]] = {
    "callback_query": (press("x"), 15_000),
    "inline_query": ({"id": "q", "from": CUSTOMER, "query": "boats", "offset": ""}, 10_000),
    "shipping_query": (
        {
            "id": "q",
            "from": CUSTOMER,
            "invoice_payload": "ticket",
            "shipping_address": dict.fromkeys(
                ("country_code", "state", "city", "street_line1", "street_line2", "post_code"), "x"
            ),
        },
        10_000,
    ),
    "pre_checkout_query": (
        {
            "id": "q",
            "from": CUSTOMER,
            "currency": "EUR",
            "total_amount": 700,
            "invoice_payload": "ticket",
        },
        10_000,
    ),
}


def answering_queries(application: TurnApplication) -> None:
    async def inline(update: Update, context: Context) -> None:
        assert update.inline_query is not None
        shown = InlineQueryResultArticle("1", "A boat", InputTextMessageContent("A boat"))
        assert await update.inline_query.answer([shown], cache_time=5)

    async def press_it(update: Update, context: Context) -> None:
        assert update.callback_query is not None
        assert await update.callback_query.answer()

    async def ship(update: Update, context: Context) -> None:
        assert update.shipping_query is not None
        assert await update.shipping_query.answer(ok=False, error_message="No boat goes there")

    async def check_out(update: Update, context: Context) -> None:
        assert update.pre_checkout_query is not None
        assert await update.pre_checkout_query.answer(ok=True)

    application.add_handler(InlineQueryHandler(inline))
    application.add_handler(CallbackQueryHandler(press_it))
    application.add_handler(ShippingQueryHandler(ship))
    application.add_handler(PreCheckoutQueryHandler(check_out))


@pytest.mark.parametrize("kind", QUERIES)
async def test_the_answer_to_a_query_ends_when_telegram_stops_waiting(
    kind: str, tmp_path: Path
) -> None:
    query, window_ms = QUERIES[kind]
    async with standing(tmp_path, answering_queries) as stand:
        heard_ms = stand.clock.now_ms()
        update = await stand.receive(**{kind: query})
        stand.clock.advance_ms(4_000)
        await stand.handle(update)
        (row,) = stand.whole()
        assert row["lane"] == f"q:{query['id']}"
        assert row["expires_at_ms"] == heard_ms + window_ms
        assert row["on_uncertain"] == "resend"


async def test_a_join_request_is_answered_by_name(tmp_path: Path) -> None:
    """The library does not know this call yet."""

    async def answer(update: Update, context: Context) -> None:
        params = {"chat_join_request_query_id": "j1", "result": "approve"}
        await context.bot.do_api_request("answerChatJoinRequestQuery", params)

    async with standing(tmp_path, on_message(answer)) as stand:
        await stand.hears("go")
        (row,) = stand.whole()
        assert (row["lane"], row["chat_id"]) == ("q:j1", None)
        assert row["expires_at_ms"] == stand.clock.now_ms() + 10_000


def booking(wish: Send | None = None) -> Register:
    """Books what a button asks for, and says so; floods are met by whoever writes."""

    async def book(update: Update, context: Context) -> None:
        query = update.callback_query
        assert query is not None
        await context.bot.answer_callback_query(query.id, "Booked", rate_limit_args=wish)

    async def reply(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text("hello")

    def register(application: TurnApplication) -> None:
        application.add_handler(CallbackQueryHandler(book))
        application.add_handler(CommandHandler("go", reply))

    return register


async def test_an_answer_overtakes_everything_in_a_cooling_chat(tmp_path: Path) -> None:
    async with crossing(tmp_path, booking()) as (stand, house):
        house.stub.will("sendMessage", flood(60))
        await stand.hears("/go")
        await house.start()
        await house.passes(6_000)
        assert [call.method for call in house.stub.arrivals] == ["sendMessage"]
        pressed_ms = stand.clock.now_ms()
        await stand.handle(await stand.receive(callback_query=press("x")))
        await house.ring()
        await house.passes(1_000)
        answer = house.stub.arrivals[-1]
        assert (answer.method, answer.at_ms) == ("answerCallbackQuery", pressed_ms)
        await house.passes(60_000)
        assert house.stub.texts == ["hello", "Booked", "hello"], "the chat waits its whole time"


LATE: dict[str, tuple[Send | None, list[str]]] = {
    "dropped": (None, []),
    "said": (Send(late_as_message=True), ["Booked"]),
}


@pytest.mark.parametrize("fate", LATE)
@pytest.mark.parametrize("late_ms", [16_000, 149_000])
async def test_an_answer_that_comes_too_late_is_dropped_quietly_or_said_in_the_chat(
    fate: str, late_ms: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its update had waited: Telegram keeps a press for 150 s."""
    wish, texts = LATE[fate]
    async with crossing(tmp_path, booking(wish)) as (stand, house):
        update = await stand.receive(callback_query=press("x"))
        await house.passes(late_ms)
        await stand.handle(update)
        await house.start()
        await house.passes(3_000)
        assert house.stub.texts == texts
        assert [call.method for call in house.stub.arrivals] == ["sendMessage"] * len(texts)
        if texts:
            assert house.stub.arrivals[0].form == {"chat_id": "7", "text": "Booked"}
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("fate", LATE)
async def test_an_answer_that_telegram_calls_too_old_is_dropped_quietly_or_said_in_the_chat(
    fate: str, tmp_path: Path
) -> None:
    wish, texts = LATE[fate]
    async with crossing(tmp_path, booking(wish)) as (stand, house):
        description = (
            "Bad Request: query is too old and response timeout expired or query ID is invalid"
        )
        house.stub.will("answerCallbackQuery", refusal(400, description))
        await stand.handle(await stand.receive(callback_query=press("x")))
        await house.start()
        await house.passes(20_000)
        assert [call.method for call in house.stub.arrivals] == [
            "answerCallbackQuery",
            *["sendMessage"] * len(texts),
        ]


async def test_what_is_left_for_the_sender_says_what_it_falls_back_to(tmp_path: Path) -> None:
    async with standing(tmp_path, booking(Send(late_as_message=True))) as stand:
        pressed = press("x") | {"message": business("a menu", 90, ME)}
        await stand.handle(await stand.receive(callback_query=pressed))
        (row,) = stand.whole()
        assert json.loads(row["fallback"]) == {
            "method": "sendMessage",
            "params": {"chat_id": "7", "business_connection_id": "bc", "text": "Booked"},
            "lane": "b:bc:7",
            "chat_id": 7,
            "ttl_ms": 3_600_000,
        }
