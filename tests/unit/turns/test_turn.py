"""Keys, placeholders, and in whose name something is said."""

from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.turns.turn import (
    CALLS_MAX,
    INBOX_ID_MAX,
    Condemned,
    Effect,
    Phase,
    TooManyCalls,
    Turn,
    enter,
    open_turn,
    placeholder_of,
    turn_here,
    voice,
)
from storage.lifecycle import BotName, InboxId
from storage.outgoing import Outgoing

T = TypeVar("T")
FREE_PLACEHOLDERS_BELOW = -(1 << 52)


class Elsewhere:
    """Where words go that belong to no turn."""

    def next_key(self) -> str:
        return "late:1:1"

    def next_placeholder(self) -> None:
        return None

    async def say(self, outgoing: Outgoing) -> None:
        raise NotImplementedError(outgoing.key)

    async def write(self, effect: Effect) -> None:
        raise NotImplementedError(effect)


def turn(inbox_id: int = 812, phase: Phase = Phase.HANDLERS) -> Turn:
    return Turn(BotName("main"), InboxId(inbox_id), phase, 0, {}, Elsewhere())


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


PLACES = st.tuples(
    st.integers(1, INBOX_ID_MAX), st.sampled_from(list(Phase)), st.integers(0, CALLS_MAX - 1)
)


@given(PLACES, PLACES)
def test_no_two_calls_share_a_placeholder(
    one: tuple[int, Phase, int], other: tuple[int, Phase, int]
) -> None:
    assert (placeholder_of(*one) == placeholder_of(*other)) is (one == other)


@given(PLACES)
def test_placeholders_of_turns_stay_clear_of_those_outside(place: tuple[int, Phase, int]) -> None:
    assert FREE_PLACEHOLDERS_BELOW <= placeholder_of(*place) < 0


async def test_a_turn_that_talks_without_end_is_stopped() -> None:
    endless = turn()
    endless.rows.extend(call(str(n)) for n in range(CALLS_MAX))
    with pytest.raises(TooManyCalls):
        endless.next_placeholder()


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
