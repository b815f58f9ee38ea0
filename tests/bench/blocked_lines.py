"""What a handler that blocks its loop does to the webhook: nothing, as it is another process.

The same pace of updates twice, in turns: once with handlers that answer at once, once with a
handler that blocks the worker's loop for half of every second. Rounds are short and many, and the
middle one counts: a stranger who uses the machine for a moment spoils a round, not the figure.
"""

from collections.abc import Sequence

from tests.bench.handlers import PAUSE_S, PAUSE_TEXT, QUIET_TEXT
from tests.bench.houses import RAISED, bench_house
from tests.bench.load import LoadPlan
from tests.bench.programs import Bench, load, pause, serving
from tests.bench.table import Below, Line, Peer, median, percentile
from tests.bench.updates import first_update_id
from tests.live.house import House

_PER_SECOND = 100
# One blocking handler begins each second.
_SELDOM_EVERY = _PER_SECOND
_ROUND_S = 3.0
_SETTLE_S = 0.5


async def measure(bench: Bench) -> list[Line]:
    """Post at a steady pace, with and without a blocking handler."""
    rounds = 6 if bench.quick else 20
    quiet, blocked = [], []
    async with (
        serving(bench, "stub") as (_, port),
        bench_house(bench, "blocked", f"http://127.0.0.1:{port}", settings=RAISED) as house,
    ):
        await house.start()
        await _load(bench, house, QUIET_TEXT)
        for _ in range(rounds):
            quiet.append(await _load(bench, house, QUIET_TEXT))
            blocked.append(await _load(bench, house, PAUSE_TEXT))
        await house.stop()
    bench.notes.append(
        f"blocked worker: medians of {rounds} rounds of {_ROUND_S:g} s each way, in turns, at "
        f"{_PER_SECOND} updates/s; the loop blocked for {PAUSE_S * 1000:.0f} ms of each second; "
        f"p50 {_middle(blocked, 0.5):.2f} ms beside {_middle(quiet, 0.5):.2f} ms, slowest "
        f"{_middle(blocked, 1.0):.1f} ms beside {_middle(quiet, 1.0):.1f} ms"
    )
    beside = Peer("the same, not blocked", _middle(quiet, 0.99))
    what = "webhook p99 while the worker's loop is blocked"
    return [Line(what, _middle(blocked, 0.99), "ms", Below(1.5), beside)]


def _middle(rounds: Sequence[Sequence[float]], share: float) -> float:
    return median([percentile(took_ms, share) for took_ms in rounds])


async def _load(bench: Bench, house: House, text: str) -> Sequence[float]:
    plan = LoadPlan(
        port=house.port,
        path="/telegram/main",
        secret=house.plan.bots[0].secret,
        first_update_id=first_update_id(bench.next_load()),
        seconds=_ROUND_S,
        per_second=_PER_SECOND,
        seldom_text=text,
        seldom_every=_SELDOM_EVERY,
    )
    report = await load(bench, plan)
    await pause(_SETTLE_S)
    return report.took_ms
