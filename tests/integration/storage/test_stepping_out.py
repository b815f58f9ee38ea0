"""What refers to a doubt steps out of its lane with it, and joins it again once it is decided."""

from collections.abc import Callable
from functools import partial

import pytest

from storage import cancelling, claims, lanes, message_ids, outbox, reports, review
from storage.claims import Accepted, Claim
from storage.database import Database, Tx
from storage.lifecycle import OutboxId, OutboxState, Priority
from storage.message_ids import Resolution
from storage.outgoing import Outgoing
from storage.review import Decision
from tests.integration.storage import hand
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock


async def _leave(db: Database, *calls: Outgoing) -> list[OutboxId]:
    return [(await db.write(partial(outbox.enqueue, bot=BOT, outgoing=each))).id for each in calls]


async def _doubt(db: Database) -> tuple[Claim, OutboxId, OutboxId]:
    """A held row, a child that has stepped out, and a row behind it."""
    parent, child, other = await _leave(
        db, call("parent", placeholder=-5), call("child", placeholder=-6), call("other")
    )
    claim = await db.write(hand.stamped)
    await db.write(lambda tx: hand.doubted(tx, claim))
    await db.write(lambda tx: lanes.step_out(tx, BOT, child, waits_for=parent, reason="waits"))
    return claim, child, other


async def _heads(db: Database) -> list[OutboxId]:
    heads = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    return [head.id for head in heads]


async def test_a_child_that_has_stepped_out_holds_nobody_back(db: Database) -> None:
    _, child, other = await _doubt(db)
    assert await _heads(db) == [other]
    assert await db.write(lambda tx: outbox.join_scheduled(tx, BOT)) == 0
    assert await db.read(lambda tx: outbox.next_due_ms(tx, BOT)) is None
    row = await db.read(lambda tx: reports.show(tx, child))
    assert row is not None
    assert (row.state, row.joined, row.reason) == (OutboxState.QUEUED, False, "waits")


async def test_what_refers_to_it_or_to_its_child_is_in_doubt_too(db: Database) -> None:
    claim, *_ = await _doubt(db)
    parent = claim.item.id
    assert await db.read(lambda tx: message_ids.resolve(tx, BOT, -5)) == Resolution(
        OutboxState.UNCERTAIN, None, parent, 7
    )
    assert await db.read(lambda tx: message_ids.resolve(tx, BOT, -6)) == Resolution(
        OutboxState.QUEUED, None, parent, 7
    )


@pytest.mark.parametrize("decision", list(Decision))
async def test_a_decision_lets_it_join_its_lane_again_at_its_place(
    db: Database, decision: Decision
) -> None:
    claim, child, _ = await _doubt(db)
    parent = claim.item.id
    assert await db.write(lambda tx: review.resolve(tx, parent, decision, by="ada"))
    assert await _heads(db) == [parent if decision is Decision.RESEND else child]
    resolved = await db.read(lambda tx: message_ids.resolve(tx, BOT, -6))
    assert resolved == Resolution(OutboxState.QUEUED, None, child, 7)


async def test_a_person_may_say_which_message_it_became(db: Database) -> None:
    claim, *_ = await _doubt(db)
    sent = Decision.SENT
    await db.write(lambda tx: review.resolve(tx, claim.item.id, sent, by="ada", message_id=77))
    resolved = await db.read(lambda tx: message_ids.resolve(tx, BOT, -5))
    assert resolved == Resolution(OutboxState.SENT, 77, None, 7)


async def test_an_answer_that_comes_late_decides_it_too(db: Database) -> None:
    claim, child, _ = await _doubt(db)
    assert await db.write(lambda tx: claims.accept_late(tx, Accepted(claim, 77)))
    assert await _heads(db) == [child]


async def test_it_moves_with_its_chat(db: Database) -> None:
    claim, child, _ = await _doubt(db)
    [later] = await _leave(db, call("later", not_before_ms=1 << 50))
    moved = await db.write(
        lambda tx: outbox.move_lane(tx, BOT, "c:7", new_lane="c:-1007", chat_id=-1007)
    )
    assert moved == 3
    for row in (child, later):
        found = await db.read(partial(reports.show, row_id=row))
        assert found is not None
        assert (found.lane, found.params["chat_id"], found.joined) == ("c:-1007", "-1007", False)
    await db.write(lambda tx: review.resolve(tx, claim.item.id, Decision.DROP, by="ada"))
    assert await _heads(db) == [child]


async def test_its_time_may_be_over_while_it_waits(db: Database) -> None:
    parent, child = await _leave(
        db, call("parent", placeholder=-5), call("child", expires_at_ms=1_000)
    )
    claim = await db.write(hand.stamped)
    await db.write(lambda tx: hand.doubted(tx, claim))
    await db.write(lambda tx: lanes.step_out(tx, BOT, child, waits_for=parent, reason="waits"))
    assert await db.write(lambda tx: outbox.expire(tx, BOT)) == [child]
    await db.write(lambda tx: review.resolve(tx, parent, Decision.SENT, by="ada"))
    assert await _heads(db) == []


async def _ends(db: Database, how: str, parent: OutboxId) -> None:
    """Let a row that waits end in one of the ways there are."""
    if how in {"sent", "dead", "cancelled in hand"}:
        claim = await db.write(partial(hand.stamped, priority=Priority.BULK))
        by: dict[str, Callable[[Tx], object]] = {
            "sent": lambda tx: hand.sent(tx, claim, 77),
            "dead": lambda tx: claims.end(tx, claim, OutboxState.DEAD, reason="r"),
            "cancelled in hand": lambda tx: (
                cancelling.by_ids(tx, BOT, [parent], reason="r"),
                hand.handed_back(tx, claim),
            ),
        }
        await db.write(by[how])
    elif how == "superseded":
        newer = call("newer", priority=Priority.BULK, supersede_key="k")
        await db.write(partial(outbox.enqueue, bot=BOT, outgoing=newer))
    elif how == "cancelled with its chat":
        await db.write(lambda tx: outbox.cancel_lane(tx, BOT, "c:8", reason="closed"))
    else:
        await db.write(lambda tx: outbox.expire(tx, BOT))


@pytest.mark.parametrize(
    "how",
    [
        *("sent", "dead", "cancelled in hand", "superseded"),
        *("cancelled with its chat", "expired"),
    ],
)
async def test_what_refers_to_a_row_that_waits_elsewhere_goes_when_that_has_ended(
    db: Database, clock: VirtualClock, how: str
) -> None:
    bulk = call(
        "a",
        chat_id=8,
        priority=Priority.BULK,
        placeholder=-5,
        supersede_key="k",
        expires_at_ms=clock.now_ms() + 1_000,
    )
    parent, child = await _leave(db, bulk, call("child"))
    resolved = await db.read(lambda tx: message_ids.resolve(tx, BOT, -5))
    assert resolved == Resolution(OutboxState.QUEUED, None, parent, 8)
    await db.write(lambda tx: lanes.step_out(tx, BOT, child, waits_for=parent, reason="waits"))
    assert await _heads(db) == []
    clock.advance_ms(1_000)
    await _ends(db, how, parent)
    assert await _heads(db) == [child]
