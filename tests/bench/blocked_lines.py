"""What a handler that blocks its loop does to the webhook: nothing, as it is another process.

The same pace of updates twice, in turns: once with handlers that answer at once, once with a
handler that blocks the worker's loop for half of every second.
"""

from tests.bench.handlers import PAUSE_S, PAUSE_TEXT, QUIET_TEXT
from tests.bench.houses import RAISED, bench_house
from tests.bench.load import LoadPlan
from tests.bench.programs import Bench, load, pause, serving
from tests.bench.table import Below, Line, Peer, percentile
from tests.bench.updates import first_update_id

_PER_SECOND = 100
# One blocking handler begins each second.
_SELDOM_EVERY = _PER_SECOND
_SETTLE_S = 2.0


async def measure(bench: Bench) -> list[Line]:
    """Post at a steady pace, with and without a blocking handler."""
    rounds, seconds = (3, 4.0) if bench.quick else (10, 6.0)
    quiet_ms, blocked_ms = [], []
    async with (
        serving(bench, "stub") as (_, port),
        bench_house(bench, "blocked", f"http://127.0.0.1:{port}", settings=RAISED) as house,
    ):
        await house.start()
        secret = house.plan.bots[0].secret
        await _load(bench, house.port, secret, QUIET_TEXT, seconds=2.0)
        for _ in range(rounds):
            quiet_ms += await _load(bench, house.port, secret, QUIET_TEXT, seconds=seconds)
            blocked_ms += await _load(bench, house.port, secret, PAUSE_TEXT, seconds=seconds)
        await house.stop()
    bench.notes.append(
        f"blocked worker: {rounds} rounds of {seconds:g} s each way, in turns, at {_PER_SECOND} "
        f"updates/s; the loop blocked for {PAUSE_S * 1000:.0f} ms each second; "
        f"p50 {percentile(blocked_ms, 0.5):.2f} ms beside {percentile(quiet_ms, 0.5):.2f} ms, "
        f"slowest {max(blocked_ms):.1f} ms beside {max(quiet_ms):.1f} ms"
    )
    beside = Peer("the same, not blocked", percentile(quiet_ms, 0.99))
    what = "webhook p99 while the worker's loop is blocked"
    return [Line(what, percentile(blocked_ms, 0.99), "ms", Below(1.5), beside)]


async def _load(bench: Bench, port: int, secret: str, text: str, *, seconds: float) -> list[float]:
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
    return report.took_ms
