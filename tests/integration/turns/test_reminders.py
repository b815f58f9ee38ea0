"""A reminder happens at its moment, whatever dies in between, and what it says is said once."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from telegram import Update
from telegram.error import NetworkError
from telegram.ext import CommandHandler

from bot.turns.application import TurnApplication, TurnContext
from bot.turns.outside import Outside
from bot.turns.recurrence import Daily, Every
from bot.turns.reminders import Callback, When, Wish
from storage import leases, reminders
from storage.carriers import Row
from storage.database import connect
from storage.errors import UnsupportedCall
from tests.integration.turns.stand import BOT, Context, Stand, standing, until
from tests.integration.turns.test_worker import working
from tests.simulator.clock import VirtualClock

MINUTE_MS = 60_000
DAY_MS = 86_400_000


@dataclass
class Log:
    """What the callbacks of this module have done; emptied for each test."""

    ran: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    fault: Exception | None = None
    gate: asyncio.Event | None = None


LOG = Log()


@pytest.fixture(autouse=True)
def log() -> Iterator[Log]:
    LOG.ran, LOG.errors, LOG.fault, LOG.gate = [], [], None, None
    yield LOG
    LOG.gate = None


async def ring(context: Context) -> None:
    """What most reminders of these tests call."""
    LOG.ran.append((context.job.name, context.job.data))
    if LOG.gate is not None:
        await LOG.gate.wait()
    if LOG.fault is not None:
        raise LOG.fault
    await context.bot.send_message(8, f"ring {context.job.data}")


async def remember(context: Context) -> None:
    context.chat_data["rung"] = context.chat_data.get("rung", 0) + 1
    context.user_data["rung"] = context.job.chat_id


async def stop_itself(context: Context) -> None:
    LOG.ran.append("stopped")
    await context.forget("digest")


async def ask(context: Context) -> None:
    LOG.ran.append("asked")
    await context.bot.get_chat_member_count(-5)
    await context.bot.send_message(8, "answered")


class Methods:
    async def ring(self, context: Context) -> None:
        """Belong to an object."""


def wishing(when: When, callback: Callback = ring, **wish: Any) -> Any:  # noqa: ANN401  # fields of Wish
    """Handlers whose /go wishes a reminder, and whose error handler says so."""

    async def go(update: Update, context: TurnContext) -> None:
        await context.later(when, callback, **wish)

    async def failed(update: object, context: Context) -> None:
        LOG.errors.append((update, context.error, context.job))
        await context.bot.send_message(9, f"failed {type(context.error).__name__}")

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("go", go))
        application.add_error_handler(failed)

    return register


def kept(stand: Stand) -> list[Row]:
    """The reminders that are kept."""
    connection = connect(stand.db.path)
    try:
        return connection.execute("select * from reminders order by id", {}).fetchall()
    finally:
        connection.close()


async def pass_time(stand: Stand, ms: int, *, ran: int) -> None:
    """Let time pass, and the worker work until so many callbacks have been begun and are over."""
    stand.clock.advance_ms(ms)
    async with working(stand):
        await until(lambda: len(LOG.ran) == ran and not _is_due(stand))


def _is_due(stand: Stand) -> bool:
    return any(row["due_ms"] <= stand.clock.now_ms() for row in kept(stand))


async def test_a_reminder_happens_at_its_moment_and_not_before(tmp_path: Path) -> None:
    register = wishing(timedelta(minutes=1), data={"tea": "green"}, name="tea")
    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        stand.clock.advance_ms(MINUTE_MS - 1)
        async with working(stand):
            await stand.hears("other")
        assert LOG.ran == []
        await pass_time(stand, 1, ran=1)
        assert LOG.ran == [("tea", {"tea": "green"})]
        assert await stand.texts() == ["ring {'tea': 'green'}"]
        (row,) = await stand.shown()
        assert row["key"] == "later:1:0:0"
        assert kept(stand) == []


async def test_it_outlives_its_worker_and_its_process(tmp_path: Path) -> None:
    clock = VirtualClock()
    async with standing(tmp_path, wishing(60, data=1), clock=clock) as stand:
        await stand.hears("/go")
    async with standing(tmp_path, wishing(60), clock=clock) as stand:
        await pass_time(stand, MINUTE_MS, ran=1)
        assert await stand.texts() == ["ring 1"]


async def test_a_turn_that_fails_leaves_no_reminder(tmp_path: Path) -> None:
    async def go(update: Update, context: TurnContext) -> None:
        await context.later(60, ring)
        raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(CommandHandler("go", go))

    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        assert kept(stand) == []


async def test_a_worker_that_lost_the_bot_leaves_everything_to_the_next(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(60, data=1)) as stand:
        await stand.hears("/go")
        LOG.gate = asyncio.Event()
        stand.clock.advance_ms(MINUTE_MS)
        running = asyncio.ensure_future(stand.worker().run())
        await until(lambda: len(LOG.ran) == 1)
        takeover = partial(leases.take, name=stand.lease.name, owner="b", is_dead=lambda _: True)
        lease = await stand.db.write(takeover)
        LOG.gate.set()
        with pytest.raises(Exception, match="lease"):
            await running
        assert len(kept(stand)) == 1
        assert await stand.texts() == []
        assert lease is not None
        stand.lease = lease
        assert isinstance(stand.application.outside, Outside)
        stand.application.outside.own(lease)
        await pass_time(stand, 0, ran=2)
        assert await stand.texts() == ["ring 1"]


async def test_a_rule_happens_again_each_time_as_a_row_of_its_own(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(Every(timedelta(minutes=1)), data=1)) as stand:
        await stand.hears("/go")
        for times in (1, 2, 3):
            await pass_time(stand, MINUTE_MS, ran=times)
        assert await stand.texts() == ["ring 1"] * 3
        (row,) = kept(stand)
        assert row["due_ms"] == stand.clock.now_ms() + MINUTE_MS


async def test_what_was_missed_while_nobody_worked_happens_once(tmp_path: Path) -> None:
    register = wishing(Daily(time(9), "Europe/Berlin"), name="digest")
    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        await pass_time(stand, 10 * DAY_MS, ran=1)
        (row,) = kept(stand)
        following = datetime.fromtimestamp(row["due_ms"] / 1000, UTC)
        assert 0 < row["due_ms"] - stand.clock.now_ms() <= DAY_MS
        assert following.hour in {7, 8}


async def test_what_would_come_too_late_is_left_out(tmp_path: Path) -> None:
    register = wishing(Every(timedelta(minutes=1)), late_max=timedelta(seconds=10))
    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        stand.clock.advance_ms(MINUTE_MS + 10_001)
        async with working(stand):
            await until(lambda: not _is_due(stand))
        assert LOG.ran == []
        (row,) = kept(stand)
        assert row["due_ms"] == stand.clock.now_ms() + MINUTE_MS - 10_001
        await pass_time(stand, MINUTE_MS - 1, ran=1)


async def test_a_clock_that_was_set_back_delays_no_span(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(60, data=1)) as stand:
        await stand.hears("/go")
        stand.clock.step_wall_ms(-30 * DAY_MS)
        async with working(stand):
            await until(lambda: kept(stand)[0]["due_ms"] == stand.clock.now_ms() + MINUTE_MS)
        await pass_time(stand, MINUTE_MS, ran=1)


async def test_a_wish_at_each_start_is_one_reminder(tmp_path: Path) -> None:
    """And what was missed between two starts is not lost."""
    rule = Daily(time(9), "UTC")
    register = wishing(rule, name="digest")
    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        stand.clock.advance_ms(3 * DAY_MS)
        context = TurnContext(stand.application)
        await context.later(rule, ring, name="digest")
        assert len(kept(stand)) == 1
        await pass_time(stand, 0, ran=1)


async def test_it_finds_the_memories_that_it_was_wished_for(tmp_path: Path) -> None:
    register = wishing(60, remember, chat_id=-5, user_id=7)
    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        stand.clock.advance_ms(MINUTE_MS)
        async with working(stand):
            await until(lambda: kept(stand) == [])
        for scope in ("chat:-5", "user:7"):
            (row,) = await stand.db.fetch("turn_state.load", {"bot": BOT, "scope": scope})
            assert b"rung" in bytes(row["data"])


async def test_it_waits_for_the_turn_of_its_chat(tmp_path: Path) -> None:
    """No two turns have the same memories in hand."""
    begun = asyncio.Event()
    go_on = asyncio.Event()

    async def slow(update: Update, context: Context) -> None:
        begun.set()
        await go_on.wait()
        assert LOG.ran == []

    def register(application: TurnApplication) -> None:
        wishing(60, chat_id=7)(application)
        application.add_handler(CommandHandler("slow", slow))

    async with standing(tmp_path, register) as stand:
        await stand.hears("/go")
        await stand.says("/slow")
        async with working(stand) as worker:
            await begun.wait()
            stand.clock.advance_ms(MINUTE_MS)
            worker.wake()
            await until(lambda: worker._lanes.waiting == 1)
            assert LOG.ran == []
            go_on.set()
            await until(lambda: kept(stand) == [])
        assert len(LOG.ran) == 1


async def test_a_callback_that_fails_is_told_once_and_not_called_again(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(60, name="tea")) as stand:
        await stand.hears("/go")
        LOG.fault = ValueError()
        await pass_time(stand, MINUTE_MS, ran=1)
        ((update, error, job),) = LOG.errors
        assert (update, error, job.name) == (None, LOG.fault, "tea")
        assert await stand.texts() == ["failed ValueError"]
        (row,) = await stand.shown()
        assert row["key"] == "later:1:1:0"


async def test_a_rule_whose_callback_fails_goes_on_with_its_next_time(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(Every(timedelta(minutes=1)))) as stand:
        await stand.hears("/go")
        LOG.fault = ValueError()
        await pass_time(stand, MINUTE_MS, ran=1)
        LOG.fault = None
        await pass_time(stand, MINUTE_MS, ran=2)
        assert await stand.texts() == ["failed ValueError", "ring None"]


async def test_what_fails_in_passing_is_tried_again(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(60, ask)) as stand:
        stand.telegram.answers["getChatMemberCount"] = NetworkError("httpx.ConnectError")
        await stand.hears("/go")
        stand.clock.advance_ms(MINUTE_MS)
        async with working(stand) as worker:
            await until(lambda: LOG.ran == ["asked"] and worker._lanes.waiting == 1)
            stand.telegram.answers["getChatMemberCount"] = 200, 5
            stand.clock.advance_ms(2_000)
            worker.wake()
            await until(lambda: kept(stand) == [])
        assert LOG.ran == ["asked", "asked"]
        assert await stand.texts() == ["answered"]
        assert LOG.errors == []


async def test_a_callback_can_end_its_own_rule(tmp_path: Path) -> None:
    rule = Every(timedelta(minutes=1))
    async with standing(tmp_path, wishing(rule, stop_itself, name="digest")) as stand:
        await stand.hears("/go")
        await pass_time(stand, MINUTE_MS, ran=1)
        assert kept(stand) == []


async def test_what_is_taken_back_while_it_runs_says_nothing(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(60, name="tea")) as stand:
        await stand.hears("/go")
        LOG.gate = asyncio.Event()
        stand.clock.advance_ms(MINUTE_MS)
        async with working(stand) as worker:
            await until(lambda: len(LOG.ran) == 1)
            await TurnContext(stand.application).forget("tea")
            LOG.gate.set()
            await until(lambda: worker._lanes.running == 0)
        assert await stand.texts() == []
        assert LOG.errors == []


async def test_a_reminder_whose_callback_is_gone_waits_for_a_release_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(tmp_path, wishing(60, data=1)) as stand:
        await stand.hears("/go")
        gone = ring
        monkeypatch.delattr(f"{__name__}.ring")
        stand.clock.advance_ms(MINUTE_MS)
        async with working(stand) as worker:
            await until(lambda: bool(worker._errands._caller.unreadable))
            await until(lambda: worker._lanes.running == 0)
            stand.clock.advance_ms(1_000)
            await stand.hears("other")
        assert len(kept(stand)) == 1
        assert LOG.errors == []
        monkeypatch.setattr(f"{__name__}.ring", gone, raising=False)
        await pass_time(stand, 0, ran=1)
        assert await stand.texts() == ["ring 1"]


async def test_what_no_other_process_could_find_is_refused_in_words(tmp_path: Path) -> None:
    async def closure(context: Context) -> None:
        """Stand in no module."""

    def plain(context: Context) -> None:
        """Be no async function."""

    async with standing(tmp_path, wishing(1)) as stand:
        context = TurnContext(stand.application)
        for callback in (closure, Methods().ring, partial(ring)):
            with pytest.raises(ValueError, match="no lambda, no closure, no bound method"):
                await context.later(1, callback)
        for wrong in (plain, lambda _: None):
            with pytest.raises(TypeError, match="calls an async function"):
                await context.later(1, wrong)  # type: ignore[arg-type]  # the fault itself
        with pytest.raises(ValueError, match="with a zone"):
            await context.later(datetime(2030, 1, 1), ring)  # noqa: DTZ001  # the fault itself
        with pytest.raises(TypeError, match="expected seconds"):
            await context.later("tomorrow", ring)  # type: ignore[arg-type]  # the fault itself
        with pytest.raises(TypeError, match="expected seconds"):
            await context.later(float("nan"), ring)
        with pytest.raises((TypeError, AttributeError)):
            await context.later(1, ring, data=lambda: 1)
        assert kept(stand) == []


async def test_the_job_of_a_reminder_tells_how_it_is_taken_back(tmp_path: Path) -> None:
    async with standing(tmp_path, wishing(60)) as stand:
        await stand.hears("/go")
        LOG.fault = ValueError()
        await pass_time(stand, MINUTE_MS, ran=1)
        ((_, _, job),) = LOG.errors
        assert job == job  # noqa: PLR0124  # the library's own comparison asks for a job of its own
        assert "ring" in repr(job)
        with pytest.raises(UnsupportedCall, match=r"await context\.forget"):
            job.schedule_removal()


async def test_a_moment_is_kept_whatever_the_clock_does_since(tmp_path: Path) -> None:
    clock = VirtualClock()
    moment = datetime.fromtimestamp(clock.now_ms() / 1000, UTC) + timedelta(hours=1)
    async with standing(tmp_path, wishing(moment), clock=clock) as stand:
        await stand.hears("/go")
        clock.step_wall_ms(-DAY_MS)
        await stand.db.write(partial(reminders.redate, bot=BOT))
        await pass_time(stand, DAY_MS + 3_600_000, ran=1)


def test_a_wish_names_all_that_can_be_said() -> None:
    assert set(Wish.__annotations__) == {"name", "data", "chat_id", "user_id", "late_max"}
