"""Whether a call that pays in Stars may go."""

from sender.paying import BALANCE_DOUBTS, Doubts, Purse


def test_a_purse_holds_what_its_budget_reaches_for() -> None:
    purse = Purse(budget_tenths=20, spent_tenths=15, in_hand_tenths=0)
    assert purse.holds(5)
    assert not purse.holds(6)


def test_what_is_in_hand_counts_as_spent() -> None:
    purse = Purse(budget_tenths=20, spent_tenths=10, in_hand_tenths=8)
    assert purse.holds(2)
    assert not purse.less(1).holds(2)


def test_without_a_budget_nothing_is_spent() -> None:
    assert not Purse(0, 0, 0).holds(1)


def test_the_reason_counts_in_stars() -> None:
    assert Purse(20, 20, 0).reason() == "paid budget is spent: 2 of 2 Stars"
    waiting = Purse(20, 15, 4).reason()
    assert waiting == "paid budget is spent: 1.5, and 0.4 on the way, of 2 Stars"


def test_refusals_of_a_second_each_throw_doubt_on_the_balance() -> None:
    doubts = Doubts()
    told = [doubts.refused(1_000) for _ in range(2 * BALANCE_DOUBTS)]
    assert told == [False, False, True, False, False, True]


def test_another_wait_or_an_acceptance_ends_the_doubt() -> None:
    doubts = Doubts()
    for _ in range(BALANCE_DOUBTS - 1):
        doubts.refused(1_000)
    assert not doubts.refused(9_000)
    for _ in range(BALANCE_DOUBTS - 1):
        doubts.refused(1_000)
    doubts.accepted()
    assert not doubts.refused(1_000)
