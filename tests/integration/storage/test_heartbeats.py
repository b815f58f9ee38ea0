"""Heartbeats: who is at work, and for how long the silent are remembered."""

from functools import partial

from storage import heartbeats
from storage.database import Database
from storage.heartbeats import FORGET_AFTER_MS, SILENT_AFTER_MS, RoleState
from tests.simulator.clock import VirtualClock


async def _beat(db: Database, owner: str, role: str = "sender") -> None:
    await db.write(partial(heartbeats.beat, owner=owner, role=role, state=RoleState.READY))


async def _owners(db: Database) -> list[str]:
    return [beat.owner for beat in await db.read(heartbeats.everyone)]


async def test_a_silent_process_is_seen_until_its_role_is_served_again(
    db: Database, clock: VirtualClock
) -> None:
    await _beat(db, "sender.1.a")
    clock.advance_ms(SILENT_AFTER_MS + 1)
    await _beat(db, "web.2.b", "web")
    assert await _owners(db) == ["sender.1.a", "web.2.b"]
    await _beat(db, "sender.3.c")
    assert await _owners(db) == ["sender.3.c", "web.2.b"]


async def test_two_that_beat_are_both_seen(db: Database, clock: VirtualClock) -> None:
    await _beat(db, "sender.1.a")
    clock.advance_ms(SILENT_AFTER_MS - 1)
    await _beat(db, "sender.2.b")
    assert await _owners(db) == ["sender.1.a", "sender.2.b"]


async def test_one_that_left_is_not_remembered_and_a_lost_one_not_for_ever(
    db: Database, clock: VirtualClock
) -> None:
    await _beat(db, "sender.1.a")
    await _beat(db, "worker.2.b", "worker")
    await db.write(lambda tx: heartbeats.leave(tx, "worker.2.b"))
    clock.advance_ms(FORGET_AFTER_MS + 1)
    await _beat(db, "web.3.c", "web")
    assert await _owners(db) == ["web.3.c"]
