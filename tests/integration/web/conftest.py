"""A real database on a clock that the test moves, and the door's parts around it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from storage.database import Database, opened
from storage.migrate import migrate
from tests.simulator.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that stands until the test moves it."""
    return VirtualClock()


@pytest.fixture
async def db(tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Database]:
    """A migrated, empty database in a file."""
    path = tmp_path / "ferryman.db"
    migrate(path, clock)
    async with opened(path, clock) as database:
        yield database
