"""Bots are spread evenly over the senders that there are, and none is left to nobody."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from sender.sharing import Standing, Standings, may_take, share, to_hand_over
from storage.lifecycle import BotName

BOTS = tuple(BotName(f"bot{number}") for number in range(7))


def standing(owns: str = "", serves: str = "abcd") -> Standing:
    return Standing(frozenset(map(BotName, serves)), frozenset(map(BotName, owns)))


def test_the_only_sender_takes_every_bot() -> None:
    assert may_take(BotName("d"), "me", {"me": standing("abc")})


def test_a_sender_with_its_share_leaves_a_free_bot_to_one_with_room() -> None:
    both = {"me": standing("ab"), "other": standing("c")}
    assert not may_take(BotName("d"), "me", both)
    assert may_take(BotName("d"), "other", both)


def test_a_bot_that_only_this_process_serves_is_taken_beyond_the_share() -> None:
    both = {"me": standing("ab"), "other": standing("", serves="c")}
    assert may_take(BotName("d"), "me", both)


def test_a_surplus_is_handed_over_one_bot_at_a_time() -> None:
    assert to_hand_over("me", {"me": standing("abcd"), "other": standing()}) == "d"
    assert to_hand_over("me", {"me": standing("abc"), "other": standing("d")}) == "c"
    assert to_hand_over("me", {"me": standing("ab"), "other": standing("cd")}) is None


def test_a_bot_is_never_handed_to_a_sender_that_does_not_serve_it() -> None:
    both = {"me": standing("abc", serves="abc"), "other": standing("", serves="xb")}
    assert to_hand_over("me", both) == "b"
    assert to_hand_over("me", {"me": standing("ab"), "other": standing("", serves="xyz")}) is None


def test_one_bot_is_not_passed_to_and_fro() -> None:
    both = {"me": standing("a", serves="a"), "other": standing("", serves="a")}
    assert to_hand_over("me", both) is None


@given(
    serves=st.dictionaries(
        st.sampled_from("pqrs"), st.sets(st.sampled_from(BOTS), min_size=1), min_size=1
    ),
)
def test_handing_over_and_taking_come_to_rest_with_every_bot_owned(
    serves: Mapping[str, set[BotName]],
) -> None:
    """Whoever begins with everything it serves, the senders end with no one above its share."""
    owns: dict[str, set[BotName]] = {owner: set() for owner in serves}
    for bot in sorted({bot for found in serves.values() for bot in found}):
        first = next(owner for owner in sorted(serves) if bot in serves[owner])
        owns[first].add(bot)
    steps = 0
    while _step(serves, owns):
        steps += 1
        assert steps < 100, "they go on for ever"
    owned = [bot for found in owns.values() for bot in found]
    assert sorted(owned) == sorted({bot for found in serves.values() for bot in found})


def _step(serves: Mapping[str, set[BotName]], owns: dict[str, set[BotName]]) -> bool:
    for owner in sorted(serves):
        given_up = to_hand_over(owner, _standings(serves, owns))
        if given_up is None:
            continue
        owns[owner].remove(given_up)
        for taker in sorted(serves):
            if given_up in serves[taker] and may_take(given_up, taker, _standings(serves, owns)):
                owns[taker].add(given_up)
                break
        assert any(given_up in found for found in owns.values()), "nobody takes it"
        return True
    return False


def _standings(serves: Mapping[str, set[BotName]], owns: Mapping[str, set[BotName]]) -> Standings:
    return {
        owner: Standing(frozenset(found), frozenset(owns[owner])) for owner, found in serves.items()
    }


def test_a_share_is_rounded_up() -> None:
    assert share({"me": standing(), "other": standing(), "third": standing()}) == 2
