"""Floods as public bug reports tell them, each with the number of its case and what is right.

1  python-telegram-bot 5338, 5339, 5354: a shorter wait released a longer one
2  python-telegram-bot 3765, 4003: one much edited message froze every user
3  NousResearch/hermes-agent 76494, 79552, 100072: a refused edit became new messages, refused
4  hermes-agent 104799: a restart forgot the wait, the reply was lost
5  hermes-agent 89962, 91969: waits of hours kept a process from starting and from ending
"""

from typing import Literal

import pytest

from storage import cooldowns
from storage.cooldowns import BOT_SCOPE
from storage.lifecycle import OutboxState
from storage.options import Limits
from storage.outgoing import Outgoing
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Late, flood
from tests.integration.sender.test_sending import edit
from tests.integration.sender.test_six_cases import cools
from tests.integration.storage.calls import call

Scope = Literal["adaptive", "bot", "chat"]


def progress(number: int) -> Outgoing:
    """One more edit of the same progress message."""
    params = {"chat_id": "7", "message_id": "90", "text": f"{number} of 130"}
    return call(f"p{number}", method="editMessageText", params=params, coalesce_key="c:7/90")


@pytest.mark.parametrize("flood_scope", ["adaptive", "bot"])
async def test_field_case_01_a_later_shorter_wait_releases_nobody(
    house: House, flood_scope: Scope
) -> None:
    """A is told 30 s, and two seconds later B 3 s: nothing leaves before A's thirty are over."""
    told_b = Late(flood(3))
    house.limits = Limits(flood_scope=flood_scope)
    house.stub.will("sendMessage", flood(30), told_b)
    ids = await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.start()
    await house.stub.arrived(2)
    rows = dict(zip("12", ids, strict=True))
    first, second = (arrival.form["chat_id"] for arrival in house.stub.arrivals)
    await cools(house, rows[first])
    began_ms = house.clock.now_ms()
    await house.passes(2_000)
    told_b.give()
    await cools(house, rows[second])
    for chat_id in (3, 4, 5):
        await house.says(call(f"later{chat_id}", chat_id=chat_id))
        await house.passes(5_000)
    await house.passes(began_ms + 29_999 - house.clock.now_ms())
    assert len(house.stub.arrivals) == 2
    await house.passes(1_500)
    await house.stub.arrived(7)
    assert all(call.at_ms >= began_ms + 30_000 for call in house.stub.arrivals[2:])


@pytest.mark.parametrize("wait_s", [1, 51, 5_820])
@pytest.mark.parametrize("flood_scope", ["adaptive", "chat"])
async def test_field_case_02_an_edits_flood_blocks_the_edits_of_its_chat_alone(
    house: House, flood_scope: Scope, wait_s: int
) -> None:
    """Other chats, and the messages of this one, keep their latency."""
    house.limits = Limits(flood_scope=flood_scope, chat_per_second=1_000)
    house.stub.will("editMessageText", flood(wait_s))
    await house.start()
    [cooling] = await house.says(edit("progress", 90))
    await cools(house, cooling)
    began_ms = house.clock.now_ms()
    others = await house.says(
        edit("elsewhere", 91, chat_id=8), *[call(f"k{n}", chat_id=n) for n in range(8, 28)]
    )
    for row in others:
        await house.sees(row, lambda found: found.state is OutboxState.SENT, "sent")
        await house.passes(2)
    assert house.clock.now_ms() - began_ms < 1_000
    waits = await house.db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert [wait.scope for wait in waits] == ["edits:c:7"]


async def test_field_case_02_and_a_message_to_the_edits_own_chat_is_not_held(house: House) -> None:
    """It waits for the refused edit's place in the lane, and for nothing else."""
    house.stub.will("editMessageText", flood(51))
    await house.start()
    [cooling] = await house.says(edit("progress", 90))
    await cools(house, cooling)
    waits = await house.db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert {wait.scope for wait in waits}.isdisjoint({BOT_SCOPE, "c:7"})


@pytest.mark.parametrize("flood_scope", ["adaptive", "bot", "chat"])
async def test_field_case_03_progress_edits_coalesce_and_none_leaves_inside_the_wait(
    house: House, flood_scope: Scope
) -> None:
    """130 edits of one message during a wait of 51 s are one call after it, with the last text."""
    house.limits = Limits(flood_scope=flood_scope)
    house.stub.will("editMessageText", flood(51))
    await house.start()
    [refused] = await house.says(progress(0))
    await cools(house, refused)
    began_ms = house.clock.now_ms()
    ids = [refused]
    for number in range(1, 131):
        ids += await house.says(progress(number))
        if number % 13 == 0:
            await house.passes(5_000)
    await house.passes(began_ms + 50_999 - house.clock.now_ms())
    assert len(house.stub.arrivals) == 1
    await house.passes(10_000)
    await house.becomes(ids[-1], OutboxState.SENT)
    assert house.stub.texts == ["0 of 130", "130 of 130"]
    for row in ids[:-1]:
        assert (await house.row(row)).state is OutboxState.SUPERSEDED


@pytest.mark.parametrize("flood_scope", ["adaptive", "bot", "chat"])
async def test_field_case_03_a_new_message_instead_of_a_refused_edit_makes_no_chain(
    house: House, flood_scope: Scope
) -> None:
    """What a handler says instead is refused once, and waits: each wait costs one call."""
    house.limits = Limits(flood_scope=flood_scope)
    house.stub.will("editMessageText", flood(51))
    house.stub.will("sendMessage", flood(60))
    await house.start()
    [refused] = await house.says(progress(0))
    await cools(house, refused)
    instead = await house.says(*[call(f"instead{n}", text=f"instead {n}") for n in range(5)])
    await house.passes(50_000)
    before = len(house.stub.arrivals)
    await house.passes(150_000)
    assert before <= 2
    for row in instead:
        await house.becomes(row, OutboxState.SENT)
    assert len(house.stub.arrivals) == 1 + 5 + 2, "each row once, and each of two waits once more"


@pytest.mark.parametrize("wait_s", [142, 185])
@pytest.mark.parametrize("restart_s", [0, 42, 141])
async def test_field_case_04_a_restart_keeps_the_deadline_and_the_reply(
    house: House, wait_s: int, restart_s: int
) -> None:
    """No try before the deadline, exactly one after it, no attempt used, no restart needed."""
    house.stub.will("sendMessage", flood(wait_s))
    await house.start()
    [row] = await house.says(call("the final reply"))
    await cools(house, row)
    await house.passes(restart_s * 1_000)
    await house.stop()
    await house.start()
    await house.passes((wait_s - restart_s) * 1_000 - 1)
    assert len(house.stub.arrivals) == 1
    assert (await house.row(row)).attempts == 0
    await house.passes(60_000)
    found = await house.becomes(row, OutboxState.SENT)
    assert found.attempts == 1
    first, second = house.stub.arrivals
    assert second.at_ms - first.at_ms == wait_s * 1_000


@pytest.mark.parametrize("wait_s", [1_000, 97 * 60, 14 * 24 * 3600])
async def test_field_case_05_a_wait_of_hours_parks_the_row_and_nothing_else(
    house: House, wait_s: int
) -> None:
    """It is met at the very start; other chats are served, and shutting down waits for nobody."""
    house.stub.will("sendMessage", flood(wait_s))
    [parked] = await house.says(call("a", chat_id=1))
    await house.start()
    await cools(house, parked)
    others = await house.says(*[call(f"k{chat}", chat_id=chat) for chat in range(2, 12)])
    await house.passes(6_000)
    for row in others:
        await house.becomes(row, OutboxState.SENT)
    before_ms = house.clock.now_ms()
    await house.stop()
    await house.start()
    await house.stop()
    assert house.clock.now_ms() == before_ms, "no moment of the wait was slept through"
    found = await house.row(parked)
    assert (found.state, found.attempts) == (OutboxState.QUEUED, 0)
    assert len(house.stub.arrivals) == 11
