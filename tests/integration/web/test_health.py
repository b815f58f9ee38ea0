"""Alive means that the loop answers; ready means that a commit has just reached the disk."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.web.backpressure import BackPressure, Marks
from bot.web.health import PROOF_MS_MAX, Health
from bot.web.meter import Meter
from bot.web.pulse import Pulse
from storage import heartbeats
from storage.database import Database, connect
from storage.errors import StorageError
from storage.heartbeats import RoleState
from storage.notify import Notifier
from storage.settings import ServiceEnvironment
from tests.integration.web.door import open_door
from tests.simulator.clock import VirtualClock

OWNER = "web.1.abc"


def health_of(db: Database, clock: VirtualClock, backpressure: BackPressure) -> Health:
    return Health(db, clock, backpressure, owner=OWNER, facts=lambda: {"acks": 3})


@pytest.fixture
def backpressure(db: Database, tmp_path: Path) -> BackPressure:
    return BackPressure(db, tmp_path, [], Marks(10, 0))


@pytest.fixture
def health(db: Database, clock: VirtualClock, backpressure: BackPressure) -> Health:
    return health_of(db, clock, backpressure)


async def test_an_open_door_is_alive_and_ready(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        live = await door.http.get("/livez")
        ready = await door.http.get("/readyz")
    assert (live.status_code, live.text) == (200, "ok\n")
    assert (ready.status_code, ready.json()) == (200, {"ready": True, "reasons": []})
    assert live.headers["cache-control"] == ready.headers["cache-control"] == "no-store"


async def test_readiness_is_a_heartbeat_that_was_committed(health: Health, db: Database) -> None:
    await health.prove()
    health.enter(RoleState.READY)
    await health.beat()
    assert await health.faults() == []
    (beat,) = await db.read(heartbeats.everyone)
    assert (beat.owner, beat.role, beat.state) == (OWNER, "web", RoleState.READY)
    assert beat.facts == {"acks": 3}


async def test_who_has_not_begun_or_drains_is_not_ready(health: Health) -> None:
    await health.prove()
    assert await health.faults() == ["starting"]
    health.enter(RoleState.DRAINING)
    assert await health.faults() == ["draining"]


async def test_one_commit_proves_for_five_seconds_however_often_it_is_asked(
    health: Health, db: Database, clock: VirtualClock
) -> None:
    health.enter(RoleState.READY)
    await health.beat()
    first_ms = clock.now_ms()
    clock.advance_ms(PROOF_MS_MAX - 1)
    assert await asyncio.gather(*(health.faults() for _ in range(5))) == [[]] * 5
    assert [beat.beat_at_ms for beat in await db.read(heartbeats.everyone)] == [first_ms]
    clock.advance_ms(1)
    assert await health.faults() == []
    assert [beat.beat_at_ms for beat in await db.read(heartbeats.everyone)] == [clock.now_ms()]


@contextmanager
def locked(path: Path, clock: VirtualClock) -> Iterator[None]:
    """Another process that writes; after it, whoever waits for the lock looks again."""
    other = connect(path)
    other.execute("begin immediate", {})
    try:
        yield
    finally:
        other.execute("rollback", {})
        other.close()
        clock.advance_ms(1)


async def test_a_database_that_takes_no_commit_in_time_is_not_ready(
    health: Health, db: Database, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.health.COMMIT_MS_MAX", 50)
    health.enter(RoleState.READY)
    with locked(db.path, clock):
        assert await health.faults() == ["no commit within 50 ms"]


async def test_a_database_that_is_closed_is_not_ready(health: Health, db: Database) -> None:
    health.enter(RoleState.READY)
    await db.close()
    assert await health.faults() == ["no commit: StorageError"]
    with pytest.raises(StorageError):
        await health.prove()


async def test_a_schema_from_the_future_is_noticed_while_running(
    health: Health, db: Database
) -> None:
    health.enter(RoleState.READY)
    other = connect(db.path)
    other.execute("insert into migrations (number, name, applied_at_ms) values (99, 'x', 0)", {})
    other.close()
    (fault,) = await health.faults()
    assert "schema 99" in fault


async def test_a_disk_that_is_nearly_full_is_not_ready(
    db: Database, clock: VirtualClock, tmp_path: Path
) -> None:
    backpressure = BackPressure(db, tmp_path, [], Marks(10, disk_free_min_bytes=1 << 60))
    health = health_of(db, clock, backpressure)
    health.enter(RoleState.READY)
    await backpressure.look()
    assert await health.faults() == ["disk_low"]


async def test_one_who_leaves_is_no_longer_listed(health: Health, db: Database) -> None:
    await health.prove()
    await health.leave()
    assert await db.read(heartbeats.everyone) == []


@pytest.fixture
def pulse(backpressure: BackPressure, health: Health, clock: VirtualClock) -> Pulse:
    notifier = Notifier(ServiceEnvironment(), clock)
    return Pulse(backpressure, health, Meter(), clock=clock, notifier=notifier)


async def test_the_pulse_beats_each_five_seconds(
    pulse: Pulse, db: Database, clock: VirtualClock
) -> None:
    beats = set()
    for _ in range(11):
        clock.advance_ms(1_000)
        await pulse.go_round()
        beats |= {beat.beat_at_ms for beat in await db.read(heartbeats.everyone)}
    assert len(beats) == 2


async def test_the_pulse_goes_on_while_the_database_is_locked(
    pulse: Pulse,
    health: Health,
    db: Database,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bot.web.health.COMMIT_MS_MAX", 50)
    clock.advance_ms(5_000)
    with locked(db.path, clock):
        await pulse.go_round()
        assert "no commit within 50 ms" in await health.faults()
