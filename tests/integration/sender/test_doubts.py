"""Calls whose outcome nobody knows, and calls that certainly did nothing."""

from itertools import pairwise

import pytest

from sender import app
from storage.lifecycle import OnUncertain, OutboxState
from storage.options import Limits
from tests.integration.sender.house import House
from tests.integration.sender.stub import Cut, Reply, refusal
from tests.integration.sender.test_sending import edit
from tests.integration.storage.calls import call

NGINX = Reply(502, b"<html><h1>502 Bad Gateway</h1></html>", {})


@pytest.mark.parametrize(
    "answer", [Cut.AFTER_READING, NGINX, refusal(500, "Internal Server Error: restart")]
)
async def test_a_message_that_may_have_arrived_is_held_with_its_evidence(
    house: House, answer: Cut | Reply
) -> None:
    house.stub.will("sendMessage", answer)
    await house.start()
    ids = await house.says(call("a", text="first"), call("b", text="second"))
    row = await house.becomes(ids[0], OutboxState.UNCERTAIN)
    [attempt] = row.history
    assert attempt.verdict == "uncertain"
    assert attempt.description
    await house.passes(10_000)
    await house.becomes(ids[1], OutboxState.SENT)
    assert house.stub.texts == ["first", "second"], "nobody behind it waits for a person"


async def test_an_edit_that_may_have_arrived_goes_again_by_itself(house: House) -> None:
    house.stub.will("editMessageText", Cut.AFTER_READING)
    await house.start()
    [row] = await house.says(edit("a", 4))
    await house.passes(3_000)
    found = await house.becomes(row, OutboxState.SENT)
    assert [attempt.verdict for attempt in found.history] == ["uncertain", "sent"]


async def test_a_second_edit_that_changes_nothing_counts_as_sent(house: House) -> None:
    same = refusal(400, "Bad Request: message is not modified: specified new message content")
    house.stub.will("editMessageText", Cut.AFTER_READING, same)
    await house.start()
    [row] = await house.says(edit("a", 4))
    await house.passes(3_000)
    await house.becomes(row, OutboxState.SENT)


async def test_the_rows_policy_may_send_it_again(house: House) -> None:
    house.stub.will("sendMessage", Cut.AFTER_READING)
    await house.start()
    [row] = await house.says(call("a", on_uncertain=OnUncertain.RESEND))
    await house.passes(3_000)
    await house.becomes(row, OutboxState.SENT)
    assert len(house.stub.arrivals) == 2


async def test_the_rows_policy_may_drop_it(house: House) -> None:
    house.stub.will("sendMessage", Cut.AFTER_READING)
    await house.start()
    [row] = await house.says(call("a", on_uncertain=OnUncertain.DROP))
    await house.becomes(row, OutboxState.DEAD)


async def test_an_outage_costs_no_attempt_and_everything_goes_afterwards(house: House) -> None:
    await house.stub.close()
    await house.start()
    ids = await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.passes(600_000)
    row = await house.row(ids[0])
    assert (row.state, row.attempts) == (OutboxState.QUEUED, 0)
    assert 1 <= len(row.history) <= 2, "only the canary knocks while nobody answers"
    await house.stub.open()
    await house.passes(45_000)
    for each in ids:
        found = await house.becomes(each, OutboxState.SENT)
        assert found.attempts == 1
    assert house.stub.arrivals[0].method == "getMe"
    assert len(house.stub.texts) == 2


async def test_one_canary_finds_the_end_of_an_outage_and_nothing_else_knocks(house: House) -> None:
    await house.stub.close()
    await house.start()
    ids = await house.says(*[call(f"k{n}", chat_id=n) for n in range(1, 6)])
    await house.passes(5_000)
    await house.stub.open()
    house.stub.will("getMe", Cut.NEVER_ANSWER)
    await house.passes(60_000)
    await house.ring()
    await house.passes(60_000)
    assert [each.method for each in house.stub.arrivals] == ["getMe"]
    for row in ids:
        assert (await house.row(row)).attempts == 0
    house.stub.release()
    await house.passes(60_000)
    assert [each.method for each in house.stub.arrivals] == ["getMe"] * 2 + ["sendMessage"] * 5


async def test_a_chat_action_is_never_repeated(house: House) -> None:
    house.stub.will("sendChatAction", Cut.AFTER_READING)
    await house.start()
    typing = call(
        "a",
        method="sendChatAction",
        params={"chat_id": "7", "action": "typing"},
        attempts_max=1,
        expires_at_ms=house.clock.now_ms() + 5_000,
    )
    [row] = await house.says(typing)
    await house.becomes(row, OutboxState.EXPIRED)
    await house.passes(10_000)
    assert len(house.stub.arrivals) == 1


async def test_a_gift_of_which_nobody_can_tell_is_held_though_it_has_one_attempt(
    house: House,
) -> None:
    house.stub.will("sendGift", Cut.AFTER_READING)
    await house.start()
    params = {"user_id": "7", "gift_id": "g"}
    [row] = await house.says(call("a", method="sendGift", params=params, attempts_max=1))
    await house.becomes(row, OutboxState.UNCERTAIN)
    await house.passes(60_000)
    assert len(house.stub.arrivals) == 1


async def test_a_method_that_is_not_known_is_paced_like_a_message_and_never_repeated_by_itself(
    house: House,
) -> None:
    house.stub.will("doMoon", Cut.AFTER_READING)
    await house.start()
    [row] = await house.says(call("a", method="doMoon", params={"chat_id": "7"}))
    await house.becomes(row, OutboxState.UNCERTAIN)
    assert [each.method for each in house.stub.arrivals] == ["doMoon"]


async def test_attempts_are_spent_by_failures_and_then_the_row_is_buried(house: House) -> None:
    house.limits = Limits(chat_per_second=100)
    later = refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
    house.stub.will("sendMessage", *[later] * 5)
    await house.start()
    [row] = await house.says(call("a"))
    await house.passes(60_000)
    found = await house.becomes(row, OutboxState.DEAD)
    assert found.attempts == 5
    moments = [arrival.at_ms for arrival in house.stub.arrivals]
    gaps = [after - before for before, after in pairwise(moments)]
    assert gaps == [1_000, 2_000, 4_000, 8_000]


async def test_a_call_that_does_not_end_is_in_doubt_when_the_sender_has_to(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It left whole; nobody waits for its answer for ever."""
    monkeypatch.setattr(app, "FINISH_MS", 100)
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    ids = await house.says(call("a"), call("b"))
    await house.stub.arrived(1)
    await house.stop()
    row = await house.row(ids[0])
    assert row.state is OutboxState.UNCERTAIN
    assert (await house.row(ids[1])).state is OutboxState.QUEUED


async def test_what_is_under_way_is_finished_before_the_sender_ends(house: House) -> None:
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    [row] = await house.says(call("a"))
    await house.stub.arrived(1)
    [(_, stop)] = house.running
    stop.set()
    await house.breathes()
    house.stub.release()
    await house.stop()
    assert (await house.row(row)).state is OutboxState.UNCERTAIN, "the stub closed without a word"
