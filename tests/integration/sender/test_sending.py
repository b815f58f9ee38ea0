"""What the sender does with a row, from the outbox to Telegram and back."""

import httpx

from storage.lifecycle import OutboxState, Priority
from storage.options import Limits
from storage.outgoing import Outgoing, query_lane
from tests.integration.sender.house import House
from tests.integration.sender.stub import Cut
from tests.integration.storage.calls import call


def edit(key: str, message_id: int, text: str = "new", *, chat_id: int = 7) -> Outgoing:
    """An edit of a message, or of a placeholder."""
    params = {"chat_id": str(chat_id), "message_id": str(message_id), "text": text}
    return call(key, chat_id=chat_id, method="editMessageText", params=params)


async def test_rows_of_a_chat_are_sent_in_order_one_second_apart(house: House) -> None:
    await house.start()
    ids = await house.says(call("a", text="one"), call("b", text="two"), call("c", text="three"))
    await house.becomes(ids[0], OutboxState.SENT)
    await house.passes(5_000)
    await house.stub.arrived(3)
    assert house.stub.texts == ["one", "two", "three"]
    moments = [arrival.at_ms for arrival in house.stub.arrivals]
    assert moments[1] - moments[0] >= 1_000
    assert moments[2] - moments[1] >= 1_000
    row = await house.becomes(ids[2], OutboxState.SENT)
    assert row.message_id == 103
    assert row.attempts == 1
    assert [attempt.verdict for attempt in row.history] == ["sent"]


async def test_the_next_row_leaves_at_the_moment_its_chat_allows_it(house: House) -> None:
    """The alarm is set for it, so that nobody waits for the next tick."""
    await house.start()
    ids = await house.says(call("a"), call("b"))
    await house.becomes(ids[0], OutboxState.SENT)
    await house.passes(1_001)
    await house.becomes(ids[1], OutboxState.SENT)
    first, second = house.stub.arrivals
    assert second.at_ms - first.at_ms == 1_001


async def test_chats_do_not_wait_for_each_other(house: House) -> None:
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    await house.says(call("slow", chat_id=1))
    await house.stub.arrived(1)
    [other] = await house.says(call("quick", chat_id=2))
    await house.becomes(other, OutboxState.SENT)


async def test_a_chat_has_one_call_under_way_whatever_its_limits(house: House) -> None:
    house.limits = Limits(chat_per_second=1000, chat_burst=100)
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    ids = await house.says(call("a"), call("b"), call("c", priority=Priority.BULK))
    await house.stub.arrived(1)
    await house.passes(3_000)
    assert len(house.stub.arrivals) == 1
    house.stub.release()
    await house.becomes(ids[0], OutboxState.UNCERTAIN)
    await house.passes(1_000)
    await house.becomes(ids[2], OutboxState.SENT)
    assert house.stub.most_under_way == 1


async def test_no_more_calls_are_under_way_than_configured(house: House) -> None:
    house.in_flight_max = 3
    house.stub.will("sendMessage", *[Cut.NEVER_ANSWER] * 3)
    await house.start()
    await house.says(*[call(f"k{chat}", chat_id=chat) for chat in range(1, 9)])
    await house.stub.arrived(3)
    await house.rests()
    assert len(house.stub.arrivals) == 3
    house.stub.release()
    await house.stub.arrived(8)
    assert house.stub.most_under_way == 3


async def test_interactive_rows_overtake_bulk_ones(house: House) -> None:
    house.in_flight_max = 1
    bulk = [call(f"b{n}", chat_id=n, text="bulk", priority=Priority.BULK) for n in range(1, 4)]
    await house.says(*bulk, call("i", chat_id=9, text="now"))
    await house.start()
    await house.stub.arrived(4)
    assert house.stub.texts[0] == "now"


async def test_the_bot_as_a_whole_stays_below_its_limit(house: House) -> None:
    house.limits = Limits(bot_per_second=5, bulk_per_second=5)
    await house.start()
    await house.says(*[call(f"k{chat}", chat_id=chat) for chat in range(1, 13)])
    await house.passes(3_000)
    await house.stub.arrived(12)
    moments = [arrival.at_ms for arrival in house.stub.arrivals]
    for at_ms in moments:
        assert sum(at_ms <= other < at_ms + 1_000 for other in moments) <= 5


async def test_a_placeholder_becomes_the_id_that_telegram_gave(house: House) -> None:
    await house.start()
    ids = await house.says(call("a", placeholder=-5), edit("b", -5))
    await house.passes(2_000)
    await house.becomes(ids[1], OutboxState.SENT)
    assert house.stub.arrivals[1].form["message_id"] == "101"


async def test_a_row_whose_time_is_over_is_never_sent(house: House) -> None:
    now_ms = house.clock.now_ms()
    ids = await house.says(call("a"), call("b", expires_at_ms=now_ms + 900))
    await house.start()
    await house.passes(3_000)
    await house.becomes(ids[1], OutboxState.EXPIRED)
    assert len(house.stub.arrivals) == 1


async def test_a_row_waits_for_its_not_before(house: House) -> None:
    await house.start()
    [row] = await house.says(call("a", not_before_ms=house.clock.now_ms() + 7_300))
    await house.passes(7_299)
    assert not house.stub.arrivals
    await house.passes(1)
    await house.becomes(row, OutboxState.SENT)


async def test_answers_to_queries_do_not_wait_for_the_chat(house: House) -> None:
    await house.start()
    answer = call(
        "q",
        method="answerCallbackQuery",
        params={"callback_query_id": "81"},
        lane=query_lane("81"),
    )
    ids = await house.says(call("a"), answer)
    await house.becomes(ids[0], OutboxState.SENT)
    await house.becomes(ids[1], OutboxState.SENT)


async def test_the_body_is_byte_for_byte_what_httpx_would_have_sent(house: House) -> None:
    params = {
        "chat_id": "7",
        "text": "a b+c~*(é)😀'\"&=\n%00/",
        "reply_parameters": '{"message_id": 4, "quote": "-"}',
        "empty": "",
    }
    await house.start()
    await house.says(call("a", params=params))
    await house.stub.arrived(1)
    expected = httpx.Request("POST", house.stub.url, data=params).read()
    assert house.stub.arrivals[0].raw == expected
