"""The inbox: stored once, taken in order, ended once."""

from functools import partial

import pytest

from storage import inbox, retention
from storage.database import Database, Tx
from storage.errors import LeaseLost
from storage.inbox import Receipt, Received, Reception
from storage.lifecycle import BotName, InboxId, InboxState
from storage.retention import Kept
from tests.simulator.clock import VirtualClock

BOT = BotName("main")


def _update(update_id: int, body: bytes = b"{}") -> Received:
    return Received(BOT, update_id, "message", "c:7", "u:7", body)


async def _receive(db: Database, *ids: int) -> list[InboxId]:
    stored = [await db.write(partial(inbox.receive, update=_update(each))) for each in ids]
    return [receipt.id for receipt in stored]


async def test_a_redelivery_is_stored_once(db: Database) -> None:
    first = await db.write(lambda tx: inbox.receive(tx, _update(5)))
    again = await db.write(lambda tx: inbox.receive(tx, _update(5)))
    assert (first.reception, again.reception) == (Reception.STORED, Reception.DUPLICATE)
    assert first.id == again.id


async def test_the_same_id_with_other_content_is_kept_aside_once(db: Database) -> None:
    await db.write(lambda tx: inbox.receive(tx, _update(5, b"one")))
    other = await db.write(lambda tx: inbox.receive(tx, _update(5, b"two")))
    again = await db.write(lambda tx: inbox.receive(tx, _update(5, b"two")))
    assert other.reception is again.reception is Reception.QUARANTINED
    assert other.id == again.id
    kept = await db.read(lambda tx: inbox.show(tx, other.id))
    assert kept is not None
    assert (kept.state, kept.body) == (InboxState.QUARANTINED, b"two")


async def test_ids_may_come_out_of_order_and_start_anew(db: Database) -> None:
    """No high-water mark (php-telegram-bot/core issue 659)."""
    ids = await _receive(db, 900, 3, 899)
    waiting = await db.read(lambda tx: inbox.pending(tx, BOT, after_id=0, limit=10))
    assert [update.id for update in waiting] == ids


async def test_a_claimed_update_is_taken_by_nobody_else(db: Database) -> None:
    (update,) = await _receive(db, 1)
    taken = await db.write(lambda tx: inbox.claim(tx, [update], 1))
    assert [(item.id, item.claims) for item in taken] == [(update, 1)]
    assert await db.write(lambda tx: inbox.claim(tx, [update], 1)) == []


async def test_an_update_is_finished_only_by_the_epoch_that_claimed_it(db: Database) -> None:
    (update,) = await _receive(db, 1)
    await db.write(lambda tx: inbox.claim(tx, [update], 1))
    assert await db.write(lambda tx: inbox.rescue(tx, BOT, 2)) == 1
    await db.write(lambda tx: inbox.claim(tx, [update], 2))
    with pytest.raises(LeaseLost):
        await db.write(lambda tx: inbox.finish(tx, update, 1))
    await db.write(lambda tx: inbox.finish(tx, update, 2))
    done = await db.read(lambda tx: inbox.show(tx, update))
    assert done is not None
    assert (done.state, done.claims) == (InboxState.DONE, 2)


async def test_a_released_update_keeps_its_place_and_its_count(db: Database) -> None:
    first, second = await _receive(db, 1, 2)
    await db.write(lambda tx: inbox.claim(tx, [first], 1))
    await db.write(lambda tx: inbox.release(tx, first, 1))
    waiting = await db.read(lambda tx: inbox.pending(tx, BOT, after_id=0, limit=10))
    assert [update.id for update in waiting] == [first, second]
    (again,) = await db.write(lambda tx: inbox.claim(tx, [first], 1))
    assert again.claims == 1


async def test_a_dead_update_can_be_revived(db: Database) -> None:
    (update,) = await _receive(db, 1)
    await db.write(lambda tx: inbox.claim(tx, [update], 1))
    await db.write(lambda tx: inbox.bury(tx, update, 1, reason="ValueError", trace="t"))
    (dead,) = await db.read(lambda tx: inbox.dead_list(tx, limit=10))
    assert (dead.id, dead.reason) == (update, "ValueError")
    assert await db.write(lambda tx: inbox.requeue(tx, update))
    assert not await db.write(lambda tx: inbox.requeue(tx, update))
    waiting = await db.read(lambda tx: inbox.pending(tx, BOT, after_id=0, limit=10))
    assert [found.id for found in waiting] == [update]


async def test_what_was_forgotten_by_a_clock_set_ahead_is_still_known_when_it_comes_again(
    db: Database, clock: VirtualClock
) -> None:
    """A month ahead, and back again: Telegram's redelivery of minutes ago is none of a new one."""
    [update] = await _receive(db, 1)

    def settle(tx: Tx) -> None:
        inbox.claim(tx, [update], 1)
        inbox.finish(tx, update, 1)

    await db.write(settle)
    clock.step_wall_ms(30 * 86_400_000)
    await db.write(lambda tx: retention.prune(tx, Kept(7, 30, 400), clock))
    clock.step_wall_ms(-30 * 86_400_000)
    again = await db.write(lambda tx: inbox.receive(tx, _update(1)))
    assert again == Receipt(Reception.DUPLICATE, update)
    other = await db.write(lambda tx: inbox.receive(tx, _update(1, b"other")))
    assert other.reception is Reception.QUARANTINED


async def test_of_the_oldest_updates_not_even_the_digest_is_kept(
    db: Database, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "REMEMBERED", 2)
    updates = await _receive(db, 1, 2, 3)

    def settle(tx: Tx) -> None:
        inbox.claim(tx, updates, 1)
        for update in updates:
            inbox.finish(tx, update, 1)

    await db.write(settle)
    clock.advance_ms(1_000)
    assert await db.write(lambda tx: inbox.prune(tx, limit=10)) == 0, "not while it is readable"
    await db.write(lambda tx: inbox.forget(tx, before_ms=tx.now_ms(), limit=10))
    assert await db.write(lambda tx: inbox.prune(tx, limit=10)) == 1
    shown = [await db.read(partial(inbox.show, update=it)) for it in updates]
    assert [each is None for each in shown] == [True, False, False]


async def test_retention_forgets_what_is_done_and_keeps_what_waits_for_a_person(
    db: Database, clock: VirtualClock
) -> None:
    done, dead, waiting = await _receive(db, 1, 2, 3)

    def settle(tx: Tx) -> None:
        inbox.claim(tx, [done, dead], 1)
        inbox.finish(tx, done, 1)
        inbox.bury(tx, dead, 1, reason="x", trace=None)

    await db.write(settle)
    clock.advance_ms(1_000)
    assert await db.write(lambda tx: inbox.forget(tx, before_ms=tx.now_ms(), limit=10)) == 1
    assert await db.write(lambda tx: inbox.forget(tx, before_ms=tx.now_ms(), limit=10)) == 0
    kept = await db.read(lambda tx: inbox.show(tx, done))
    assert kept is not None
    assert b"{}" not in kept.body
    assert await db.read(lambda tx: inbox.show(tx, dead)) is not None
    assert await db.read(lambda tx: inbox.show(tx, waiting)) is not None
