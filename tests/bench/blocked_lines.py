"""What a handler that blocks its loop does to the webhook: nothing, as it is another process.

The same pace of updates twice, in turns: once with handlers that answer at once, once with a
handler that blocks the worker's loop for half of every second.
"""

from tests.bench.handlers import PAUSE_S, PAUSE_TEXT, QUIET_TEXT
from tests.bench.houses import RAISED, bench_house
from tests.bench.load import LoadPlan, LoadReport
from tests.bench.programs import Bench, load, pause, serving
from tests.bench.table import Below, Line, Peer, median
from tests.bench.updates import first_update_id

_PER_SECOND = 100
# One blocking handler begins each second.
_SELDOM_EVERY = _PER_SECOND
_SETTLE_S = 2.0


async def measure(bench: Bench) -> list[Line]:
    """Post at a steady pace, with and without a blocking handler."""
    rounds, seconds = (2, 4.0) if bench.quick else (5, 10.0)
    quiet, blocked = [], []
    async with (
        serving(bench, "stub") as (_, port),
        bench_house(bench, "blocked", f"http://127.0.0.1:{port}", settings=RAISED) as house,
    ):
        await house.start()
        secret = house.plan.bots[0].secret
        await _load(bench, house.port, secret, QUIET_TEXT, seconds=2.0)
        for _ in range(rounds):
            quiet.append(await _load(bench, house.port, secret, QUIET_TEXT, seconds=seconds))
            blocked.append(await _load(bench, house.port, secret, PAUSE_TEXT, seconds=seconds))
        await house.stop()
    beside = Peer("the same, not blocked", median([report.p99_ms for report in quiet]))
    p99_ms = median([report.p99_ms for report in blocked])
    bench.notes.append(
        f"blocked worker: medians of {rounds} rounds of {seconds:g} s at {_PER_SECOND} updates/s, "
        f"the loop blocked for {PAUSE_S * 1000:.0f} ms each second; slowest "
        f"{max(report.worst_ms for report in blocked):.1f} ms, not blocked "
        f"{max(report.worst_ms for report in quiet):.1f} ms"
    )
    what = "webhook p99 while the worker's loop is blocked"
    return [Line(what, p99_ms, "ms", Below(1.5), beside)]


async def _load(bench: Bench, port: int, secret: str, text: str, *, seconds: float) -> LoadReport:
    plan = LoadPlan(
        port=port,
        path="/telegram/main",
        secret=secret,
        first_update_id=first_update_id(bench.next_load()),
        seconds=seconds,
        per_second=_PER_SECOND,
        seldom_text=text,
        seldom_every=_SELDOM_EVERY,
    )
    report = await load(bench, plan)
    await pause(_SETTLE_S)
    return report
