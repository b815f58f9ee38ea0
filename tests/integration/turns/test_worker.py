"""The loop: order in each chat and for each user, many lanes at once, an end in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from telegram import Update
from telegram.error import NetworkError
from telegram.ext import MessageHandler, filters

from bot.turns.application import TurnApplication
from bot.turns.worker import REST_MS_MAX, Worker
from storage import inbox, leases
from storage.errors import LeaseLost
from storage.lifecycle import InboxId, InboxState
from tests.integration.turns.stand import Context, Stand, standing, until


class Script:
    """Handlers that do as the text says, and note in which order they did it."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.gates: dict[str, asyncio.Event] = {}

    def register(self, application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, self.act))

    async def act(self, update: Update, context: Context) -> None:
        assert update.message is not None
        text = update.message.text or ""
        self.begun.append(text)
        if text.startswith("wait"):
            await self.gates.setdefault(text, asyncio.Event()).wait()
        if text.startswith("boom"):
            raise ValueError
        if text.startswith("ask"):
            await context.bot.get_chat_member_count(-5)
        await update.message.reply_text(text)
        self.ended.append(text)

    def let(self, text: str) -> None:
        """Let a waiting handler go on."""
        self.gates.setdefault(text, asyncio.Event()).set()


@asynccontextmanager
async def working(stand: Stand, *, lanes_max: int = 64) -> AsyncIterator[Worker]:
    worker = stand.worker(lanes_max=lanes_max)
    running = asyncio.ensure_future(worker.run())
    try:
        yield worker
    finally:
        worker.stop()
        await asyncio.wait((running,))
        await worker.abandon()
    if not running.cancelled() and (error := running.exception()) is not None:
        raise error


async def until_state(stand: Stand, update: InboxId, state: InboxState) -> None:
    async with asyncio.timeout(10):
        while (await stand.record(update)).state is not state:
            """Look again: reading takes its time."""


async def test_one_chat_is_answered_in_order_and_others_meanwhile(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        for text, user in [("wait a", 1), ("b", 1), ("c", 2), ("d", 1)]:
            await stand.says(text, user=user)
        async with working(stand):
            await until(lambda: script.ended == ["c"])
            assert script.begun == ["wait a", "c"]
            script.let("wait a")
            await until(lambda: len(script.ended) == 4)
        assert script.ended == ["c", "wait a", "b", "d"]
        assert stand.rings, "the sender was told"


async def test_one_user_is_answered_in_order_across_chats(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        await stand.says("wait private", user=1)
        await stand.says("group", user=1, chat=-5)
        async with working(stand):
            await until(lambda: script.begun == ["wait private"])
            await stand.says("other", user=2)
            await until(lambda: "other" in script.ended)
            assert "group" not in script.begun
            script.let("wait private")
            await until(lambda: len(script.ended) == 3)


async def test_no_more_turns_run_at_once_than_configured(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        for user in range(1, 6):
            await stand.says(f"wait {user}", user=user)
        async with working(stand, lanes_max=2):
            await until(lambda: len(script.begun) == 2)
            script.let("wait 1")
            await until(lambda: len(script.begun) == 3)
            for user in range(2, 6):
                script.let(f"wait {user}")
            await until(lambda: len(script.ended) == 5)


async def test_a_failure_that_passes_holds_its_chat_and_no_other(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        stand.telegram.answers["getChatMemberCount"] = NetworkError("httpx.ConnectError")
        first = await stand.says("ask", user=1)
        for text, user in [("after", 1), ("other", 2)]:
            await stand.says(text, user=user)
        async with working(stand) as worker:
            await until(lambda: script.ended == ["other"])
            await until_state(stand, first, InboxState.RECEIVED)
            stand.telegram.answers["getChatMemberCount"] = (200, 3)
            stand.clock.advance_ms(1_000)
            worker.wake()
            await until(lambda: len(script.ended) == 3)
        assert script.ended == ["other", "ask", "after"]


@pytest.mark.parametrize("restarted", [False, True], ids=["running", "restarted"])
async def test_a_clock_that_is_set_back_has_nothing_wait_for_the_time_it_takes_away(
    tmp_path: Path, *, restarted: bool
) -> None:
    """A read failed; then the wall clock was set back by a month."""
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        stand.telegram.answers["getChatMemberCount"] = NetworkError("httpx.ConnectError")
        first = await stand.says("ask", user=1)
        async with working(stand) as worker:
            await until(lambda: script.begun == ["ask"])
            await until_state(stand, first, InboxState.RECEIVED)
            stand.telegram.answers["getChatMemberCount"] = (200, 3)
            stand.clock.step_wall_ms(-30 * 86_400_000)
            if not restarted:
                stand.clock.advance_ms(1_000)
                worker.wake()
                await until(lambda: script.ended == ["ask"])
                return
        began_ms = stand.clock.boot_ms()
        async with working(stand) as another:

            def is_answered() -> bool:
                # It may take some looks until the worker has read the inbox; a month is never over.
                if stand.clock.boot_ms() - began_ms < 20 * 86_400_000:
                    stand.clock.advance_ms(REST_MS_MAX // 10)
                another.wake()
                return script.ended == ["ask"]

            await until(is_answered)


async def test_a_failed_turn_lets_its_chat_go_on(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        first = await stand.says("boom", user=1)
        await stand.says("after", user=1)
        async with working(stand):
            await until(lambda: script.ended == ["after"])
        assert (await stand.record(first)).state is InboxState.DEAD


async def test_a_handler_that_hangs_lets_its_chat_go_on(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register, limit_s=0.05) as stand:
        first = await stand.says("wait for ever", user=1)
        await stand.says("after", user=1)
        async with working(stand):
            await until(lambda: script.ended == ["after"])
        assert (await stand.record(first)).state is InboxState.DEAD


async def test_what_a_dead_worker_had_in_hand_is_handled_first(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        first = await stand.says("first", user=1)
        await stand.says("second", user=1)
        await stand.claim(first)
        lease = await stand.db.write(
            partial(leases.take, name=stand.lease.name, owner="next", is_dead=lambda _: True)
        )
        assert lease is not None
        stand.lease = lease
        async with working(stand):
            await until(lambda: len(script.ended) == 2)
        assert script.ended == ["first", "second"]
        assert (await stand.record(first)).claims == 2


async def test_a_dead_letter_that_is_requeued_is_found_without_a_bell(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        first = await stand.says("boom", user=1)
        async with working(stand):
            await until(lambda: script.begun == ["boom"])
            await stand.says("later", user=1)
            await until(lambda: script.ended == ["later"])
            assert await stand.db.write(partial(inbox.requeue, update=first))
            await until(lambda: script.begun == ["boom", "later", "boom"])


async def test_a_dead_letter_that_is_requeued_is_found_though_bells_never_cease(
    tmp_path: Path,
) -> None:
    """A busy bot has no quiet second."""
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        first = await stand.says("boom", user=1)
        async with working(stand) as worker:
            await until_state(stand, first, InboxState.DEAD)
            assert await stand.db.write(partial(inbox.requeue, update=first))
            began_ms = stand.clock.boot_ms()

            def is_found() -> bool:
                stand.clock.advance_ms(50)
                worker.wake()
                assert stand.clock.boot_ms() < began_ms + 3_600_000
                return script.begun == ["boom", "boom"]

            await until(is_found)


async def test_a_worker_that_stops_finishes_what_runs(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        running = await stand.says("wait", user=1)
        waiting = await stand.says("never begun", user=1)
        worker = stand.worker()
        task = asyncio.ensure_future(worker.run())
        await until(lambda: script.begun == ["wait"])
        worker.stop()
        await task
        draining = asyncio.ensure_future(worker.drain())
        await asyncio.sleep(0)
        script.let("wait")
        drained = await draining
        assert (drained.finished, drained.handed_back) == (1, 0)
        assert (await stand.record(running)).state is InboxState.DONE
        assert (await stand.record(waiting)).state is InboxState.RECEIVED


async def test_what_does_not_finish_in_time_is_handed_back_uncounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.turns.worker.DRAIN_S", 0.01)
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        update = await stand.says("wait", user=1)
        worker = stand.worker()
        task = asyncio.ensure_future(worker.run())
        await until(lambda: script.begun == ["wait"])
        worker.stop()
        await task
        drained = await worker.drain()
        assert (drained.finished, drained.handed_back) == (0, 1)
        record = await stand.record(update)
        assert (record.state, record.claims) == (InboxState.RECEIVED, 0)
        assert await stand.rows() == []


async def test_a_worker_that_lost_its_bot_keeps_nothing_and_ends(tmp_path: Path) -> None:
    script = Script()
    async with standing(tmp_path, script.register) as stand:
        update = await stand.says("wait", user=1)
        worker = stand.worker()
        running = asyncio.ensure_future(worker.run())
        await until(lambda: script.begun == ["wait"])
        await stand.db.write(
            partial(leases.take, name=stand.lease.name, owner="next", is_dead=lambda _: True)
        )
        script.let("wait")
        with pytest.raises(LeaseLost):
            await running
        assert script.ended == ["wait"]
        assert await stand.rows() == []
        assert (await stand.record(update)).state is InboxState.CLAIMED


async def test_many_turns_at_once_count_in_one_place_and_lose_nothing(tmp_path: Path) -> None:
    async def count(update: Update, context: Context) -> None:
        assert update.message is not None
        seen = context.bot_data.get("n", 0)
        for _ in range(update.message.chat_id % 5):
            await asyncio.sleep(0)
        context.bot_data["n"] = seen + 1
        await update.message.reply_text(str(seen + 1))
        if update.message.chat_id % 7 == 0:
            raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, count))

    async with standing(tmp_path, register) as stand:
        updates = [await stand.says("hi", user=user) for user in range(1, 41)]
        async with working(stand):
            for update in updates:
                failed = update % 7 == 0
                await until_state(stand, update, InboxState.DEAD if failed else InboxState.DONE)
        assert stand.application.bot_data["n"] == 35
        assert sorted(map(int, await stand.texts())) == list(range(1, 36))
