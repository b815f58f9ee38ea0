"""Run a turn's handlers to their end, whatever they do: finish, raise, hang, leave tasks behind.

It knows neither updates nor the database. A turn that failed is silenced: tasks that it started and
that still run may not speak any more, so that nothing of it is kept.
"""

import asyncio
from collections.abc import Collection, Coroutine
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final

from bot.turns.turn import Condemned, Turn, enter
from storage.errors import LeaseLost, StorageError
from storage.telemetry import event

# Handlers that take longer than this are heard before they are done, and after each such time.
FLUSH_EVERY_S: Final = 1.0
# Tasks that the library starts for an update (block=False) belong to its turn for this long; then
# they go on alone.
TASKS_GRACE_S: Final = 1.0
# Who was cancelled may clean up, but not hold the lane.
STOP_GRACE_S: Final = 5.0


class HandlerCancelled(Exception):
    """A handler ended by cancelling itself."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The handlers are done; what was collected may be committed."""


@dataclass(frozen=True, slots=True)
class Raised:
    """A handler raised."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Hung:
    """The handlers took too long and were cancelled. `where` is the stack they hung in."""

    where: str


Outcome = Finished | Raised | Hung


async def run(turn: Turn, work: Coroutine[Any, Any, object], *, limit_s: float) -> Outcome:
    """Run `work` in the turn's name, and wait for the tasks it started.

    When this is cancelled, so is the work, and the turn is given up. Raises LeaseLost, with the
    turn given up, when another process owns the bot.
    """
    context = copy_context()
    context.run(enter, turn)
    main = asyncio.get_running_loop().create_task(work, name=turn.cause.key, context=context)
    try:
        await _wait_for(turn, main, limit_s=limit_s)
        if not main.done():
            return await _give_up(turn, main)
        _note_failure(turn, main)
        if not turn.errors and turn.tasks:
            await _wait_for_tasks(turn)
    except (asyncio.CancelledError, LeaseLost):
        turn.condemn()
        await _stop((main, *turn.tasks))
        raise
    if not turn.errors:
        return Finished()
    turn.condemn()
    await _stop(turn.tasks)
    return Raised(turn.errors[0])


async def _wait_for(turn: Turn, main: "asyncio.Task[object]", *, limit_s: float) -> None:
    """Wait for the handlers, and let out what they have said when they take long."""
    left_s = limit_s
    while left_s > 0:
        await asyncio.wait((main,), timeout=min(FLUSH_EVERY_S, left_s))
        left_s -= FLUSH_EVERY_S
        if main.done() or left_s <= 0:
            return
        try:
            await turn.flush(patient=False)
        except StorageError as error:
            # The rows are kept for the next time, and for the turn's own transaction in the end.
            event("storage.failed", bot=turn.bot, operation="flushing a turn", error=error)
        except LeaseLost:
            raise
        except Condemned:
            # What it had read has changed.
            await _stop((main,))
            return
        except Exception as error:  # noqa: BLE001  # what was said can't be written: the turn has failed
            turn.errors.append(error)
            await _stop((main,))
            return


def _note_failure(turn: Turn, main: "asyncio.Task[object]") -> None:
    """Note an error that came past the library: it passes on only cancellations."""
    if main.cancelled() and not turn.errors:
        turn.errors.append(HandlerCancelled())
    if main.cancelled():
        return
    error = main.exception()
    if isinstance(error, Exception):
        turn.errors.append(error)
    elif error is not None:
        raise error


async def _give_up(turn: Turn, main: "asyncio.Task[object]") -> Hung:
    where = stack_of(main)
    turn.condemn()
    await _stop((main, *turn.tasks))
    return Hung(where)


async def _wait_for_tasks(turn: Turn) -> None:
    """Wait until all tasks of the turn are done, those too that they start, but not for long."""
    try:
        async with asyncio.timeout(TASKS_GRACE_S):
            while pending := [task for task in turn.tasks if not task.done()]:
                await asyncio.wait(pending)
    except TimeoutError:
        return


async def _stop(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait for their end; one that refuses is left to itself, silenced."""
    pending = [task for task in tasks if not task.done()]
    for task in pending:
        task.cancel()
    if pending:
        await asyncio.wait(pending, timeout=STOP_GRACE_S)


def stack_of(task: "asyncio.Task[Any]") -> str:
    """Where a waiting task stands, from the outside in: places, no values."""
    lines = []
    inner: object = task.get_coro()
    while True:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is None:
            break
        code = frame.f_code
        file = "/".join(code.co_filename.split("/")[-2:])
        lines.append(f"  {file}:{frame.f_lineno} {code.co_name}")
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return "\n".join(lines)
