"""Run worlds: `python -m tests.simulation --seeds 100 --hours 1`, or one by `--seed`."""

import argparse
import os
import sys
from typing import Final

from tests.simulation.planted import PLANTED, is_caught, plant
from tests.simulation.runner import Order, failures, figures, run
from tests.simulation.world import Verdict, run_world

_SHOWN: Final = 3


def main() -> int:
    """Do as the command line says; 0 when every invariant held and every fault was met."""
    options = _parser().parse_args()
    if options.seed is not None:
        return _one(options)
    first = int.from_bytes(os.urandom(4)) if options.fresh else 1
    if options.fresh:
        print(f"fresh seeds from {first}", flush=True)
    seeds = range(first, first + options.seeds)
    orders = [Order(seed, options.hours, options.plant) for seed in seeds]
    if options.plant:
        return _hunt(options.plant, orders, options.processes)
    report = run(orders, told=_tell, processes=options.processes)
    for line in figures(report):
        print(line)
    return 0 if report.is_passed else 1


def _hunt(bug: str, orders: list[Order], processes: int | None) -> int:
    """See a planted bug caught; 0 when it was."""

    def is_it(verdict: Verdict) -> bool:
        return is_caught(bug, verdict.breaches)

    report = run(orders, told=lambda _: None, stops_at=is_it, processes=processes)
    caught = next((each for each in report.failed if is_it(each)), None)
    if caught is None:
        print(f"{bug}: not caught in {report.worlds} worlds")
        return 1
    print(f"{bug}: caught in world {report.worlds}, by seed {caught.seed}:")
    print("\n".join([f"  {each}" for each in caught.breaches if is_caught(bug, [each])][:_SHOWN]))
    return 0


def _tell(verdict: Verdict) -> None:
    if verdict.breaches:
        print("\n".join(failures(verdict)), flush=True)


def _one(options: argparse.Namespace) -> int:
    """One world, told event by event if asked."""
    if options.plant:
        plant(options.plant)
    verdict = run_world(options.seed, options.hours, timeline=options.timeline)
    for line in verdict.timeline:
        print(line)
    for breach in verdict.breaches:
        print(breach, file=sys.stderr)
    print(f"seed {verdict.seed}: trace {verdict.trace}, {len(verdict.breaches)} breaches")
    return 1 if verdict.breaches else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10, help="how many worlds")
    parser.add_argument("--hours", type=float, default=1.0, help="simulated hours of each")
    parser.add_argument("--fresh", action="store_true", help="seeds that nobody has seen yet")
    parser.add_argument("--processes", type=int, help="worlds at once; a core each by default")
    parser.add_argument("--seed", type=int, help="this one world alone")
    parser.add_argument("--timeline", action="store_true", help="a line for each of its events")
    parser.add_argument("--plant", default="", choices=["", *PLANTED], help="with this bug in it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
