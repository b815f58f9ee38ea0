"""What a claim costs does not grow with the queue: counted in SQLite's own steps, not in time."""

import re
from collections import UserDict
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.carriers import RawConnection
from storage.database import connect, opened
from storage.options import SenderOptions
from storage.queries import STATEMENTS
from tests.bench.queues import ONE_IN, fill, owned
from tests.simulator.clock import VirtualClock

FEW, MANY = 1_000, 200_000
GRAIN = 10
"""So many steps of SQLite's virtual machine are counted as one."""

ROUNDS = 10
RATIO_MAX = 1.2
"""The same work; a deeper tree costs a step here and there."""


class Steps:
    """The steps that connections take."""

    def __init__(self) -> None:
        self.count = 0

    def connect(self, path: Path) -> RawConnection:
        """Open a connection whose steps are counted."""
        connection = connect(path)
        connection.set_progress_handler(self._note, GRAIN)  # type: ignore[attr-defined]  # the module's own
        return connection

    def _note(self) -> int:
        self.count += 1
        return 0


class Named(UserDict[str, str]):
    """The named statements, and which of them were asked for."""

    def __init__(self) -> None:
        super().__init__(STATEMENTS)
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> str:
        """Give a statement and note its name."""
        self.asked.add(name)
        return super().__getitem__(name)


def unspoilt(path: Path) -> None:
    """Leave the database as it is."""


async def steps_of_claims(
    path: Path,
    rows: int,
    spoil: Callable[[Path], None] = unspoilt,
    forget: Callable[[], None] = lambda: None,
) -> list[int]:
    """Fill a queue and claim from it some times; the steps that each claim took."""
    clock = VirtualClock()
    fill(path, rows, clock)
    spoil(path)
    steps = Steps()
    found = []
    async with opened(path, clock, connector=steps.connect) as db:
        queue = await owned(db, clock)
        for _ in range(ROUNDS):
            await queue.refill()
            forget()
            before = steps.count
            picked = await queue.claim()
            found.append(steps.count - before)
            assert len(picked.taken) == SenderOptions().in_flight_max
            await queue.settle()
    return found


async def test_a_claim_costs_the_same_however_much_is_queued(tmp_path: Path) -> None:
    """A tenth of it is for one chat, whose head is claimed each time."""
    assert MANY // ONE_IN == 20_000
    few = await steps_of_claims(tmp_path / "few.db", FEW)
    many = await steps_of_claims(tmp_path / "many.db", MANY)
    assert max(many) <= RATIO_MAX * max(few)


async def test_a_claim_without_its_index_is_seen_to_cost_more(tmp_path: Path) -> None:
    """The check can fail."""

    def spoil(path: Path) -> None:
        connection = connect(path)
        connection.execute("drop index lanes_due", {})
        connection.close()

    few = await steps_of_claims(tmp_path / "few.db", FEW)
    spoilt = await steps_of_claims(tmp_path / "spoilt.db", 5 * FEW, spoil)
    assert max(spoilt) > RATIO_MAX * max(few)


def scans(path: Path, names: set[str]) -> dict[str, list[str]]:
    """The steps of these statements' plans that read a whole table, by statement."""
    found = {}
    connection = connect(path)
    for name in names:
        sql = STATEMENTS[name]
        params = dict.fromkeys(re.findall(r":([a-z_]+)", sql), 0)
        plan = connection.execute(f"explain query plan {sql}", params).fetchall()
        steps = [row["detail"] for row in plan if row["detail"].startswith("SCAN")]
        # What a statement is given itself, as JSON, is read whole.
        found[name] = [step for step in steps if "VIRTUAL TABLE" not in step]
    connection.close()
    return {name: steps for name, steps in found.items() if steps}


async def test_neither_a_claim_nor_what_follows_it_scans_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Named()
    monkeypatch.setattr("storage.database.STATEMENTS", named)
    path = tmp_path / "rows.db"
    await steps_of_claims(path, FEW, forget=named.asked.clear)
    assert {"claims.heads", "claims.claim", "claims.stamp", "claims.mark_sent"} <= named.asked
    assert scans(path, named.asked) == {}
    assert scans(path, {"review.held", "lanes.rebuild"}), "a scan is seen"
