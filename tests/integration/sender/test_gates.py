"""What the gates let through, as it arrives: albums at their size, answers before everything."""

from dataclasses import replace
from functools import partial

import pytest

from storage import cooldowns, outbox
from storage.clock import deadline_in
from storage.cooldowns import BOT_SCOPE
from storage.lifecycle import OutboxId, OutboxState, Priority
from storage.options import Limits
from storage.outgoing import Outgoing, query_lane
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import SENT, Cut, Late, flood
from tests.integration.storage.calls import call


def album(key: str, items: int, *, chat_id: int = 7, **wishes: object) -> Outgoing:
    """An album of so many photos."""
    params = {"chat_id": str(chat_id), "media": "[]", "text": key}
    made = call(key, chat_id=chat_id, method="sendMediaGroup", params=params, items=items)
    return replace(made, **wishes)  # type: ignore[arg-type]  # fields of Outgoing


def answer(query_id: str) -> Outgoing:
    """An answer to a callback query."""
    params = {"callback_query_id": query_id}
    plain = call(f"a{query_id}", method="answerCallbackQuery", params=params)
    return replace(plain, lane=query_lane(query_id), chat_id=None)


def seen(house: House, *methods: str) -> list[int]:
    """When calls of these methods arrived."""
    return [each.at_ms for each in house.stub.arrivals if each.method in methods]


async def test_an_album_holds_its_chat_for_as_many_seconds_as_it_has_items(house: House) -> None:
    await house.start()
    await house.says(album("album", 4), call("after"))
    await house.passes(10_000)
    first, second = house.stub.arrivals
    assert (first.method, second.at_ms - first.at_ms) == ("sendMediaGroup", 4_001)


async def test_an_album_takes_its_size_of_the_bots_second(house: House) -> None:
    house.limits = Limits(bot_per_second=6.0)
    await house.start()
    await house.says(album("album", 5, chat_id=1), *[call(f"k{n}", chat_id=n) for n in (2, 3)])
    await house.passes(3_000)
    began_ms = house.stub.arrivals[0].at_ms
    assert [each.at_ms - began_ms for each in house.stub.arrivals] == [0, 0, 1_001]


async def test_an_album_is_not_overtaken_for_ever_by_single_messages(house: House) -> None:
    """What needs more room than is ever free by itself is waited for."""
    house.limits = Limits(bulk_per_second=4.0)
    await house.start()
    rows = [call(f"k{n}", chat_id=n, priority=Priority.BULK) for n in range(1, 60)]
    late = album("album", 4, chat_id=100, priority=Priority.BULK)
    await house.says(*rows[:2], late, *rows[2:])
    await house.passes(3_500)
    assert "album" in house.stub.texts[:7]


async def test_albums_of_the_last_minute_count_for_the_next_owner(house: House) -> None:
    house.limits = Limits(group_per_minute=10)
    await house.start()
    await house.says(album("album", 8, chat_id=-7))
    await house.passes(2_000)
    await house.stop()
    await house.start()
    await house.says(album("second", 3, chat_id=-7))
    await house.passes(57_000)
    assert house.stub.texts == ["album"]
    await house.passes(2_000)
    assert house.stub.texts == ["album", "second"]


async def test_a_chat_slower_than_the_group_window_is_remembered_long_enough(house: House) -> None:
    house.limits = Limits(chat_per_second=0.005)
    await house.start()
    await house.says(call("a", text="one"), call("b", text="two"))
    await house.passes(100_000)
    await house.stop()
    await house.start()
    await house.passes(99_000)
    assert house.stub.texts == ["one"]
    await house.passes(2_000)
    assert house.stub.texts == ["one", "two"]


async def test_an_answer_does_not_wait_for_a_chat_that_cools(house: House) -> None:
    house.stub.will("sendMessage", flood(600))
    await house.start()
    [row] = await house.says(call("a"))
    await house.sees(row, lambda found: found.reason == "cooling", "cooling")
    [answered] = await house.says(answer("81"))
    await house.becomes(answered, OutboxState.SENT)


async def test_an_answer_does_not_wait_for_what_was_only_inferred(house: House) -> None:
    await _floods_of_two_chats(house)
    [row, answered] = await house.says(call("c", chat_id=3), answer("81"))
    await house.becomes(answered, OutboxState.SENT)
    assert (await house.row(row)).state is OutboxState.QUEUED


async def test_an_answer_waits_where_every_flood_stops_the_bot(house: House) -> None:
    house.limits = Limits(flood_scope="bot")
    house.stub.will("sendMessage", flood(30))
    await house.start()
    [row] = await house.says(call("a"))
    await house.sees(row, lambda found: found.reason == "cooling", "cooling")
    await house.says(answer("81"))
    await house.passes(29_999)
    assert not seen(house, "answerCallbackQuery")
    await house.passes(1)
    assert len(seen(house, "answerCallbackQuery")) == 1


async def test_an_answers_own_flood_holds_the_answers_and_no_chat_for_long(house: House) -> None:
    house.stub.will("answerCallbackQuery", flood(30))
    await house.start()
    [first] = await house.says(answer("81"))
    await house.sees(first, lambda found: found.reason == "cooling", "cooling")
    await house.says(answer("82"), call("a"))
    await house.passes(5_000)
    assert len(seen(house, "sendMessage")) == 1, "after a breath"
    assert len(seen(house, "answerCallbackQuery")) == 1
    await house.passes(25_000)
    assert len(seen(house, "answerCallbackQuery")) == 3


async def test_answers_overtake_all_that_waits(house: House) -> None:
    house.limits = Limits(bot_per_second=1.0)
    await house.start()
    await house.says(*[call(f"k{n}", chat_id=n) for n in range(1, 6)])
    await house.passes(100)
    await house.says(answer("81"))
    await house.passes(1_000)
    assert [each.method for each in house.stub.arrivals] == ["sendMessage", "answerCallbackQuery"]


async def test_answers_have_slots_that_nothing_else_can_fill(house: House) -> None:
    house.in_flight_max = 2
    house.stub.will("sendMessage", *[Cut.NEVER_ANSWER] * 3)
    await house.start()
    await house.says(*[call(f"k{n}", chat_id=n) for n in range(1, 4)])
    await house.stub.arrived(2)
    [answered] = await house.says(answer("81"))
    await house.becomes(answered, OutboxState.SENT)
    assert len(seen(house, "sendMessage")) == 2


async def _floods_of_two_chats(house: House, wait_s: int = 600) -> list[OutboxId]:
    """Let the whole bot wait for what two chats were told."""
    house.stub.will("sendMessage", flood(wait_s), flood(wait_s))
    rows = await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.start()
    await house.stub.arrived(2)
    await house.rests()
    return rows


async def test_after_a_minute_one_canary_lifts_what_was_only_inferred(house: House) -> None:
    cooling = await _floods_of_two_chats(house)
    await house.says(*[call(f"k{n}", chat_id=n, text=f"to {n}") for n in range(3, 10)])
    began_ms = house.stub.arrivals[0].at_ms
    await house.passes(59_999)
    assert len(house.stub.arrivals) == 2
    await house.passes(100)
    assert len(house.stub.arrivals) == 9
    assert house.stub.arrivals[2].at_ms == began_ms + 60_000
    waits = await house.db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert {wait.scope for wait in waits} == {"c:1", "c:2"}
    await house.passes(5_000)
    await house.says(call("later", chat_id=20))
    await house.passes(1)
    assert len(house.stub.arrivals) == 10
    await house.passes(495_000)
    for row in cooling:
        assert (await house.row(row)).state is OutboxState.QUEUED, "what was said stays"
    await house.passes(60_000)
    for row in cooling:
        await house.becomes(row, OutboxState.SENT)


async def test_a_canary_goes_alone(house: House) -> None:
    await _floods_of_two_chats(house)
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.says(*[call(f"k{n}", chat_id=n) for n in range(3, 10)])
    await house.passes(200_000)
    assert len(house.stub.arrivals) == 3


async def test_a_canary_that_meets_a_flood_is_the_last_before_the_waits_end(house: House) -> None:
    """Each that is refused would keep the limit alive: what it confirmed is waited out."""
    await _floods_of_two_chats(house, 100)
    house.stub.will("sendMessage", flood(300))
    await house.says(*[call(f"k{n}", chat_id=n) for n in range(3, 10)])
    began_ms = house.stub.arrivals[0].at_ms
    await house.passes(359_999)
    assert [each.at_ms - began_ms for each in house.stub.arrivals] == [0, 0, 60_000]
    await house.passes(2_000)
    assert len(house.stub.arrivals) > 3


async def test_a_canary_that_is_only_refused_lifts_nothing(house: House) -> None:
    await _floods_of_two_chats(house)
    house.stub.will("sendMessage", Cut.AFTER_READING)
    await house.says(*[call(f"k{n}", chat_id=n) for n in range(3, 10)])
    await house.passes(119_999)
    assert len(house.stub.arrivals) == 3
    await house.passes(1_000)
    assert len(house.stub.arrivals) == 9


async def test_a_restart_lets_an_inferred_wait_stand_for_a_minute_anew(house: House) -> None:
    await _floods_of_two_chats(house)
    await house.says(call("c", chat_id=3))
    await house.passes(30_000)
    await house.stop()
    await house.start()
    await house.passes(59_999)
    assert len(house.stub.arrivals) == 2
    await house.passes(1_000)
    assert len(house.stub.arrivals) == 3


async def test_involved_chats_are_known_after_a_restart(house: House) -> None:
    house.stub.will("sendMessage", flood(20), flood(600))
    await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.start()
    await house.stub.arrived(2)
    await house.rests()
    await house.stop()
    await house.start()
    await house.passes(200_000)
    assert len(house.stub.arrivals) == 2, "chat 1 was involved, although its own wait is over"


@pytest.mark.parametrize("scope", ["bot", "chat"])
async def test_no_canary_tests_what_is_not_inferred(house: House, scope: str) -> None:
    house.limits = Limits(flood_scope=scope)  # type: ignore[arg-type]  # one of them
    await house.start()
    deadline = deadline_in(300_000, house.clock)
    await house.db.write(
        lambda tx: cooldowns.merge(tx, BOT, BOT_SCOPE, deadline, reason="said of the bot")
    )
    await house.passes(1_000)
    await house.says(call("c", chat_id=3))
    await house.passes(298_000)
    assert not house.stub.arrivals


@pytest.mark.parametrize("is_late", [False, True])
async def test_what_a_canary_has_lifted_holds_no_chat_back_that_had_no_part_in_it(
    house: House, *, is_late: bool
) -> None:
    """Its call was under way when the wait was inferred, and is answered during it."""
    late = Late(SENT)
    house.stub.will("sendMessage", late)
    await house.start()
    await house.says(call("under way", chat_id=9), call("behind", chat_id=9, text="behind"))
    await house.stub.arrived(1)
    house.stub.will("sendMessage", flood(600), flood(600))
    await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.stub.arrived(3)
    await house.rests()
    if is_late:
        await house.passes(30_000)
    late.give()
    await house.rests()
    await house.says(call("canary", chat_id=3))
    await house.passes(62_000)
    assert house.stub.texts[-1] == "behind"


async def test_late_answers_do_not_keep_a_fresh_one_waiting_while_all_slots_are_taken(
    house: House,
) -> None:
    house.in_flight_max = 1
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    await house.says(call("a"))
    await house.stub.arrived(1)
    expires_ms = house.clock.now_ms() + 10
    for number in range(100, 130):
        left = replace(answer(str(number)), expires_at_ms=expires_ms)
        await house.db.write(partial(outbox.enqueue, bot=BOT, outgoing=left))
    house.clock.advance_ms(20)
    [fresh] = await house.says(answer("200"))
    await house.becomes(fresh, OutboxState.SENT)
