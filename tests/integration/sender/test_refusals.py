"""What Telegram refuses for good: the chat, the call, or the whole bot."""

import pytest

from storage import chats, pauses
from storage.lifecycle import OutboxState
from storage.outgoing import chat_lane
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Late, Reply, refusal
from tests.integration.storage.calls import call


async def test_a_blocked_chats_queue_is_cancelled_and_the_chat_remembered(house: House) -> None:
    house.stub.will("sendMessage", refusal(403, "Forbidden: bot was blocked by the user"))
    await house.start()
    ids = await house.says(call("a"), call("b"), call("other", chat_id=8))
    row = await house.becomes(ids[0], OutboxState.DEAD)
    assert row.reason == "Forbidden: bot was blocked by the user"
    await house.becomes(ids[1], OutboxState.CANCELLED)
    await house.becomes(ids[2], OutboxState.SENT)
    chat = await house.db.read(lambda tx: chats.show(tx, BOT, 7))
    assert chat is not None
    assert chat.unreachable_reason == "Forbidden: bot was blocked by the user"


async def test_a_business_chat_that_is_closed_leaves_the_bots_own_chat_open(house: House) -> None:
    house.stub.will("sendMessage", refusal(403, "Forbidden: bot was blocked by the user"))
    await house.start()
    [row] = await house.says(call("a", lane=chat_lane(7, "conn")))
    await house.becomes(row, OutboxState.DEAD)
    assert await house.db.read(lambda tx: chats.show(tx, BOT, 7)) is None


async def test_a_refused_row_is_dead_and_the_next_one_goes(house: House) -> None:
    house.stub.will("sendMessage", refusal(400, "Bad Request: message is too long"))
    await house.start()
    ids = await house.says(call("a"), call("b"))
    row = await house.becomes(ids[0], OutboxState.DEAD)
    assert row.reason == "content refused: 400 Bad Request: message is too long"
    await house.passes(1_500)
    await house.becomes(ids[1], OutboxState.SENT)


async def test_what_telegram_quotes_of_a_user_is_not_kept(house: House) -> None:
    told = 'Bad Request: can\'t parse entities: unsupported start tag "my secret" at byte offset 3'
    house.stub.will("sendMessage", refusal(400, told))
    await house.start()
    [row] = await house.says(call("a"))
    found = await house.becomes(row, OutboxState.DEAD)
    assert "my secret" not in repr((found.reason, found.history))
    assert "byte offset 3" in (found.reason or "")


async def test_a_late_answer_to_a_query_is_dropped_quietly(house: House) -> None:
    late = "Bad Request: query is too old and response timeout expired or query ID is invalid"
    house.stub.will("answerCallbackQuery", refusal(400, late))
    await house.start()
    answer = call("q", method="answerCallbackQuery", params={"callback_query_id": "8"}, lane="q:8")
    [row] = await house.says(answer)
    await house.becomes(row, OutboxState.EXPIRED)


async def test_a_moved_group_takes_its_queue_along_and_is_sent_to_once(house: House) -> None:
    moved = refusal(
        400,
        "Bad Request: group chat was upgraded to a supergroup chat",
        {"migrate_to_chat_id": -1007},
    )
    house.stub.will("sendMessage", moved)
    await house.start()
    ids = await house.says(call("a", chat_id=-7, text="a"), call("b", chat_id=-7, text="b"))
    await house.passes(3_000)
    for row in ids:
        assert (await house.becomes(row, OutboxState.SENT)).chat_id == -1007
    sent = [(call.form["chat_id"], call.form["text"]) for call in house.stub.arrivals]
    assert sent == [("-7", "a"), ("-1007", "a"), ("-1007", "b")]


@pytest.mark.parametrize(
    ("code", "description"), [(401, "Unauthorized"), (404, "Not Found"), (421, "Misdirected")]
)
async def test_a_rejected_token_stops_the_bot_and_keeps_its_queue(
    house: House, code: int, description: str
) -> None:
    house.stub.will("sendMessage", *[refusal(code, description)] * 9)
    await house.start()
    ids = await house.says(call("a"), call("b", chat_id=8))
    await house.sees(ids[0], lambda row: len(row.history) == 1, "tried")
    await house.passes(60_000)
    assert len(house.stub.arrivals) <= 2
    for each in ids:
        row = await house.row(each)
        assert (row.state, row.attempts) == (OutboxState.QUEUED, 0)


async def test_a_text_that_no_form_can_carry_is_buried(house: House) -> None:
    await house.start()
    ids = await house.says(call("a", text="\ud800"), call("b"))
    row = await house.becomes(ids[0], OutboxState.DEAD)
    assert "surrogate" in (row.reason or "")
    await house.becomes(ids[1], OutboxState.SENT)
    assert len(house.stub.arrivals) == 1


async def test_a_paused_group_that_moves_stays_paused(house: House) -> None:
    late = Late(
        refusal(
            400,
            "Bad Request: group chat was upgraded to a supergroup chat",
            {"migrate_to_chat_id": -1007},
        )
    )
    house.stub.will("sendMessage", late)
    await house.start()
    [row] = await house.says(call("a", chat_id=-7))
    await house.stub.arrived(1)
    await house.db.write(lambda tx: pauses.pause(tx, BOT, "c:-7", reason="r", by_whom="ada"))
    late.give()
    await house.sees(row, lambda found: found.chat_id == -1007, "addressed anew")
    await house.passes(10_000)
    assert len(house.stub.arrivals) == 1
    await house.db.write(lambda tx: pauses.resume(tx, BOT, "c:-1007"))
    await house.ring()
    await house.becomes(row, OutboxState.SENT)


@pytest.mark.parametrize(
    "answer",
    [
        Reply(200, b'{"ok":true,"result":{"message_id":99999999999999999999}}', {}),
        Reply(400, b'{"ok":false,"error_code":99999999999999999999,"description":"x"}', {}),
        refusal(400, "upgraded", {"migrate_to_chat_id": -(10**20)}),
    ],
)
async def test_a_number_that_nobody_can_keep_ends_no_sender(house: House, answer: Reply) -> None:
    house.stub.will("sendMessage", answer)
    await house.start()
    [first, second] = await house.says(call("a"), call("b", chat_id=8))
    await house.becomes(second, OutboxState.SENT)
    found = await house.sees(
        first, lambda row: row.state not in {OutboxState.QUEUED, OutboxState.CLAIMED}, "settled"
    )
    assert found.history[-1].ended_at_ms is not None


async def test_a_parameter_that_no_parser_can_follow_ends_no_sender(house: House) -> None:
    deep = "[" * 100_000 + "-1"
    await house.start()
    bad = call("a", params={"chat_id": "7", "text": "x", "reply_parameters": deep})
    [row, other] = await house.says(bad, call("b", chat_id=8))
    await house.becomes(other, OutboxState.SENT)
    await house.becomes(row, OutboxState.SENT)
