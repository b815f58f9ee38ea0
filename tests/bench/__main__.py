"""`make bench`: every promise of speed and memory, measured now, on this machine, beside its peer.

Prints one table. The exit code is 0 whatever the figures are, so that a slow machine is no failed
build, and 1 when something could not be measured; `--strict` makes it 1 for a missed target too.
All traffic stays on loopback.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from tests.bench import (
    blocked_lines,
    broadcast_lines,
    claim_lines,
    footprint_lines,
    latency_lines,
    machine,
    seam_lines,
    sender_lines,
    webhook_lines,
    world_lines,
)
from tests.bench.programs import Bench, Broken
from tests.bench.table import Line, render
from tests.live.process import NotReady

Measure = Callable[[Bench], Awaitable[list[Line]]]

PARTS: Mapping[str, Measure] = {
    "webhook": webhook_lines.measure,
    "seam": seam_lines.measure,
    "sender": sender_lines.measure,
    "claim": claim_lines.measure,
    "broadcast": broadcast_lines.measure,
    "latency": latency_lines.measure,
    "blocked": blocked_lines.measure,
    "idle": footprint_lines.measure_idle,
    "memory": footprint_lines.measure_memory,
    "world": world_lines.measure,
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for; the exit code."""
    parser = argparse.ArgumentParser(prog="make bench", description="Speed and memory.")
    parser.add_argument("--quick", action="store_true", help="short rounds, 10,000 updates")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between")
    parser.add_argument("--keep", action="store_true", help="keep logs and databases")
    asked = parser.parse_args(words)
    unknown = set(asked.only.split(",")) - set(PARTS)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    folder = Path(tempfile.mkdtemp(prefix="ferryman-bench-"))
    bench = Bench(folder, quick=asked.quick)
    _print_head(bench)
    lines, broken = asyncio.run(_measure(bench, asked.only.split(",")))
    _print_table(bench, lines, broken)
    if asked.keep or broken:
        print(f"\nlogs and databases are in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return exit_code(lines, broken, strict=asked.strict)


def exit_code(lines: Sequence[Line], broken: Sequence[str], *, strict: bool) -> int:
    """1 when something could not be measured, or, if strictly judged, a target was missed."""
    return int(bool(broken) or (strict and not all(line.holds for line in lines)))


async def _measure(bench: Bench, parts: list[str]) -> tuple[list[Line], list[str]]:
    """Measure part by part; a part that breaks is reported and takes no other with it."""
    lines, broken = [], []
    for part in parts:
        print(f"measuring: {part}", file=sys.stderr, flush=True)
        try:
            lines += await PARTS[part](bench)
        except (Broken, NotReady, TimeoutError, OSError) as error:
            broken.append(f"{part}: {type(error).__name__}: {error}")
    return lines, broken


def _print_head(bench: Bench) -> None:
    print("Ferryman's benchmark" + (", in short (--quick)" if bench.quick else ""))
    for fact in machine.facts(bench.folder):
        print(f"  {fact}")
    print(flush=True)


def _print_table(bench: Bench, lines: list[Line], broken: list[str]) -> None:
    if lines:
        print(render(lines))
    print()
    for note in bench.notes:
        print(note)
    for fault in broken:
        print(f"BROKEN {fault}")


if __name__ == "__main__":
    sys.exit(main())
