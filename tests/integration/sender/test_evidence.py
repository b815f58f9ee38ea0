"""What is kept of an answer: item by item of an album that failed in part, or what was accepted."""

import contextlib
import json

from storage.database import connect
from storage.lifecycle import OnUncertain, OutboxId, OutboxState
from storage.outgoing import Outgoing
from storage.reports import ItemTold
from tests.integration.sender.house import House
from tests.integration.sender.stub import Reply, refusal
from tests.integration.storage.calls import call

SILENCE = "Telegram says nothing of it"


def album(key: str, *, items: int, method: str = "sendMediaGroup") -> Outgoing:
    params = {"chat_id": "7", "media": "[]"}
    # Also where its policy would resend what is uncertain, an album is never repeated whole.
    return call(key, method=method, params=params, items=items, on_uncertain=OnUncertain.RESEND)


def accepted(result: object) -> Reply:
    return Reply(200, json.dumps({"ok": True, "result": result}).encode(), {})


def result_of(house: House, row: OutboxId) -> bytes | None:
    """The body of the answer that accepted a row, as it is kept."""
    with contextlib.closing(connect(house.folder / "ferryman.db")) as raw:
        [found] = raw.execute("select result from outbox where id = :id", {"id": row}).fetchall()
    result = found["result"]
    assert result is None or isinstance(result, bytes)
    return result


async def test_an_album_that_failed_in_part_is_told_item_by_item(house: House) -> None:
    told = 'Bad Request: failed to send message #2 with the error message "MEDIA_EMPTY"'
    house.stub.will("sendMediaGroup", refusal(400, told))
    await house.start()
    [row] = await house.says(album("a", items=3))
    found = await house.becomes(row, OutboxState.UNCERTAIN)
    [attempt] = found.history
    assert attempt.verdict == "partial"
    assert list(attempt.items_told) == [
        ItemTold(1, "unknown", SILENCE),
        ItemTold(2, "failed", "MEDIA_EMPTY"),
        ItemTold(3, "unknown", SILENCE),
    ]
    assert result_of(house, row) is None
    await house.passes(60_000)
    assert len(house.stub.arrivals) == 1


async def test_a_flood_hidden_in_an_album_cools_its_chat_and_is_told_of_its_item(
    house: House,
) -> None:
    inner = "Too Many Requests: retry after 8"
    told = f'Bad Request: failed to send message #1 with the error message "{inner}"'
    house.stub.will("sendMediaGroup", refusal(400, told))
    await house.start()
    ids = await house.says(album("a", items=2), call("b"))
    found = await house.becomes(ids[0], OutboxState.UNCERTAIN)
    assert found.history[0].wait_ms == 8_000
    assert found.history[0].items_told[0] == ItemTold(1, "failed", f"flood: {inner}")
    await house.passes(7_999)
    assert len(house.stub.arrivals) == 1
    await house.passes(1)
    await house.becomes(ids[1], OutboxState.SENT)


async def test_what_was_accepted_is_kept_whole(house: House) -> None:
    messages = [{"message_id": 7, "text": "ä"}, {"message_id": 8}]
    house.stub.will("sendMediaGroup", accepted(messages))
    await house.start()
    [row] = await house.says(album("a", items=2))
    found = await house.becomes(row, OutboxState.SENT)
    assert (found.message_id, found.reason) == (7, None)
    assert json.loads(result_of(house, row) or b"") == {"ok": True, "result": messages}


async def test_copies_that_were_left_out_are_counted(house: House) -> None:
    house.stub.will("copyMessages", accepted([{"message_id": 7}, {"message_id": 9}]))
    await house.start()
    [row] = await house.says(album("a", items=5, method="copyMessages"))
    found = await house.becomes(row, OutboxState.SENT)
    assert found.reason == "2 of 5 were made, the others left out"


async def test_what_was_so_already_has_no_result(house: House) -> None:
    house.stub.will("editMessageText", refusal(400, "Bad Request: message is not modified"))
    await house.start()
    params = {"chat_id": "7", "message_id": "5", "text": "same"}
    [row] = await house.says(call("a", method="editMessageText", params=params))
    await house.becomes(row, OutboxState.SENT)
    assert result_of(house, row) is None
