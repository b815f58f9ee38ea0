"""A newer edit of a message takes the place of the older ones that still wait."""

from collections.abc import Mapping

import pytest

from storage import claims, outbox
from storage.claims import Standing
from storage.database import Database
from storage.lifecycle import Priority
from storage.outgoing import Fallback, Outgoing, coalesce_key
from tests.integration.storage import hand
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

TEXT, CAPTION, MEDIA = "editMessageText", "editMessageCaption", "editMessageMedia"
MARKUP = "editMessageReplyMarkup"


def edit(key: str, method: str = TEXT, message: Mapping[str, str] | None = None) -> Outgoing:
    """An edit of a message, as a turn or a producer leaves it."""
    params = {"chat_id": "7", "text": key, **({"message_id": "4"} if message is None else message)}
    return call(key, method=method, params=params, coalesce_key=coalesce_key(method, params, "c:7"))


async def _leave(db: Database, outgoing: Outgoing) -> outbox.Enqueued:
    return await db.write(lambda tx: outbox.enqueue(tx, BOT, outgoing))


@pytest.mark.parametrize(
    ("older", "newer", "is_replaced"),
    [
        (TEXT, TEXT, True),
        (CAPTION, CAPTION, True),
        (MEDIA, MEDIA, True),
        (MARKUP, MARKUP, True),
        (MARKUP, TEXT, True),
        (MARKUP, CAPTION, True),
        (MARKUP, MEDIA, True),
        (TEXT, MARKUP, False),
        (TEXT, CAPTION, False),
        (CAPTION, MEDIA, False),
    ],
)
async def test_a_newer_edit_replaces_what_it_would_undo(
    db: Database, older: str, newer: str, *, is_replaced: bool
) -> None:
    first = await _leave(db, edit("a", older))
    second = await _leave(db, edit("b", newer))
    assert list(second.superseded) == ([first.id] if is_replaced else [])


@pytest.mark.parametrize(
    "message", [{"message_id": "5"}, {"inline_message_id": "i"}, {"message_id": "-4"}]
)
async def test_edits_of_other_messages_all_go(db: Database, message: dict[str, str]) -> None:
    await _leave(db, edit("a"))
    assert not (await _leave(db, edit("b", message=message))).superseded


def test_only_edits_have_such_a_key() -> None:
    assert coalesce_key("sendMessage", {"message_id": "4"}, "c:7") is None
    assert coalesce_key(TEXT, {"text": "of no message"}, "c:7") is None


async def test_what_is_in_hand_is_left_and_steps_back_when_it_comes_back(db: Database) -> None:
    first = await _leave(db, edit("a"))
    claim = await db.write(hand.stamped)
    assert not (await _leave(db, edit("b"))).superseded
    await db.write(lambda tx: hand.handed_back(tx, claim))
    heads = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    assert [head.id for head in heads] == [first.id]
    assert await db.read(lambda tx: claims.standings(tx, heads)) == {
        first.id: Standing(has_newer=True)
    }


async def test_a_row_that_is_superseded_by_wish_is_told_at_its_claim_too(db: Database) -> None:
    first = await _leave(db, call("a", supersede_key="q"))
    claim = await db.write(hand.stamped)
    await _leave(db, call("b", supersede_key="q"))
    await db.write(lambda tx: hand.handed_back(tx, claim))
    heads = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    standings = await db.read(lambda tx: claims.standings(tx, heads))
    assert standings[first.id].has_newer


async def test_an_answer_that_expires_in_the_queue_is_said_as_a_message(
    db: Database, clock: VirtualClock
) -> None:
    instead = Fallback("sendMessage", {"chat_id": "7", "text": "done"}, "c:7", 7, ttl_ms=60_000)
    late = call(
        "turn:1:0:0",
        method="answerCallbackQuery",
        lane="q:1",
        params={"callback_query_id": "1"},
        expires_at_ms=clock.now_ms() + 5_000,
        caused_at_ms=clock.now_ms() - 1,
        fallback=instead,
    )
    left = await _leave(db, late)
    clock.advance_ms(5_000)
    assert await db.write(lambda tx: outbox.expire(tx, BOT)) == [left.id]
    [head] = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=9))
    assert (head.key, head.lane, head.method) == ("turn:1:0:0/late", "c:7", "sendMessage")
    assert head.expires_at_ms == clock.now_ms() + 60_000
    assert head.caused_at_ms == late.caused_at_ms
    assert await db.read(lambda tx: claims.standings(tx, [head])) == {head.id: Standing()}
