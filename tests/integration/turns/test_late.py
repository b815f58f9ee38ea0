"""What is said outside a turn is said in transactions of its own, and never in a closed turn."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.ext import CommandHandler, ConversationHandler, MessageHandler, filters

from bot.turns.application import TurnApplication
from bot.turns.turn import open_turn, turn_here
from bot.turns.wishes import opt_out
from storage import chats, leases, outbox
from storage.errors import LeaseLost
from tests.integration.turns.stand import BOT, Context, Handler, Register, standing, until

SOON = timedelta(milliseconds=1)


def handling(**commands: Handler) -> Register:
    def register(application: TurnApplication) -> None:
        for command, handler in commands.items():
            application.add_handler(CommandHandler(command, handler))

    return register


async def test_a_job_speaks_for_itself_even_while_the_turn_that_armed_it_is_open(
    tmp_path: Path,
) -> None:
    """A timer keeps the context of whoever armed it; what a job says is not that turn's."""
    ran = asyncio.Event()
    where: list[Any] = []

    async def job(context: Context) -> None:
        where.append(turn_here())
        await context.bot.send_message(8, "from the job")
        ran.set()

    async def arm(update: Update, context: Context) -> None:
        context.job_queue.run_once(job, SOON)
        await ran.wait()
        assert update.message is not None
        await update.message.reply_text("from the turn")
        raise ValueError

    async with standing(tmp_path, handling(arm=arm)) as stand:
        await stand.hears("/arm")
        assert where == [None]
        assert await stand.texts() == ["from the job"], "the failed turn took nothing of it along"
        (row,) = await stand.shown()
        assert row["key"] == f"late:{stand.lease.epoch}:1"
        assert row["placeholder"] == -(1 << 52) - row["id"] * outbox.FREE_ITEMS_MAX
        assert stand.rings == ["sender"]


async def test_a_job_remembers_for_its_user(tmp_path: Path) -> None:
    ran = asyncio.Event()

    async def job(context: Context) -> None:
        context.user_data["n"] += 1
        ran.set()

    async def arm(update: Update, context: Context) -> None:
        context.user_data["n"] = context.user_data.get("n", 0)
        context.job_queue.run_once(job, SOON, user_id=7, chat_id=7)

    async def tell(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text(str(context.user_data["n"]))

    async with standing(tmp_path, handling(arm=arm, tell=tell)) as stand:
        await stand.hears("/arm")
        await ran.wait()
        await until(lambda: not stand.application.memory.has("user:7"))
        await stand.hears("/tell")
        assert await stand.texts() == ["1"]


async def test_a_job_does_not_find_what_a_failed_turn_had_changed(tmp_path: Path) -> None:
    begun, fail = asyncio.Event(), asyncio.Event()
    found: list[int] = []

    async def job(context: Context) -> None:
        begun.set()
        await fail.wait()
        await until(lambda: "n" not in context.user_data)
        context.user_data["from the job"] = True
        found.append(len(context.user_data))

    async def change(update: Update, context: Context) -> None:
        context.user_data["n"] = 1
        context.job_queue.run_once(job, SOON, user_id=7)
        await begun.wait()
        fail.set()
        raise ValueError

    async def tell(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text(" ".join(context.user_data))

    async with standing(tmp_path, handling(change=change, tell=tell)) as stand:
        await stand.hears("/change")
        await until(lambda: found == [1])
        await stand.hears("/tell")
        assert await stand.texts() == ["from the job"]


async def test_an_error_of_a_job_reaches_the_error_handlers(tmp_path: Path) -> None:
    caught: list[Any] = []

    async def job(context: Context) -> None:
        raise ValueError

    async def note(update: object, context: Context) -> None:
        caught.append(context.error)
        await context.bot.send_message(8, "a job failed")

    async def arm(update: Update, context: Context) -> None:
        context.job_queue.run_once(job, SOON)

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("arm", arm))
        application.add_error_handler(note, block=False)

    async with standing(tmp_path, register) as stand:
        await stand.hears("/arm")
        await until(lambda: stand.rings == ["sender"])
        assert isinstance(caught[0], ValueError)
        assert await stand.texts() == ["a job failed"]


async def test_a_task_that_outlives_its_turn_speaks_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.running.TASKS_GRACE_S", 0.01)
    go_on = asyncio.Event()

    async def work(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text("in time")
        context.user_data["step"] = 1
        await go_on.wait()
        assert open_turn() is None
        await update.message.reply_text("late")
        await opt_out(7)
        context.user_data["step"] = 2

    async def tell(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text(f"step {context.user_data['step']}")

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("begin", work, block=False))
        application.add_handler(CommandHandler("tell", tell))

    async with standing(tmp_path, register) as stand:
        update = await stand.hears("/begin")
        assert await stand.texts() == ["in time"]
        go_on.set()
        await until(lambda: not stand.handling.followers)
        early, late = await stand.shown()
        assert early["key"] == f"turn:{update}:0:0"
        assert late["key"].startswith("late:")
        known = await stand.db.read(lambda tx: chats.show(tx, BOT, 7))
        assert known is not None
        assert known.opted_out_at_ms is not None
        await stand.hears("/tell")
        assert (await stand.texts())[-1] == "step 2"


async def test_a_bare_task_speaks_for_itself_once_its_turn_is_over(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    tasks = []

    async def later(update: Update) -> None:
        await go_on.wait()
        assert update.message is not None
        await update.message.reply_text("late")

    async def work(update: Update, context: Context) -> None:
        tasks.append(asyncio.ensure_future(later(update)))

    async with standing(tmp_path, handling(begin=work)) as stand:
        await stand.hears("/begin")
        assert await stand.rows() == []
        go_on.set()
        await asyncio.wait(tasks)
        assert await stand.texts() == ["late"]


async def test_a_bare_task_of_a_failed_turn_is_silenced(tmp_path: Path) -> None:
    go_on = asyncio.Event()
    tasks = []

    async def later(update: Update) -> None:
        await go_on.wait()
        assert update.message is not None
        await update.message.reply_text("late")

    async def work(update: Update, context: Context) -> None:
        tasks.append(asyncio.ensure_future(later(update)))
        raise ValueError

    async with standing(tmp_path, handling(begin=work)) as stand:
        await stand.hears("/begin")
        go_on.set()
        await asyncio.wait(tasks)
        assert tasks[0].cancelled()
        assert await stand.rows() == []


async def test_the_bot_itself_can_speak_outside_any_handler(tmp_path: Path) -> None:
    async with standing(tmp_path, handling()) as stand:
        sent = await stand.application.bot.send_message(8, "hello")
        await sent.edit_text("hello again")
        said, edited = await stand.shown()
        assert sent.message_id == said["placeholder"]
        assert f'"message_id":"{said["placeholder"]}"' in edited["params"]
        assert [said["key"], edited["key"]] == ["late:1:1", "late:1:2"]


async def test_who_lost_the_bot_may_not_speak_for_it(tmp_path: Path) -> None:
    async with standing(tmp_path, handling()) as stand:
        await stand.db.write(
            lambda tx: leases.take(tx, stand.lease.name, "other", is_dead=lambda _: True)
        )
        with pytest.raises(LeaseLost):
            await opt_out_outside(stand.application)
        assert await stand.rows() == []


async def opt_out_outside(application: TurnApplication) -> None:
    await application.outside.write(lambda tx, bot: chats.opt_out(tx, bot, 8))


async def test_a_conversation_that_times_out_says_so_and_is_over(tmp_path: Path) -> None:
    """The library's timer carries the update; its words are nobody's turn's."""

    async def begin(update: Update, context: Context) -> int:
        return 1

    async def late(update: Update, context: Context) -> None:
        assert update.message is not None
        await update.message.reply_text("too late")

    def register(application: TurnApplication) -> None:
        application.add_handler(
            ConversationHandler(
                [CommandHandler("order", begin)],
                {ConversationHandler.TIMEOUT: [MessageHandler(filters.ALL, late)], 1: []},
                [],
                name="order",
                persistent=True,
                conversation_timeout=timedelta(milliseconds=20),
            )
        )

    async with standing(tmp_path, register) as stand:
        update = await stand.hears("/order")
        await until(lambda: stand.rings == ["sender"])
        place = "conversation:order:[7,7]"
        await until(lambda: not stand.application.memory.has(place))
        (row,) = await stand.shown()
        assert row["key"] == "late:1:1"
        rows = await stand.db.fetch("turn_state.load", {"bot": BOT, "scope": place})
        assert rows == []
        assert update == 1
