"""Virtual time, and processes that can be killed and stopped at any await.

An asyncio loop whose time jumps to the next timer, so that an hour takes as long as what happens
in it. Every task belongs to the simulated process in whose context it was started, or to the world
itself. A killed process runs no further callback, not even a `finally`, as after SIGKILL; a stopped
one keeps its callbacks until it goes on, as after SIGSTOP. May never wait for real: when nothing is
ready and no timer is set it raises Deadlock.
"""

import asyncio
import contextlib
import heapq
import selectors
from asyncio import events
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

START_S = 1_000.0
# A dead process's coroutines are closed from outside; one that waits in a `finally` needs a few.
_CLOSINGS_MAX = 20
# Ended tasks are forgotten now and then.
_TASKS_MAX = 2_000


class Deadlock(Exception):
    """Nothing is ready, and no timer will make anything so."""


class SpunAround(Exception):
    """The world runs and runs, and its time stands still."""


class Process:
    """A process of the house: its life, and what waits while it is stopped."""

    def __init__(self, loop: "WorldLoop", name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.is_dead = False
        self.runs = True
        # So many more callbacks, and it is killed; 0 is never.
        self.steps_left = 0
        self.killed_at_ms = 0
        self.ends: list[Callable[[], None]] = []
        """Called when it has died, by kill or by itself."""
        self._loop = loop
        self._parked: list[events.Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._context = copy_context()
        self._context.run(_PROCESS.set, self)

    def __repr__(self) -> str:
        return f"{self.name}#{self.number}"

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Start a task of this process."""
        return self._loop.create_task(work, context=self._context.copy())

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        """Remember a task that was started in this process."""
        self._tasks.append(task)
        if len(self._tasks) > _TASKS_MAX:
            self._tasks = [each for each in self._tasks if not each.done()]

    def admits(self, handle: events.Handle) -> bool:
        """Whether a callback may run now; one of a stopped process is kept for later."""
        if self.is_dead:
            return False
        if not self.runs:
            self._parked.append(handle)
            return False
        if self.steps_left:
            self.steps_left -= 1
            if not self.steps_left:
                self.kill()
                return False
        return True

    def kill(self) -> None:
        """End at once."""
        if self.is_dead:
            return
        self.is_dead = True
        self.runs = False
        self.killed_at_ms = self._loop.now_ms()
        self._parked.clear()
        for end in self.ends:
            end()

    def stop(self) -> None:
        """Stand still until `go_on`."""
        if not self.is_dead:
            self.runs = False

    def go_on(self) -> None:
        """Run what was kept, and go on."""
        if not self.is_dead:
            self.runs = True
            parked, self._parked = self._parked, []
            self._loop.ready_again(parked)

    def bury(self) -> None:
        """Close what a killed process left unfinished, once the world has ended."""
        self.is_dead = True
        for task in self._tasks:
            if task.done():
                continue
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # it was killed
            coroutine = task.get_coro()
            for _ in range(_CLOSINGS_MAX):
                # Whatever its clean-up does, there is nobody left to mind.
                with contextlib.suppress(BaseException):
                    coroutine.close()
                    break
        self._tasks.clear()


_PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)


async def passing(seconds: float) -> None:
    """Let so much virtual time pass."""
    await asyncio.sleep(seconds)


def process_here() -> Process:
    """The process whose code runs."""
    process = _PROCESS.get()
    assert process is not None, "the world itself is no process"
    return process


class _Handle(events.Handle):
    """A callback that runs only while its process does."""

    __slots__ = ()

    def _run(self) -> None:
        process = self._context.get(_PROCESS)  # type: ignore[attr-defined]  # asyncio's own slot
        if process is None or process.admits(self):
            super()._run()


class _TimerHandle(events.TimerHandle):
    """The same, at a moment."""

    __slots__ = ()

    def _run(self) -> None:
        process = self._context.get(_PROCESS)  # type: ignore[attr-defined]  # asyncio's own slot
        if process is None or process.admits(self):
            super()._run()


class _Leap(selectors.BaseSelector):
    """Waits for nothing: the loop's time leaps instead."""

    def __init__(self) -> None:
        self.loop: WorldLoop | None = None

    def register(self, fileobj: Any, events: int, data: Any = None) -> Any:  # noqa: ANN401 - as in the base class
        del fileobj, events, data
        raise AssertionError("a world has no files to wait for")

    def unregister(self, fileobj: Any) -> Any:  # noqa: ANN401 - as in the base class
        del fileobj
        raise AssertionError("a world has no files to wait for")

    def select(self, timeout: float | None = None) -> list[Any]:
        assert self.loop is not None
        self.loop.leap(timeout)
        return []

    def get_map(self) -> Mapping[Any, Any]:
        return {}


class WorldLoop(asyncio.SelectorEventLoop):
    """The event loop of one world."""

    # So many turns without a leap are a busy loop: real work takes some thousand.
    TURNS_MAX = 2_000_000

    def __init__(self) -> None:
        self._now = START_S
        self._turns = 0
        leap = _Leap()
        super().__init__(leap)
        leap.loop = self
        self.set_task_factory(_new_task)  # type: ignore[arg-type]  # typed for any kind of future

    # Time

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._now

    def now_ms(self) -> int:
        """The same in whole milliseconds."""
        return int(self._now * 1000 + 0.001)

    def leap(self, timeout: float | None) -> None:
        """Move on to the next timer."""
        if timeout is None:
            raise Deadlock
        if timeout <= 0:
            self._turns += 1
            if self._turns > self.TURNS_MAX:
                raise SpunAround
            return
        self._turns = 0
        self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]  # asyncio's heap of timers

    # What runs

    def call_soon(  # type: ignore[override]  # typed for many arguments there
        self,
        callback: Callable[..., Any],
        *args: Any,  # noqa: ANN401 - whatever the callback takes
        context: Context | None = None,
    ) -> events.Handle:
        """Run a callback in this or the next turn."""
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]  # asyncio's own queue
        return handle

    def call_at(  # type: ignore[override]  # typed for many arguments there
        self,
        when: float,
        callback: Callable[..., Any],
        *args: Any,  # noqa: ANN401 - whatever the callback takes
        context: Context | None = None,
    ) -> events.TimerHandle:
        """Run a callback at a moment."""
        timer = _TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]  # asyncio's own heap
        timer._scheduled = True  # type: ignore[attr-defined]  # which its cancellation looks at
        return timer

    def ready_again(self, handles: list[events.Handle]) -> None:
        """Put callbacks back that a stopped process had kept."""
        self._ready.extend(handles)  # type: ignore[attr-defined]  # asyncio's own queue

    # No thread ever calls from outside.

    def _make_self_pipe(self) -> None:
        pass

    def _close_self_pipe(self) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def _new_task(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, T],
    context: Context | None = None,
) -> "asyncio.Task[T]":
    task = asyncio.Task(work, loop=loop, context=context)
    process = _PROCESS.get() if context is None else context.get(_PROCESS)
    if process is not None:
        process.adopt(task)
    return task
