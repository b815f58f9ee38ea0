"""One stop for all: a signal or the first failure ends every role in order."""

import asyncio
import os
import signal

import pytest

from bot.cli.together import Failure, Role, together
from storage.errors import ReadOnly
from tests.simulator.clock import VirtualClock


class Recorder:
    """Roles that note what happens to them."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.begun = asyncio.Event()

    def patient(self, name: str) -> Role:
        """A role that works until it is told to stop, then drains."""

        async def run(stop: asyncio.Event) -> None:
            self.begun.set()
            await stop.wait()
            await asyncio.sleep(0)
            self.notes.append(f"{name} drained")

        return run

    @staticmethod
    def failing(error: BaseException) -> Role:
        """A role that raises at once."""

        async def run(stop: asyncio.Event) -> None:
            raise error

        return run


async def _told_to_stop(roles: dict[str, Role], recorder: Recorder, *numbers: int) -> None:
    running = asyncio.ensure_future(together(roles, VirtualClock()))
    await recorder.begun.wait()
    for number in numbers:
        os.kill(os.getpid(), number)
    assert await running == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_every_role_drain(number: int) -> None:
    recorder = Recorder()
    roles = {"a": recorder.patient("a"), "b": recorder.patient("b")}
    await _told_to_stop(roles, recorder, number)
    assert sorted(recorder.notes) == ["a drained", "b drained"]


async def test_a_second_signal_does_no_harm() -> None:
    recorder = Recorder()
    await _told_to_stop(
        {"a": recorder.patient("a")}, recorder, signal.SIGINT, signal.SIGINT, signal.SIGTERM
    )
    assert recorder.notes == ["a drained"]


async def test_the_first_failure_takes_the_others_along_in_order() -> None:
    recorder = Recorder()
    error = ReadOnly("no")
    roles = {"a": recorder.failing(error), "b": recorder.patient("b")}
    assert await together(roles, VirtualClock()) == [Failure("a", error)]
    assert recorder.notes == ["b drained"]


async def test_a_group_of_errors_is_told_one_by_one() -> None:
    recorder = Recorder()
    one, two = ReadOnly("one"), ValueError("two")
    roles = {"a": recorder.failing(ExceptionGroup("both", [one, ExceptionGroup("in", [two])]))}
    assert await together(roles, VirtualClock()) == [Failure("a", one), Failure("a", two)]


async def test_a_role_that_ends_unasked_is_a_failure() -> None:
    async def returns(stop: asyncio.Event) -> None:
        return

    recorder = Recorder()
    failures = await together({"a": returns, "b": recorder.patient("b")}, VirtualClock())
    assert [(each.role, str(each.error)) for each in failures] == [
        ("a", "a ended although nobody had asked for it")
    ]
    assert recorder.notes == ["b drained"]


async def test_a_role_that_cancels_itself_is_a_failure() -> None:
    async def cancels(stop: asyncio.Event) -> None:
        raise asyncio.CancelledError

    failures = await together({"a": cancels}, VirtualClock())
    assert [str(each.error) for each in failures] == ["a was cancelled from within"]


async def test_a_failure_while_draining_is_told_too() -> None:
    async def breaks_late(stop: asyncio.Event) -> None:
        await stop.wait()
        raise ValueError("late")

    recorder = Recorder()
    roles = {"a": breaks_late, "b": recorder.failing(ReadOnly("first"))}
    failures = await together(roles, VirtualClock())
    assert [each.role for each in failures] == ["b", "a"]


async def test_a_role_that_never_drains_does_not_hold_the_process() -> None:
    async def stuck(stop: asyncio.Event) -> None:
        await asyncio.Event().wait()

    roles = {"a": stuck, "b": Recorder.failing(ReadOnly("first"))}
    failures = await together(roles, VirtualClock(), drain_s_max=0.01)
    assert [str(each.error) for each in failures] == ["first", "a did not stop within 0.01 s"]
