"""Simulated worlds on one core: `python -m tests.bench.worlds WORLDS HOURS`, one after the other.

Prints how long each world took, and how much of a core all of them used.
"""

import json
import sys
import time

from tests.simulation.world import run_world


def _run(worlds: int, hours: float) -> dict[str, object]:
    began, cpu_began = time.perf_counter(), time.process_time()
    took_s = []
    calls = updates = breaches = 0
    for seed in range(1, worlds + 1):
        world_began = time.perf_counter()
        verdict = run_world(seed, hours)
        took_s.append(time.perf_counter() - world_began)
        calls += verdict.calls
        updates += verdict.updates
        breaches += len(verdict.breaches)
    return {
        "took_s": took_s,
        "core": (time.process_time() - cpu_began) / (time.perf_counter() - began),
        "calls": calls,
        "updates": updates,
        "breaches": breaches,
    }


if __name__ == "__main__":
    print(json.dumps(_run(int(sys.argv[1]), float(sys.argv[2]))))
