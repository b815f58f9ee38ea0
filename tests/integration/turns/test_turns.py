"""A turn is committed whole, or not at all."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.error import NetworkError
from telegram.ext import (
    ApplicationHandlerStop,
    BaseHandler,
    CommandHandler,
    MessageHandler,
    TypeHandler,
    filters,
)

from bot.turns.application import TurnApplication
from bot.turns.failures import CLAIMS_MAX
from bot.turns.handling import Again, Finish
from bot.turns.turn import Phase, update_cause
from bot.turns.wishes import opt_in, opt_out, raw_update, write
from storage import chats, inbox
from storage.database import Tx, connect
from storage.lifecycle import BotName, InboxId, InboxState
from tests.integration.turns.stand import (
    BOT,
    Context,
    Register,
    Stand,
    membership,
    message,
    standing,
    until,
)


async def echo(update: Update, context: Context) -> None:
    assert update.message is not None
    await update.message.reply_text(f"you said {update.message.text}")


async def boom(update: Update, context: Context) -> None:
    assert update.message is not None
    await update.message.reply_text("before")
    context.user_data["seen"] = True
    await opt_out(update.message.chat_id)
    raise ValueError("a bug")


async def apologise(update: object, context: Context) -> None:
    assert isinstance(update, Update)
    assert update.message is not None
    await update.message.reply_text(f"sorry: {type(context.error).__name__}")


def answering(*handlers: BaseHandler[Any, Any, Any], sorry: bool = False) -> Register:
    def register(application: TurnApplication) -> None:
        application.add_handlers(handlers)
        if sorry:
            application.add_error_handler(apologise)

    return register


TALK = MessageHandler(filters.TEXT & ~filters.COMMAND, echo)
BOOM = CommandHandler("boom", boom)


async def test_what_a_handler_says_becomes_rows_in_the_turns_transaction(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(TALK)) as stand:
        update = await stand.says("hello")
        assert await stand.handle(update) == Finish(said=True)
        (row,) = await stand.shown()
        assert row["method"] == "sendMessage"
        assert json.loads(row["params"]) == {"chat_id": "7", "text": "you said hello"}
        assert row["key"] == f"turn:{update}:0:0"
        assert row["placeholder"] == update_cause(update, Phase.HANDLERS).placeholder_of(0)
        assert (await stand.record(update)).state is InboxState.DONE


async def test_an_edit_refers_to_the_placeholder_of_what_was_said(tmp_path: Path) -> None:
    async def progress(update: Update, context: Context) -> None:
        assert update.message is not None
        sent = await update.message.reply_text("working")
        await sent.edit_text("done")

    async with standing(tmp_path, answering(CommandHandler("go", progress))) as stand:
        await stand.hears("/go")
        said, edited = await stand.shown()
        assert json.loads(edited["params"])["message_id"] == str(said["placeholder"])


async def test_of_a_turn_that_fails_nothing_is_kept(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(BOOM)) as stand:
        update = await stand.hears("/boom")
        assert await stand.rows() == []
        record = await stand.record(update)
        assert record.state is InboxState.DEAD
        assert record.reason is not None
        assert record.reason.startswith("ValueError at ")
        assert record.trace is not None
        assert "boom" in record.trace
        assert "a bug" not in record.trace, "a message may quote a user"
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None, "that the chat was heard of is no effect of the handlers"
        assert known.opted_out_at_ms is None


async def test_the_words_of_error_handlers_are_kept(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(BOOM, sorry=True)) as stand:
        update = await stand.hears("/boom")
        (row,) = await stand.shown()
        assert json.loads(row["params"])["text"] == "sorry: ValueError"
        assert row["key"] == f"turn:{update}:1:0"
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_a_dead_letter_that_fails_again_apologises_only_once(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(BOOM, sorry=True)) as stand:
        update = await stand.hears("/boom")
        await requeue(stand, update)
        await stand.handle(update)
        assert await stand.texts() == ["sorry: ValueError"]


async def requeue(stand: Stand, update: InboxId) -> None:
    assert await stand.db.write(lambda tx: inbox.requeue(tx, update))


async def test_an_error_handler_that_raises_still_lets_the_update_be_buried(
    tmp_path: Path,
) -> None:
    async def worse(update: object, context: Context) -> None:
        raise RuntimeError("worse")

    def register(application: TurnApplication) -> None:
        application.add_handler(BOOM)
        application.add_error_handler(worse)

    async with standing(tmp_path, register) as stand:
        update = await stand.hears("/boom")
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_after_an_error_no_further_group_is_asked(tmp_path: Path) -> None:
    """Nothing of the turn will be kept, so there is nothing left to do."""
    asked = []

    async def second(update: Update, context: Context) -> None:
        asked.append(update)

    def register(application: TurnApplication) -> None:
        application.add_handler(BOOM)
        application.add_handler(TypeHandler(Update, second), group=1)

    async with standing(tmp_path, register) as stand:
        await stand.hears("/boom")
        assert asked == []


async def test_a_handler_that_stops_the_others_has_not_failed(tmp_path: Path) -> None:
    async def stop(update: Update, context: Context) -> None:
        await echo(update, context)
        raise ApplicationHandlerStop

    async with standing(tmp_path, answering(MessageHandler(filters.TEXT, stop))) as stand:
        update = await stand.hears("hello")
        assert await stand.texts() == ["you said hello"]
        assert (await stand.record(update)).state is InboxState.DONE


async def test_a_handler_that_does_not_block_belongs_to_its_turn(tmp_path: Path) -> None:
    async def late(update: Update, context: Context) -> None:
        await asyncio.sleep(0)
        await echo(update, context)

    handler = MessageHandler(filters.TEXT, late, block=False)
    async with standing(tmp_path, answering(handler)) as stand:
        update = await stand.hears("hello")
        (row,) = await stand.shown()
        assert row["key"] == f"turn:{update}:0:0"


async def test_an_error_of_a_handler_that_does_not_block_fails_its_turn(tmp_path: Path) -> None:
    handler = CommandHandler("boom", boom, block=False)
    async with standing(tmp_path, answering(handler, sorry=True)) as stand:
        update = await stand.hears("/boom")
        assert await stand.texts() == ["sorry: ValueError"]
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_a_handler_that_hangs_is_buried_with_its_stack(tmp_path: Path) -> None:
    async def hang(update: Update, context: Context) -> None:
        await echo(update, context)
        await asyncio.Event().wait()

    handlers = answering(MessageHandler(filters.TEXT, hang), sorry=True)
    async with standing(tmp_path, handlers, limit_s=0.05) as stand:
        update = await stand.hears("hello")
        assert await stand.texts() == ["sorry: TimeoutError"]
        record = await stand.record(update)
        assert record.state is InboxState.DEAD
        assert record.trace is not None
        assert " hang" in record.trace


async def ask(update: Update, context: Context) -> None:
    await echo(update, context)
    await context.bot.get_chat(7)


ASK = MessageHandler(filters.TEXT, ask)


async def test_while_telegram_is_away_a_read_costs_only_time(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(ASK, sorry=True)) as stand:
        stand.telegram.answers["getChat"] = NetworkError("httpx.ConnectError")
        update = await stand.says("hello")
        after = await stand.handle(update)
        assert after == Again(stand.clock.boot_ms() + 1_000)
        assert await stand.rows() == []
        record = await stand.record(update)
        assert (record.state, record.claims) == (InboxState.RECEIVED, 1)
        stand.telegram.answers["getChat"] = (200, {"id": 7, "type": "private", **FULL})
        await stand.handle(update)
        assert await stand.texts() == ["you said hello"]


FULL = {
    "accent_color_id": 1,
    "max_reaction_count": 1,
    "accepted_gift_types": {
        "unlimited_gifts": True,
        "limited_gifts": True,
        "unique_gifts": True,
        "premium_subscription": True,
        "gifts_from_channels": True,
    },
}


async def test_a_refused_read_is_a_failure_like_any_other(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(ASK, sorry=True)) as stand:
        refusal = {"ok": False, "error_code": 400, "description": "Bad Request: no such chat"}
        stand.telegram.answers["getChat"] = (400, refusal)
        update = await stand.hears("hello")
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_configured_retries_come_before_the_burial(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(BOOM), retries=1) as stand:
        update = await stand.says("/boom")
        assert isinstance(await stand.handle(update), Again)
        assert isinstance(await stand.handle(update), Finish)
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_an_update_whose_worker_ends_again_and_again_is_poison(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(TALK)) as stand:
        update = await stand.says("hello")
        claimed = await stand.claim(update)
        item = replace(claimed, claims=CLAIMS_MAX + 1)
        await stand.handling.handle(item, stand.lease)
        record = await stand.record(update)
        assert record.state is InboxState.DEAD
        assert record.reason is not None
        assert "20 times" in record.reason
        assert await stand.rows() == []


async def test_an_update_that_the_library_can_not_read_is_buried_with_the_reason(
    tmp_path: Path,
) -> None:
    async with standing(tmp_path, answering(TALK)) as stand:
        broken = message("hello")
        del broken["date"]
        update = await stand.receive(message=broken)
        await stand.handle(update)
        record = await stand.record(update)
        assert record.state is InboxState.DEAD
        assert record.reason is not None
        assert record.reason.startswith("python-telegram-bot can't read it: KeyError")


async def test_a_kind_of_tomorrow_is_handled_and_can_be_seen_raw(tmp_path: Path) -> None:
    seen = []

    async def look(update: Update, context: Context) -> None:
        seen.append(context.raw_update["moon_landing"])
        assert raw_update() is context.raw_update

    async with standing(tmp_path, answering(TypeHandler(Update, look))) as stand:
        update = await stand.receive(moon_landing={"crew": 3})
        await stand.handle(update)
        assert seen == [{"crew": 3}]
        assert (await stand.record(update)).state is InboxState.DONE


async def test_a_turn_that_runs_again_leaves_the_same_rows(tmp_path: Path) -> None:
    """The process ended after the commit was written and before anybody knew."""
    async with standing(tmp_path, answering(TALK)) as stand:
        update = await stand.hears("hello")
        await forget_the_end(stand, update)
        await stand.handle(update)
        assert await stand.texts() == ["you said hello"]


async def forget_the_end(stand: Stand, update: InboxId) -> None:
    """Let an update wait again although its rows are there."""
    bury = {"id": update, "epoch": 0, "now_ms": 1, "reason": "again", "trace": None}
    await stand.db.write(
        lambda tx: tx._connection.execute(
            "update inbox set state = 'dead', reason = 'again' where id = :id", bury
        )
    )
    await requeue(stand, update)


async def test_code_that_says_something_else_under_the_same_key_leaves_a_new_row(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    words = ["first", "second"]

    async def say(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text(words.pop(0))

    async with standing(tmp_path, answering(MessageHandler(filters.TEXT, say))) as stand:
        update = await stand.hears("hello")
        await forget_the_end(stand, update)
        caplog.clear()
        await stand.handle(update)
        assert await stand.texts() == ["first", "second"]
        assert "keys.digest_changed" in caplog.text


async def test_effects_are_written_with_the_turn(tmp_path: Path) -> None:
    async def leave(update: Update, context: Context) -> None:
        assert update.message is not None
        await opt_out(update.message.chat_id)

    async def come(update: Update, context: Context) -> None:
        assert update.message is not None
        await opt_in(update.message.chat_id)

    handlers = answering(CommandHandler("stop", leave), CommandHandler("start", come))
    async with standing(tmp_path, handlers) as stand:
        await stand.hears("/stop")
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.opted_out_at_ms == stand.clock.now_ms()
        await stand.hears("/start")
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.opted_out_at_ms is None


async def test_a_user_who_blocks_the_bot_gets_nothing_more_until_he_writes(tmp_path: Path) -> None:
    async with standing(tmp_path, answering(TALK)) as stand:
        await stand.hears("hello")
        await stand.handle(await stand.receive(my_chat_member=membership("kicked")))
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.unreachable_reason == "the user blocked the bot"
        assert await stand.rows() == [], "what waited for him is cancelled"
        await stand.hears("I am back")
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.unreachable_at_ms is None
        assert await stand.texts() == ["you said I am back"]


async def test_a_database_that_is_busy_for_long_costs_time_and_no_second_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The handlers have run: the commit is tried until it succeeds."""
    runs = []

    async def once(update: Update, context: Context) -> None:
        runs.append(update.update_id)
        await echo(update, context)

    async with standing(tmp_path, answering(MessageHandler(filters.TEXT, once))) as stand:
        item = await stand.claim(await stand.says("hello"))
        other = connect(stand.db.path)
        other.execute("begin immediate", {})
        handling = asyncio.ensure_future(stand.handling.handle(item, stand.lease))
        await until(lambda: runs != [] and stand.clock.next_due_ms() is not None)
        while "storage.failed" not in caplog.text:
            stand.clock.advance_ms(1_000)
            await until(lambda: stand.clock.next_due_ms() is not None)
        other.execute("rollback", {})
        other.close()
        while not handling.done():
            stand.clock.advance_ms(1_000)
            await asyncio.sleep(0)
        assert len(runs) == 1
        assert await stand.texts() == ["you said hello"]


async def test_an_effect_that_can_not_be_written_fails_the_turn_and_not_the_worker(
    tmp_path: Path,
) -> None:
    def break_it(tx: Tx, bot: BotName) -> None:
        raise ValueError

    async def wish(update: Update, context: Context) -> None:
        await echo(update, context)
        await write(break_it)

    handlers = answering(MessageHandler(filters.TEXT, wish), sorry=True)
    async with standing(tmp_path, handlers) as stand:
        update = await stand.hears("hello")
        assert await stand.texts() == ["sorry: ValueError"]
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_an_update_of_which_nothing_can_be_written_is_buried_all_the_same(
    tmp_path: Path,
) -> None:
    """A number of any size is one to JSON and to the library, and none to the database."""
    async with standing(tmp_path, answering(TALK, sorry=True)) as stand:
        odd = message("hello")
        odd["chat"]["id"] = 2**70
        update = await stand.receive(message=odd)
        await stand.handle(update)
        record = await stand.record(update)
        assert record.state is InboxState.DEAD
        assert record.reason is not None
        assert record.reason.startswith("OverflowError")
