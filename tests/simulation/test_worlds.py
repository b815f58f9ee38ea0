"""The worlds themselves: that they pass, that they are the same again, and that they can fail."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.loop import Deadlock, Process, WorldLoop, passing, process_here
from tests.simulation.planted import PLANTED
from tests.simulation.runner import Report
from tests.simulation.swarm import SIGHTINGS, minimum

ROOT = Path(__file__).parents[2]
BUDGET = 50
"""So many worlds a planted bug has to be caught in."""

SMOKE = ("--seeds", "6", "--hours", "0.5")


def worlds(*options: str, hash_seed: str = "0", within_s: float = 600) -> str:
    """Run worlds as one does by hand; what they print. Fails when they do."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *options],
        cwd=ROOT,
        env={"PYTHONHASHSEED": hash_seed, "PATH": ""},
        capture_output=True,
        text=True,
        timeout=within_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_invariant_holds_in_a_few_worlds() -> None:
    told = worlds(*SMOKE)
    assert "0 worlds failed" in told


@pytest.mark.parametrize("seed", ["3", "5"])
def test_the_same_seed_gives_the_same_world(seed: str) -> None:
    traces = {worlds("--seed", seed, "--hours", "0.3", hash_seed=it) for it in ("1", "77")}
    assert len(traces) == 1, traces


def test_other_seeds_give_other_worlds() -> None:
    assert worlds("--seed", "3", "--hours", "0.1") != worlds("--seed", "4", "--hours", "0.1")


def test_a_timeline_tells_each_event_in_a_line() -> None:
    lines = worlds("--seed", "3", "--hours", "0.1", "--timeline").splitlines()
    for what in ("begins", "row+", "leaves", "arrives", "returns", "says", "heals"):
        assert any(line.split()[1:2] == [what] for line in lines), what


def test_a_fault_that_was_not_met_often_enough_fails_the_run() -> None:
    met = Counter({name: minimum(name, 100.0) for name in SIGHTINGS})
    assert Report(hours=100.0, worlds=100, sightings=met).is_passed
    for name in SIGHTINGS:
        report = Report(hours=100.0, worlds=100, sightings=met - Counter({name: 1}))
        assert not report.is_passed
        assert [missing.split(" was ")[0] for missing in report.missing] == [name]


def test_a_killed_process_runs_no_clean_up() -> None:
    loop = WorldLoop()
    said: list[str] = []

    async def life() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            said.append("cleaned up")

    process = Process(loop, "some", 1)
    process.spawn(life()).add_done_callback(lambda _: said.append("ended"))
    loop.run_until_complete(passing(0.1))
    process.kill()
    loop.run_until_complete(passing(0.1))
    assert said == []
    process.bury()
    loop.close()


def test_a_stopped_process_goes_on_where_it_was() -> None:
    loop = WorldLoop()
    moments: list[int] = []

    async def life() -> None:
        while True:
            await passing(1.0)
            moments.append(process_here().number)

    process = Process(loop, "some", 7)
    process.spawn(life()).add_done_callback(lambda _: None)
    loop.run_until_complete(passing(2.5))
    process.stop()
    loop.run_until_complete(passing(100.0))
    assert moments == [7, 7]
    process.go_on()
    loop.run_until_complete(passing(2.0))
    # What had come due meanwhile, and two more.
    assert moments[2:] == [7, 7, 7]
    process.kill()
    process.bury()
    loop.close()


def test_a_world_in_which_nothing_can_happen_any_more_is_seen() -> None:
    loop = WorldLoop()
    with pytest.raises(Deadlock):
        loop.run_until_complete(asyncio.Event().wait())
    loop.close()


@pytest.mark.prove
@pytest.mark.timeout(900)
def test_every_invariant_holds_in_a_hundred_worlds() -> None:
    told = worlds("--seeds", "100", "--hours", "1", within_s=800)
    print(told)
    assert "0 worlds failed" in told


@pytest.mark.prove
@pytest.mark.timeout(300)
@pytest.mark.parametrize("bug", PLANTED)
def test_a_planted_bug_is_caught(bug: str) -> None:
    told = worlds("--seeds", str(BUDGET), "--hours", "0.5", "--plant", bug)
    print(told)
    assert "caught in world" in told
