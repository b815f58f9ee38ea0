"""What handlers remember is committed with the turn that changed it, and with no other."""

import asyncio
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.ext import (
    CommandHandler,
    ContextTypes,
    ConversationHandler,
    MessageHandler,
    filters,
)

from bot.turns.application import TurnApplication, TurnContext
from bot.turns.pickling import loads
from storage import turn_state
from storage.errors import UnsupportedCall
from storage.lifecycle import InboxState
from tests.integration.turns.stand import BOT, Context, Register, Stand, message, standing, until


async def count(update: Update, context: Context) -> None:
    assert update.message is not None
    context.user_data["n"] = context.user_data.get("n", 0) + 1
    context.chat_data["last"] = update.message.text
    await update.message.reply_text(str(context.user_data["n"]))
    if update.message.text == "boom":
        raise ValueError


def counting(application: TurnApplication) -> None:
    application.add_handler(MessageHandler(filters.TEXT & ~filters.COMMAND, count))


async def scopes(stand: Stand) -> set[str]:
    rows = await stand.db.read(lambda tx: turn_state.load_prefix(tx, BOT, " "))
    rows |= await stand.db.read(lambda tx: turn_state.load_prefix(tx, BOT, "c"))
    rows |= await stand.db.read(lambda tx: turn_state.load_prefix(tx, BOT, "u"))
    return set(rows)


async def test_a_turn_finds_what_the_one_before_remembered(tmp_path: Path) -> None:
    async with standing(tmp_path, counting) as stand:
        await stand.hears("one")
        await stand.hears("two")
        await stand.hears("another user", user=8)
        assert await stand.texts() == ["1", "2", "1"]
        assert await scopes(stand) == {"user:7", "chat:7", "user:8", "chat:8"}


async def test_memories_outlive_the_process(tmp_path: Path) -> None:
    async with standing(tmp_path, counting) as stand:
        await stand.hears("one")
    async with standing(tmp_path, counting) as stand:
        await stand.receive(message=message("filler"))
        await stand.hears("two")
        assert (await stand.texts())[-1] == "2"


async def test_a_failed_turn_remembers_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path, counting) as stand:
        await stand.hears("one")
        await stand.hears("boom")
        await stand.hears("two")
        assert await stand.texts() == ["1", "2"]


async def test_a_failed_turns_changes_are_not_written_by_anybody_else(tmp_path: Path) -> None:
    """The library's own round of saving would write them with the next turn of another user."""
    async with standing(tmp_path, counting) as stand:
        await stand.hears("boom", user=20)
        await stand.hears("fine", user=10)
        assert await scopes(stand) == {"user:10", "chat:10"}


async def test_while_a_turn_runs_another_commits_only_its_own(tmp_path: Path) -> None:
    held = asyncio.Event()
    begun = asyncio.Event()

    async def hold(update: Update, context: Context) -> None:
        context.user_data["half"] = "done"
        begun.set()
        await held.wait()
        raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("hold", hold))
        counting(application)

    async with standing(tmp_path, register) as stand:
        holding = asyncio.ensure_future(stand.hears("/hold", user=20))
        await begun.wait()
        await stand.hears("fine", user=10)
        held.set()
        await holding
        assert await scopes(stand) == {"user:10", "chat:10"}


async def test_a_turn_that_changes_nothing_writes_nothing(tmp_path: Path) -> None:
    async def look(update: Update, context: Context) -> None:
        assert context.user_data.get("n") == 1

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("look", look))
        counting(application)

    async with standing(tmp_path, register) as stand:
        await stand.hears("one")
        written = await stand.db.fetch("turn_state.load", {"bot": BOT, "scope": "user:7"})
        stand.clock.advance_ms(1000)
        await stand.hears("/look")
        assert await stand.db.fetch("turn_state.load", {"bot": BOT, "scope": "user:7"}) == written


async def test_between_turns_nothing_is_kept_in_memory(tmp_path: Path) -> None:
    """A bot with a million users needs no more memory than one with ten."""
    async with standing(tmp_path, counting) as stand:
        for user in range(1, 20):
            await stand.hears("hi", user=user)
        assert len(stand.application.user_data) == 0
        assert len(stand.application.chat_data) == 0


async def test_a_remembered_message_can_be_edited_in_a_later_turn(tmp_path: Path) -> None:
    async def show(update: Update, context: Context) -> None:
        assert update.message is not None
        context.chat_data["menu"] = await update.message.reply_text("menu")

    async def change(update: Update, context: Context) -> None:
        await context.chat_data["menu"].edit_text("changed")

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("show", show))
        application.add_handler(CommandHandler("change", change))

    async with standing(tmp_path, register) as stand:
        await stand.hears("/show")
        await stand.hears("/change")
        said, edited = await stand.shown()
        assert f'"message_id":"{said["placeholder"]}"' in edited["params"]


async def test_what_is_dropped_is_forgotten(tmp_path: Path) -> None:
    async def forget(update: Update, context: Context) -> None:
        assert update.effective_user is not None
        context.application.drop_user_data(update.effective_user.id)
        context.application.drop_chat_data(55)

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("forget", forget))
        counting(application)

    async with standing(tmp_path, register) as stand:
        await stand.hears("one", user=55)
        await stand.hears("two")
        await stand.hears("/forget")
        assert await scopes(stand) == {"user:55", "chat:7"}


async def test_the_memory_of_a_group_moves_with_it(tmp_path: Path) -> None:
    async def move(update: Update, context: Context) -> None:
        context.application.migrate_chat_data(message=update.message)

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.StatusUpdate.MIGRATE, move))
        counting(application)

    async with standing(tmp_path, register) as stand:
        await stand.hears("hello", chat=-5)
        moved = message("", chat=-5) | {"migrate_to_chat_id": -1005}
        del moved["text"]
        await stand.handle(await stand.receive(message=moved))
        assert await scopes(stand) == {"user:7", "chat:-1005"}


async def test_the_data_of_others_is_not_to_be_changed_from_a_turn(tmp_path: Path) -> None:
    """Here is only what was just put in: writing it would wipe out what they had."""

    async def meddle(update: Update, context: Context) -> None:
        context.application.user_data[99]["n"] = 5
        context.application.mark_data_for_update_persistence(user_ids=99)

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("meddle", meddle))

    async with standing(tmp_path, register) as stand:
        update = await stand.hears("/meddle")
        record = await stand.record(update)
        assert record.reason is not None
        assert record.reason.startswith(UnsupportedCall.__name__)


async def test_what_has_no_bytes_lives_on_in_memory_and_the_rest_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The library's own example of a timer keeps its job in chat_data."""

    async def ring(context: Context) -> None:
        raise AssertionError

    async def timer(update: Update, context: Context) -> None:
        assert update.message is not None
        old = context.chat_data.get("job")
        if old is not None and not old.removed:
            old.schedule_removal()
        context.chat_data["job"] = context.job_queue.run_once(ring, 3600, chat_id=7)
        context.chat_data["n"] = context.chat_data.get("n", 0) + 1
        await update.message.reply_text(f"{context.chat_data['n']} {old is not None}")
        if update.message.text == "/timer boom":
            raise ValueError

    async def unset(update: Update, context: Context) -> None:
        del context.chat_data["job"]

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("timer", timer))
        application.add_handler(CommandHandler("unset", unset))

    async with standing(tmp_path, register) as stand:
        await stand.hears("/timer")
        await stand.hears("/timer")
        await stand.hears("/timer boom")
        await stand.hears("/timer")
        assert await stand.texts() == ["1 False", "2 True", "3 True"]
        rows = await stand.db.read(lambda tx: turn_state.load(tx, BOT, ["chat:7"]))
        assert loads(rows["chat:7"], stand.application.bot) == {"n": 3}
        assert len([r for r in caplog.records if r.getMessage() == "memory.unkept"]) == 1
        await stand.hears("/unset")
        await stand.hears("/timer")
        assert (await stand.texts())[-1] == "4 False"
    async with standing(tmp_path, register) as stand:
        for _ in range(10):
            await stand.receive(message=message("filler"))
        await stand.hears("/timer")
        assert (await stand.texts())[-1] == "5 False"


async def test_a_memory_of_nothing_but_what_has_no_bytes_takes_no_row(tmp_path: Path) -> None:
    lock = threading.Lock()

    async def keep(update: Update, context: Context) -> None:
        assert context.user_data.setdefault("lock", lock) is lock

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("keep", keep))

    async with standing(tmp_path, register) as stand:
        update = await stand.hears("/keep")
        assert (await stand.record(update)).state is InboxState.DONE
        await stand.hears("/keep")
        assert await scopes(stand) == set()


async def test_what_can_not_be_read_any_more_fails_the_turn_and_stays(tmp_path: Path) -> None:
    async with standing(tmp_path, counting) as stand:
        await stand.db.write(lambda tx: turn_state.save(tx, BOT, {"user:7": b"no pickle"}))
        update = await stand.hears("one")
        assert (await stand.record(update)).state is InboxState.DEAD
        rows = await stand.db.read(lambda tx: turn_state.load(tx, BOT, ["user:7"]))
        assert rows == {"user:7": b"no pickle"}


@dataclass
class Seat:
    """What a bot of one's own may use instead of a dictionary."""

    row: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


async def test_data_of_a_class_of_ones_own_is_kept(tmp_path: Path) -> None:
    async def sit(update: Update, context: Context) -> None:
        assert update.message is not None
        async with context.user_data.lock:
            context.user_data.row += 1
        await update.message.reply_text(str(context.user_data.row))

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("sit", sit))

    types: ContextTypes[Any, Any, Any, Any] = ContextTypes(context=TurnContext, user_data=Seat)
    async with standing(
        tmp_path, register, configure=lambda built: built.context_types(types)
    ) as stand:
        await stand.hears("/sit")
        await stand.hears("/sit")
        assert await stand.texts() == ["1", "2"]
    async with standing(
        tmp_path, register, configure=lambda built: built.context_types(types)
    ) as stand:
        for _ in range(10):
            await stand.receive(message=message("filler"))
        await stand.hears("/sit")
        assert (await stand.texts())[-1] == "3"


ASKED = 1


def ordering(*, late: asyncio.Event | None = None) -> Register:
    async def ask(update: Update, context: Context) -> int:
        assert update.message is not None
        await update.message.reply_text("how many?")
        return ASKED

    async def note(update: Update, context: Context) -> int:
        assert update.message is not None
        if late is not None:
            await late.wait()
        await update.message.reply_text(f"{update.message.text} noted")
        return ConversationHandler.END

    async def spoil(update: Update, context: Context) -> None:
        assert update.message is not None
        if update.message.text == "99":
            raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(
            ConversationHandler(
                [CommandHandler("order", ask)],
                {ASKED: [MessageHandler(filters.Regex(r"^\d+$"), note, block=late is None)]},
                [],
                name="order",
                persistent=True,
            )
        )
        application.add_handler(MessageHandler(filters.TEXT, spoil), group=1)

    return register


async def test_a_conversation_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with standing(tmp_path, ordering()) as stand:
        await stand.hears("/order")
        assert await scopes(stand) == {"conversation:order:[7,7]"}
    async with standing(tmp_path, ordering()) as stand:
        await stand.receive(message=message("filler"))
        await stand.hears("3")
        assert (await stand.texts())[-1] == "3 noted"
        assert await scopes(stand) == set()


async def test_a_conversation_does_not_move_on_in_a_turn_that_fails(tmp_path: Path) -> None:
    """The handler had returned its new state before another handler raised."""
    async with standing(tmp_path, ordering()) as stand:
        await stand.hears("/order")
        await stand.hears("99")
        await stand.hears("fine", user=8)
        await stand.hears("3")
        assert await stand.texts() == ["how many?", "3 noted"]


async def test_a_conversation_step_that_goes_on_after_its_turn_is_remembered_when_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.running.TASKS_GRACE_S", 0.01)
    late = asyncio.Event()
    async with standing(tmp_path, ordering(late=late)) as stand:
        await stand.hears("/order")
        await stand.hears("3")
        assert await scopes(stand) == {"conversation:order:[7,7]"}
        late.set()
        await until(lambda: not stand.handling.followers)
        assert (await stand.texts())[-1] == "3 noted"
        assert await scopes(stand) == set()


async def test_a_conversation_in_memory_does_not_move_on_in_a_turn_that_fails_either(
    tmp_path: Path,
) -> None:
    async def step(update: Update, context: Context) -> int:
        assert update.message is not None
        await update.message.reply_text(update.message.text or "")
        return ASKED

    async def spoil(update: Update, context: Context) -> None:
        context.bot_data["tries"] = context.bot_data.get("tries", 0) + 1
        assert update.message is not None
        if update.message.text == "/order boom":
            raise ValueError

    def register(application: TurnApplication) -> None:
        conversation = ConversationHandler(
            [CommandHandler("order", step)], {ASKED: [CommandHandler("more", step)]}, []
        )
        application.add_handler(conversation)
        application.add_handler(MessageHandler(filters.TEXT, spoil), group=1)

    async with standing(tmp_path, register) as stand:
        await stand.hears("/order boom")
        await stand.hears("/more")
        await stand.hears("/order")
        await stand.hears("/more")
        assert await stand.texts() == ["/order", "/more"]
