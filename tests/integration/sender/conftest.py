"""A stub of Telegram and a house for senders, on a clock that the test moves."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.sender.house import House, HouseClock, house_of
from tests.integration.sender.stub import Stub, serving
from tests.simulator.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    """A clock that stands until the test moves it."""
    return HouseClock()


@pytest.fixture
async def stub(clock: VirtualClock) -> AsyncIterator[Stub]:
    """A stub of Telegram."""
    async with serving(clock) as stub:
        yield stub


@pytest.fixture
async def house(tmp_path: Path, clock: VirtualClock, stub: Stub) -> AsyncIterator[House]:
    """Surroundings for senders."""
    async with house_of(tmp_path, clock, stub) as house:
        yield house
