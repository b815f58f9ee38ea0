"""A process that stood still, as in a paused machine, and wakes up to find another at its work."""

import random
import signal
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.crash import answers
from tests.crash.checkers import damage
from tests.crash.living import living
from tests.live.house import Role
from tests.live.process import LiveProcess, until
from tests.simulator.faults import Hold

OWNERS: Final[tuple[Role, ...]] = ("worker", "sender")
CALL_MS: Final = 200
TOGETHER_MS: Final = 1_500


async def _has_lost(process: LiveProcess) -> bool:
    return process.times_said("lease.lost") > 0


@pytest.mark.prove
@pytest.mark.timeout(120)
async def test_an_owner_that_stood_still_for_too_long_does_nothing_twice(tmp_path: Path) -> None:
    """Its lease ran out, another took over; what it still had in hand is fenced off."""
    async with living(tmp_path) as house:
        await house.sim.arm(Hold(CALL_MS), times=None)
        await house.start_all()
        stopped = {role: house.house.running[role] for role in OWNERS}
        try:
            async with house.under_load(random.Random(1)):
                for process in stopped.values():
                    await house.clock.sleep_ms(random.Random(process.pid).randint(500, 1_500))
                    process.send(signal.SIGSTOP)
                await house.start_all(*OWNERS)
                await house.clock.sleep_ms(TOGETHER_MS)
                for process in stopped.values():
                    process.send(signal.SIGCONT)
                for process in stopped.values():
                    seen = partial(_has_lost, process)
                    await until(seen, within_ms=10_000, what=f"{process.name} sees that it lost")
                await house.clock.sleep_ms(TOGETHER_MS)
            evidence = await house.drained()
        finally:
            for process in stopped.values():
                await process.kill()
    assert damage(evidence) == []
    assert answers.breaches(evidence, house.load) == []
    held = [row for row in evidence.books.rows if row.state == "uncertain"]
    print(f"{len(evidence.books.rows)} rows, {len(held)} of them uncertain")
