"""Calls that name messages, as the sender makes them: by Telegram's ids, or not at all."""

import json
from functools import partial

import pytest

from storage.lifecycle import OutboxState
from storage.options import Limits
from storage.outgoing import Outgoing
from tests.integration.sender.house import House
from tests.integration.storage.calls import call

QUICK = Limits(chat_per_second=1000, chat_burst=1000)
GROUP, SUPERGROUP = -77, -1_000_000_000_077


def listing(key: str, *listed: int) -> Outgoing:
    params = {"chat_id": "7", "message_ids": json.dumps(listed)}
    return call(key, method="deleteMessages", params=params)


edit = partial(call, method="editMessageText")


async def test_a_list_goes_on_with_the_messages_that_there_are(house: House) -> None:
    house.limits = QUICK
    [gone, *_] = await house.says(
        call("a", placeholder=-5, supersede_key="k"),
        call("b", placeholder=-6, supersede_key="k"),
        listing("c", -5, -6, 3),
    )
    await house.start()
    await house.stub.arrived(2)
    await house.becomes(gone, OutboxState.SUPERSEDED)
    _, deletion = house.stub.arrivals
    assert deletion.form["message_ids"] == "[101, 3]"


async def test_a_list_of_nothing_but_dead_messages_is_not_sent(house: House) -> None:
    house.limits = QUICK
    *_, row = await house.says(listing("c", -5, -6))
    await house.start()
    found = await house.becomes(row, OutboxState.CANCELLED)
    assert found.reason is not None
    assert "not known" in found.reason
    assert house.stub.arrivals == []


@pytest.mark.parametrize(
    "named",
    [
        {"message_id": "-99999999999999999999"},
        {"message_id": " -5"},
        {"message_ids": "[-1.0]"},
        {"reply_parameters": '{"message_id": "-5.0"}'},
    ],
)
async def test_a_negative_id_that_is_no_placeholder_of_ours_never_leaves(
    house: House, named: dict[str, str]
) -> None:
    [row] = await house.says(edit("a", params={"chat_id": "7", "text": "x", **named}))
    await house.start()
    found = await house.becomes(row, OutboxState.DEAD)
    assert found.reason is not None
    assert "negative id" in found.reason
    assert house.stub.arrivals == []


async def test_what_follows_a_message_ends_with_it(house: House) -> None:
    house.limits = QUICK
    [_, _, after_lost, after_sent] = await house.says(
        call("a", placeholder=-5, supersede_key="k"),
        call("b", placeholder=-6, supersede_key="k", text="sent"),
        call("c", follows=-5),
        call("d", follows=-6, text="after"),
    )
    await house.start()
    await house.becomes(after_sent, OutboxState.SENT)
    await house.becomes(after_lost, OutboxState.CANCELLED)
    assert house.stub.texts == ["sent", "after"]
    assert all("message_id" not in arrival.form for arrival in house.stub.arrivals)


async def test_a_message_left_behind_in_a_group_is_not_sought_in_its_supergroup(
    house: House,
) -> None:
    """There another message has its number: an edit would hit the wrong one."""
    house.limits = QUICK
    [row] = await house.says(call("a", chat_id=GROUP, placeholder=-5))
    await house.start()
    await house.becomes(row, OutboxState.SENT)
    params = {"chat_id": str(SUPERGROUP), "message_id": "-5", "text": "x"}
    [lost] = await house.says(edit("b", chat_id=SUPERGROUP, params=params))
    await house.becomes(lost, OutboxState.CANCELLED)
    params = {"chat_id": str(GROUP), "message_id": "-5", "text": "x"}
    [found] = await house.says(edit("c", chat_id=GROUP, params=params))
    await house.becomes(found, OutboxState.SENT)
    assert [arrival.form.get("message_id") for arrival in house.stub.arrivals] == [None, "101"]
