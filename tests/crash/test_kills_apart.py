"""Named moments to which a house comes too seldom to wait for: each has its process here.

A migration, a checkpoint, a batch of retention, updates that are fetched instead of brought.
"""

import asyncio
import random
import signal
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from bot.turns.worker import DRAIN_S
from storage.carriers import InlineCarrier
from storage.clock import SystemClock
from storage.database import connect
from storage.failpoint import POINTS
from storage.migrate import migrate
from tests.crash import answers
from tests.crash.aftermath import lost
from tests.crash.books import read_books
from tests.crash.checkers import damage
from tests.crash.crossing import Ground, Record, crossing
from tests.crash.deeds import APART
from tests.crash.handlers import HANG
from tests.crash.living import living
from tests.live.house import ROLES
from tests.live.process import LiveProcess, until

UPDATES: Final = 20
SIDES: Final = ("committing", "committed")
_CHORES: Final = {
    "sender.prune": "prune",
    "sender.checkpoint": "checkpoint",
    "storage.migrate": "nothing",
}
_WITHIN_MS: Final = 30_000


def test_each_point_that_stands_apart_is_killed_at_here() -> None:
    assert {*_CHORES, "worker.poll", "worker.hand_back"} == APART
    assert {f"{name}.{side}" for name in APART for side in SIDES} <= set(POINTS)


async def _dies(folder: Path, chore: str, point: str) -> None:
    command = ["-m", "tests.crash.chore", str(folder / "ferryman.db"), chore, point]
    process = await LiveProcess.start("chore", command, log=folder / "chore.log")
    assert await process.ended() == -signal.SIGKILL, process.tail()


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", ["sender.prune", "sender.checkpoint"])
async def test_a_process_that_dies_at_a_chore_loses_nothing(
    tmp_path: Path, name: str, side: str
) -> None:
    """What retention may forget is forgotten whole, or not at all."""
    clock, record = SystemClock(), Record(lambda: 0)
    ground = Ground(tmp_path / "ferryman.db", clock, connect, InlineCarrier)
    async with crossing(ground, record) as roles:
        assert await roles.run(UPDATES, random.Random(1))
    promised = record.until(0)

    await _dies(tmp_path, _CHORES[name], f"{name}.{side}")

    if f"{name}.{side}" != "sender.prune.committed":
        assert await lost(ground.path, promised, clock) == []
        return
    books = read_books(ground.path)
    assert len(books.rows) == 0
    assert len(books.updates) == UPDATES, "that they came is known for longer"
    found = await lost(ground.path, [], clock)
    # Chats and updates are remembered for longer than what the turns have said.
    known = ("half: chat:", "half: update ")
    assert [each for each in found if not each.startswith(known)] == []


@pytest.mark.parametrize("side", SIDES)
async def test_a_process_that_dies_at_a_migration_leaves_all_of_it_or_nothing(
    tmp_path: Path, side: str
) -> None:
    path, clock = tmp_path / "ferryman.db", SystemClock()
    await _dies(tmp_path, "nothing", f"storage.migrate.{side}")
    missing = migrate(path, clock)
    assert bool(missing) == (side == "committing")
    assert await lost(path, [], clock) == []


@pytest.mark.prove
@pytest.mark.timeout(180)
async def test_a_process_that_dies_while_it_fetches_updates_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    """All roles in one process, as on a laptop, and no webhook."""
    async with living(tmp_path, has_webhook=False) as house:
        for side in SIDES:
            process = await house.start("run", "--polling", failpoint=f"worker.poll.{side}")
            await house.load.ask(house.load.chats[0])
            died = partial(_has_ended, process)
            await until(died, within_ms=_WITHIN_MS, what=f"it dies at worker.poll.{side}")
            assert process.returncode == -signal.SIGKILL, process.tail()
        process = await house.start("run", "--polling")
        await house.all_ready(process)
        evidence = await house.drained()
    assert damage(evidence) == []
    assert answers.breaches(evidence, house.load) == []
    assert len(ROLES) == process.times_said("role.ready")


@pytest.mark.prove
@pytest.mark.timeout(180)
async def test_a_worker_that_dies_while_it_hands_back_leaves_its_turn_to_the_next(
    tmp_path: Path,
) -> None:
    """It was asked to stop, and waited for its turns as long as it may."""
    # Two houses wait as long as one.
    async with asyncio.TaskGroup() as group:
        for side in SIDES:
            (tmp_path / side).mkdir()
            group.create_task(_dies_handing_back(tmp_path / side, side))


async def _dies_handing_back(folder: Path, side: str) -> None:
    async with living(folder) as house:
        await house.start_all("web")
        worker = await house.start("worker", failpoint=f"worker.hand_back.{side}")
        await house.ready(worker)
        await house.sim.says(house.load.chats[0].user, HANG, bot=house.load.bot.id)
        path = house.house.database_path
        await until(partial(_is_in_hand, path), within_ms=_WITHIN_MS, what="the turn runs")
        worker.send(signal.SIGTERM)
        assert await worker.ended(within_s=DRAIN_S + 15) == -signal.SIGKILL, worker.tail()
        freed = [each.state for each in read_books(path).updates]
        assert freed == ["claimed" if side == "committing" else "received"]
        await house.start_all("worker")
        await until(partial(_is_in_hand, path), within_ms=_WITHIN_MS, what="the turn runs again")


async def _is_in_hand(path: Path) -> bool:
    return any(each.state == "claimed" for each in read_books(path).updates)


async def _has_ended(process: LiveProcess) -> bool:
    return process.returncode is not None
