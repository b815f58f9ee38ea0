"""The outbox: one row a cause, lanes in order, every end recorded."""

from functools import partial

import pytest

from storage import claims, message_ids, outbox, reports, review
from storage.claims import AttemptEnd, Claim, OutboxItem
from storage.database import Database, Tx
from storage.errors import LeaseLost
from storage.lifecycle import AttemptStage, OutboxState, Priority
from storage.outbox import Enqueued, Forgotten
from storage.outgoing import Outgoing
from storage.review import Decision
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

ANSWERED = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=5, status=200)


async def _leave(db: Database, *calls: Outgoing) -> list[Enqueued]:
    return [await db.write(partial(outbox.enqueue, bot=BOT, outgoing=each)) for each in calls]


async def _heads(db: Database, priority: Priority = Priority.INTERACTIVE) -> list[OutboxItem]:
    return list(await db.write(lambda tx: claims.heads(tx, BOT, priority, limit=100)))


async def _claim(db: Database, epoch: int = 1) -> Claim:
    (item, *_) = await _heads(db)
    return await db.write(lambda tx: claims.claim(tx, [item], epoch)[0])


async def _state(db: Database, row_id: int) -> tuple[OutboxState, int]:
    row = await db.read(lambda tx: reports.show(tx, row_id))  # type: ignore[arg-type]  # a plain id
    assert row is not None
    return row.state, row.attempts


def _sent(tx: Tx, claimed: Claim, message_id: int = 100) -> None:
    claims.close_attempts(tx, [(claimed, ANSWERED)])
    claims.mark_sent(tx, [claims.Accepted(claimed, message_id)])


async def test_one_cause_leaves_one_row(db: Database) -> None:
    first = await db.write(lambda tx: outbox.enqueue(tx, BOT, call("turn:1:0:0")))
    again = await db.write(lambda tx: outbox.enqueue(tx, BOT, call("turn:1:0:0")))
    assert (first.fresh, again.fresh, again.id) == (True, False, first.id)
    assert len(await db.read(lambda tx: reports.queue(tx, BOT, limit=10))) == 1


async def test_another_content_under_the_same_key_is_a_new_row_and_said(db: Database) -> None:
    """A deploy between two runs of a turn changed what the handler says."""
    first = await db.write(lambda tx: outbox.enqueue(tx, BOT, call("k", placeholder=-5)))
    other = await db.write(
        lambda tx: outbox.enqueue(tx, BOT, call("k", text="bye", placeholder=-5))
    )
    assert (other.fresh, other.changed) == (True, True)
    assert other.id != first.id


async def test_only_the_head_of_a_chat_can_be_claimed_and_the_next_one_follows(
    db: Database,
) -> None:
    await _leave(db, call("a"), call("b"))
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("other", chat_id=8)))
    assert [item.chat_id for item in await _heads(db)] == [7, 8]
    claimed = await _claim(db)
    assert [item.chat_id for item in await _heads(db)] == [8]
    await db.write(lambda tx: _sent(tx, claimed))
    seven = next(item for item in await _heads(db) if item.chat_id == 7)
    assert seven.id == claimed.item.id + 1


async def test_nothing_of_a_chat_goes_while_its_other_priority_is_in_flight(db: Database) -> None:
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a")))
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("b", priority=Priority.BULK)))
    claimed = await _claim(db)
    assert await _heads(db, Priority.BULK) == []
    await db.write(lambda tx: _sent(tx, claimed))
    assert len(await _heads(db, Priority.BULK)) == 1


async def test_a_lane_waits_for_the_moment_it_was_given(db: Database, clock: VirtualClock) -> None:
    await _leave(db, call("a"), call("b"))
    claimed = await _claim(db)
    due_ms = clock.now_ms() + 1_000
    await db.write(lambda tx: claims.mark_sent(tx, [claims.Accepted(claimed, 1, due_ms)]))
    assert await _heads(db) == []
    assert await db.read(lambda tx: outbox.next_due_ms(tx, BOT)) == due_ms
    clock.advance_ms(1_000)
    assert len(await _heads(db)) == 1


async def test_a_requeued_row_blocks_its_lane_until_it_is_due(
    db: Database, clock: VirtualClock
) -> None:
    await _leave(db, call("a"), call("b"))
    claimed = await _claim(db)
    due_ms = clock.now_ms() + 3_000
    await db.write(
        lambda tx: claims.requeue(tx, claimed, due_ms=due_ms, spend_attempt=False, reason="429")
    )
    assert await _heads(db) == []
    clock.advance_ms(3_000)
    (head,) = await _heads(db)
    assert (head.id, head.attempts) == (claimed.item.id, 0)


async def test_a_held_row_steps_out_of_its_lane(db: Database) -> None:
    """Nobody behind it waits for a person."""
    await _leave(db, call("a"), call("b"))
    claimed = await _claim(db)
    await db.write(lambda tx: claims.hold(tx, claimed, OutboxState.UNCERTAIN, reason="no answer"))
    (head,) = await _heads(db)
    assert head.id == claimed.item.id + 1
    (held,) = await db.read(lambda tx: review.held(tx, limit=10))
    assert (held.id, held.reason) == (claimed.item.id, "no answer")


@pytest.mark.parametrize(
    ("decision", "state"),
    [
        (Decision.SENT, OutboxState.SENT),
        (Decision.DROP, OutboxState.DEAD),
        (Decision.RESEND, OutboxState.QUEUED),
    ],
)
async def test_a_person_decides_a_held_row_once(
    db: Database, decision: Decision, state: OutboxState
) -> None:
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a")))
    claimed = await _claim(db)
    row = claimed.item.id
    await db.write(lambda tx: claims.hold(tx, claimed, OutboxState.UNCERTAIN, reason="r"))
    assert await db.write(lambda tx: review.resolve(tx, row, decision, by="ada"))
    assert not await db.write(lambda tx: review.resolve(tx, row, decision, by="ada"))
    assert (await _state(db, row))[0] is state
    assert len(await _heads(db)) == (1 if decision is Decision.RESEND else 0)


async def test_a_newer_row_supersedes_the_queued_one_and_takes_over_the_lane(
    db: Database,
) -> None:
    old = await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a", supersede_key="q:7")))
    new = await db.write(lambda tx: outbox.enqueue(tx, BOT, call("b", supersede_key="q:7")))
    assert new.superseded == (old.id,)
    assert (await _state(db, old.id))[0] is OutboxState.SUPERSEDED
    assert [item.id for item in await _heads(db)] == [new.id]


async def test_a_superseding_row_inherits_the_wait_of_its_lane(
    db: Database, clock: VirtualClock
) -> None:
    """Otherwise a new question would end a flood's wait."""
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a", supersede_key="q:7")))
    claimed = await _claim(db)
    due_ms = clock.now_ms() + 3_000
    await db.write(
        lambda tx: claims.requeue(tx, claimed, due_ms=due_ms, spend_attempt=False, reason="429")
    )
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("b", supersede_key="q:7")))
    assert await _heads(db) == []
    clock.advance_ms(3_000)
    assert len(await _heads(db)) == 1


async def test_a_claimed_row_is_not_superseded(db: Database) -> None:
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a", supersede_key="q:7")))
    claimed = await _claim(db)
    new = await db.write(lambda tx: outbox.enqueue(tx, BOT, call("b", supersede_key="q:7")))
    assert new.superseded == ()
    assert (await _state(db, claimed.item.id))[0] is OutboxState.CLAIMED


async def test_what_waits_beyond_its_time_expires_and_frees_the_lane(
    db: Database, clock: VirtualClock
) -> None:
    old = await db.write(
        lambda tx: outbox.enqueue(tx, BOT, call("a", expires_at_ms=clock.now_ms() + 1_000))
    )
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("b")))
    clock.advance_ms(1_000)
    assert await db.write(lambda tx: outbox.expire(tx, BOT)) == [old.id]
    assert (await _state(db, old.id))[0] is OutboxState.EXPIRED
    assert len(await _heads(db)) == 1


async def test_a_row_for_later_joins_its_lane_when_it_is_due(
    db: Database, clock: VirtualClock
) -> None:
    due_ms = clock.now_ms() + 60_000
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("later", not_before_ms=due_ms)))
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("now")))
    assert len(await _heads(db)) == 1
    assert await db.write(lambda tx: outbox.join_scheduled(tx, BOT)) == 0
    clock.advance_ms(60_000)
    assert await db.write(lambda tx: outbox.join_scheduled(tx, BOT)) == 1
    queue = await db.read(lambda tx: reports.queue(tx, BOT, limit=10))
    assert len(queue) == 2


async def test_orphans_tell_which_calls_may_have_left(db: Database) -> None:
    await _leave(db, call("a", chat_id=7), call("b", chat_id=8))
    taken = [await _claim(db), await _claim(db)]
    await db.write(lambda tx: claims.stamp(tx, taken[:1]))
    found = await db.read(lambda tx: claims.orphans(tx, BOT, 2))
    assert [(orphan.claim.item.chat_id, orphan.stamped) for orphan in found] == [
        (7, True),
        (8, False),
    ]


async def test_a_row_settled_once_is_not_settled_again(db: Database) -> None:
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a")))
    claimed = await _claim(db)
    await db.write(lambda tx: _sent(tx, claimed))
    with pytest.raises(LeaseLost):
        await db.write(lambda tx: _sent(tx, claimed))


async def test_a_placeholder_is_resolved_when_its_message_was_sent(db: Database) -> None:
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("a", placeholder=-5)))
    assert await db.read(lambda tx: message_ids.resolve(tx, BOT, -6)) is None
    claimed = await _claim(db)
    await db.write(lambda tx: _sent(tx, claimed, message_id=4711))
    found = await db.read(lambda tx: message_ids.resolve(tx, BOT, -5))
    assert found is not None
    assert (found.state, found.message_id) == (OutboxState.SENT, 4711)


async def test_a_row_outside_of_a_turn_gets_a_placeholder_of_its_own(db: Database) -> None:
    left = await db.write(lambda tx: outbox.enqueue_free(tx, BOT, call("a")))
    assert left.placeholder is not None
    assert -(1 << 53) < left.placeholder < -(1 << 52)
    assert await db.read(lambda tx: message_ids.resolve(tx, BOT, left.placeholder or 0)) is not None


async def test_a_moved_chat_takes_its_queue_along_in_order(db: Database) -> None:
    await _leave(db, call("a", chat_id=-5), call("b", chat_id=-5))
    await db.write(lambda tx: outbox.enqueue(tx, BOT, call("new", chat_id=-100555)))
    moved = await db.write(
        lambda tx: outbox.move_lane(tx, BOT, "c:-5", new_lane="c:-100555", chat_id=-100555)
    )
    assert moved == 2
    (head,) = await _heads(db)
    assert (head.lane, head.params["chat_id"]) == ("c:-100555", "-100555")
    assert head.id == 1


async def test_an_unreachable_chat_loses_its_queue_and_no_other(db: Database) -> None:
    await _leave(db, call("a"), call("b"), call("c", chat_id=8))
    gone = await db.write(lambda tx: outbox.cancel_lane(tx, BOT, "c:7", reason="blocked"))
    assert len(gone) == 2
    assert [item.chat_id for item in await _heads(db)] == [8]


async def test_retention_forgets_ended_rows_with_their_attempts_and_keeps_held_ones(
    db: Database, clock: VirtualClock
) -> None:
    await _leave(db, call("a", chat_id=7), call("b", chat_id=8))
    done, doubtful = await _claim(db), await _claim(db)
    await db.write(lambda tx: _sent(tx, done))
    await db.write(lambda tx: claims.hold(tx, doubtful, OutboxState.UNCERTAIN, reason="r"))
    clock.advance_ms(1_000)
    forgotten = await db.write(lambda tx: outbox.prune(tx, before_ms=tx.now_ms(), limit=10))
    assert forgotten == Forgotten(1, maybe_more=False)
    assert await db.read(lambda tx: reports.show(tx, done.item.id)) is None
    assert await db.read(lambda tx: reports.show(tx, doubtful.item.id)) is not None


async def test_rows_scheduled_for_one_moment_join_their_lanes_some_at_a_time(
    db: Database, clock: VirtualClock
) -> None:
    """Thousands at once would hold up every other writer."""
    at_ms = clock.now_ms() + 1_000
    await _leave(db, *[call(f"k{n}", chat_id=n, not_before_ms=at_ms) for n in range(1_200)])
    clock.advance_ms(1_000)
    joined = []
    while (due_ms := await db.read(lambda tx: outbox.next_due_ms(tx, BOT))) is not None:
        assert due_ms <= clock.now_ms()
        joined.append(await db.write(lambda tx: outbox.join_scheduled(tx, BOT)))
    assert joined == [500, 500, 200]
