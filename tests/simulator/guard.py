"""The Bot API server's own guard against a chat that takes no more. Pure.

It counts messages that it has taken and not yet been rid of, and refuses more in its own name: the
call never reaches Telegram. Figures: telegram.md §2.3.
"""

from collections import defaultdict
from typing import NamedTuple

from tests.simulator.limits import Scope
from tests.simulator.wire import Silence

UNSENT_MAX = 310


class _Unsent(NamedTuple):
    items: int
    until_ms: int
    silence: Silence | None

    def waits(self, now_ms: int) -> bool:
        if self.silence is not None:
            return not self.silence.released
        return self.until_ms > now_ms


class Guard:
    """What each chat of each bot still has to be rid of."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._unsent: defaultdict[Scope, list[_Unsent]] = defaultdict(list)

    def refuses(self, scope: Scope, now_ms: int) -> bool:
        """Say whether there are too many unsent messages in this chat."""
        waiting = [each for each in self._unsent.pop(scope, ()) if each.waits(now_ms)]
        if waiting:
            self._unsent[scope] = waiting
        return sum(each.items for each in waiting) > UNSENT_MAX

    def took(self, scope: Scope, items: int, *, until_ms: int, silence: Silence | None) -> None:
        """Messages that will be answered then, or when the silence ends."""
        self._unsent[scope].append(_Unsent(items, until_ms, silence))
