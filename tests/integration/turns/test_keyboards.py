"""What buttons stand for is kept with the turn that shows them, whatever it is."""

import asyncio
import json
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from telegram import InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.ext import (
    CallbackQueryHandler,
    CommandHandler,
    InvalidCallbackData,
    MessageHandler,
    filters,
)

from bot.turns.application import TurnApplication
from storage import turn_state
from storage.lifecycle import InboxState
from storage.retention import KEYBOARD_DAYS
from tests.integration.turns.stand import BOT, Builder, Context, Stand, press, standing

DAY_MS = 86_400_000


@dataclass(frozen=True)
class Dish:
    """Anything may stand behind a button."""

    name: str


def menu(*dishes: object) -> InlineKeyboardMarkup:
    return InlineKeyboardMarkup([[InlineKeyboardButton("x", callback_data=d)] for d in dishes])


async def show(update: Update, context: Context) -> None:
    assert update.message is not None
    sent = await update.message.reply_text("menu", reply_markup=menu(Dish("soup"), Dish("fish")))
    assert sent.reply_markup is not None
    assert sent.reply_markup.inline_keyboard[1][0].callback_data == Dish("fish")
    if update.message.text == "boom":
        raise ValueError


async def choose(update: Update, context: Context) -> None:
    query: Any = update.callback_query
    if isinstance(query.data, InvalidCallbackData):
        await query.answer("gone")
        return
    assert isinstance(query.data, Dish)
    await query.answer(query.data.name)
    context.drop_callback_data(query)


def serving(application: TurnApplication) -> None:
    application.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, show))
    application.add_handler(CallbackQueryHandler(choose))


def arbitrary(built: Builder) -> Builder:
    return built.arbitrary_callback_data(1024)


async def keyboards(stand: Stand) -> set[str]:
    return set(await stand.db.read(lambda tx: turn_state.load_prefix(tx, BOT, "keyboard:")))


async def buttons(stand: Stand) -> list[str]:
    """What the buttons of the last keyboard carry."""
    shown = [json.loads(row["params"]).get("reply_markup") for row in await stand.shown()]
    markup = json.loads([each for each in shown if each][-1])
    return [row[0]["callback_data"] for row in markup["inline_keyboard"]]


def pressed(data: list[str], which: int) -> dict[str, Any]:
    """A press of one of these buttons, under a message that still shows them all."""
    query = press(data[which])
    rows = [[{"text": "x", "callback_data": each}] for each in data]
    query["message"]["reply_markup"] = {"inline_keyboard": rows}
    return query


async def presses(stand: Stand, data: list[str], which: int) -> str:
    """A user presses a button; what the bot answers."""
    update = await stand.receive(callback_query=pressed(data, which))
    await stand.handle(update)
    record = await stand.record(update)
    assert record.state is InboxState.DONE, record.reason
    answered = [row for row in await stand.shown() if row["method"] == "answerCallbackQuery"]
    return str(json.loads(answered[-1]["params"])["text"])


async def test_a_button_brings_back_what_it_stands_for_even_in_another_process(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path, serving, configure=arbitrary) as stand:
        await stand.hears("hello")
        data = await buttons(stand)
        assert [len(each.encode()) for each in data] == [64, 64]
        assert len(await keyboards(stand)) == 1
    async with standing(tmp_path, serving, configure=arbitrary) as stand:
        for _ in range(5):
            await stand.receive(poll={"id": "filler"})
        assert await presses(stand, data, 1) == "fish"


async def test_what_is_dropped_is_gone_as_the_library_says_it(tmp_path: Path) -> None:
    async with standing(tmp_path, serving, configure=arbitrary) as stand:
        await stand.hears("hello")
        data = await buttons(stand)
        assert await presses(stand, data, 0) == "soup"
        assert await keyboards(stand) == set()
        assert await presses(stand, data, 0) == "gone"


async def test_a_failed_turn_leaves_no_keyboard(tmp_path: Path) -> None:
    async with standing(tmp_path, serving, configure=arbitrary) as stand:
        await stand.hears("boom")
        assert await keyboards(stand) == set()


async def test_a_turn_that_runs_again_shows_the_same_keyboard(tmp_path: Path) -> None:
    """Else a message that was flushed before a crash would be sent a second time."""
    shown = []

    async def again(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text("menu", reply_markup=menu(Dish("soup")))
        await update.message.reply_text("menu", reply_markup=menu(Dish("soup")))
        await context.flush()
        shown.append([await buttons(stand), await keyboards(stand)])
        if len(shown) == 1:
            raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, again))

    async with standing(tmp_path, register, configure=arbitrary, retries=1) as stand:
        update = await stand.hears("hello")
        stand.clock.advance_ms(60_000)
        await stand.handle(update)
        assert shown[0] == shown[1]
        assert len(shown[0][1]) == 2
        assert len(await stand.rows()) == 2


async def test_names_of_keyboards_can_not_be_guessed(tmp_path: Path) -> None:
    """The same turn of another bot has other names: a secret of the bot's own is in them."""
    names = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        async with standing(folder, serving, configure=arbitrary) as stand:
            await stand.hears("hello")
            names.append(await buttons(stand))
    assert not set(names[0]) & set(names[1])


async def test_a_keyboard_shown_outside_any_turn_is_kept_too(tmp_path: Path) -> None:
    async with standing(tmp_path, serving, configure=arbitrary) as stand:
        await stand.application.bot.send_message(7, "menu", reply_markup=menu(Dish("soup")))
        while not await keyboards(stand):  # noqa: ASYNC110  # it is written by nobody's task
            await asyncio.sleep(0)
        assert await presses(stand, await buttons(stand), 0) == "soup"


async def test_in_memory_the_librarys_limit_holds_and_the_rest_is_read(tmp_path: Path) -> None:
    def two(built: Builder) -> Builder:
        return built.arbitrary_callback_data(2)

    async with standing(tmp_path, serving, configure=two) as stand:
        await stand.hears("hello")
        data = await buttons(stand)
        for _ in range(5):
            await stand.hears("hello")
        cache = stand.application.bot.callback_data_cache
        assert cache is not None
        assert len(cache.persistence_data[0]) == 2
        assert await presses(stand, data, 1) == "fish"


async def test_what_has_no_bytes_stands_behind_a_button_while_the_process_lives(
    tmp_path: Path,
) -> None:
    lock = threading.Lock()
    found: list[object] = []

    async def offer(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text("menu", reply_markup=menu(lock))

    async def take(update: Update, context: Context) -> None:
        assert update.callback_query is not None
        found.append(update.callback_query.data)

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("offer", offer))
        application.add_handler(CallbackQueryHandler(take))

    async with standing(tmp_path, register, configure=arbitrary) as stand:
        await stand.hears("/offer")
        data = await buttons(stand)
        await stand.handle(await stand.receive(callback_query=pressed(data, 0)))
        assert found == [lock]


async def test_keyboards_nobody_presses_are_forgotten_in_the_end(tmp_path: Path) -> None:
    async with standing(tmp_path, serving, configure=arbitrary) as stand:

        async def prune() -> None:
            before_ms = stand.clock.now_ms() - KEYBOARD_DAYS * DAY_MS
            await stand.db.write(
                lambda tx: turn_state.prune_keyboards(tx, before_ms=before_ms, limit=500)
            )

        await stand.hears("hello")
        data = await buttons(stand)
        stand.clock.advance_ms((KEYBOARD_DAYS - 1) * DAY_MS)
        await prune()
        update = await stand.receive(callback_query=pressed(data, 1))
        _, read = await stand.handling.read((await stand.claim(update)).body)
        query: Any = read.callback_query
        assert query.data == Dish("fish")
        (scope,) = await keyboards(stand)
        is_old = True
        while is_old:
            _, is_old = (
                await stand.db.read(partial(turn_state.load_aged, bot=BOT, scopes=[scope]))
            )[scope]
        stand.clock.advance_ms(2 * DAY_MS)
        await prune()
        assert len(await keyboards(stand)) == 1
        stand.clock.advance_ms(KEYBOARD_DAYS * DAY_MS)
        await prune()
        assert await keyboards(stand) == set()


@pytest.mark.parametrize("data", ["short", "x" * 64])
async def test_a_foreign_button_is_invalid_as_the_library_says_it(
    tmp_path: Path, data: str
) -> None:
    async with standing(tmp_path, serving, configure=arbitrary) as stand:
        assert await presses(stand, [data], 0) == "gone"


async def test_all_keyboards_can_be_cleared_or_the_old_ones(tmp_path: Path) -> None:
    async def clear(update: Update, context: Context) -> None:
        assert update.message is not None
        cutoffs = {"/old": datetime.fromtimestamp(update.message.date.timestamp() + 3600, UTC)}
        context.bot.callback_data_cache.clear_callback_data(cutoffs.get(update.message.text or ""))

    def register(application: TurnApplication) -> None:
        serving(application)
        application.add_handler(MessageHandler(filters.COMMAND, clear))

    async with standing(tmp_path, register, configure=arbitrary) as stand:
        await stand.hears("hello")
        old = await keyboards(stand)
        stand.clock.advance_ms(2 * 3_600_000)
        await stand.hears("hello")
        both = await keyboards(stand)
        await stand.hears("/old")
        assert await keyboards(stand) == both - old
        await stand.hears("/all")
        assert await keyboards(stand) == set()
