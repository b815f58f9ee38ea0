"""Many worlds at once: a process for each core, every world in a fresh interpreter state.

Seeds are handed out one at a time; what a world has to say comes back as plain data. A run fails
when any world breached an invariant, or when a fault was not met often enough to have proved
anything.
"""

import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.planted import plant
from tests.simulation.swarm import SIGHTINGS, minimum
from tests.simulation.world import Verdict, run_world

_BREACHES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Order:
    """One world to run."""

    seed: int
    hours: float
    planted: str = ""


@dataclass(slots=True)
class Report:
    """What many worlds have shown."""

    hours: float = 0.0
    worlds: int = 0
    calls: int = 0
    updates: int = 0
    cpu_s: float = 0.0
    took_s: float = 0.0
    sightings: "Counter[str]" = field(default_factory=Counter)
    failed: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        """Take one world's verdict."""
        self.worlds += 1
        self.hours += verdict.hours
        self.calls += verdict.calls
        self.updates += verdict.updates
        self.cpu_s += verdict.cpu_s
        self.sightings += verdict.sightings
        if verdict.breaches:
            self.failed.append(verdict)

    @property
    def missing(self) -> list[str]:
        """The faults that were not met often enough."""
        return [
            f"{name} was met {self.sightings[name]} times, {least} are needed"
            for name in SIGHTINGS
            if self.sightings[name] < (least := minimum(name, self.hours))
        ]

    @property
    def is_passed(self) -> bool:
        """Whether nothing is wrong."""
        return not (self.failed or self.missing)


def run_order(order: Order) -> Verdict:
    """Run one world in this process; what is planted stays planted in it."""
    if order.planted:
        plant(order.planted)
    began_s = time.process_time()
    verdict = run_world(order.seed, order.hours)
    verdict.cpu_s = time.process_time() - began_s
    return verdict


def verdicts(orders: Sequence[Order], *, processes: int | None = None) -> Iterator[Verdict]:
    """Run worlds on all cores, and give each verdict as it comes."""
    count = min(processes or os.cpu_count() or 1, len(orders))
    with multiprocessing.get_context("spawn").Pool(count, maxtasksperchild=200) as pool:
        yield from pool.imap_unordered(run_order, orders)


def run(
    orders: Sequence[Order],
    *,
    told: Callable[[Verdict], None],
    stops_at: Callable[[Verdict], bool] = lambda _: False,
    processes: int | None = None,
) -> Report:
    """Run all these worlds, or as many as it takes to come to one that `stops_at` wants."""
    report = Report()
    began_s = time.monotonic()
    for verdict in verdicts(orders, processes=processes):
        report.add(verdict)
        told(verdict)
        if stops_at(verdict):
            break
    report.took_s = time.monotonic() - began_s
    return report


def figures(report: Report) -> Iterator[str]:
    """What to print of a run, line by line."""
    hours = report.hours
    yield (
        f"{report.worlds} worlds, {hours:g} simulated hours, {report.updates} updates,"
        f" {report.calls} calls"
    )
    if report.cpu_s and report.took_s:
        speed = hours * 3_600 / report.cpu_s
        yield (
            f"{report.took_s:.0f} s, {report.cpu_s / hours:.2f} s of a core for a simulated hour:"
            f" {speed:,.0f} x real time on one core"
        )
    width = max(map(len, SIGHTINGS))
    for name in SIGHTINGS:
        seen, least = report.sightings[name], minimum(name, hours)
        yield f"  {name:<{width}}  {seen:>7}  (at least {least})"
    yield from (f"MISSING: {missing}" for missing in report.missing)
    yield f"{len(report.failed)} worlds failed"


def failures(verdict: Verdict) -> Iterator[str]:
    """What to print of a world that failed."""
    yield f"seed {verdict.seed} failed:"
    yield from (f"  {breach}" for breach in verdict.breaches[:_BREACHES_SHOWN])
    if len(verdict.breaches) > _BREACHES_SHOWN:
        yield f"  and {len(verdict.breaches) - _BREACHES_SHOWN} more"
    yield (
        f"  python -m tests.simulation --seed {verdict.seed} --hours {verdict.hours:g} --timeline"
    )
