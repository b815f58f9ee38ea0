"""A turn that is run again, or given up: what it began before must not be heard twice."""

import asyncio
from functools import partial
from pathlib import Path

import pytest
from telegram import Update
from telegram.error import BadRequest
from telegram.ext import MessageHandler, filters

from bot.turns.application import TurnApplication
from bot.turns.failures import CLAIMS_MAX
from bot.turns.handling import Again, Finish
from bot.turns.turn import open_turn
from bot.turns.wishes import Send
from storage import outbox
from storage.lifecycle import InboxState
from tests.integration.turns.stand import (
    BOT,
    RULES,
    Context,
    Handler,
    Register,
    Stand,
    standing,
    until,
)


def answering(handler: Handler, *, block: bool = True) -> Register:
    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, handler, block=block))

    return register


async def alarm(context: Context) -> None:
    await context.bot.send_message(7, "alarm")


class Races:
    """Counts in `bot_data`; the one called "slow" is overtaken while it runs for the first time."""

    def __init__(self, also: Handler) -> None:
        self.runs: list[str] = []
        self.overtaken = asyncio.Event()
        self._also = also

    async def __call__(self, update: Update, context: Context) -> None:
        assert update.message is not None
        name = update.message.text or ""
        self.runs.append(name)
        seen = context.bot_data.get("n", 0)
        if name == "slow":
            await self._also(update, context)
            await self.overtaken.wait()
        context.bot_data["n"] = seen + 1


async def race(stand: Stand, races: Races) -> None:
    """Let a slow turn be overtaken by a quick one."""
    slow = asyncio.ensure_future(stand.hears("slow", user=20))
    await until(lambda: "slow" in races.runs)
    quick = asyncio.ensure_future(stand.hears("quick"))
    done, _ = await asyncio.wait((quick,), timeout=1)
    races.overtaken.set()
    await slow
    await quick
    assert bool(done) == (races.runs.count("slow") == 2), races.runs


async def test_a_job_of_a_turn_that_lost_rings_once(tmp_path: Path) -> None:
    async def arm(update: Update, context: Context) -> None:
        del update
        context.job_queue.run_once(alarm, 0.3)

    races = Races(arm)
    async with standing(tmp_path, answering(races)) as stand:
        await race(stand, races)
        assert races.runs == ["slow", "quick", "slow"]
        assert stand.application.job_queue is not None
        assert len(stand.application.job_queue.jobs()) == 1


async def test_a_job_of_a_turn_that_failed_never_rings(tmp_path: Path) -> None:
    async def arm(update: Update, context: Context) -> None:
        del update
        context.job_queue.run_repeating(alarm, 60)
        raise ValueError

    async with standing(tmp_path, answering(arm)) as stand:
        await stand.hears("go")
        assert stand.application.job_queue is not None
        assert stand.application.job_queue.jobs() == ()


async def test_a_task_of_a_turn_that_lost_is_silenced(tmp_path: Path) -> None:
    spoken = asyncio.Event()
    tasks: list[asyncio.Task[None]] = []

    async def go_on(update: Update, context: Context) -> None:
        del update

        async def later() -> None:
            await spoken.wait()
            await context.bot.send_message(7, "late")

        tasks.append(asyncio.create_task(later()))

    races = Races(go_on)
    async with standing(tmp_path, answering(races)) as stand:
        await race(stand, races)
        spoken.set()
        await asyncio.wait(tasks)
        assert len(tasks) == 2
        assert await stand.texts() == ["late"]


async def test_who_waits_in_a_long_flood_is_run_again_until_his_call_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.awaiting.PATIENCE_S", 0.01)
    told: list[str] = []

    async def roll(update: Update, context: Context) -> None:
        del update
        told.append("asked")
        try:
            await context.bot.send_dice(7)
        except BadRequest as error:
            told.append(str(error))

    async with standing(tmp_path, answering(roll)) as stand:
        update = await stand.says("go")
        for _ in range(CLAIMS_MAX + 5):
            after = await stand.handle(update)
            assert isinstance(after, Again)
            stand.clock.advance_ms(after.not_before_boot_ms - stand.clock.boot_ms())
        assert told == ["asked"] * (CLAIMS_MAX + 5)
        (row,) = await stand.rows()
        assert (row["method"], row["state"]) == ("sendDice", "queued")
        stand.clock.advance_ms(RULES.reply_ttl_ms)
        await stand.db.write(partial(outbox.expire, bot=BOT))
        assert isinstance(await stand.handle(update), Finish)
        assert "expired" in told[-1]


async def test_what_is_put_off_is_not_waited_for(tmp_path: Path) -> None:
    raised: list[Exception] = []

    async def roll(update: Update, context: Context) -> None:
        del update
        try:
            await context.bot.send_dice(7, rate_limit_args=Send(not_before=3600))
        except ValueError as error:
            raised.append(error)

    async with standing(tmp_path, answering(roll)) as stand:
        await stand.hears("go")
        assert "not_before" in str(raised[0])
        assert await stand.rows() == []


async def test_what_can_not_be_written_stops_a_handler_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.running.FLUSH_EVERY_S", 0.05)
    ended: list[str] = []

    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        try:
            await context.bot.send_message(10**30, "to nowhere")
            await asyncio.Event().wait()
        finally:
            ended.append("handler")

    async with standing(tmp_path, answering(handle)) as stand:
        update = await stand.hears("go")
        assert ended == ["handler"]
        assert (await stand.record(update)).state is InboxState.DEAD


async def test_a_job_is_not_delivered_as_the_group_wishes_whose_handler_armed_it(
    tmp_path: Path,
) -> None:
    async def arm(update: Update, context: Context) -> None:
        del update
        context.job_queue.run_once(alarm, 0)

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, arm), 3)
        application.send_defaults(3, Send(urgency="bulk"))

    async with standing(tmp_path, register) as stand:
        await stand.hears("go")
        await until(lambda: bool(stand.whole()))
        assert [row["priority"] for row in stand.whole()] == ["interactive"]


async def test_a_task_that_speaks_while_its_turn_is_being_lost_is_silenced(tmp_path: Path) -> None:
    tasks: list[asyncio.Task[None]] = []

    async def go_on(update: Update, context: Context) -> None:
        del update

        async def at_the_end() -> None:
            await until(lambda: open_turn() is None)
            await context.bot.send_message(7, "late")

        tasks.append(asyncio.create_task(at_the_end()))

    races = Races(go_on)
    async with standing(tmp_path, answering(races)) as stand:
        await race(stand, races)
        await asyncio.wait(tasks)
        assert len(tasks) == 2
        assert await stand.texts() == ["late"]


async def let_out(update: Update, context: Context) -> None:
    """Say what was read of `bot_data`, before the turn ends."""
    assert update.message is not None
    await update.message.reply_text(f"{update.message.text} {context.bot_data.get('n', 0)}")
    await context.flush()


async def test_who_was_heard_before_his_end_is_not_overtaken_any_more(tmp_path: Path) -> None:
    races = Races(let_out)
    async with standing(tmp_path, answering(races)) as stand:
        await race(stand, races)
        assert await stand.texts() == ["slow 0"]
        assert races.runs == ["slow", "quick", "quick"]


async def test_who_was_overtaken_before_he_is_heard_says_it_once(tmp_path: Path) -> None:
    overtaken = asyncio.Event()
    runs: list[str] = []

    async def count(update: Update, context: Context) -> None:
        assert update.message is not None
        runs.append(update.message.text or "")
        seen = context.bot_data.get("n", 0)
        if update.message.text == "slow":
            await overtaken.wait()
            await let_out(update, context)
        context.bot_data["n"] = seen + 1

    async with standing(tmp_path, answering(count)) as stand:
        slow = asyncio.ensure_future(stand.hears("slow", user=20))
        await until(lambda: "slow" in runs)
        await stand.hears("quick")
        overtaken.set()
        await slow
        assert runs == ["slow", "quick", "slow"]
        assert await stand.texts() == ["slow 1"]


async def test_two_who_count_and_are_heard_before_their_ends_say_it_once(tmp_path: Path) -> None:
    runs: list[str] = []
    go_on = asyncio.Event()

    async def count(update: Update, context: Context) -> None:
        assert update.message is not None
        runs.append(update.message.text or "")
        context.bot_data["n"] = context.bot_data.get("n", 0) + 1
        await let_out(update, context)
        await go_on.wait()

    async with standing(tmp_path, answering(count)) as stand:
        both = [
            asyncio.ensure_future(stand.hears(name, user=20 + number))
            for number, name in enumerate("ab")
        ]
        await until(lambda: len(runs) == 2 and bool(stand.whole()))
        go_on.set()
        await asyncio.wait(both)
        assert sorted(await stand.texts()) == ["a 1", "b 2"]
