"""Decide whether a call that pays in Stars may go: is it allowed at all, and is there budget left.

Pure. A paid broadcast costs a tenth of a Star for each message above what is free, once it is
accepted (Bot API, `allow_paid_broadcast`). Telegram sends no bill along, so we count at the
dearest: every message, whether or not it was above. The budget is ours, and a hard stop.
"""

from dataclasses import dataclass, replace

TENTHS_PER_STAR = 10

BALANCE_DOUBT_MS = 1_000
BALANCE_DOUBTS = 3
"""So many refusals in a row, each with a wait of one second, and the balance may be at fault."""

OFF_REASON = "paid broadcasts are off: [limits] paid_per_second is 0"


@dataclass(frozen=True, slots=True)
class Purse:
    """What one look may spend, in tenths of a Star: the budget, and what has gone from it."""

    budget_tenths: int
    spent_tenths: int
    in_hand_tenths: int

    def holds(self, items: int) -> bool:
        """Whether there is enough left for so many messages, whatever becomes of those in hand."""
        return self.spent_tenths + self.in_hand_tenths + items <= self.budget_tenths

    def less(self, items: int) -> "Purse":
        """The same with so many messages more in hand."""
        return replace(self, in_hand_tenths=self.in_hand_tenths + items)

    def reason(self) -> str:
        """Why a call waits that it does not hold."""
        told = f"paid budget is spent: {_stars(self.spent_tenths)}"
        if self.in_hand_tenths:
            told += f", and {_stars(self.in_hand_tenths)} on the way,"
        return f"{told} of {_stars(self.budget_tenths)} Stars"


class Doubts:
    """Counts refusals that look as if the balance did not suffice.

    If the charge can't be made, Telegram's library tries for a while and then says `retry after 1`
    (td: NetQueryDelayer.cpp; what it means is inferred).
    """

    def __init__(self) -> None:
        self._in_a_row = 0

    def refused(self, wait_ms: int) -> bool:
        """A paid call drew a flood; whether somebody should look at the balance now."""
        self._in_a_row = self._in_a_row + 1 if wait_ms == BALANCE_DOUBT_MS else 0
        if self._in_a_row < BALANCE_DOUBTS:
            return False
        self._in_a_row = 0
        return True

    def accepted(self) -> None:
        """A paid call went through."""
        self._in_a_row = 0


def _stars(tenths: int) -> str:
    whole, rest = divmod(tenths, TENTHS_PER_STAR)
    return f"{whole}.{rest}" if rest else str(whole)
