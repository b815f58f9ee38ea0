"""When one call may find out whether an inferred wait is needed."""

from sender.canary import STANDS_MS, Canary

LANES = frozenset({"c:1", "c:2"})


def inferred() -> Canary:
    canary = Canary()
    canary.inferred(LANES, 1_000)
    return canary


def test_a_wait_stands_for_a_minute_before_it_is_tested() -> None:
    canary = inferred()
    assert not canary.may_go(1_000 + STANDS_MS - 1)
    assert canary.may_go(1_000 + STANDS_MS)


def test_a_further_flood_lets_it_stand_anew_and_its_chat_is_involved() -> None:
    canary = inferred()
    canary.inferred(frozenset({"c:3"}), 30_000)
    assert not canary.may_go(1_000 + STANDS_MS)
    assert canary.involved == {"c:1", "c:2", "c:3"}


def test_one_canary_at_a_time() -> None:
    canary = inferred()
    canary.went()
    assert not canary.may_go(1 << 40)
    assert canary.goes_at() is None


def test_one_that_met_a_flood_too_is_followed_by_none_while_the_wait_stands() -> None:
    """Each that is refused prolongs the wait: it was needed, and is waited out."""
    canary = inferred()
    canary.went()
    canary.confirmed()
    canary.came_back(70_000)
    assert canary.goes_at() is None
    canary.inferred(frozenset({"c:3"}), 80_000)
    assert not canary.may_go(1 << 40)
    canary.over()
    canary.inferred(LANES, 90_000)
    assert canary.may_go(90_000 + STANDS_MS)


def test_one_that_told_nothing_is_followed_a_minute_later() -> None:
    canary = inferred()
    canary.went()
    canary.came_back(70_000)
    assert canary.goes_at() == 70_000 + STANDS_MS


def test_one_that_never_left_may_be_replaced_at_once() -> None:
    canary = inferred()
    canary.went()
    canary.was_kept()
    assert canary.may_go(1_000 + STANDS_MS)


def test_when_the_wait_is_over_nobody_is_involved_any_more() -> None:
    canary = inferred()
    canary.over()
    assert canary.involved == frozenset()
