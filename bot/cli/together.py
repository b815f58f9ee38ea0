"""Run one role, or several in one event loop, until a signal or a failure ends them.

A role is a coroutine that works until its event is set, then drains and returns. The first end, by
whichever cause, sets the event for all: a house in which one role is missing only looks alive. No
role is cancelled as long as it drains; what it has in hand is its own to finish or to hand back.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from storage.clock import Clock
from storage.errors import FerrymanError
from storage.telemetry import event

Role = Callable[[asyncio.Event], Awaitable[None]]
T = TypeVar("T")

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Each role bounds its draining below 20 s; one that does not must not hold the process for ever.
DRAIN_S_MAX: Final = 25.0


@dataclass(frozen=True, slots=True)
class Failure:
    """What ended a role by accident."""

    role: str
    error: BaseException


def run_until_signal(
    roles: Mapping[str, Role],
    clock: Clock,
    on_hangup: Callable[[], None] | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Sequence[Failure]:
    """Run the roles to their end; what went wrong, nothing when all ended in order.

    `on_hangup` is called at each SIGHUP; without it that signal ends the process, as it does any.
    `loop` is the one to run in, which is closed at the end; otherwise one is made.
    """
    with asyncio.Runner(loop_factory=loop_factory() if loop is None else lambda: loop) as runner:
        failures = runner.run(_heeding(on_hangup, together(roles, clock)))
    # The loop has given the signals back; one more must not turn an end in order into a kill.
    for number in SIGNALS if on_hangup is None else (*SIGNALS, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return failures


async def _heeding(on_hangup: Callable[[], None] | None, work: Awaitable[T]) -> T:
    """Do the work; every SIGHUP meanwhile is somebody's wish, and no end."""
    if on_hangup is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, on_hangup)
    return await work


async def together(
    roles: Mapping[str, Role], clock: Clock, *, drain_s_max: float = DRAIN_S_MAX
) -> Sequence[Failure]:
    """Run the roles in this loop; the process's signals are theirs meanwhile."""
    loop = asyncio.get_running_loop()
    stop = Stop(clock)
    for number in SIGNALS:
        loop.add_signal_handler(number, stop.by_signal, number)
    tasks = {
        loop.create_task(_carry(role, stop.event), name=name): name for name, role in roles.items()
    }
    first, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    early = [] if stop.event.is_set() else [tasks[task] for task in first]
    stop.now()
    failures = [
        *(failure for task in first for failure in _failures(tasks[task], task)),
        *await _drain(
            {task: name for task, name in tasks.items() if task not in first}, drain_s_max
        ),
    ]
    if early and not failures:
        error = FerrymanError(f"{', '.join(early)} ended although nobody had asked for it")
        failures.append(Failure(early[0], error))
    if not failures:
        event("role.stopped", duration_ms=stop.elapsed_ms())
    return failures


class Stop:
    """The one stop of all roles, and when it came."""

    def __init__(self, clock: Clock) -> None:
        self.event = asyncio.Event()
        self._clock = clock
        self._asked_at_ms = 0

    def by_signal(self, number: signal.Signals) -> None:
        """Somebody wants the process to end; once is enough."""
        if not self.event.is_set():
            event("role.stopping", signal=number.name)
        self.now()

    def now(self) -> None:
        """Have every role drain."""
        if not self.event.is_set():
            self._asked_at_ms = self._clock.monotonic_ms()
            self.event.set()

    def elapsed_ms(self) -> int:
        """How long ago that was."""
        return self._clock.monotonic_ms() - self._asked_at_ms


async def _carry(role: Role, stop: asyncio.Event) -> None:
    await role(stop)


async def _drain(
    tasks: Mapping["asyncio.Task[None]", str], drain_s_max: float
) -> Sequence[Failure]:
    """Wait for the roles that still drain; the one that takes too long is cancelled."""
    if not tasks:
        return []
    done, late = await asyncio.wait(tasks, timeout=drain_s_max)
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late)
    failures = [failure for task in done for failure in _failures(tasks[task], task)]
    for task in late:
        error = FerrymanError(f"{tasks[task]} did not stop within {drain_s_max:g} s")
        failures.append(Failure(tasks[task], error))
    return failures


def _failures(name: str, task: "asyncio.Task[None]") -> Iterator[Failure]:
    if task.cancelled():
        yield Failure(name, FerrymanError(f"{name} was cancelled from within"))
        return
    error = task.exception()
    if error is not None:
        yield from (Failure(name, leaf) for leaf in _leaves(error))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, each by itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """The faster event loop where it is installed, else the standard library's."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
