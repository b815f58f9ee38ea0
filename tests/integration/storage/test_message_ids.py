"""Placeholders: each stands for just the message that was made, long after its row is gone."""

import json
from collections.abc import Sequence
from functools import partial

import pytest

from storage import claims, message_ids, outbox, retention, review
from storage.claims import Claim
from storage.database import Database, Tx
from storage.lifecycle import BotName, OutboxState
from storage.message_ids import Resolution
from storage.outbox import FREE_ITEMS_MAX, Enqueued
from storage.outgoing import Outgoing
from storage.retention import Kept
from storage.review import Decision
from tests.integration.storage import hand
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

DAY_MS = 86_400_000
MONTH = Kept(inbox_days=7, outbox_days=30, placeholders_days=400)
UNKNOWN = None


def album(key: str, placeholder: int | None, items: int = 3) -> Outgoing:
    return call(key, method="sendMediaGroup", placeholder=placeholder, items=items)


def copies(key: str, placeholder: int, listed: Sequence[int]) -> Outgoing:
    params = {"chat_id": "7", "from_chat_id": "7", "message_ids": json.dumps(listed)}
    items = len(listed)
    return call(key, method="copyMessages", params=params, placeholder=placeholder, items=items)


async def leave(db: Database, outgoing: Outgoing) -> Enqueued:
    return await db.write(partial(outbox.enqueue, bot=BOT, outgoing=outgoing))


def answered(tx: Tx, claim: Claim, made: Sequence[int]) -> None:
    """Telegram has made these messages."""
    body = json.dumps({"ok": True, "result": [{"message_id": each} for each in made]}).encode()
    claims.close_attempts(tx, [(claim, hand.ANSWERED)])
    claims.mark_sent(tx, [claims.Accepted(claim, next(iter(made), None), result=body)])


async def sent(db: Database, outgoing: Outgoing, *made: int) -> None:
    """Leave a call and have it accepted, with these messages made."""
    await leave(db, outgoing)
    claim = await db.write(hand.stamped)
    if outgoing.items > 1:
        await db.write(lambda tx: answered(tx, claim, made))
    else:
        await db.write(lambda tx: hand.sent(tx, claim, *made))


async def ids(db: Database, *placeholders: int) -> list[int | None]:
    found = [
        await db.read(partial(message_ids.resolve, bot=BOT, placeholder=each))
        for each in placeholders
    ]
    return [None if each is None else each.message_id for each in found]


async def forget(db: Database, clock: VirtualClock, *, days: int = 31, kept: Kept = MONTH) -> None:
    """Let time pass, and retention forget all that it will."""
    clock.advance_ms(days * DAY_MS)
    while (await db.write(lambda tx: retention.prune(tx, kept, clock))).maybe_more:
        pass


async def rows_left(db: Database) -> int:
    pruned = await db.read(
        lambda tx: tx.rows("outbox.to_prune", {"before_ms": 1 << 60, "limit": 9})
    )
    return len(pruned)


async def test_each_item_of_an_album_has_the_id_that_telegram_gave_it(db: Database) -> None:
    await sent(db, album("a", -10), 501, 502, 503)
    assert await ids(db, -10, -11, -12) == [501, 502, 503]
    assert await ids(db, -9, -13) == [UNKNOWN, UNKNOWN]


async def test_numbers_between_rows_belong_to_nobody(db: Database) -> None:
    await sent(db, album("a", -10), 501, 502, 503)
    await sent(db, call("b", placeholder=-20), 600)
    assert await ids(db, -9, -13, -19, -20, -21) == [None, None, None, 600, None]


async def test_another_bots_placeholder_of_the_same_number_is_another_message(
    db: Database,
) -> None:
    await sent(db, call("a", placeholder=-5), 100)
    other = BotName("other")
    assert await db.read(lambda tx: message_ids.resolve(tx, other, -5)) is None


@pytest.mark.parametrize("method", ["sendMediaGroup", "copyMessages"])
async def test_an_item_waits_with_its_album(db: Database, method: str) -> None:
    left = await leave(db, album("a", -10))
    found = await db.read(lambda tx: message_ids.resolve(tx, BOT, -12))
    assert found == Resolution(OutboxState.QUEUED, None, left.id, 7)


async def test_an_item_that_telegram_put_off_has_no_id_and_the_others_keep_theirs(
    db: Database,
) -> None:
    await sent(db, album("a", -10), 501, 0, 503)
    assert await ids(db, -10, -11, -12) == [501, None, 503]


async def test_of_copies_that_were_left_out_nobody_can_tell_which(db: Database) -> None:
    """Telegram leaves out what it does not find, and says no more than the ids of the rest."""
    await sent(db, copies("a", -10, [1, 2, 3]), 501, 502)
    assert await ids(db, -10, -11, -12) == [None, None, None]


async def test_what_we_left_out_of_a_list_ourselves_is_known(db: Database) -> None:
    await sent(db, call("a", placeholder=-5), 100)
    await sent(db, copies("b", -10, [1, -6, -5]), 501, 503)
    assert await ids(db, -10, -11, -12) == [501, None, 503]


async def test_of_an_album_that_a_person_settled_no_more_is_known_than_he_says(
    db: Database,
) -> None:
    await leave(db, album("a", -10))
    claim = await db.write(hand.stamped)
    await db.write(lambda tx: hand.doubted(tx, claim))
    row = claim.item.id
    await db.write(lambda tx: review.resolve(tx, row, Decision.SENT, by="ada", message_id=77))
    assert await ids(db, -10, -11, -12) == [77, None, None]


async def test_an_album_outside_of_a_turn_has_placeholders_of_its_own(db: Database) -> None:
    first = await db.write(lambda tx: outbox.enqueue_free(tx, BOT, album("a", None)))
    second = await db.write(lambda tx: outbox.enqueue_free(tx, BOT, call("b")))
    assert first.placeholder is not None
    assert second.placeholder == first.placeholder - FREE_ITEMS_MAX
    claim = await db.write(hand.stamped)
    await db.write(lambda tx: answered(tx, claim, [501, 502, 503]))
    assert await ids(db, first.placeholder, first.placeholder - 2) == [501, 503]
    assert -(1 << 53) < second.placeholder < first.placeholder < -(1 << 52)


async def test_a_changed_turn_takes_the_numbers_of_what_it_said_before(db: Database) -> None:
    """One call more or less moves all that follow: no number may stand for two messages."""
    await sent(db, call("k:0", placeholder=-10), 100)
    await sent(db, album("k:1", -11), 501, 502, 503)
    await sent(db, call("k:2", placeholder=-14), 600)
    await leave(db, call("k:0", text="changed", placeholder=-10))
    await leave(db, call("k:1", text="changed", placeholder=-11))
    await leave(db, album("k:2", -12))
    found = [
        await db.read(partial(message_ids.resolve, bot=BOT, placeholder=each))
        for each in (-10, -11, -12, -13, -14)
    ]
    assert {None if each is None else each.state for each in found} == {OutboxState.QUEUED}


async def test_a_call_that_is_said_again_stands_for_the_number_handed_out_last(
    db: Database,
) -> None:
    """A change of the code that is taken back: the first words are the first message again."""
    await sent(db, call("k:0", placeholder=-10), 100)
    await leave(db, call("k:0", text="changed", placeholder=-10))
    again = await leave(db, call("k:0", placeholder=-10))
    assert (again.fresh, again.placeholder) == (False, -10)
    assert await ids(db, -10) == [100]


async def test_a_call_said_again_after_fewer_messages_moves_to_its_new_number(
    db: Database,
) -> None:
    await sent(db, album("k:0", -10), 501, 502, 503)
    await sent(db, call("k:1", placeholder=-13), 600)
    await leave(db, call("k:0", text="no album", placeholder=-10))
    again = await leave(db, call("k:1", placeholder=-11))
    assert again.placeholder == -11
    assert await ids(db, -10, -11, -13) == [None, 600, None]


async def test_an_album_gives_up_its_numbers_whole(db: Database) -> None:
    await sent(db, album("k:0", -10), 501, 502, 503)
    await leave(db, call("k:1", placeholder=-12))
    assert await ids(db, -10, -11, -12) == [None, None, None]


async def test_ids_outlive_their_rows(db: Database, clock: VirtualClock) -> None:
    await sent(db, call("a", placeholder=-5), 100)
    await sent(db, album("b", -10), 501, 0, 503)
    await forget(db, clock)
    assert await rows_left(db) == 0
    assert await ids(db, -5, -10, -11, -12, -13) == [100, 501, None, 503, None]
    kept = await db.read(lambda tx: message_ids.resolve(tx, BOT, -12))
    assert kept == Resolution(OutboxState.SENT, 503, None, 7)


async def test_copies_of_what_is_forgotten_already_keep_their_places(
    db: Database, clock: VirtualClock
) -> None:
    await sent(db, call("a", placeholder=-5), 100)
    await forget(db, clock)
    await sent(db, copies("b", -10, [1, -6, -5]), 501, 503)
    await forget(db, clock)
    assert await rows_left(db) == 0
    assert await ids(db, -10, -11, -12) == [501, None, 503]


async def test_what_was_never_sent_leaves_no_id_behind(db: Database, clock: VirtualClock) -> None:
    await leave(db, call("a", placeholder=-5))
    await db.write(lambda tx: outbox.cancel_lane(tx, BOT, "c:7", reason="blocked"))
    await forget(db, clock)
    assert await rows_left(db) == 0
    assert await ids(db, -5) == [UNKNOWN]


async def test_ids_are_kept_as_long_as_configured_and_then_forgotten(
    db: Database, clock: VirtualClock
) -> None:
    await sent(db, call("a", placeholder=-5), 100)
    await forget(db, clock)
    await forget(db, clock, days=400)
    assert await ids(db, -5) == [100]
    await forget(db, clock, days=1)
    assert await ids(db, -5) == [UNKNOWN]


async def test_a_row_that_is_made_anew_counts_before_what_was_kept(
    db: Database, clock: VirtualClock
) -> None:
    """An update that is taken again after its rows were forgotten says the same once more."""
    await sent(db, call("a", placeholder=-5), 100)
    await forget(db, clock)
    await sent(db, call("a", placeholder=-5), 200)
    assert await ids(db, -5) == [200]
    await forget(db, clock)
    assert await ids(db, -5) == [200]


async def test_a_batch_counts_albums_by_what_they_made(db: Database, clock: VirtualClock) -> None:
    """A thousand albums in one transaction would hold up every other writer."""
    for number in range(4):
        first = 100 + number * 10
        await sent(db, album(f"a{number}", -first), first, first + 1, first + 2)
    clock.advance_ms(1_000)
    batches = []
    while True:
        batch = await db.write(lambda tx: outbox.prune(tx, before_ms=tx.now_ms(), limit=7))
        batches.append(batch.rows)
        if not batch.maybe_more:
            break
    assert batches == [2, 2]
    assert await ids(db, -100, -112, -121, -132) == [100, 112, 121, 132]


async def test_a_message_sent_after_its_group_moved_is_in_the_new_chat(
    db: Database, clock: VirtualClock
) -> None:
    await leave(db, call("a", chat_id=-5, placeholder=-9))
    await db.write(
        lambda tx: outbox.move_lane(tx, BOT, "c:-5", new_lane="c:-100555", chat_id=-100555)
    )
    claim = await db.write(hand.stamped)
    await db.write(lambda tx: hand.sent(tx, claim))
    expected = Resolution(OutboxState.SENT, 100, None, -100555)
    assert await db.read(lambda tx: message_ids.resolve(tx, BOT, -9)) == expected
    await forget(db, clock)
    assert await db.read(lambda tx: message_ids.resolve(tx, BOT, -9)) == expected
