"""The table's arithmetic: what is judged, by which bound, and how a line is printed.

Pure. A line with a peer is judged by its ratio, a line without one, or one that stands `alone`
beside it, by its own figure; what is judged is never rounded first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

_HEADER = ("", "ours", "beside", "its figure", "ratio", "target", "")
_RIGHT_ALIGNED = (False, True, False, True, True, True, False)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """The judged figure has to reach this."""

    bound: float


@dataclass(frozen=True, slots=True)
class Below:
    """The judged figure has to stay under this."""

    bound: float


@dataclass(frozen=True, slots=True)
class Peer:
    """What our figure stands beside, measured in the same run and in the same unit."""

    name: str
    figure: float


@dataclass(frozen=True, slots=True)
class Line:
    """One promise of the table. `unit` is what the figures count, such as `/s` or `ms`.

    `alone`: the peer is shown, and judges nothing.
    """

    what: str
    ours: float
    unit: str
    target: AtLeast | Below
    peer: Peer | None = None
    alone: bool = False

    @property
    def judged_by_ratio(self) -> bool:
        """Whether the target is about the ratio."""
        return self.peer is not None and not self.alone

    @property
    def ratio(self) -> float | None:
        """Ours by the peer's; None without a peer, or beside one that did nothing."""
        if self.peer is None or self.peer.figure == 0:
            return None
        return self.ours / self.peer.figure

    @property
    def holds(self) -> bool:
        """Whether the target is met. A peer that did nothing judges nobody."""
        judged = self.ratio if self.judged_by_ratio else self.ours
        if judged is None:
            return False
        match self.target:
            case AtLeast(bound):
                return judged >= bound
            case Below(bound):
                return judged < bound
            case _:
                assert_never(self.target)


def median(figures: Sequence[float]) -> float:
    """The middle one, or the mean of the two in the middle; one of a kind is its own median."""
    ordered = sorted(figures)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2


def percentile(figures: Sequence[float], share: float) -> float:
    """The smallest figure that at least `share` of all figures do not exceed."""
    ordered = sorted(figures)
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(0, rank - 1)]


def render(lines: Sequence[Line]) -> str:
    """The table as text, its columns aligned."""
    rows = [_HEADER, *(_cells(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    printed = [_row(row, widths) for row in rows]
    return "\n".join([printed[0], "-" * len(printed[0]), *printed[1:]])


def _cells(line: Line) -> tuple[str, ...]:
    ratio = "" if line.ratio is None else f"{_number(line.ratio)} x"
    return (
        line.what,
        f"{_number(line.ours)} {line.unit}".rstrip(),
        "" if line.peer is None else line.peer.name,
        "" if line.peer is None else f"{_number(line.peer.figure)} {line.unit}".rstrip(),
        ratio,
        _target(line),
        "ok" if line.holds else "MISS",
    )


def _target(line: Line) -> str:
    unit = "x" if line.judged_by_ratio else line.unit
    match line.target:
        case AtLeast(bound):
            return f"≥ {_number(bound)} {unit}".rstrip()
        case Below(bound):
            return f"< {_number(bound)} {unit}".rstrip()
        case _:
            assert_never(line.target)


def _number(value: float) -> str:
    """Three digits that count; whole numbers whole, thousands apart."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    columns = zip(cells, widths, _RIGHT_ALIGNED, strict=True)
    text = "  ".join(f"{cell:>{w}}" if right else f"{cell:<{w}}" for cell, w, right in columns)
    return text.rstrip() if cells is not _HEADER else text
