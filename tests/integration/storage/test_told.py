"""A row says itself of which of its ends the bot is told; telling takes that back."""

from functools import partial

import pytest

from storage import claims, inbox, outbox, review, told
from storage.claims import AttemptEnd
from storage.database import Database, Tx
from storage.inbox import Received
from storage.lifecycle import AttemptStage, InboxId, OutboxId, OutboxState
from storage.outgoing import Tell
from storage.review import Decision
from tests.integration.storage.calls import BOT, call
from tests.integration.storage.hand import doubted, sent, stamped

REFUSED = AttemptEnd(
    AttemptStage.ANSWERED, "unreachable", status=403, code=403, description="Forbidden: bot was"
)


async def leave(db: Database, key: str, tell: Tell, inbox_id: InboxId | None = None) -> OutboxId:
    row = call(key, tell=tell, inbox_id=inbox_id)
    left = await db.write(partial(outbox.enqueue, bot=BOT, outgoing=row))
    return left.id


def refused(tx: Tx, claim: claims.Claim) -> None:
    claims.close_attempts(tx, [(claim, REFUSED)])
    claims.end(tx, claim, OutboxState.DEAD, reason="refused")


async def due(db: Database) -> list[OutboxId]:
    return [each.id for each in await db.read(partial(told.due, bot=BOT, limit=10))]


@pytest.mark.parametrize(
    ("tell", "end", "is_told"),
    [
        (Tell.NOTHING, refused, False),
        (Tell.FAILURES, sent, False),
        (Tell.FAILURES, doubted, False),
        (Tell.FAILURES, refused, True),
        (Tell.ALL, sent, True),
        (Tell.ALL, doubted, True),
        (Tell.ALL, refused, True),
    ],
)
async def test_only_the_ends_that_were_asked_for_are_told(
    db: Database, tell: Tell, end: object, *, is_told: bool
) -> None:
    row = await leave(db, "a", tell)
    assert await due(db) == []
    assert callable(end)
    await db.write(lambda tx: end(tx, stamped(tx)))
    assert await due(db) == ([row] if is_told else [])


async def test_an_end_is_told_with_the_answer_and_the_update(db: Database) -> None:
    update = Received(BOT, 700, "message", "c:7", "u:7", b'{"update_id":700}')
    receipt = await db.write(partial(inbox.receive, update=update))
    row = await leave(db, "a", Tell.FAILURES, receipt.id)
    await db.write(lambda tx: refused(tx, stamped(tx)))
    found = await db.read(partial(told.show, row_id=row))
    assert found is not None
    assert (found.code, found.description, found.stage) == (
        *(403, "Forbidden: bot was", AttemptStage.ANSWERED),
    )
    assert (found.body, found.state, found.key) == (update.body, OutboxState.DEAD, "a")
    (end,) = await db.read(partial(told.due, bot=BOT, limit=10))
    assert (end.update_chat_lane, end.update_user_lane) == ("c:7", "u:7")


async def test_an_update_that_is_forgotten_is_not_told(db: Database) -> None:
    update = Received(BOT, 700, "message", "c:7", "u:7", b'{"update_id":700}')
    receipt = await db.write(partial(inbox.receive, update=update))
    row = await leave(db, "a", Tell.FAILURES, receipt.id)
    await db.write(lambda tx: refused(tx, stamped(tx)))
    (item,) = await db.write(partial(inbox.claim, ids=[receipt.id], epoch=1))
    await db.write(partial(inbox.finish, update=item.id, epoch=1))
    assert await db.write(partial(inbox.forget, before_ms=1 << 50, limit=10)) == 1
    found = await db.read(partial(told.show, row_id=row))
    assert found is not None
    assert found.body is None


async def test_what_was_told_is_not_told_again(db: Database) -> None:
    row = await leave(db, "a", Tell.ALL)
    await db.write(lambda tx: sent(tx, stamped(tx)))
    await db.write(partial(told.settle, row_id=row, told_as=OutboxState.SENT))
    assert await due(db) == []
    assert await db.read(partial(told.show, row_id=row)) is None


async def test_a_held_call_is_told_as_doubtful_and_then_as_failed(db: Database) -> None:
    row = await leave(db, "a", Tell.ALL)
    await db.write(lambda tx: doubted(tx, stamped(tx)))
    await db.write(partial(told.settle, row_id=row, told_as=OutboxState.UNCERTAIN))
    assert await due(db) == []
    settle = {"id": row, "state": "dead", "reason": "drop", "message_id": None, "now_ms": 1}
    await db.run("review.settle", settle)
    assert await due(db) == [row]


@pytest.mark.parametrize("decision", [Decision.DROP, Decision.RESEND])
async def test_who_decides_while_a_doubt_is_told_silences_no_failure(
    db: Database, decision: Decision
) -> None:
    row = await leave(db, "a", Tell.ALL)
    await db.write(lambda tx: doubted(tx, stamped(tx)))
    await db.write(lambda tx: review.resolve(tx, row, decision, by="an admin"))
    await db.write(partial(told.settle, row_id=row, told_as=OutboxState.UNCERTAIN))
    if decision is Decision.RESEND:
        await db.write(lambda tx: refused(tx, stamped(tx)))
    assert await due(db) == [row]
