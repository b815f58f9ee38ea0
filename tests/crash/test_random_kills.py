"""Processes that are killed at random moments lose nothing, double nothing, and keep the order."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.crash import answers
from tests.crash.checkers import Evidence, damage, doubled_effects
from tests.crash.living import SETTINGS, Living, living
from tests.crash.reaping import Reaper
from tests.simulator.faults import (
    Acceptance,
    Cut,
    Exhausted,
    Fault,
    Flood,
    Gateway,
    Hold,
    ServerError,
    Truncated,
)

# A call takes a while, so that a kill finds some of them under way.
CALL_MS: Final = 25
# A Telegram in trouble: limits, lost answers, and answers that are none. The rest is slow.
TROUBLE: Final[tuple[tuple[float, Fault], ...]] = (
    (0.03, Flood(1)),
    (0.005, Flood(1, "bot")),
    (0.01, Exhausted(1)),
    (0.02, Cut(Acceptance.BEFORE)),
    (0.02, Cut(Acceptance.AFTER, reset=True)),
    (0.01, ServerError(Acceptance.BEFORE)),
    (0.01, ServerError(Acceptance.AFTER)),
    (0.01, Gateway(Acceptance.BEFORE)),
    (0.01, Gateway(Acceptance.AFTER, 504)),
    (0.01, Truncated(short_of_length=True)),
    (0.865, Hold(CALL_MS)),
)
# Floods hold the whole bot back: who asks faster than it may answer asks into a queue.
PAUSE_MS: Final = (300, 2_000)


async def _survived(
    house: Living, reaper: Reaper, trouble: Sequence[tuple[float, Fault]]
) -> Evidence:
    """Kill under load until it is enough, start everything anew, and wait until all is done."""
    await house.sim.chances(reaper.dice.randrange(1 << 32), trouble)
    async with house.under_load(reaper.dice):
        await reaper.run()
        await house.start_all(*reaper.roles)
    await house.sim.heal()
    return await house.drained()


def _figures(evidence: Evidence, reaper: Reaper) -> str:
    load = reaper.living.load
    states = Counter(row.state for row in evidence.books.rows)
    rescued = answers.in_flight_at_a_kill(evidence)
    met = Counter(arrival.fault for arrival in evidence.ledger.arrivals() if arrival.fault)
    del met[Hold.__name__]
    return (
        f"{reaper.kills.total()} kills {dict(reaper.kills)}, {reaper.in_recovery} in recovery; "
        f"{load.questions} questions, {load.injected} other updates, "
        f"{load.redelivered} brought again; {met.total()} faults {dict(met)}; "
        f"{len(evidence.books.rows)} rows {dict(states)}; {len(rescued)} in flight at a kill, "
        f"{sum(row.state == 'uncertain' for row in rescued)} of them uncertain"
    )


async def _proven(folder: Path, *, kills: int, seed: int) -> None:
    async with living(folder) as house:
        house.load.pause_ms = PAUSE_MS
        reaper = Reaper(house, random.Random(seed), kills)
        evidence = await _survived(house, reaper, TROUBLE)
    print(f"seed {seed}: {_figures(evidence, reaper)}")
    breaches = [*damage(evidence), *answers.breaches(evidence, house.load)]
    assert breaches == [], f"seed {seed}: {breaches[:10]}"
    assert reaper.kills.total() >= kills
    assert house.load.questions > kills


@pytest.mark.timeout(120)
async def test_a_few_kills_at_random_moments_lose_and_double_nothing(tmp_path: Path) -> None:
    await _proven(tmp_path, kills=6, seed=6)


@pytest.mark.prove
@pytest.mark.timeout(2_400)
async def test_kills_at_random_moments_lose_and_double_nothing(
    tmp_path: Path, *, full_proof: bool
) -> None:
    """All three roles under load, at a Telegram in trouble; a new seed each time."""
    await _proven(tmp_path, kills=500 if full_proof else 60, seed=random.randrange(1 << 32))


@pytest.mark.prove
@pytest.mark.timeout(120)
async def test_a_house_that_may_resend_is_seen_to_double(tmp_path: Path) -> None:
    """The test of the test: what may be resent when uncertain doubles now and then, and shows."""
    settings = f'{SETTINGS}[delivery]\non_uncertain = "resend"\n'
    async with living(tmp_path, settings=settings) as house:
        await house.start_all("web", "worker")
        reaper = Reaper(house, random.Random(7), kills_max=8, roles=("sender",))
        evidence = await _survived(house, reaper, [(1.0, Hold(CALL_MS))])
    print(_figures(evidence, reaper))
    assert doubled_effects(evidence) != []
    assert {breach.partition(":")[0] for breach in damage(evidence)} == {"doubled_effects"}
