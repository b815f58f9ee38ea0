"""What the load's own words tell beyond what holds for any house.

The numbers in questions and answers (handlers.py) show whether each question had one turn, in its
order, on an intact memory; and in this load nothing has a reason to end otherwise than it should.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from storage.lifecycle import AttemptStage, OutboxState
from tests.crash.books import Row
from tests.crash.checkers import Evidence
from tests.crash.living import Load

_FIRST_ANSWER: Final = re.compile(r"(\d+)/(\d+)")
_GOOD_ENDS: Final = frozenset({OutboxState.SENT, OutboxState.UNCERTAIN})
# What Telegram itself did not want, as it may happen to collected updates.
_REFUSALS: Final = frozenset({"refused", "unreachable"})


def breaches(evidence: Evidence, load: Load) -> list[str]:
    """Everything about the answers that should not be so."""
    return [*_unlike_the_questions(evidence, load), *_ended_badly(evidence)]


def in_flight_at_a_kill(evidence: Evidence) -> Sequence[Row]:
    """Rows whose sender ended between stamp and answer."""
    return [row for row in evidence.books.rows if _was_abandoned(evidence, row)]


def _was_abandoned(evidence: Evidence, row: Row) -> bool:
    return any(each.stage == AttemptStage.ABANDONED for each in evidence.attempts[row.id])


def _unlike_the_questions(evidence: Evidence, load: Load) -> Iterator[str]:
    """Each question was answered in its chat by one row, in order, the chat's memory intact."""
    said: defaultdict[int | None, list[tuple[int, int]]] = defaultdict(list)
    for row in evidence.books.rows:
        if first := _FIRST_ANSWER.fullmatch(row.text):
            said[row.chat_id].append((int(first[1]), int(first[2])))
    for chat_id, numbers in load.asked.items():
        expected = [(number, place) for place, number in enumerate(numbers, start=1)]
        if said[chat_id] != expected:
            yield f"chat {chat_id} was asked {expected} and answered {said[chat_id]}"


def _ended_badly(evidence: Evidence) -> Iterator[str]:
    """What was in flight at a kill is sent or uncertain; so is all else, but for few reasons."""
    for row in evidence.books.rows:
        if row.state in _GOOD_ENDS or row.waits_for is not None:
            continue
        is_explained = row.state == OutboxState.CANCELLED or any(
            attempt.verdict in _REFUSALS for attempt in evidence.attempts[row.id]
        )
        if _was_abandoned(evidence, row) or not is_explained:
            yield f"row {row.id} ended {row.state}: {row.reason}"
