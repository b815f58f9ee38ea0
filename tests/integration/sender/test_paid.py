"""Broadcasts that pay in Stars: a ceiling of their own, and a budget that is a hard stop."""

import json
from dataclasses import replace

import pytest

from storage import spending
from storage.lifecycle import OnUncertain, OutboxState, Priority
from storage.options import Limits
from storage.outgoing import Outgoing, priority_for
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Cut, flood, refusal
from tests.integration.sender.test_limit_changes import asking
from tests.integration.storage.calls import call


def paid(key: str, chat_id: int, **wishes: object) -> Outgoing:
    """A message of a broadcast that pays."""
    plain = call(key, chat_id=chat_id, text=key, priority=Priority.BULK)
    params = {**plain.params, "allow_paid_broadcast": "true"}
    return replace(plain, params=params, **wishes)  # type: ignore[arg-type]  # fields of Outgoing


async def spent(house: House) -> int:
    """What it has cost, in tenths of a Star."""
    return await house.db.read(lambda tx: spending.spent(tx, BOT))


@pytest.mark.parametrize("told", ["true", "True", " 1", "yes"])
def test_what_pays_is_paid_whatever_was_asked(told: str) -> None:
    params = {"allow_paid_broadcast": told}
    assert priority_for(params, Priority.INTERACTIVE) is Priority.PAID


@pytest.mark.parametrize("params", [{}, {"allow_paid_broadcast": "false"}])
def test_what_does_not_pay_takes_of_the_free_rate(params: dict[str, str]) -> None:
    assert priority_for(params, Priority.PAID) is Priority.BULK
    assert priority_for(params, Priority.INTERACTIVE) is Priority.INTERACTIVE


async def test_paid_rows_end_with_a_reason_while_nothing_is_paid_for(house: House) -> None:
    await house.start()
    ids = await house.says(*[paid(f"k{n}", n) for n in range(1, 4)])
    for row in ids:
        found = await house.becomes(row, OutboxState.DEAD)
        assert found.reason == "paid broadcasts are off: [limits] paid_per_second is 0"
    assert not house.stub.arrivals


async def test_they_keep_their_own_ceiling_and_none_of_the_free_ones(house: House) -> None:
    house.limits = Limits(
        bot_per_second=2.0, bulk_per_second=1.0, paid_per_second=5, stars_budget=10
    )
    await house.start()
    await house.says(*[paid(f"k{n}", n) for n in range(1, 16)])
    await house.passes(2_500)
    moments = [each.at_ms for each in house.stub.arrivals]
    assert [ms - moments[0] for ms in moments] == [0] * 5 + [1_001] * 5 + [2_002] * 5
    assert await spent(house) == 15


async def test_replies_are_not_held_back_by_them(house: House) -> None:
    house.limits = Limits(bot_per_second=1.0, paid_per_second=3, stars_budget=10)
    await house.start()
    await house.says(*[paid(f"k{n}", n) for n in range(1, 10)])
    [reply] = await house.says(call("reply", chat_id=99))
    await house.becomes(reply, OutboxState.SENT)


async def test_the_budget_is_a_hard_stop_that_counts_what_is_under_way(house: House) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=1)
    house.in_flight_max = 50
    house.stub.will("sendMessage", *[Cut.NEVER_ANSWER] * 20)
    await house.start()
    ids = await house.says(*[paid(f"k{n}", n) for n in range(1, 21)])
    await house.stub.arrived(10)
    await house.passes(20_000)
    assert len(house.stub.arrivals) == 10
    waiting = [await house.row(row) for row in ids[10:]]
    assert {row.state for row in waiting} == {OutboxState.QUEUED}
    assert waiting[0].reason == "paid budget is spent: 0, and 1 on the way, of 1 Stars"


async def test_an_album_costs_each_of_its_messages_and_waits_for_enough(house: House) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=1)
    await house.start()
    await house.says(paid("one", 1, items=6), paid("two", 2, items=5))
    await house.passes(5_000)
    assert house.stub.texts == ["one"]
    assert await spent(house) == 6


async def test_only_what_was_or_may_have_been_accepted_is_charged(house: House) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=10, flood_scope="chat")
    refused = refusal(400, "Bad Request: chat not found")
    house.stub.will("sendMessage", refused, flood(600), Cut.AFTER_READING)
    await house.start()
    ids = await house.says(*[paid(f"k{n}", n, on_uncertain=OnUncertain.HOLD) for n in (1, 2, 3, 4)])
    await house.passes(5_000)
    states = [(await house.row(row)).state for row in ids]
    assert sorted(states) == ["dead", "queued", "sent", "uncertain"]
    assert await spent(house) == 2, "the one that was sent, and the one nobody knows about"


async def test_what_a_dead_sender_had_sent_is_charged_by_the_next(house: House) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=10)
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    [row] = await house.says(paid("a", 1))
    await house.stub.arrived(1)
    house.stub.release()
    await house.becomes(row, OutboxState.UNCERTAIN)
    assert await spent(house) == 1


async def test_a_raised_budget_lets_them_go_on(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=1)
    asked = asking(house)
    await house.start()
    await house.says(*[paid(f"k{n}", n) for n in range(1, 16)])
    await house.passes(5_000)
    assert len(house.stub.arrivals) == 10
    told = [each for each in caplog.messages if each == "paid.budget_spent"]
    assert len(told) == 1, "told once, and not again at each look"
    house.limits = Limits(paid_per_second=1000, stars_budget=2)
    asked.set()
    await house.passes(61_000)
    assert len(house.stub.arrivals) == 15
    assert await spent(house) == 15


async def test_refusals_of_one_second_throw_doubt_on_the_balance(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=10)
    house.stub.will("sendMessage", *[flood(1)] * 3)
    await house.start()
    await house.says(paid("a", 1))
    await house.passes(10_000)
    assert caplog.messages.count("paid.check_balance") == 1


async def test_an_outages_row_costs_nothing(house: House) -> None:
    house.limits = Limits(paid_per_second=1000, stars_budget=10)
    await house.stub.close()
    await house.start()
    await house.says(paid("a", 1))
    await house.passes(10_000)
    assert await spent(house) == 0
    await house.stub.open()
    await house.passes(60_000)
    assert await spent(house) == 1


def test_the_flag_is_among_what_is_sent() -> None:
    assert json.dumps(paid("a", 1).params["allow_paid_broadcast"]) == '"true"'
