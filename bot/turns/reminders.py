"""Reminders: handlers wish to be called at another time, and are, whatever dies in between.

A reminder is written in the transaction of the turn that wishes it: a turn that fails leaves none.
When its moment has come the worker runs it as a turn of its own (`bot/turns/errands.py`). What is
kept is the callback's name, never its code, so that it may be any process that calls it.
"""

import importlib
import inspect
import math
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol, TypedDict, Unpack, cast

from telegram import Bot
from telegram.ext import Job

from bot.turns import recurrence
from bot.turns.pickling import dumps
from bot.turns.recurrence import Daily, Every, Rule
from bot.turns.turn import Voice, until_settled, voice
from storage import reminders
from storage.database import Tx
from storage.errors import UnsupportedCall
from storage.lifecycle import BotName
from storage.reminders import Wanted

Callback = Callable[[Any], Coroutine[Any, Any, object]]
"""What a reminder calls: an async function of the library's context, as of a job."""

When = float | timedelta | datetime | Daily | Every
"""Seconds from now, a moment, or a rule. What counts from now counts from the turn's commit."""

_MS: Final = timedelta(milliseconds=1)


class Wish(TypedDict, total=False):
    """What may be said of a reminder.

    `name`: of one name a bot has one reminder; a newer one takes the place of the older. A rule
    that is wished again, unchanged, stays as it is: wish it at each start. `data`: whatever pickle
    can keep; `context.job.data` has it. `chat_id`, `user_id`: whose `chat_data` and `user_data` the
    callback finds. `late_max`: seconds, or a timedelta; what would come later than this after its
    moment is left out.
    """

    name: str
    data: object
    chat_id: int | None
    user_id: int | None
    late_max: float | timedelta | None


class House(Protocol):
    """The application, as far as reminders need it."""

    @property
    def bot(self) -> Bot:
        """The bot that remembered messages belong to."""

    @property
    def outside(self) -> Voice:
        """Who writes where there is no turn."""


class _Context(Protocol):
    @property
    def application(self) -> Any: ...  # noqa: ANN401  # the library's, with its own types


class Reminding:
    """What a context can do about reminders."""

    async def later(self: _Context, when: When, callback: Callback, **wish: Unpack[Wish]) -> None:
        """Have `callback(context)` called at another time; see `Wish`.

        Raises ValueError for a moment without a zone and for a callback that no other process could
        find, TypeError for what is no moment and no async function, and what pickle raises for data
        that can't be kept.
        """
        await keep(self.application, when, callback, wish)

    async def forget(self: _Context, name: str) -> None:
        """Forget the reminder of this name, if there is one."""
        await _write(self.application, partial(_forget, name=name))


async def keep(house: House, when: When, callback: Callback, wish: Wish) -> None:
    """Write down a reminder with what is said here; raises what `Reminding.later` does."""
    data = wish.get("data")
    late_max = wish.get("late_max")
    wanted = Wanted(
        callback=name_of(callback),
        name=wish.get("name"),
        data=None if data is None else dumps(data, house.bot),
        chat_id=wish.get("chat_id"),
        user_id=wish.get("user_id"),
        rule=recurrence.packed(when) if isinstance(when, Rule) else None,
        late_ms_max=None if late_max is None else max(0, _span_ms(late_max)),
        elapses=not isinstance(when, datetime | Daily),
    )
    await _write(house, partial(_keep, wanted=wanted, due_ms=_due_ms_of(when)))


def name_of(callback: Callback) -> str:
    """The name under which another process finds an async function.

    Raises ValueError for what only this process has, TypeError for what is no async function.
    """
    if not inspect.iscoroutinefunction(callback):
        raise TypeError(f"a reminder calls an async function, not {callback!r}")
    module, name = str(callback.__module__), str(getattr(callback, "__qualname__", ""))
    named = f"{module}:{name}"
    try:
        found = callback_of(named)
    except LookupError:
        found = None
    if found != callback:
        raise ValueError(
            f"{name or type(callback).__name__} can't be found by a name in {module}, and a "
            "reminder outlives this process: expected an async function that stands in a module, "
            "no lambda, no closure, no bound method; what it needs to know goes into data="
        )
    return named


def callback_of(named: str) -> Callback:
    """The function behind "module:name". Raises LookupError where there is none any more."""
    module_name, _, path = named.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ImportError as error:
        raise LookupError(f"there is no module {module_name}") from error
    for part in path.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise LookupError(f"there is no function {named}")
    return cast("Callback", found)


class Reminded(Job[Any]):
    """What a callback finds as `context.job`: a job's name, data, chat and user."""

    def schedule_removal(self) -> None:
        """Refuse: there is no job of the library's behind it.

        Raises UnsupportedCall, which names what does it.
        """
        raise UnsupportedCall("a reminder is taken back by its name: await context.forget(name)")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Reminded({self.name!r})"


def _due_ms_of(when: When) -> Callable[[int], int]:
    """From now to the moment that is meant, both in UTC milliseconds."""
    if isinstance(when, Rule):
        return partial(_first_ms, when)
    moment_ms = recurrence.moment_ms(when) if isinstance(when, datetime) else None
    span_ms = 0 if isinstance(when, datetime) else _span_ms(when)
    return lambda now_ms: now_ms + span_ms if moment_ms is None else moment_ms


def _first_ms(rule: Rule, now_ms: int) -> int:
    return recurrence.first_ms(rule, now_ms=now_ms)


def _span_ms(span: object) -> int:
    match span:
        case timedelta():
            return span // _MS
        case int() | float() if math.isfinite(span):
            return int(span * 1000)
        case _:
            raise TypeError(f"expected seconds, a timedelta, a datetime or a rule, not {span!r}")


async def _write(house: House, effect: Callable[[Tx, BotName], None]) -> None:
    await until_settled()
    await (voice() or house.outside).write(effect)


def _keep(tx: Tx, bot: BotName, *, wanted: Wanted, due_ms: Callable[[int], int]) -> None:
    reminders.keep(tx, bot, wanted, due_ms=due_ms(tx.now_ms()))


def _forget(tx: Tx, bot: BotName, *, name: str) -> None:
    reminders.forget(tx, bot, name)
