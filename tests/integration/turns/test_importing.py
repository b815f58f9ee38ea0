"""A bot with a persistence of its own goes on where it was, and the file stays as it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.ext import (
    ApplicationBuilder,
    BasePersistence,
    CallbackQueryHandler,
    CommandHandler,
    ConversationHandler,
    DictPersistence,
    MessageHandler,
    PicklePersistence,
    filters,
)

from bot.turns import importing
from bot.turns.application import TurnApplication
from storage import turn_state
from tests.integration.turns.stand import BOT, Builder, Context, Stand, press, standing

ASKED = 1
KEYBOARD, BUTTON = "k" * 32, "b" * 32


async def told(update: Update, context: Context) -> int:
    assert update.message is not None
    context.bot_data["n"] += 1
    seen = [context.user_data["name"], context.chat_data["topic"], context.bot_data["n"]]
    await update.message.reply_text(json.dumps(seen))
    return ConversationHandler.END


async def chosen(update: Update, context: Context) -> None:
    query: Any = update.callback_query
    await query.answer(query.data[0])


def register(application: TurnApplication) -> None:
    application.add_handler(
        ConversationHandler(
            [CommandHandler("never", told)],
            {ASKED: [MessageHandler(filters.TEXT, told)]},
            [],
            name="form",
            persistent=True,
        )
    )
    application.add_handler(CallbackQueryHandler(chosen))


async def fill(persistence: BasePersistence[Any, Any, Any]) -> None:
    """As the library does at the end of a run of the bot."""
    application = ApplicationBuilder().token("1:a").persistence(persistence).build()
    assert application.persistence is persistence
    await persistence.update_user_data(7, {"name": "Ann"})
    await persistence.update_user_data(8, {})
    await persistence.update_chat_data(7, {"topic": "ferries"})
    await persistence.update_bot_data({"n": 41, "other": [1]})
    await persistence.update_conversation("form", (7, 7), ASKED)
    await persistence.update_callback_data(([(KEYBOARD, 1.0, {BUTTON: ["fish"]})], {}))
    await persistence.flush()


async def goes_on(stand: Stand) -> None:
    await stand.hears("hello")
    assert await stand.texts() == ['["Ann", "ferries", 42]']
    await stand.handle(await stand.receive(callback_query=press(KEYBOARD + BUTTON)))
    assert json.loads((await stand.shown())[-1]["params"])["text"] == "fish"


async def test_a_pickle_is_taken_over_whole_and_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="ferryman")
    file = tmp_path / "bot.pickle"
    await fill(PicklePersistence(file))
    before = file.read_bytes()

    def configure(built: Builder) -> Builder:
        return built.persistence(PicklePersistence(file)).arbitrary_callback_data(64)

    async with standing(tmp_path, register, configure=configure) as stand:
        assert [r.getMessage() for r in caplog.records].count("memory.imported") == 1
        await goes_on(stand)
    async with standing(tmp_path, register, configure=configure) as stand:
        assert [r.getMessage() for r in caplog.records].count("memory.imported") == 1
        assert stand.application.bot_data["n"] == 42
    assert file.read_bytes() == before


async def test_a_persistence_in_json_is_taken_over(tmp_path: Path) -> None:
    persistence = DictPersistence()
    await fill(persistence)

    def configure(built: Builder) -> Builder:
        return built.persistence(persistence).arbitrary_callback_data(64)

    async with standing(tmp_path, register, configure=configure) as stand:
        await goes_on(stand)


async def test_nothing_is_taken_over_where_something_is_remembered(tmp_path: Path) -> None:
    async with standing(tmp_path, register) as stand:
        stand.application.bot_data["n"] = 0
        await stand.application.shared.flush()
    file = tmp_path / "bot.pickle"
    await fill(PicklePersistence(file))

    def configure(built: Builder) -> Builder:
        return built.persistence(PicklePersistence(file))

    async with standing(tmp_path, register, configure=configure) as stand:
        assert dict(stand.application.bot_data) == {"n": 0}


async def test_a_take_over_that_was_cut_off_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "bot.pickle"
    await fill(PicklePersistence(file))

    def configure(built: Builder) -> Builder:
        return built.persistence(PicklePersistence(file)).arbitrary_callback_data(64)

    monkeypatch.setattr(importing, "ROWS_MAX", 2)
    async with standing(tmp_path, register) as stand:
        await stand.db.write(lambda tx: turn_state.save(tx, BOT, {"import": b"begun"}))
    async with standing(tmp_path, register, configure=configure) as stand:
        await goes_on(stand)


async def test_a_pickle_that_can_not_be_read_stops_the_bot_before_it_forgets(
    tmp_path: Path,
) -> None:
    file = tmp_path / "bot.pickle"
    file.write_bytes(b"no pickle")

    def configure(built: Builder) -> Builder:
        return built.persistence(PicklePersistence(file))

    with pytest.raises(TypeError, match="valid pickle"):
        async with standing(tmp_path, register, configure=configure):
            pass
