"""The ledger: it keeps what happened, and answers after a journey through JSON as before it."""

import json
from dataclasses import replace

from tests.simulator.ledger import (
    Accepted,
    Arrival,
    Delivery,
    Ledger,
    UpdateEnded,
    UpdateMade,
    most_within,
)

CALL = Arrival(
    at_ms=1_000,
    bot_id=1,
    method="sendMessage",
    chat_id=5,
    is_group=False,
    params={"text": "hi"},
    charged=True,
    effect=True,
    code=200,
    description="",
    message_id=7,
    fault=None,
    early_by_ms=0,
    flood_ordered_at_ms=None,
    client_bug=None,
)
SENT = Accepted(at_ms=1_000, bot_id=1, chat_id=5, message_id=7, text="hi")
MADE = UpdateMade(
    at_ms=1, bot_id=1, update_id=70, kind="message", queue="chat:5", expires_at_ms=9_000
)
TRY = Delivery(
    at_ms=2, ended_at_ms=3, bot_id=1, update_id=70, attempt=1, status=503, error="Wrong response"
)
END = UpdateEnded(at_ms=4, bot_id=1, update_id=70, end="acknowledged")


def test_an_exported_ledger_answers_as_the_original() -> None:
    ledger = Ledger([CALL, SENT, MADE, TRY, END])
    revived = Ledger.revive(json.loads(json.dumps(ledger.export())))

    assert revived.entries == ledger.entries
    assert revived.deliveries(1, 70) == [TRY]
    assert revived.ends(1) == {70: "acknowledged"}


def test_messages_come_in_the_order_in_which_telegram_took_them() -> None:
    second = replace(SENT, message_id=8, text="again")
    elsewhere = replace(SENT, chat_id=6)
    assert Ledger([SENT, elsewhere, second]).messages(1, 5) == [SENT, second]


def test_a_text_left_twice_in_a_chat_is_doubled_and_in_two_chats_is_not() -> None:
    assert Ledger([SENT, SENT, replace(SENT, chat_id=6)]).doubled() == {(1, 5, "hi"): 2}


def test_an_early_call_is_forgiven_only_while_it_may_have_been_on_its_way() -> None:
    early = replace(CALL, at_ms=1_200, early_by_ms=2_000, flood_ordered_at_ms=1_000)
    ledger = Ledger([CALL, early])

    assert ledger.early() == [early]
    assert ledger.early(grace_ms=200) == []


def test_windows_are_counted_from_admitted_calls_alone() -> None:
    calls = [replace(CALL, at_ms=at_ms) for at_ms in (0, 400, 999, 1_000)]
    refused = replace(CALL, at_ms=500, charged=False)
    group = replace(CALL, chat_id=-9, is_group=True)
    ledger = Ledger([*calls, refused, group])

    assert [each.calls for each in ledger.chat_maxima(1_000)] == [1, 3]
    assert [each.chat_id for each in ledger.group_maxima(60_000)] == [-9]
    assert [each.calls for each in ledger.bot_maxima(1_000)] == [4]


def test_a_window_is_open_at_its_end() -> None:
    assert most_within([0, 1_000], 1_000) == 1
    assert most_within([0, 999], 1_000) == 2
    assert most_within([], 1_000) == 0
