"""What must hold between the truth and the product's belief, whatever happened in between.

Each checker takes the simulator's ledger and the product's books, and tells every breach in a
sentence; an empty list is a pass. They know nothing of how the breach may have come about, and
nothing of time that is the product's own, so that live processes and simulated worlds are judged
alike. Calls of the ledger and rows of the outbox are matched by bot, chat, method and text: a load
gives each of its messages a text of its own.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from storage.claims import CAME_LATE
from storage.lifecycle import HELD, TERMINAL, InboxState, OnUncertain, OutboxState
from storage.methods import METHODS
from tests.crash.books import Attempt, Books, Row
from tests.simulator.ledger import Accepted, Arrival, Delivery, Ledger

ENDED_UPDATES: Final = frozenset({InboxState.DONE, InboxState.DEAD})
_TURN_KEY: Final = re.compile(r"turn:(\d+):(\d+):(\d+)")
_ALREADY_SO: Final = "not modified"


class Saying(NamedTuple):
    """What a call says, to whom: the identity of an effect."""

    bot_id: int
    chat_id: int | None
    method: str
    text: str


@dataclass(frozen=True)
class Evidence:
    """The two sides of a house."""

    ledger: Ledger
    books: Books

    @cached_property
    def attempts(self) -> Mapping[int, Sequence[Attempt]]:
        """The attempts by their row."""
        return self.books.attempts_of()

    @cached_property
    def rows_by_saying(self) -> Mapping[Saying, Sequence[Row]]:
        """The rows that say the same to the same chat."""
        found: defaultdict[Saying, list[Row]] = defaultdict(list)
        for row in self.books.rows:
            found[self.saying_of(row)].append(row)
        return found

    def saying_of(self, row: Row) -> Saying:
        """What a row is to say."""
        return Saying(self.books.bots[row.bot], row.chat_id, row.method, row.text)

    def effects(self) -> Iterator[Arrival]:
        """The calls of rows that changed something at Telegram, in their order."""
        for arrival in self.ledger.of(Arrival):
            if arrival.effect and arrival.method in METHODS and arrival.chat_id is not None:
                yield arrival

    @cached_property
    def rows_by_placeholder(self) -> Mapping[tuple[str, int | None], Row]:
        """The rows that stand for a message, by the number that was handed out for it."""
        return {(row.bot, row.placeholder): row for row in self.books.rows}

    def may_have_left(self, row: Row) -> bool:
        """Whether it may have stepped out of its lane, and come back when others had gone.

        So does what changes a message about which had to be decided first; also where the answer to
        that came in the end, to a sender that had lost the bot meanwhile.
        """
        named = row.params.get("message_id", "")
        parent = self.rows_by_placeholder.get((row.bot, int(named))) if named else None
        return parent is not None and (self.unknowns(parent) > 0 or parent.reason == CAME_LATE)

    def unknowns(self, row: Row) -> int:
        """How many attempts of a row may have been carried out without our knowing."""
        return sum(attempt.is_unknown for attempt in self.attempts[row.id])


def saying(arrival: Arrival) -> Saying:
    """What a call said."""
    assert arrival.bot_id is not None, "a call with an effect has a bot"
    text = arrival.params.get("text", arrival.params.get("caption", ""))
    return Saying(arrival.bot_id, arrival.chat_id, arrival.method, text)


def lost_updates(evidence: Evidence) -> list[str]:
    """No update that was answered with 200 is missing from the inbox, or unhandled at the end."""
    names = {bot_id: name for name, bot_id in evidence.books.bots.items()}
    stored = {(update.bot, update.update_id): update for update in evidence.books.updates}
    answered = {
        (names.get(delivery.bot_id, str(delivery.bot_id)), delivery.update_id)
        for delivery in evidence.ledger.of(Delivery)
        if delivery.status is not None and 200 <= delivery.status < 300
    }
    return [
        f"update {key[1]} of {key[0]} was acknowledged and is "
        + (stored[key].state if key in stored else "not there")
        for key in sorted(answered)
        if key not in stored or stored[key].state not in ENDED_UPDATES
    ]


def doubled_effects(evidence: Evidence) -> list[str]:
    """No turn has left its calls twice, and no text of a load has reached a chat twice."""
    keys = Counter((row.bot, row.key) for row in evidence.books.rows)
    doubled = [f"key {key} of {bot} stands {n} times" for (bot, key), n in keys.items() if n > 1]
    told = [
        f"chat {chat_id} of bot {bot_id} was told {n} times: {text!r}"
        for (bot_id, chat_id, text), n in evidence.ledger.doubled().items()
    ]
    return doubled + told


def sends_beyond_policy(evidence: Evidence) -> list[str]:
    """A row has at most one effect, and one more for each unknown outcome that may be repeated.

    Repeated may be what is idempotent, and what the row's policy says is to be resent.
    """
    effects = Counter(saying(arrival) for arrival in evidence.effects())
    return [
        f"{count} effects of {said}, {allowed} allowed"
        for said, count in effects.items()
        if count > (allowed := sum(map(_allowed(evidence), evidence.rows_by_saying.get(said, ()))))
    ]


def _allowed(evidence: Evidence) -> Callable[[Row], int]:
    def allowed(row: Row) -> int:
        facts = METHODS.get(row.method)
        repeatable = facts is not None and facts.idempotent
        if repeatable or row.on_uncertain == OnUncertain.RESEND:
            return 1 + evidence.unknowns(row)
        return 1

    return allowed


def effects_from_nowhere(evidence: Evidence, *, clock_grace_ms: int = 5) -> list[str]:
    """Before each effect there was a row, and an attempt that had been stamped.

    `clock_grace_ms`: how far the clocks of Telegram and of the product may differ.
    """
    found = []
    for arrival in evidence.effects():
        stamps = [
            attempt.stamped_at_ms
            for row in evidence.rows_by_saying.get(saying(arrival), ())
            for attempt in evidence.attempts[row.id]
            if attempt.stamped_at_ms is not None
        ]
        if not stamps:
            found.append(f"nobody meant to say {saying(arrival)}")
        elif min(stamps) > arrival.at_ms + clock_grace_ms:
            found.append(f"said before it was stamped: {saying(arrival)}")
    return found


def false_records(evidence: Evidence) -> list[str]:
    """A row that is marked sent was sent; one that ended otherwise, and is not unknown, was not."""
    accepted = {(m.bot_id, m.chat_id, m.message_id): m for m in evidence.ledger.of(Accepted)}
    effects = Counter(saying(arrival) for arrival in evidence.effects())
    already = {
        saying(arrival)
        for arrival in evidence.ledger.of(Arrival)
        if arrival.bot_id is not None and _ALREADY_SO in arrival.description
    }
    found = []
    for row in evidence.books.rows:
        said = evidence.saying_of(row)
        facts = METHODS.get(row.method)
        if row.state == OutboxState.SENT and facts is not None and facts.returns_message:
            message = accepted.get((said.bot_id, row.chat_id or 0, row.message_id or 0))
            if message is None or message.text != row.text:
                found.append(f"row {row.id} is marked sent as {row.message_id}, which is not so")
        elif row.state == OutboxState.SENT and row.chat_id is not None:
            if effects[said] == 0 and said not in already:
                found.append(f"row {row.id} is marked sent, and never had an effect")
        elif row.state in TERMINAL and effects[said] and not evidence.unknowns(row):
            others = [each for each in evidence.rows_by_saying[said] if each.id != row.id]
            if not others:
                found.append(f"row {row.id} is {row.state}, and was sent")
    return found


def disorder(evidence: Evidence) -> list[str]:
    """Effects come in the order of their lane's rows, and answers in that of a chat's words.

    A row that may be repeated after an unknown outcome counts where it came first; what refers to a
    message in doubt leaves its lane, and counts nowhere.
    """
    return [*_effects_out_of_order(evidence), *_rows_out_of_order(evidence)]


def _effects_out_of_order(evidence: Evidence) -> Iterator[str]:
    latest: dict[tuple[str, str, str], Row] = {}
    seen: set[int] = set()
    for arrival in evidence.effects():
        waiting = [
            row for row in evidence.rows_by_saying.get(saying(arrival), ()) if row.id not in seen
        ]
        if not waiting:
            continue
        row = waiting[0]
        seen.add(row.id)
        lane = (row.bot, row.lane, row.priority)
        before = latest.get(lane)
        if before is None or before.id < row.id:
            latest[lane] = row
        elif not evidence.may_have_left(row):
            yield f"in {lane} row {row.id} came after row {before.id}"


def _rows_out_of_order(evidence: Evidence) -> Iterator[str]:
    chats = {update.id: update.chat_lane for update in evidence.books.updates}
    latest: dict[tuple[str, str, str], tuple[int, ...]] = {}
    for row in evidence.books.rows:
        parts = _TURN_KEY.fullmatch(row.key)
        if parts is None or chats.get(int(parts[1])) != row.lane:
            continue
        place = tuple(int(part) for part in parts.groups())
        lane = (row.bot, row.lane, row.priority)
        before = latest.setdefault(lane, place)
        if before > place:
            yield f"in {lane} turn {place} committed after turn {before}"
        latest[lane] = max(place, before)


def unexplained_rows(evidence: Evidence) -> list[str]:
    """At the end nobody has anything in hand, and what has no end says why."""
    found = [
        f"update {update.update_id} of {update.bot} is {update.state} without a reason"
        for update in evidence.books.updates
        if update.state not in {*ENDED_UPDATES, InboxState.QUARANTINED}
        or (update.state != InboxState.DONE and not update.reason)
    ]
    for row in evidence.books.rows:
        state = OutboxState(row.state)
        is_explained = bool(row.reason) and (
            state in HELD
            or row.waits_for is not None
            or (state is OutboxState.QUEUED and max(row.due_ms, row.not_before_ms) > 0)
        )
        if state not in TERMINAL and not is_explained:
            found.append(f"row {row.id} is {state} and can't say why")
    found += [
        f"attempt {attempt.id} of row {attempt.outbox_id} has no end"
        for attempt in evidence.books.attempts
        if attempt.ended_at_ms is None
    ]
    return found


def damage(evidence: Evidence) -> list[str]:
    """Every breach that all these checkers see, each with the name of its checker."""
    return [f"{checker.__name__}: {breach}" for checker in CHECKERS for breach in checker(evidence)]


CHECKERS: Final[Sequence[Callable[[Evidence], list[str]]]] = (
    lost_updates,
    doubled_effects,
    sends_beyond_policy,
    effects_from_nowhere,
    false_records,
    disorder,
    unexplained_rows,
)
