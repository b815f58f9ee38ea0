"""Keys, placeholders, and in whose name something is said."""

from collections.abc import Callable, Sequence
from contextvars import copy_context
from itertools import pairwise
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.turns.turn import (
    CALLS_MAX,
    NUMBER_MAX,
    Cause,
    Condemned,
    Effect,
    Phase,
    TooManyCalls,
    Turn,
    enter,
    open_turn,
    reminder_cause,
    report_cause,
    turn_here,
    update_cause,
    voice,
)
from storage.lifecycle import BotName, InboxId, OutboxId
from storage.message_ids import Resolution
from storage.outgoing import Outgoing

T = TypeVar("T")
FREE_PLACEHOLDERS_BELOW = -(1 << 52)


class Elsewhere:
    """Where words go that belong to no turn."""

    inbox_id: None = None

    def __init__(self) -> None:
        self.left: list[Outgoing] = []

    def next_key(self, *, once: bool = False) -> str:
        return f"late:1:{int(once)}"

    def next_placeholder(self, items: int = 1) -> None:
        assert items

    async def say(self, outgoing: Outgoing) -> None:
        raise NotImplementedError(outgoing.key)

    async def leave(self, rows: Sequence[Outgoing], effects: Sequence[Effect] = ()) -> None:
        assert not effects
        self.left += rows

    async def write(self, effect: Effect) -> None:
        raise NotImplementedError(effect)

    async def flush(self) -> None:
        raise NotImplementedError

    async def resolve(self, placeholder: int) -> Resolution | None:
        raise NotImplementedError(placeholder)


def turn(inbox_id: int = 812, phase: Phase = Phase.HANDLERS) -> Turn:
    cause = update_cause(InboxId(inbox_id), phase)
    return Turn(BotName("main"), cause, phase, 0, {}, Elsewhere())


def call(key: str) -> Outgoing:
    return Outgoing("sendMessage", {}, lane="c:7", key=key)


async def test_keys_and_placeholders_follow_from_the_update_and_the_place_alone() -> None:
    first, again = turn(), turn()
    for one in (first, again):
        for _ in range(3):
            await one.say(call(one.next_key()))
    assert [row.key for row in first.rows] == ["turn:812:0:0", "turn:812:0:1", "turn:812:0:2"]
    assert [row.key for row in again.rows] == [row.key for row in first.rows]
    assert first.next_placeholder() == again.next_placeholder()


def test_each_cause_names_its_calls() -> None:
    assert update_cause(InboxId(812), Phase.ERROR_HANDLERS).key_of(2) == "turn:812:1:2"
    assert report_cause(OutboxId(77)).key_of(0) == "told:77:0"
    assert reminder_cause(5, Phase.HANDLERS).key_of(1) == "later:5:0:1"


def test_a_call_that_makes_several_messages_takes_a_placeholder_for_each() -> None:
    one = turn()
    first, album, last = one.next_placeholder(), one.next_placeholder(3), one.next_placeholder()
    assert (first - album, album - last) == (1, 3)


def test_a_gift_is_named_the_same_whatever_is_said_before_it() -> None:
    """A turn that runs again may say more or less; the gift is found under its name."""
    silent, talking = turn(), turn()
    for _ in range(3):
        talking.next_key()
    assert talking.next_key(once=True) == silent.next_key(once=True) == "turn:812:0:once:0"
    assert talking.next_key(once=True) == "turn:812:0:once:1"
    assert talking.next_key() == "turn:812:0:3"


NUMBERS = st.integers(1, NUMBER_MAX)
CAUSES = st.one_of(
    st.builds(update_cause, NUMBERS.map(InboxId), st.sampled_from(list(Phase))),
    st.builds(report_cause, st.integers(1, NUMBER_MAX >> 1).map(OutboxId), held=st.booleans()),
    st.builds(reminder_cause, st.integers(1, NUMBER_MAX >> 1), st.sampled_from(list(Phase))),
)
PLACES = st.tuples(CAUSES, st.integers(0, CALLS_MAX - 1))


@given(PLACES, PLACES)
def test_no_two_messages_share_a_placeholder(
    one: tuple[Cause, int], other: tuple[Cause, int]
) -> None:
    placeholders = {cause.placeholder_of(index) for cause, index in (one, other)}
    same = (one[0].key, one[1]) == (other[0].key, other[1])
    assert len(placeholders) == (1 if same else 2)


@given(PLACES)
def test_placeholders_of_turns_stay_clear_of_those_outside(place: tuple[Cause, int]) -> None:
    cause, index = place
    assert FREE_PLACEHOLDERS_BELOW < cause.placeholder_of(index) < 0


def test_the_last_placeholder_of_a_cause_lies_before_the_first_of_the_next() -> None:
    first, last = InboxId(1), InboxId(NUMBER_MAX)
    causes = [
        update_cause(first, Phase.HANDLERS),
        update_cause(first, Phase.ERROR_HANDLERS),
        update_cause(InboxId(2), Phase.HANDLERS),
        update_cause(last, Phase.ERROR_HANDLERS),
        report_cause(OutboxId(1)),
        report_cause(OutboxId(1), held=True),
        report_cause(OutboxId(NUMBER_MAX >> 1), held=True),
        reminder_cause(1, Phase.HANDLERS),
        reminder_cause(1, Phase.ERROR_HANDLERS),
        reminder_cause(NUMBER_MAX >> 1, Phase.ERROR_HANDLERS),
    ]
    for one, following in pairwise(causes):
        assert one.placeholder_of(CALLS_MAX - 1) > following.placeholder_of(0)


def test_a_turn_that_talks_without_end_is_stopped() -> None:
    endless = turn()
    for _ in range(CALLS_MAX):
        endless.next_key()
    with pytest.raises(TooManyCalls, match="calls"):
        endless.next_key()
    endless.next_placeholder(CALLS_MAX)
    with pytest.raises(TooManyCalls, match="messages"):
        endless.next_placeholder()


async def test_what_a_turn_flushes_is_left_once_and_stays_in_its_account() -> None:
    one = turn()
    assert isinstance(one.outside, Elsewhere)
    await one.say(call(one.next_key()))
    await one.flush()
    await one.flush()
    await one.say(call(one.next_key()))
    await one.flush()
    assert [row.key for row in one.outside.left] == ["turn:812:0:0", "turn:812:0:1"]
    assert [row.key for row in one.rows] == ["turn:812:0:0", "turn:812:0:1"]
    assert one.committed == 2


async def test_a_turn_that_was_given_up_flushes_nothing_more() -> None:
    one = turn()
    assert isinstance(one.outside, Elsewhere)
    await one.say(call(one.next_key()))
    one.condemn()
    with pytest.raises(Condemned):
        await one.flush()
    assert one.outside.left == []


async def test_what_was_said_just_before_the_end_is_flushed_after_it() -> None:
    """A task waits for its answer while its turn's own transaction is still to come."""
    one = turn()
    assert isinstance(one.outside, Elsewhere)
    await one.say(call(one.next_key()))
    one.end()
    await one.flush()
    assert [row.key for row in one.outside.left] == ["turn:812:0:0"]


def in_context_of(scope: Turn, look: Callable[[], T]) -> T:
    context = copy_context()
    context.run(enter, scope)
    return context.run(look)


def test_an_open_turn_speaks_for_itself_and_one_that_is_over_does_not() -> None:
    one = turn()
    assert in_context_of(one, voice) is one
    assert in_context_of(one, open_turn) is one
    one.end()
    assert in_context_of(one, voice) is one.outside
    assert in_context_of(one, open_turn) is None
    assert in_context_of(one, turn_here) is one


def test_a_turn_that_was_given_up_may_not_speak_any_more() -> None:
    one = turn()
    one.condemn()
    with pytest.raises(Condemned):
        in_context_of(one, voice)
    one.end()
    with pytest.raises(Condemned):
        in_context_of(one, voice)


def test_where_nobody_was_told_there_is_no_voice() -> None:
    assert copy_context().run(voice) is None
