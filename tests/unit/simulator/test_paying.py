"""Slow mode and paid broadcasts: ordinary refusals, and a balance that shrinks."""

import json

import pytest

from tests.simulator.chats import ChatType
from tests.simulator.limits import TELEGRAM
from tests.simulator.people import Impossible
from tests.unit.simulator.conftest import Town


def crowd(town: Town, count: int) -> list[int]:
    """People who know the bot."""
    people = town.telegram.people
    ids = [people.add_user(f"P{number}").id for number in range(count)]
    for user_id in ids:
        people.says(user_id, "hi", bot_id=town.bot.id)
    return ids


def broadcast(town: Town, people: list[int], *, paying: bool) -> list[int]:
    """The status of each message of a broadcast, all sent in one moment."""
    form = {"allow_paid_broadcast": True} if paying else {}
    return [town.reply("sendMessage", chat_id=each, text="x", **form).status for each in people]


def test_a_broadcast_that_pays_goes_beyond_the_free_rate_at_a_tenth_of_a_star_each(
    town: Town,
) -> None:
    town.telegram.limiter.rules = TELEGRAM
    town.bot.stars_tenths = 100

    assert broadcast(town, crowd(town, 50), paying=True) == [200] * 50

    assert town.bot.stars_tenths == 80
    assert sum(each.paid_tenths for each in town.telegram.ledger.arrivals()) == 20
    assert town.telegram.ledger.bot_maxima(1_000)[0].calls == 30


def test_only_what_succeeds_is_paid_for(town: Town) -> None:
    town.telegram.limiter.rules = TELEGRAM
    town.bot.stars_tenths = 100
    people = crowd(town, 40)
    for user_id in people[30:]:
        town.telegram.people.blocks(user_id, bot_id=town.bot.id)
    assert broadcast(town, people, paying=True) == [200] * 30 + [403] * 10
    assert town.bot.stars_tenths == 100


def test_without_stars_the_free_rate_holds_and_the_server_gives_up_after_trying_to_charge(
    town: Town,
) -> None:
    town.telegram.limiter.rules = TELEGRAM
    people = crowd(town, 31)
    assert broadcast(town, people, paying=True) == [200] * 30 + [429]

    reply = town.reply("sendMessage", chat_id=people[-1], text="x", allow_paid_broadcast=True)

    assert (json.loads(reply.body)["parameters"], reply.hold_ms) == ({"retry_after": 1}, 8_000)
    assert town.telegram.ledger.early() == []


def test_who_does_not_offer_to_pay_does_not(town: Town) -> None:
    town.telegram.limiter.rules = TELEGRAM
    town.bot.stars_tenths = 100
    assert broadcast(town, crowd(town, 31), paying=False) == [200] * 30 + [429]
    assert town.bot.stars_tenths == 100


def test_forwards_cannot_be_paid_for(town: Town) -> None:
    about = {"chat_id": town.ada, "from_chat_id": town.ada, "message_id": town.send()}
    town.refusal("forwardMessage", **about, allow_paid_broadcast=True)
    assert len(town.telegram.ledger.client_bugs()) == 1


def test_slow_mode_is_an_ordinary_flood_of_its_chat_for_members(town: Town) -> None:
    people = town.telegram.people
    group = people.add_chat(ChatType.SUPERGROUP, "Quay", users=(town.ada,), bots=(town.bot.id,))
    people.slows(town.ada, 30, chat_id=group.id)
    sent = town.call("sendMessage", chat_id=group.id, text="a")
    town.clock.advance_ms(10_000)
    about = {"chat_id": group.id, "message_id": sent["message_id"]}
    assert town.call("editMessageText", **about, text="b")

    refused = town.refusal("sendMessage", chat_id=group.id, text="c")

    assert refused == "429 Too Many Requests: retry after 20"
    town.clock.advance_ms(20_000)
    assert town.call("sendMessage", chat_id=group.id, text="c")
    assert town.telegram.ledger.early() == []


def test_only_the_creator_of_a_supergroup_slows_it_down(town: Town) -> None:
    people = town.telegram.people
    group = people.add_chat(ChatType.GROUP, "Quay", users=(town.ada,), bots=(town.bot.id,))
    with pytest.raises(Impossible):
        people.slows(town.ada, 30, chat_id=group.id)
