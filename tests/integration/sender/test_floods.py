"""Floods: waited out to the moment, kept on disk, and never the reason for a second message."""

import pytest

from storage import cooldowns
from storage.clock import deadline_in
from storage.lifecycle import OutboxState
from storage.options import Limits
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Reply, flood, refusal
from tests.integration.sender.test_sending import edit
from tests.integration.storage.calls import call


async def test_a_flood_is_waited_out_to_the_deadline_and_not_earlier(house: House) -> None:
    house.stub.will("sendMessage", flood(3))
    await house.start()
    [row] = await house.says(call("a"))
    await house.sees(row, lambda found: found.reason == "cooling", "cooling")
    await house.passes(2_999)
    assert len(house.stub.arrivals) == 1
    await house.passes(1)
    found = await house.becomes(row, OutboxState.SENT)
    first, second = house.stub.arrivals
    assert second.at_ms - first.at_ms == 3_000
    assert found.attempts == 1, "a wait is no attempt"


async def test_a_restart_in_the_middle_of_a_cooldown_forgets_nothing(house: House) -> None:
    house.stub.will("sendMessage", flood(142))
    await house.start()
    [row] = await house.says(call("a"))
    await house.sees(row, lambda found: found.reason == "cooling", "cooling")
    await house.passes(42_000)
    await house.stop()
    await house.start()
    await house.passes(99_999)
    assert len(house.stub.arrivals) == 1
    await house.passes(1)
    await house.becomes(row, OutboxState.SENT)
    assert len(house.stub.arrivals) == 2


@pytest.mark.parametrize(("first", "second"), [(30, 3), (3, 30)])
async def test_of_two_waits_the_longer_one_holds(house: House, first: int, second: int) -> None:
    house.limits = Limits(flood_scope="bot")
    house.in_flight_max = 2
    house.stub.will("sendMessage", flood(first), flood(second))
    await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.start()
    await house.stub.arrived(2)
    await house.passes(29_999)
    assert len(house.stub.arrivals) == 2
    await house.passes(1_500)
    await house.stub.arrived(4)


async def test_other_chats_are_served_while_one_cools(house: House) -> None:
    house.limits = Limits(flood_scope="chat")
    house.stub.will("sendMessage", flood(97 * 60))
    await house.start()
    [cooling] = await house.says(call("a", chat_id=1))
    await house.sees(cooling, lambda found: found.reason == "cooling", "cooling")
    [row] = await house.says(call("b", chat_id=2))
    await house.becomes(row, OutboxState.SENT)


async def test_the_bot_takes_a_breath_after_a_flood(house: House) -> None:
    """Adaptive: five seconds at most, while the chat waits the whole time."""
    house.stub.will("sendMessage", flood(60))
    await house.start()
    [cooling] = await house.says(call("a", chat_id=1))
    await house.sees(cooling, lambda found: found.reason == "cooling", "cooling")
    [row] = await house.says(call("b", chat_id=2))
    await house.passes(4_999)
    assert len(house.stub.arrivals) == 1
    await house.passes(1)
    await house.becomes(row, OutboxState.SENT)
    await house.passes(54_998)
    assert len(house.stub.arrivals) == 2


async def test_an_edits_flood_holds_back_the_edits_of_its_chat_alone(house: House) -> None:
    house.stub.will("editMessageText", flood(60))
    await house.start()
    [cooling] = await house.says(edit("a", 4, chat_id=1))
    await house.sees(cooling, lambda found: found.reason == "cooling", "cooling")
    [row] = await house.says(call("b", chat_id=2))
    await house.becomes(row, OutboxState.SENT)


@pytest.mark.parametrize("wait", [None, True, -1, 3.5, "7", 15 * 24 * 3600])
async def test_a_flood_without_a_usable_wait_is_held_for_a_person(
    house: House, wait: object
) -> None:
    parameters = None if wait is None else {"retry_after": wait}
    house.stub.will("sendMessage", refusal(429, "Too Many Requests", parameters))
    await house.start()
    ids = await house.says(call("a"), call("b"))
    row = await house.becomes(ids[0], OutboxState.REVIEW)
    assert row.reason is not None
    assert "429" in row.reason
    await house.passes(4_999)
    assert len(house.stub.arrivals) == 1, "the lane is paused, and never for nothing"
    await house.passes(1_000)
    await house.becomes(ids[1], OutboxState.SENT)


async def test_what_the_header_says_may_lengthen_our_own_wait(house: House) -> None:
    bare = refusal(429, "Too Many Requests")
    house.stub.will("sendMessage", Reply(bare.status, bare.body, {"Retry-After": "60"}))
    await house.start()
    ids = await house.says(call("a"), call("b"))
    await house.becomes(ids[0], OutboxState.REVIEW)
    await house.passes(59_999)
    assert len(house.stub.arrivals) == 1
    await house.passes(1_000)
    await house.becomes(ids[1], OutboxState.SENT)


async def test_an_answer_superseded_while_it_cools_is_never_sent(house: House) -> None:
    house.stub.will("sendMessage", flood(3))
    await house.start()
    [old] = await house.says(call("a", text="old", supersede_key="q"))
    await house.sees(old, lambda found: found.reason == "cooling", "cooling")
    [new] = await house.says(call("b", text="new", supersede_key="q"))
    await house.becomes(old, OutboxState.SUPERSEDED)
    await house.passes(2_999)
    assert house.stub.texts == ["old"], "refused once, before it was superseded"
    await house.passes(1)
    await house.becomes(new, OutboxState.SENT)
    assert house.stub.texts == ["old", "new"]


async def test_an_answer_that_would_come_too_late_is_expired(house: House) -> None:
    house.stub.will("sendMessage", flood(600))
    await house.start()
    expires_at_ms = house.clock.now_ms() + 60_000
    [row] = await house.says(call("a", expires_at_ms=expires_at_ms))
    await house.becomes(row, OutboxState.EXPIRED)
    await house.passes(700_000)
    assert len(house.stub.arrivals) == 1


async def test_a_wait_persisted_by_another_role_is_kept(house: House) -> None:
    """A read of the worker's met a flood."""
    await house.start()
    await house.passes(1_000)
    deadline = deadline_in(20_000, house.clock)
    await house.db.write(
        lambda tx: cooldowns.merge(tx, BOT, cooldowns.BOT_SCOPE, deadline, reason="a read")
    )
    [row] = await house.says(call("a"))
    await house.passes(19_999)
    assert not house.stub.arrivals
    await house.passes(1)
    await house.becomes(row, OutboxState.SENT)


async def test_a_machine_that_is_started_anew_in_the_past_waits_a_wait_out_once(
    house: House,
) -> None:
    """Not again at each look, for as long as the clock was set back by."""
    deadline = deadline_in(20_000, house.clock)
    await house.db.write(lambda tx: cooldowns.merge(tx, BOT, "c:7", deadline, reason="flood"))
    house.clock.reboot("boot-2")
    house.clock.step_wall_ms(-86_400_000)
    await house.start()
    [row] = await house.says(call("a", chat_id=7))
    await house.passes(19_999)
    assert not house.stub.arrivals
    await house.passes(1_001)
    await house.becomes(row, OutboxState.SENT)


async def test_a_clock_set_forward_does_not_end_a_wait(house: House) -> None:
    house.stub.will("sendMessage", flood(100))
    await house.start()
    [row] = await house.says(call("a"))
    await house.sees(row, lambda found: found.reason == "cooling", "cooling")
    house.clock.step_wall_ms(3_600_000)
    await house.passes(99_999)
    assert len(house.stub.arrivals) == 1
    await house.passes(1_000)
    await house.becomes(row, OutboxState.SENT)
