"""Examine the heads of lanes in the claim's own transaction: what may still be said, and what not.

What has lost its reason ends here, what refers to a doubt steps out, what is paused or can't be
judged is put off, each with its reason. Whether there is room for the rest is the gates' matter.
The facts of all heads of a look are fetched at once, so that a claim stays short.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from sender import guards, references
from sender.guards import Guard
from sender.references import InDoubt, Need, Parentless, Reference, TooSoon
from sender.staleness import Cancelled, Expired, Keep, Superseded, judge
from storage import claims, lanes, message_ids, outbox, pauses
from storage.claims import OutboxItem, Standing
from storage.clock import Clock
from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.outgoing import TELEGRAM
from storage.pauses import Pause

LOOK_AGAIN_MS = 500
"""How long a row waits for what has no known time: a parent in another lane, a call under way."""

PAUSE_LOOK_MS = 86_400_000
"""How long a paused lane is left alone where its pause has no end: who ends it, opens the lane."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A row that was ended instead of claimed; `instead`: the message that says it later."""

    item: OutboxItem
    state: OutboxState
    reason: str
    late_ms: int = 0
    instead: OutboxId | None = None


@dataclass(frozen=True, slots=True)
class PutOff:
    """A row about which its guard could not be asked."""

    id: OutboxId
    reason: str


@dataclass(frozen=True, slots=True)
class SteppedOut:
    """A row that left its lane until it is decided about another."""

    id: OutboxId
    waits_for: OutboxId


@dataclass(slots=True)
class Findings:
    """What was found in one transaction, to be told after it; `guard_ms`: the slowest guard."""

    ended: list[Ended] = field(default_factory=list)
    put_off: list[PutOff] = field(default_factory=list)
    stepped_out: list[SteppedOut] = field(default_factory=list)
    guard_ms: int = 0


@dataclass(frozen=True, slots=True)
class Sayable:
    """A row that may be said, after `wait_ms`, with Telegram's ids for what it refers to."""

    message_ids: Mapping[int, int]
    wait_ms: int


class Examiner:
    """The examination of one bot's heads, while one transaction runs."""

    def __init__(self, tx: Tx, bot: BotName, clock: Clock, guard: Guard | None) -> None:
        self._tx = tx
        self._bot = bot
        self._clock = clock
        self._guard = guard
        self._standings: Mapping[OutboxId, Standing] = {}
        self._paused: Mapping[str, Pause] = {}
        self.findings = Findings()

    def prepare(self, heads: Sequence[OutboxItem]) -> None:
        """Fetch what is to be known of these rows, before each of them is examined."""
        self._standings = claims.standings(self._tx, heads)
        self._paused = pauses.among(self._tx, self._bot, [item.lane for item in heads])

    def examine(self, item: OutboxItem) -> Sayable | None:
        """What may be said of a row; None where it has ended, or has left its lane."""
        parents = self._parents(item)
        lost = parents.reason if isinstance(parents, Parentless) else ""
        staleness = judge(item, self._standings[item.id], self._tx.now_ms(), lost)
        match staleness:
            case Keep():
                pass
            case Expired() | Superseded() | Cancelled():
                self._end(item, staleness)
                return None
            case _:
                assert_never(staleness)
        match parents:
            case InDoubt():
                self._step_out(item, parents.held)
                return None
            case TooSoon():
                return Sayable({}, max(LOOK_AGAIN_MS, self._paused_ms(item)))
            case Parentless():
                raise AssertionError("a row whose parent is lost has no reason to be kept")
            case _:
                return Sayable(parents, self._paused_ms(item))

    def is_let_go(self, item: OutboxItem) -> bool:
        """Ask the application's guard; what it objects to is cancelled, what it fails at waits."""
        if self._guard is None:
            return True
        word = guards.ask(self._guard, item, self._clock)
        self.findings.guard_ms = max(self.findings.guard_ms, word.took_ms)
        if word.failure:
            due_ms = self._tx.now_ms() + guards.PUT_OFF_MS
            claims.put_off(self._tx, item, due_ms=due_ms, reason=word.failure)
            self.findings.put_off.append(PutOff(item.id, word.failure))
        elif word.objection:
            self._end(item, Cancelled(f"its guard said no: {word.objection}"))
        return not (word.failure or word.objection)

    def end(self, ended: Ended) -> None:
        """End a head."""
        claims.end_head(self._tx, ended.item, ended.state, reason=ended.reason)
        self.findings.ended.append(ended)

    def _parents(self, item: OutboxItem) -> Mapping[int, int] | Parentless | InDoubt | TooSoon:
        """Telegram's ids of the messages that a row refers to, or why it has none."""
        named = _references(item)
        if not named:
            return {}
        return references.resolve(
            [(each, message_ids.resolve(self._tx, self._bot, each.placeholder)) for each in named]
        )

    def _paused_ms(self, item: OutboxItem) -> int:
        pause = self._paused.get(item.lane)
        if pause is None:
            return 0
        return PAUSE_LOOK_MS if pause.until_ms is None else pause.until_ms - self._tx.now_ms()

    def _step_out(self, item: OutboxItem, held: OutboxId) -> None:
        reason = f"waits until it is decided whether c{held}, which it refers to, was sent"
        lanes.step_out(self._tx, item.bot, item.id, waits_for=held, reason=reason)
        self.findings.stepped_out.append(SteppedOut(item.id, held))

    def _end(self, item: OutboxItem, staleness: Expired | Superseded | Cancelled) -> None:
        match staleness:
            case Expired():
                instead = outbox.fall_back(
                    self._tx, self._bot, item.key, item.fallback, caused_at_ms=item.caused_at_ms
                )
                reason, late_ms = "its time was over", staleness.late_ms
                self.end(Ended(item, OutboxState.EXPIRED, reason, late_ms, instead))
            case Superseded():
                self.end(Ended(item, OutboxState.SUPERSEDED, "a newer one takes its place"))
            case Cancelled():
                self.end(Ended(item, OutboxState.CANCELLED, staleness.reason))
            case _:
                assert_never(staleness)


def _references(item: OutboxItem) -> tuple[Reference, ...]:
    """The messages that must be there before this row goes; of other channels we read nothing."""
    named = references.references(item.params) if item.channel == TELEGRAM else ()
    return named if item.follows is None else (Reference(item.follows, need=Need.SENT), *named)
