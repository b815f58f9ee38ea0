"""What is judged, by which bound, and what is printed."""

import pytest

from tests.bench.table import AtLeast, Below, Line, Peer, median, percentile, render

PEER = Peer("a peer", 4_000)


def line(ours: float, target: AtLeast | Below, peer: Peer | None = None) -> Line:
    return Line("what is promised", ours, "/s", target, peer)


@pytest.mark.parametrize(
    ("judged", "holds"),
    [
        (line(2_500, AtLeast(2_500)), True),
        (line(2_499.9, AtLeast(2_500)), False),
        (line(49.9, Below(50)), True),
        (line(50, Below(50)), False),
        (line(10_000, AtLeast(2.5), PEER), True),
        (line(9_999, AtLeast(2.5), PEER), False),
        (line(5_999, Below(1.5), PEER), True),
        (line(6_000, Below(1.5), PEER), False),
    ],
)
def test_a_line_holds_up_to_its_bound(judged: Line, *, holds: bool) -> None:
    """With a peer it is the ratio that is judged, without one the figure."""
    assert judged.holds is holds


def test_a_line_is_not_judged_by_what_rounding_makes_of_it() -> None:
    """A miss by a hair is printed like the bound itself, and is a miss."""
    printed = render([line(2_599, AtLeast(0.65), PEER)])
    assert "0.65 x  ≥ 0.65 x  MISS" in printed


def test_a_peer_that_did_nothing_proves_nothing() -> None:
    idle = line(10_000, AtLeast(2.5), Peer("a dead peer", 0))
    assert idle.ratio is None
    assert not idle.holds


@pytest.mark.parametrize(("ours", "holds"), [(0, True), (1, False)])
def test_a_line_may_be_judged_alone_and_show_a_peer(ours: float, *, holds: bool) -> None:
    judged = Line("floods drawn", ours, "", Below(1), Peer("a peer", 4), alone=True)
    assert judged.holds is holds
    assert "a peer           4" in render([judged])
    assert "< 1  " in render([judged])


def test_the_table_shows_ours_beside_the_peer_with_ratio_target_and_judgement() -> None:
    table = render([line(10_000, AtLeast(2.5), PEER), line(7.25, Below(25))])
    head, rule, beside, alone = table.splitlines()
    assert head.split() == ["ours", "beside", "its", "figure", "ratio", "target"]
    assert set(rule) == {"-"}
    assert beside.split("  ")[:2] == ["what is promised", "10,000 /s"]
    assert beside.endswith("a peer    4,000 /s  2.50 x  ≥ 2.50 x  ok")
    assert alone.endswith("< 25 /s  ok")


def test_columns_stand_under_each_other() -> None:
    table = render([line(1, AtLeast(1)), line(1_234_567, AtLeast(2.5), PEER)])
    ends = {row.rindex("≥") for row in table.splitlines() if "≥" in row}
    assert len(ends) == 2  # right-aligned: the longer target begins sooner
    assert len({row.index("/s") for row in table.splitlines()[2:]}) == 1


@pytest.mark.parametrize(("figures", "middle"), [([3], 3), ([9, 1, 2], 2), ([4, 1, 3, 2], 2.5)])
def test_a_median_is_the_middle(figures: list[float], middle: float) -> None:
    assert median(figures) == middle


@pytest.mark.parametrize(
    ("share", "found"), [(0.5, 50), (0.99, 99), (0.995, 100), (1.0, 100), (0.001, 1)]
)
def test_a_percentile_is_one_of_the_figures(share: float, found: float) -> None:
    assert percentile(list(range(100, 0, -1)), share) == found


def test_the_percentile_of_one_figure_is_that_figure() -> None:
    assert percentile([7.5], 0.99) == 7.5
