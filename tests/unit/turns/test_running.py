"""A turn comes to an end, whatever its handlers do."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bot.turns.running import Finished, HandlerCancelled, Hung, Outcome, Raised, run, stack_of
from bot.turns.turn import Condemned, Stage, Turn, open_turn, voice
from tests.integration.turns.stand import until
from tests.unit.turns.test_turn import turn

Work = Callable[[], Coroutine[Any, Any, object]]


async def handled_by(work: Work, one: Turn | None = None, limit_s: float = 5.0) -> Outcome:
    return await run(one or turn(), work(), limit_s=limit_s)


def start_in(one: Turn, work: Work) -> None:
    """Start a task for a turn, as the application does."""
    one.tasks.add(asyncio.get_running_loop().create_task(work()))


async def test_handlers_run_in_the_turns_name_and_nobody_else_does() -> None:
    one = turn()
    seen = []

    async def work() -> None:
        seen.append(open_turn())

    assert await handled_by(work, one) == Finished()
    assert seen == [one]
    assert open_turn() is None
    assert one.stage is Stage.OPEN


async def test_a_turn_waits_for_the_tasks_it_started_and_those_that_they_start() -> None:
    one = turn()
    ended = []

    async def inner() -> None:
        ended.append("inner")

    async def outer() -> None:
        await asyncio.sleep(0)
        start_in(one, inner)
        ended.append("outer")

    async def work() -> None:
        start_in(one, outer)

    assert await handled_by(work, one) == Finished()
    assert ended == ["outer", "inner"]


async def test_a_task_that_goes_on_does_not_hold_the_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.turns.running.TASKS_GRACE_S", 0.01)
    one = turn()
    go_on = asyncio.Event()

    async def work() -> None:
        start_in(one, go_on.wait)

    assert await handled_by(work, one) == Finished()
    assert not next(iter(one.tasks)).done()
    go_on.set()
    await asyncio.wait(one.tasks)


async def test_a_failed_turn_silences_the_tasks_it_leaves_behind() -> None:
    one = turn()
    heard = []

    async def later() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            try:
                voice()
            except Condemned:
                heard.append("silence")

    async def work() -> None:
        start_in(one, later)
        await asyncio.sleep(0)
        one.errors.append(ValueError("a bug"))

    outcome = await handled_by(work, one)
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, ValueError)
    assert heard == ["silence"]


async def test_a_handler_that_hangs_is_cancelled_and_its_stack_is_kept() -> None:
    one = turn()
    cancelled = []

    async def waits_for_ever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def work() -> None:
        await waits_for_ever()

    outcome = await handled_by(work, one, limit_s=0.01)
    assert isinstance(outcome, Hung)
    assert "work" in outcome.where
    assert outcome.where.splitlines()[1].endswith("waits_for_ever")
    assert cancelled == [True]
    assert one.stage is Stage.CONDEMNED


async def test_a_handler_that_will_not_be_cancelled_is_left_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its lane goes on; what it still says is not heard."""
    monkeypatch.setattr("bot.turns.running.STOP_GRACE_S", 0.01)
    one = turn()
    let_go = asyncio.Event()
    heard = []

    async def work() -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        try:
            voice()
        except Condemned:
            heard.append("silence")

    assert isinstance(await handled_by(work, one, limit_s=0.01), Hung)
    let_go.set()
    await until(lambda: heard == ["silence"])


async def test_a_handler_that_cancels_itself_has_failed() -> None:
    async def work() -> None:
        raise asyncio.CancelledError

    outcome = await handled_by(work)
    assert isinstance(outcome, Raised)
    assert isinstance(outcome.error, HandlerCancelled)


async def test_a_worker_that_stops_takes_its_handlers_along() -> None:
    one = turn()
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    running = asyncio.ensure_future(handled_by(work, one))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert one.stage is Stage.CONDEMNED


async def test_a_stack_tells_places_and_no_values() -> None:
    secret = asyncio.Event()

    async def inner(words: str) -> None:
        await secret.wait()

    async def outer() -> None:
        await inner("a user's words")

    task = asyncio.ensure_future(outer())
    await asyncio.sleep(0)
    where = stack_of(task)
    task.cancel()
    assert [line.split()[-1] for line in where.splitlines()] == ["outer", "inner", "wait"]
    assert "words" not in where
