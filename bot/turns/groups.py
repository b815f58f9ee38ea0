"""Wishes by handler group: how calls shall be delivered that wish nothing of their own.

The library tells nobody in which group a handler stands. But it goes through copies of the groups'
lists, and such a copy is told here when it is gone through: what its handlers say, and the tasks
that they start, is then said under the wish of that group.
"""

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

from telegram.ext import BaseHandler

from bot.turns.wishes import Send

AnyHandler = BaseHandler[Any, Any, Any]
_NO_WISH: Final = Send()
_wish: ContextVar[Send] = ContextVar("group_wish", default=_NO_WISH)


def wish_of_group() -> Send:
    """What is wished for all that the handlers of the group at work say."""
    return _wish.get()


def leave_group() -> None:
    """Say what follows in no group's name: a timer keeps the context of whoever armed it."""
    _wish.set(_NO_WISH)


class Group(list[AnyHandler]):
    """The handlers of one group. `wishes` has the wish of each group, as far as there are any."""

    def __init__(self, number: int, wishes: Mapping[int, Send]) -> None:
        super().__init__()
        self._number = number
        self._wishes = wishes

    def copy(self) -> list[AnyHandler]:
        """The handlers as they are now, for an update that is about to be handled."""
        return _Entered(self, self._wishes.get(self._number, _NO_WISH))


class _Entered(list[AnyHandler]):
    """The handlers of a group, to be gone through by one update."""

    def __init__(self, handlers: list[AnyHandler], wish: Send) -> None:
        super().__init__(handlers)
        self._wish = wish

    def __iter__(self) -> Iterator[AnyHandler]:
        _wish.set(self._wish)
        return super().__iter__()
