"""Pauses: what is stopped is known by its scope, ends by itself or is resumed."""

import pytest

from storage import claims, outbox, pauses
from storage.database import Database
from storage.lifecycle import Priority
from storage.pauses import BOT_SCOPE, BULK_SCOPE, Pause
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock


async def _pause(db: Database, scope: str, until_ms: int | None = None) -> None:
    await db.write(
        lambda tx: pauses.pause(tx, BOT, scope, reason="r", by_whom="ada", until_ms=until_ms)
    )


async def test_a_pause_tells_why_by_whom_and_until_when(db: Database, clock: VirtualClock) -> None:
    now_ms = clock.now_ms()
    await _pause(db, BULK_SCOPE, now_ms + 5_000)
    expected = Pause(BULK_SCOPE, "r", "ada", now_ms, now_ms + 5_000)
    assert await db.read(lambda tx: pauses.of_bot(tx, BOT)) == [expected]
    among = await db.read(lambda tx: pauses.among(tx, BOT, [BOT_SCOPE, BULK_SCOPE, "c:7"]))
    assert among == {BULK_SCOPE: expected}


async def test_a_pause_with_an_end_is_over_by_itself(db: Database, clock: VirtualClock) -> None:
    await _pause(db, BOT_SCOPE, clock.now_ms() + 5_000)
    clock.advance_ms(5_000)
    assert await db.read(lambda tx: pauses.of_bot(tx, BOT)) == []
    assert not await db.write(lambda tx: pauses.resume(tx, BOT, BOT_SCOPE))


async def test_a_pause_without_an_end_is_over_when_it_is_resumed(db: Database) -> None:
    await _pause(db, "c:7")
    assert await db.write(lambda tx: pauses.resume(tx, BOT, "c:7"))
    assert not await db.write(lambda tx: pauses.resume(tx, BOT, "c:7"))


async def test_a_lane_that_was_put_off_is_looked_at_again_when_it_is_resumed(db: Database) -> None:
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a")))
    await _pause(db, "c:7")
    [head] = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    await db.write(lambda tx: claims.defer(tx, head, due_ms=1 << 50))
    await db.write(lambda tx: pauses.resume(tx, BOT, "c:7"))
    assert await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9)) == [head]


async def test_pauses_that_were_over_long_ago_are_forgotten(
    db: Database, clock: VirtualClock
) -> None:
    await _pause(db, BOT_SCOPE, clock.now_ms() + 5_000)
    await _pause(db, "c:7")
    clock.advance_ms(10_000)
    assert await db.write(lambda tx: pauses.prune(tx, before_ms=tx.now_ms())) == 1


@pytest.mark.parametrize(
    ("scope", "held"),
    [
        (BOT_SCOPE, {("c:7", "interactive"), ("c:7", "bulk"), ("c:7", "paid")}),
        (BULK_SCOPE, {("c:7", "bulk"), ("c:7", "paid")}),
        ("c:7", {("c:7", "interactive"), ("c:7", "bulk"), ("c:7", "paid")}),
        ("c:8", set()),
    ],
)
def test_a_scope_holds_back_what_it_names(scope: str, held: set[tuple[str, str]]) -> None:
    paused = {scope: Pause(scope, "r", "ada", 0, None)}
    found = {("c:7", str(each)) for each in Priority if pauses.holding(paused, "c:7", each)}
    assert found == held
