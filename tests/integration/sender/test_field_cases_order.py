"""Order and staleness as public bug reports tell them, each with the number of its case.

14  spoj/tg-bot2 51, PraisonAI 2909: a second message overtook one that was in backoff
15  openclaw 135191, 16555, sonichi/sutando 3549: answers of months ago were sent as if current
16  PraisonAI 3519: a network outage of ten minutes used up all attempts in under a minute
17  grammy-inline-menu 64, aiogram_dialog 145, pyTelegramBotAPI 1615: answers to buttons came late
20  Telegram.Bot.Examples 96, telegram-bot-sdk 651, courier 436: one blocked user stopped a loop
21  gatus 179, teleirc 52, Telegram.Bot 171: a group became a supergroup
"""

import logging
from collections.abc import Mapping
from itertools import pairwise

import pytest

from storage import chats, cooldowns, reports
from storage.lifecycle import OnUncertain, OutboxState, Priority
from storage.options import Limits
from storage.outgoing import Outgoing, query_lane
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Cut, Deed, Reply, flood, refusal
from tests.integration.sender.test_sending import edit
from tests.integration.sender.test_six_cases import NGINX, cools
from tests.integration.storage.calls import call

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
LATER = refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
TOO_LATE = refusal(
    400, "Bad Request: query is too old and response timeout expired or query ID is invalid"
)
BLOCKED = refusal(403, "Forbidden: bot was blocked by the user")


def answer(key: str, *, expires_at_ms: int | None = None) -> Outgoing:
    """An answer to a pressed button."""
    return Outgoing(
        method="answerCallbackQuery",
        params={"callback_query_id": key},
        lane=query_lane(key),
        key=key,
        expires_at_ms=expires_at_ms,
    )


# 14


@pytest.mark.parametrize(
    ("head", "deed", "wait_ms"),
    [
        (call("a", text="first"), flood(30), 30_000),
        (call("a", text="first"), LATER, 1_000),
        (edit("a", 90, "first"), flood(30), 30_000),
        (edit("a", 90, "first"), Cut.AFTER_READING, 1_000),
        (edit("a", 90, "first"), NGINX, 1_000),
        (call("a", text="first", on_uncertain=OnUncertain.RESEND), Cut.AFTER_READING, 1_000),
    ],
    ids=["cooling", "later", "edit cooling", "edit cut", "edit 502", "resent"],
)
async def test_field_case_14_a_message_in_backoff_holds_back_its_chat(
    house: House, head: Outgoing, deed: Deed, wait_ms: int
) -> None:
    house.stub.will(head.method, deed)
    await house.start()
    ids = await house.says(head, call("b", text="second"), call("c", text="third"))
    await house.sees(ids[0], lambda row: row.reason is not None, "in backoff")
    await house.passes(wait_ms - 1)
    assert house.stub.texts == ["first"]
    await house.passes(20_000)
    await house.becomes(ids[2], OutboxState.SENT)
    assert house.stub.texts == ["first", "first", "second", "third"]


async def test_field_case_14_an_outage_does_not_change_the_order(house: House) -> None:
    await house.stub.close()
    await house.start()
    texts = [f"text {number}" for number in range(6)]
    ids = await house.says(*[call(text, text=text) for text in texts])
    await house.passes(120_000)
    await house.stub.open()
    await house.passes(60_000)
    await house.becomes(ids[-1], OutboxState.SENT)
    assert house.stub.texts == texts


@pytest.mark.parametrize(
    ("deeds", "ttl_ms", "state"),
    [
        ([refusal(400, "Bad Request: message is too long")], None, OutboxState.DEAD),
        ([refusal(400, "Bad Request: nobody knows this text")], None, OutboxState.DEAD),
        ([LATER] * 5, None, OutboxState.DEAD),
        ([LATER] * 3, 6_000, OutboxState.EXPIRED),
        ([flood(60)], 30_000, OutboxState.EXPIRED),
        ([Cut.AFTER_READING], None, OutboxState.UNCERTAIN),
        ([refusal(429, "Too Many Requests")], None, OutboxState.REVIEW),
    ],
    ids=["refused", "unknown text", "spent", "expired", "cooling too long", "in doubt", "review"],
)
async def test_field_case_14_the_end_of_the_head_frees_its_chat(
    house: House, deeds: list[Deed], ttl_ms: int | None, state: OutboxState
) -> None:
    house.stub.will("sendMessage", *deeds)
    expires_at_ms = None if ttl_ms is None else house.clock.now_ms() + ttl_ms
    await house.start()
    first = call("a", text="first", expires_at_ms=expires_at_ms)
    ids = await house.says(first, call("b", text="second"))
    await house.passes(70_000)
    await house.becomes(ids[0], state)
    await house.becomes(ids[1], OutboxState.SENT)
    assert house.stub.texts.count("second") == 1
    assert house.stub.texts[-1] == "second"


# 15


@pytest.mark.parametrize("age_ms", [15 * HOUR_MS, 3 * DAY_MS, 120 * DAY_MS])
@pytest.mark.parametrize("is_running", [False, True], ids=["sender down", "Telegram down"])
async def test_field_case_15_answers_of_long_ago_are_expired_counted_and_never_sent(
    house: House, age_ms: int, *, is_running: bool
) -> None:
    """Those of an hour's life, after any outage; a campaign may have a longer one."""
    if is_running:
        await house.stub.close()
        await house.start()
    now_ms = house.clock.now_ms()
    replies = [call(f"k{n}", chat_id=n, expires_at_ms=now_ms + HOUR_MS) for n in range(1, 9)]
    campaign = call(
        "campaign",
        chat_id=9,
        text="campaign",
        priority=Priority.BULK,
        expires_at_ms=now_ms + age_ms + HOUR_MS,
    )
    ids = await house.says(*replies, campaign)
    house.clock.advance_ms(age_ms)
    if is_running:
        await house.stub.open()
    else:
        await house.start()
    await house.passes(60_000)
    for row in ids[:-1]:
        found = await house.becomes(row, OutboxState.EXPIRED)
        assert (found.attempts, found.finished_at_ms is None) == (0, False)
        assert found.reason
    await house.becomes(ids[-1], OutboxState.SENT)
    assert house.stub.texts == ["campaign"]
    told = await house.db.read(lambda tx: reports.house(tx, [BOT], house.clock))
    assert told.bots[0].ended_last_hour == {"expired": 8, "sent": 1}


# 16


@pytest.mark.parametrize("minutes", [1, 10, 50])
async def test_field_case_16_an_outage_of_the_network_uses_no_attempts(
    house: House, minutes: int
) -> None:
    await house.stub.close()
    await house.start()
    ids = await house.says(*[call(f"k{chat}", chat_id=chat) for chat in range(1, 6)])
    await house.passes(minutes * 60_000)
    for row in ids:
        found = await house.row(row)
        assert (found.state, found.attempts) == (OutboxState.QUEUED, 0)
    await house.stub.open()
    await house.passes(60_000)
    for row in ids:
        assert (await house.becomes(row, OutboxState.SENT)).attempts == 1


@pytest.mark.parametrize("deed", [NGINX, Cut.AFTER_READING], ids=["502", "cut"])
@pytest.mark.parametrize("rows", [1, 5])
async def test_field_case_16_an_outage_behind_a_gateway_buries_nothing_in_a_minute(
    house: House, deed: Reply | Cut, rows: int
) -> None:
    """Ten minutes of answers that are none: what may be repeated outlives them."""
    methods = ("editMessageText", "getMe")
    for method in methods:
        house.stub.will(method, *[deed] * 2_000)
    await house.start()
    ids = await house.says(*[edit(f"k{chat}", 90, chat_id=chat) for chat in range(1, rows + 1)])
    await house.passes(600_000)
    for row in ids:
        assert (await house.row(row)).state is OutboxState.QUEUED
    for method in methods:
        house.stub.forget(method)
    await house.passes(400_000)
    for row in ids:
        await house.becomes(row, OutboxState.SENT)


# 17


@pytest.mark.parametrize("priority", [Priority.INTERACTIVE, Priority.BULK])
async def test_field_case_17_answers_overtake_all_that_waits(
    house: House, priority: Priority
) -> None:
    """Under the bot's own limit the next call to leave is the answer, whatever was there before."""
    house.limits = Limits(bot_per_second=5, bulk_per_second=5)
    await house.start()
    backlog = [call(f"k{chat}", chat_id=chat, priority=priority) for chat in range(1, 41)]
    await house.says(*backlog)
    await house.passes(2_500)
    asked_ms = house.clock.now_ms()
    ids = await house.says(answer("q1"), answer("q2"), answer("q3"))
    await house.passes(1_010)
    for row in ids:
        await house.becomes(row, OutboxState.SENT)
    answered = [each.at_ms for each in house.stub.arrivals if each.method == "answerCallbackQuery"]
    assert max(answered) - asked_ms <= 1_000, "the next moment at which the bot may speak at all"
    assert len(house.stub.arrivals) < 40, "the backlog was still there to be overtaken"


@pytest.mark.parametrize("wait", ["c:7", "edits:c:7"])
async def test_field_case_17_no_wait_of_a_chat_holds_an_answer(house: House, wait: str) -> None:
    await house.start()
    house.stub.will("sendMessage", flood(600))
    house.stub.will("editMessageText", flood(600))
    house.limits = Limits(flood_scope="chat")
    [row] = await house.says(call("a") if wait == "c:7" else edit("a", 90))
    await cools(house, row)
    await house.passes(5_000)
    [answered] = await house.says(answer("q1"))
    await house.becomes(answered, OutboxState.SENT)


async def test_field_case_17_a_late_answer_is_dropped_without_noise(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """Never repeated, no dead letter, no error in the log, and nothing else is held up by it."""
    caplog.set_level(logging.INFO, logger="ferryman")
    house.stub.will("answerCallbackQuery", TOO_LATE)
    await house.start()
    ids = await house.says(answer("q1"), call("rest", text="the rest of the handler"))
    found = await house.becomes(ids[0], OutboxState.EXPIRED)
    await house.becomes(ids[1], OutboxState.SENT)
    await house.passes(60_000)
    assert found.attempts == 1
    assert len(house.stub.arrivals) == 2
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert not {"outbox.dead", "sender.breaker_opened"} & set(caplog.messages)
    told = await house.db.read(lambda tx: reports.house(tx, [BOT], house.clock))
    assert told.bots[0].ended_last_hour == {"expired": 1, "sent": 1}


async def test_field_case_17_an_answer_whose_time_is_over_is_not_even_tried(house: House) -> None:
    """It waited out a flood of the whole bot; Telegram is not asked about it."""
    house.limits = Limits(flood_scope="bot")
    house.stub.will("sendMessage", flood(60))
    await house.start()
    [row] = await house.says(call("a"))
    await cools(house, row)
    [late] = await house.says(answer("q1", expires_at_ms=house.clock.now_ms() + 15_000))
    await house.passes(70_000)
    assert (await house.becomes(late, OutboxState.EXPIRED)).history == []
    assert [each.method for each in house.stub.arrivals] == ["sendMessage"] * 2


# 20


@pytest.mark.parametrize(
    "reply",
    [
        BLOCKED,
        refusal(403, "Forbidden: user is deactivated"),
        refusal(403, "Forbidden: bot can't initiate conversation with a user"),
        refusal(403, "Forbidden: a text that nobody has seen before"),
        refusal(400, "Bad Request: chat not found"),
    ],
    ids=["blocked", "deactivated", "never met", "unknown 403", "not found"],
)
async def test_field_case_20_one_who_blocked_the_bot_ends_nothing_but_his_own_row(
    house: House, reply: Reply
) -> None:
    """The others get theirs; what waits for him is cancelled, and so is the next campaign's row."""
    house.in_flight_max = 1
    house.stub.will("sendMessage", reply)
    campaign = [call(f"k{n}", chat_id=n, priority=Priority.BULK) for n in range(1, 11)]
    ids = await house.says(*campaign, call("more", chat_id=1, priority=Priority.BULK))
    await house.start()
    await house.passes(5_000)
    await house.becomes(ids[0], OutboxState.DEAD)
    await house.becomes(ids[-1], OutboxState.CANCELLED)
    for row in ids[1:-1]:
        await house.becomes(row, OutboxState.SENT)
    chat = await house.db.read(lambda tx: chats.show(tx, BOT, 1))
    assert chat is not None
    assert chat.unreachable_reason
    before = len(house.stub.arrivals)
    following = await house.says(
        *[call(f"n{n}", chat_id=n, priority=Priority.BULK) for n in (1, 2)]
    )
    await house.passes(5_000)
    await house.becomes(following[0], OutboxState.CANCELLED)
    await house.becomes(following[1], OutboxState.SENT)
    assert len(house.stub.arrivals) == before + 1


# 21

OLD, NEW = -1_234, -1_001_557_912_345
MOVED = refusal(
    400, "Bad Request: group chat was upgraded to a supergroup chat", {"migrate_to_chat_id": NEW}
)


async def _waits(house: House) -> Mapping[str, int]:
    found = await house.db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    return {wait.scope: wait.deadline.wall_ms for wait in found}


@pytest.mark.parametrize("is_told", [False, True], ids=["by the answer", "and by the group"])
async def test_field_case_21_a_group_that_became_a_supergroup_is_sent_to_once(
    house: House, *, is_told: bool
) -> None:
    """All that waits goes to the new id, in order and once; its waits move along."""
    house.stub.will("editMessageText", flood(120))
    await house.start()
    [cooling] = await house.says(edit("progress", 90, chat_id=OLD))
    await cools(house, cooling)
    until_ms = (await _waits(house))[f"edits:c:{OLD}"]
    if is_told:
        await house.db.write(lambda tx: chats.seen(tx, BOT, NEW, kind="supergroup"))
    await house.passes(120_000)
    house.stub.will("sendMessage", MOVED)
    house.stub.will("editMessageText", flood(300))
    again = await house.says(edit("more", 90, chat_id=OLD))
    await house.passes(2_000)
    await cools(house, again[0])
    moving = await house.says(
        *[call(f"k{n}", chat_id=OLD, text=f"text {n}", priority=Priority.BULK) for n in range(3)]
    )
    await house.passes(10_000)
    for row in moving:
        found = await house.becomes(row, OutboxState.SENT)
        assert (found.chat_id, found.lane) == (NEW, f"c:{NEW}")
    said = [each.form for each in house.stub.arrivals if each.method == "sendMessage"]
    assert [(form["chat_id"], form["text"]) for form in said] == [
        (str(OLD), "text 0"),
        *((str(NEW), f"text {n}") for n in range(3)),
    ]
    waits = await _waits(house)
    assert waits[f"edits:c:{NEW}"] > until_ms
    assert f"edits:c:{OLD}" not in waits
    assert (await house.row(again[0])).lane == f"c:{NEW}"
    moments = [each.at_ms for each in house.stub.arrivals if each.method == "sendMessage"]
    assert all(after - before >= 1_000 for before, after in pairwise(moments[1:]))
