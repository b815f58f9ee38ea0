"""What an answer taught about the limits of a bot, and how it is written down with the answer.

Functions of the settlement's own transaction, so that no restart forgets a wait, a flood, a lesson
or a Star that was spent. Nothing is decided here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from storage import cooldowns, files, floods, rates, spending
from storage.claims import AttemptEnd, Claim
from storage.clock import Deadline
from storage.database import Tx
from storage.files import FileKey
from storage.floods import Flood
from storage.lifecycle import BotName, Priority

_MAY_COST = frozenset({"sent", "uncertain", "partial"})
"""Verdicts after which a paid call may have been charged for."""


@dataclass(frozen=True, slots=True)
class Deadlined:
    """A wait that a scope has to keep, as a moment that outlives the process."""

    scope: str
    deadline: Deadline
    reason: str
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class NewRate:
    """The bulk rate from now on. `is_lowered`: it is still below the configured one."""

    bulk_per_second: float
    has_risen: bool
    is_lowered: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Lessons:
    """What follows from one answer beside the row's own fate.

    `lifted`: waits that it showed to be needless. `doubts_balance`: somebody should look at the
    bot's balance of Stars. `named`: what Telegram calls files that were uploaded; `outdated`: what
    it does not call them any more.
    """

    waits: Sequence[Deadlined] = ()
    flood: Flood | None = None
    lifted: Sequence[str] = ()
    rate: NewRate | None = None
    doubts_balance: bool = False
    named: Mapping[FileKey, str] = field(default_factory=dict)
    outdated: Mapping[FileKey, str] = field(default_factory=dict)


NO_LESSONS = Lessons()


def keep(tx: Tx, bot: BotName, lessons: Lessons) -> None:
    """Write down what was learned."""
    for wait in lessons.waits:
        cooldowns.merge(
            tx, bot, wait.scope, wait.deadline, reason=wait.reason, inferred=wait.inferred
        )
    for scope in lessons.lifted:
        cooldowns.lift(tx, bot, scope)
    if lessons.flood is not None:
        floods.record(tx, bot, lessons.flood)
    if lessons.named or lessons.outdated:
        files.learn(tx, bot, lessons.named)
        files.forget(tx, bot, lessons.outdated)
    if lessons.rate is None:
        return
    if lessons.rate.is_lowered:
        rates.learn(tx, bot, lessons.rate.bulk_per_second, reason=lessons.rate.reason)
    else:
        rates.forget(tx, bot)


def charge(tx: Tx, ended: Sequence[tuple[Claim, AttemptEnd]]) -> None:
    """Count what these calls have cost, or may have."""
    tenths: Counter[BotName] = Counter()
    for claim, end in ended:
        if claim.item.priority is Priority.PAID and end.verdict in _MAY_COST:
            tenths[claim.item.bot] += claim.item.items
    for bot, cost in tenths.items():
        spending.charge(tx, bot, cost)
