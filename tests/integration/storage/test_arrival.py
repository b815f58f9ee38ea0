"""What an update tells the sender is written with the update, once, and with nothing else."""

import json
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from storage import arrival, chats, inbox, outbox
from storage.arrival import Arrival, Silenced
from storage.database import Database, Tx, connect
from storage.envelope import Envelope, read_envelope
from storage.errors import LeaseLost
from storage.inbox import Received, Reception
from storage.lifecycle import BotName, Withdrawal
from storage.outgoing import Outgoing, Source, chat_lane
from storage.withdrawals import REASONS
from tests.integration.storage.calls import call
from tests.simulator.clock import VirtualClock

MAIN = BotName("main")
EDITED = {"message_id": 5, "chat": {"id": 7, "type": "private"}, "text": "else"}
BUSINESS = {"business_connection_id": "bc", "chat": {"id": 7, "type": "private"}}


def received(update_id: int, kind: str, content: object) -> Received:
    body = json.dumps({"update_id": update_id, kind: content}).encode()
    envelope = read_envelope(body)
    assert isinstance(envelope, Envelope)
    return Received(MAIN, *envelope, body)


def membership(status: str) -> dict[str, Any]:
    return {"chat": {"id": 7, "type": "private"}, "new_chat_member": {"status": status}}


async def arrives(db: Database, *updates: Received) -> Arrival:
    return await db.write(partial(arrival.receive_all, updates=updates))


def waiting(key: str, **wishes: Any) -> Outgoing:  # noqa: ANN401  # fields of Outgoing
    """An answer to message 5 of chat 7, caused a second after the clock began."""
    return replace(call(key, source=Source("c:7", 5), caused_at_ms=1_000), **wishes)


async def leave(db: Database, *rows: Outgoing) -> None:
    for row in rows:
        await db.write(partial(outbox.enqueue, bot=MAIN, outgoing=row))


async def waits(db: Database) -> list[str]:
    """The keys of what still waits."""
    found = await db.fetch("outbox.queue", {"bot": MAIN, "limit": 10})
    shown = [await db.fetch("outbox.show", {"id": row["id"]}) for row in found]
    return sorted(row["key"] for (row,) in shown)


async def reason(db: Database) -> str | None:
    chat = await db.read(lambda tx: chats.show(tx, MAIN, 7))
    return None if chat is None else chat.unreachable_reason


async def test_an_edit_cancels_what_wished_it_and_nothing_else(
    db: Database, clock: VirtualClock
) -> None:
    await leave(
        db,
        waiting("wished", cancel_on_edit=True),
        waiting("not wished"),
        waiting("later", cancel_on_edit=True, caused_at_ms=clock.now_ms()),
        call("another's", cancel_on_edit=True),
    )
    found = await arrives(db, received(1, "edited_message", EDITED))
    assert found.receptions == [Reception.STORED]
    assert found.silenced == [Silenced(MAIN, 1, REASONS[Withdrawal.MESSAGE_EDITED])]
    assert await waits(db) == ["another's", "later", "not wished"]


async def test_a_redelivered_edit_tells_nothing_again(db: Database, clock: VirtualClock) -> None:
    """What answers the edited message was said since, and has its reason."""
    edited = received(1, "edited_message", EDITED)
    await arrives(db, edited)
    answer = waiting("answer", cancel_on_edit=True)
    await leave(db, replace(answer, caused_at_ms=clock.now_ms()))
    clock.advance_ms(60_000)
    found = await arrives(db, edited)
    assert (found.receptions, found.silenced) == ([Reception.DUPLICATE], [])
    assert await waits(db) == ["answer"]


async def test_other_content_under_a_known_id_tells_nothing(db: Database) -> None:
    await leave(db, waiting("answer", cancel_on_edit=True))
    found = await arrives(db, received(1, "message", EDITED), received(1, "edited_message", EDITED))
    assert found.receptions == [Reception.STORED, Reception.QUARANTINED]
    assert await waits(db) == ["answer"]


async def test_the_update_and_what_it_tells_are_kept_together_or_not_at_all(db: Database) -> None:
    await leave(db, waiting("answer", cancel_on_edit=True))

    def work(tx: Tx) -> None:
        arrival.receive_all(tx, [received(1, "edited_message", EDITED)])
        raise LeaseLost("somebody else owns it")

    with pytest.raises(LeaseLost):
        await db.write(work)
    assert await waits(db) == ["answer"]
    assert await db.read(lambda tx: inbox.depth(tx, MAIN, limit=9)) == 0


async def test_a_deletion_in_a_business_chat_cancels_that_chats_answers_only(db: Database) -> None:
    lane = chat_lane(7, "bc")
    await leave(
        db,
        waiting("its own chat"),
        waiting("business", lane=lane),
    )
    await leave(db, replace(waiting("answer", lane=lane), source=Source(lane, 5)))
    await arrives(db, received(1, "deleted_business_messages", BUSINESS | {"message_ids": [4, 5]}))
    assert await waits(db) == ["business", "its own chat"]


async def test_a_person_who_answers_silences_what_was_to_be_said_there(db: Database) -> None:
    lane = chat_lane(7, "bc")
    await leave(db, waiting("business", lane=lane), waiting("its own chat"))
    said = BUSINESS | {"message_id": 9, "from": {"id": 8, "is_bot": False, "first_name": "Bo"}}
    await arrives(db, received(1, "business_message", said))
    assert await waits(db) == ["its own chat"]


async def test_a_deletion_that_waits_is_made_whatever_is_said_in_its_chat(db: Database) -> None:
    lane = chat_lane(7, "bc")
    await leave(db, waiting("delete", method="deleteMessage", lane=lane))
    said = BUSINESS | {"message_id": 9, "from": {"id": 8, "is_bot": False, "first_name": "Bo"}}
    await arrives(db, received(1, "business_message", said))
    assert await waits(db) == ["delete"]


async def test_what_happens_counts_again_after_a_clock_was_far_ahead(
    db: Database, clock: VirtualClock
) -> None:
    await arrives(db, received(1, "edited_message", EDITED))
    clock.step_wall_ms(-3_600_000)
    edited = EDITED | {"text": "once more"}
    await arrives(db, received(2, "edited_message", edited))
    raw = connect(db.path)
    try:
        (row,) = raw.execute("select at_ms from withdrawals", {}).fetchall()
    finally:
        raw.close()
    assert row["at_ms"] == clock.now_ms()


async def test_a_stopped_generation_cancels_its_drafts(db: Database) -> None:
    await leave(db, waiting("draft", generation="41"), waiting("other", generation="42"))
    stopped = {"chat": {"id": 7, "type": "private"}, "draft_id": 41, "message_thread_id": 3}
    await arrives(db, received(1, "stopped_message_generation", stopped))
    assert await waits(db) == ["other"]


async def test_who_blocks_the_bot_is_unreachable_at_once_and_back_at_once(
    db: Database, clock: VirtualClock
) -> None:
    await arrives(db, received(1, "my_chat_member", membership("kicked")))
    assert await reason(db) == "the user blocked the bot"
    clock.advance_ms(5)
    await arrives(db, received(2, "my_chat_member", membership("member")))
    assert await reason(db) is None


async def test_in_a_batch_the_last_word_on_a_membership_counts(db: Database) -> None:
    back = received(2, "my_chat_member", membership("member"))
    await arrives(db, received(1, "my_chat_member", membership("kicked")), back)
    assert await reason(db) is None


async def test_a_chat_lost_at_a_time_that_never_was_is_found_again(
    db: Database, clock: VirtualClock
) -> None:
    """A clock that was far ahead must not leave a chat lost until then."""
    await arrives(db, received(1, "my_chat_member", membership("kicked")))
    clock.step_wall_ms(-3_600_000)
    revived = await db.write(lambda tx: chats.revive(tx, MAIN, 7, heard_at_ms=tx.now_ms() - 1_000))
    assert revived
