"""What a claim costs with a million rows queued, beside the same claim with a thousand.

Both databases are filled first, then claimed from in turns, so that both see the same disk and the
same neighbours. Timed is the whole transaction, its sync included.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from storage.clock import SystemClock
from storage.database import opened
from tests.bench.programs import Bench, Broken
from tests.bench.queues import ONE_IN, Queue, fill, owned
from tests.bench.table import Below, Line, Peer, percentile

_FEW = 1_000
_WARM_UP = 20


@dataclass(slots=True)
class _Timed:
    """One queue, and what each claim took."""

    queue: Queue
    took_ms: list[float] = field(default_factory=list)
    rows: int = 0

    async def round(self) -> None:
        """Claim once; leaving and settling are not timed."""
        await self.queue.refill()
        began = time.perf_counter()
        picked = await self.queue.claim()
        self.took_ms.append((time.perf_counter() - began) * 1000)
        self.rows += len(picked.taken)
        await self.queue.settle()

    @property
    def counted_ms(self) -> Sequence[float]:
        """What each claim took once all was warm."""
        return self.took_ms[_WARM_UP:]


async def measure(bench: Bench) -> list[Line]:
    """Claim from both in turns."""
    many, samples = (100_000, 300) if bench.quick else (1_000_000, 1_500)
    clock = SystemClock()
    small, big = bench.place("few-rows") / "ferryman.db", bench.place("many-rows") / "ferryman.db"
    fill(small, _FEW, clock)
    began = time.perf_counter()
    fill(big, many, clock)
    filled_s = time.perf_counter() - began
    async with opened(small, clock) as few_rows, opened(big, clock) as many_rows:
        few, lot = _Timed(await owned(few_rows, clock)), _Timed(await owned(many_rows, clock))
        for _ in range(_WARM_UP + samples):
            await few.round()
            await lot.round()
    if few.rows != lot.rows:
        raise Broken(f"not the same work: {few.rows} rows were claimed beside {lot.rows}")
    bench.notes.append(
        f"claim: {samples:,} claims of {few.rows / len(few.took_ms):.0f} rows from each, in turns, "
        f"one row in {ONE_IN} of one chat; medians {percentile(few.counted_ms, 0.5):.2f} and "
        f"{percentile(lot.counted_ms, 0.5):.2f} ms; {many:,} rows made in {filled_s:.0f} s, "
        f"{big.stat().st_size >> 20:,} MiB"
    )
    peer = Peer(f"{_FEW:,} rows queued", percentile(few.counted_ms, 0.99))
    p99_ms = percentile(lot.counted_ms, 0.99)
    return [Line(f"claim, p99, {many:,} rows queued", p99_ms, "ms", Below(1.5), peer)]
