"""Keys that stand for one call only, and how calls ended, for those who wait to hear of it."""

from functools import partial

import pytest

from storage import claims, ends, outbox
from storage.claims import Accepted, AttemptEnd
from storage.database import Database, Tx
from storage.errors import KeyTaken
from storage.lifecycle import AttemptStage, OutboxState, Priority
from storage.outbox import Enqueued
from storage.outgoing import Outgoing
from tests.integration.storage.calls import BOT, call

BODY = b'{"ok":true,"result":{"message_id":90}}'


async def leave(db: Database, outgoing: Outgoing) -> Enqueued:
    return await db.write(partial(outbox.enqueue, bot=BOT, outgoing=outgoing))


async def test_an_exclusive_key_takes_no_other_call(db: Database) -> None:
    first = await leave(db, call("key:a", exclusive=True, placeholder=-9))
    again = await leave(db, call("key:a", exclusive=True, placeholder=-9))
    assert (again.id, again.fresh, again.placeholder) == (first.id, False, -9)
    with pytest.raises(KeyTaken, match=f"key:a stands for another call already, row {first.id}"):
        await leave(db, call("key:a", text="bye", exclusive=True, placeholder=-9))
    assert len(await db.read(lambda tx: ends.named(tx, BOT, call("key:a")))) == 1


async def test_the_same_call_with_another_placeholder_is_told_apart(db: Database) -> None:
    """Two turns at once: the second one has handed out an id that no row stands for."""
    await leave(db, call("key:a", exclusive=True, placeholder=-9))
    with pytest.raises(KeyTaken) as raised:
        await leave(db, call("key:a", exclusive=True, placeholder=-10))
    assert raised.value.is_same
    assert not (await leave(db, call("key:a", exclusive=True))).fresh, "who knows none may ask"


async def test_a_keyed_call_outside_a_turn_keeps_the_placeholder_that_it_has(db: Database) -> None:
    await leave(db, call("key:a", exclusive=True, placeholder=-9))
    free = await db.write(lambda tx: outbox.enqueue_free(tx, BOT, call("key:a", exclusive=True)))
    assert free.placeholder == -9


async def test_the_very_call_is_named_before_others_of_its_key(db: Database) -> None:
    other = await leave(db, call("turn:1:0:0", text="before"))
    mine = await leave(db, call("turn:1:0:0", placeholder=-5))
    found = await db.read(lambda tx: ends.named(tx, BOT, call("turn:1:0:0")))
    assert [(each.id, each.is_same) for each in found] == [(mine.id, True), (other.id, False)]
    assert (found[0].method, found[0].placeholder) == ("sendMessage", -5)


async def test_only_what_waits_for_no_answer_any_more_has_ended(db: Database) -> None:
    sent, dead, waiting = [
        (await leave(db, call(key, chat_id=chat))).id
        for key, chat in (("a", 1), ("b", 2), ("c", 3))
    ]

    def end(tx: Tx) -> None:
        heads = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=2)
        first, second = claims.claim(tx, heads, 1)
        refused = AttemptEnd(
            AttemptStage.ANSWERED, "refused", status=403, code=403, description="blocked", wait_ms=7
        )
        claims.close_attempts(
            tx, [(first, AttemptEnd(AttemptStage.ANSWERED, "sent")), (second, refused)]
        )
        claims.mark_sent(tx, [Accepted(first, 90, result=BODY)])
        claims.end(tx, second, OutboxState.DEAD, reason="403 blocked")

    ids = (sent, dead, waiting)
    assert await db.read(partial(ends.among, ids=ids)) == []
    await db.write(end)
    one, other = sorted(await db.read(partial(ends.among, ids=ids)), key=lambda each: each.id)
    assert (one.id, one.state, one.result, one.code) == (sent, OutboxState.SENT, BODY, None)
    assert (other.id, other.state, other.result) == (dead, OutboxState.DEAD, None)
    assert (other.code, other.description, other.wait_ms) == (403, "blocked", 7)
    assert other.reason == "403 blocked"
