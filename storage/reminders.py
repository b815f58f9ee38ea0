"""Reminders: what a handler wished to be called for, at a moment or again and again.

Plain functions of a transaction. A reminder is kept in the transaction of the turn that wished it,
and ends in the one of the turn that it causes. Each occurrence has a number of its own, since the
turn's calls are named after it: what comes again is a new row. Nothing here knows how a rule counts
or what is called; `callback`, `rule` and `data` are opaque.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NewType

from storage.carriers import Row, columns
from storage.database import Tx
from storage.lifecycle import BotName

ReminderId = NewType("ReminderId", int)
"""Number of one occurrence of a reminder."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A reminder as it was wished, but for its moment.

    `name`: of those of one name a bot has one. `late_ms_max`: what comes later than this after its
    moment is left out; None for nothing. `elapses`: it counts the time that passes, and does not
    stand for a moment on the clock.
    """

    callback: str
    name: str | None = None
    data: bytes | None = field(default=None, repr=False)
    chat_id: int | None = None
    user_id: int | None = None
    rule: str | None = None
    late_ms_max: int | None = None
    elapses: bool = False


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder as it is kept. Times are UTC milliseconds."""

    id: ReminderId
    wanted: Wanted
    due_ms: int
    created_at_ms: int


@dataclass(frozen=True, slots=True)
class Due:
    """A reminder whose moment has come, and whose memories it is about."""

    id: ReminderId
    chat_id: int | None
    user_id: int | None


def keep(tx: Tx, bot: BotName, wanted: Wanted, *, due_ms: int) -> ReminderId:
    """Remember to call. A reminder takes the place of the one with its name.

    A rule that is wished again, with all that belongs to it, stays as it is: who wishes it at each
    start does not lose what was missed in between.
    """
    if wanted.name is not None:
        row = tx.row("reminders.named", {"bot": bot, "name": wanted.name})
        if row is not None:
            known = _reminder(row)
            if wanted.rule is not None and known.wanted == wanted:
                return known.id
            forget(tx, bot, wanted.name)
    return _insert(tx, bot, wanted, due_ms)


def forget(tx: Tx, bot: BotName, name: str) -> bool:
    """Forget the reminder of this name; False when there is none."""
    return tx.run("reminders.forget", {"bot": bot, "name": name}) == 1


def due(tx: Tx, bot: BotName, *, limit: int) -> Sequence[Due]:
    """Reminders whose moment has come, the earliest first."""
    rows = tx.rows("reminders.due", {"bot": bot, "now_ms": tx.now_ms(), "limit": limit})
    return [Due(**columns(row)) for row in rows]


def show(tx: Tx, bot: BotName, reminder: ReminderId) -> Reminder | None:
    """One reminder; None when it is over or was forgotten."""
    row = tx.row("reminders.show", {"bot": bot, "id": reminder})
    return None if row is None else _reminder(row)


def end(tx: Tx, bot: BotName, reminder: Reminder, *, next_due_ms: int | None) -> None:
    """An occurrence is over; the next one, if any, is kept for its moment.

    Nothing follows one that was forgotten, or replaced, in this very transaction.
    """
    ended = tx.run("reminders.end", {"bot": bot, "id": reminder.id})
    if not ended or next_due_ms is None:
        return
    _insert(tx, bot, reminder.wanted, next_due_ms)


def is_ahead(tx: Tx, bot: BotName) -> bool:
    """Tell whether the clock was set back since something was kept that counts what passes."""
    return tx.row("reminders.ahead", {"bot": bot, "now_ms": tx.now_ms()}) is not None


def redate(tx: Tx, bot: BotName) -> int:
    """Let what counts what passes wait no longer than it was to wait; give the number."""
    return tx.run("reminders.redate", {"bot": bot, "now_ms": tx.now_ms()})


def _insert(tx: Tx, bot: BotName, wanted: Wanted, due_ms: int) -> ReminderId:
    params = {
        "bot": bot,
        "name": wanted.name,
        "callback": wanted.callback,
        "data": wanted.data,
        "chat_id": wanted.chat_id,
        "user_id": wanted.user_id,
        "due_ms": due_ms,
        "rule": wanted.rule,
        "late_ms_max": wanted.late_ms_max,
        "elapses": int(wanted.elapses),
        "now_ms": tx.now_ms(),
    }
    added = tx.insert("reminders.keep", params)
    assert added is not None, "a reminder is always inserted"
    return ReminderId(added)


def _reminder(row: Row) -> Reminder:
    told = columns(row, elapses=bool)
    data = told.pop("data")
    moments = {name: told.pop(name) for name in ("due_ms", "created_at_ms")}
    reminder = ReminderId(told.pop("id"))
    return Reminder(reminder, Wanted(**told, data=None if data is None else bytes(data)), **moments)
