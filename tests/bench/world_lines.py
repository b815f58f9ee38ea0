"""How much faster than real time a simulated world runs, on one core."""

from tests.bench.programs import Bench, result_of
from tests.bench.table import AtLeast, Line, median

_HOURS = 1.0
_PATIENCE_S = 300.0


async def measure(bench: Bench) -> list[Line]:
    """Run worlds one after the other in a process of their own; judged is the median."""
    worlds = 5 if bench.quick else 25
    words = [str(worlds), str(_HOURS)]
    told = await result_of(bench, "worlds", words, within_s=_PATIENCE_S)
    times = [_HOURS * 3600 / took_s for took_s in told["took_s"]]
    bench.notes.append(
        f"worlds: {worlds} of {_HOURS:.0f} h each, {told['updates']:,} updates, {told['calls']:,} "
        f"calls, {told['breaches']} invariants broken; the slowest {min(times):,.0f} x real time, "
        f"{told['core']:.0%} of a core used"
    )
    return [Line("a world, by its own time", median(times), "x", AtLeast(500))]
