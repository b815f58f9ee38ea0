"""Albums, copies, queries and marks over HTTP, as the framework of our bots calls them."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest
from telegram import (
    Bot,
    InlineQueryResultArticle,
    InputMediaPhoto,
    InputTextMessageContent,
    LabeledPrice,
    ShippingOption,
)
from telegram.error import BadRequest

from tests.simulator.control import Control
from tests.simulator.faults import HalfAlbum, Hold, SiblingFlood
from tests.simulator.limits import OFF
from tests.simulator.media import file_id
from tests.simulator.run import simulator_here

TOKEN = "123456:simulated-secret"
BOT = 123456


@dataclass(frozen=True, slots=True)
class Stage:
    """A bot, a person, and the simulator's control."""

    bot: Bot
    sim: Control
    ada: int
    api_url: str


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with simulator_here(limits=OFF) as running:
        sim = running.control
        await sim.add_bot(TOKEN)
        ada = (await sim.add_user("Ada")).id
        await sim.says(ada, "hi", bot=BOT)
        async with Bot(TOKEN, base_url=f"{running.api_url}/bot") as bot:
            yield Stage(bot, sim, ada, running.api_url)


async def test_an_album_arrives_and_half_of_another_does_too(stage: Stage) -> None:
    photos = [InputMediaPhoto(file_id("photo", BOT, number)) for number in range(3)]
    sent = await stage.bot.send_media_group(stage.ada, photos)
    assert len({each.message_id for each in sent}) == 3

    await stage.sim.arm(HalfAlbum(3), method="sendMediaGroup")
    with pytest.raises(BadRequest, match="message #3"):
        await stage.bot.send_media_group(stage.ada, photos)

    ledger = await stage.sim.ledger()
    assert [each.messages_left for each in ledger.arrivals("sendMediaGroup")] == [3, 2]
    assert ledger.client_bugs() == []


async def test_messages_are_copied_marked_and_deleted(stage: Stage) -> None:
    bot, ada = stage.bot, stage.ada
    ids = [(await bot.send_message(ada, text)).message_id for text in "ab"]
    copied = await bot.copy_messages(ada, ada, [*ids, 999])
    assert len(copied) == 2
    assert (await bot.forward_message(ada, ada, ids[0])).text == "a"
    assert await bot.pin_chat_message(ada, ids[0])
    assert await bot.set_message_reaction(ada, ids[0], "👍")
    assert (await bot.send_poll(ada, "?", ["yes", "no"])).poll
    assert (await bot.send_dice(ada)).dice
    assert await bot.delete_messages(ada, ids)
    assert (await stage.sim.ledger()).client_bugs() == []


async def test_people_ask_inline_check_out_and_stop_what_is_being_written(stage: Stage) -> None:
    bot, sim, ada = stage.bot, stage.sim, stage.ada
    found = InlineQueryResultArticle("1", "Ship", InputTextMessageContent("a ship"))
    asked = await sim.asks_inline(ada, "ships", bot=BOT)
    assert await bot.answer_inline_query(asked, [found])
    paying = await sim.checks_out(ada, "p", bot=BOT)
    assert await bot.answer_pre_checkout_query(paying, ok=True)
    assert await bot.send_message_draft(ada, 7, "Once")
    await sim.stops_generation(ada, 7, bot=BOT)
    kinds = [update.effective_user is None for update in await bot.get_updates()]
    assert len(kinds) == 4


async def test_people_pay_what_is_offered_and_a_group_becomes_a_forum(stage: Stage) -> None:
    bot, sim, ada = stage.bot, stage.sim, stage.ada
    offer = ("Ticket", "One way", "t-1", "XTR", [LabeledPrice("Ticket", 5)])
    assert (await bot.send_invoice(ada, *offer, provider_token="")).invoice
    assert await bot.create_invoice_link(*offer, provider_token="")
    address = await sim.asks_shipping(ada, "t-1", bot=BOT)
    ship = ShippingOption("1", "Ship", [LabeledPrice("Ship", 1)])
    assert await bot.answer_shipping_query(address, ok=True, shipping_options=[ship])
    order = await sim.checks_out(ada, "t-1", bot=BOT)
    assert await bot.answer_pre_checkout_query(order, ok=True)
    await sim.pays(order)
    *_, update = await bot.get_updates()
    assert update.message is not None
    assert update.message.successful_payment is not None
    assert update.message.successful_payment.total_amount == 5

    group = await sim.add_chat("supergroup", "Quay", users=(ada,), bots=(BOT,))
    await sim.opens_topics(ada, chat=group.id)
    assert (await bot.create_forum_topic(group.id, "Piers")).message_thread_id
    link = await bot.create_chat_invite_link(group.id, name="Friends")
    assert (await bot.revoke_chat_invite_link(group.id, link)).is_revoked
    assert await bot.export_chat_invite_link(group.id) != link.invite_link
    assert (await bot.upload_sticker_file(ada, b"webp", "static")).file_id
    assert (await stage.sim.ledger()).client_bugs() == []


async def refused(stage: Stage, chat: int) -> int:
    """The wait that a message is told, past the framework, which warns of its own future."""
    async with httpx.AsyncClient(trust_env=False, timeout=20) as http:
        answer = await http.post(
            f"{stage.api_url}/bot{TOKEN}/sendMessage", json={"chat_id": chat, "text": "x"}
        )
    return int(answer.json()["parameters"]["retry_after"])


async def test_siblings_of_a_limited_send_are_refused_with_it(stage: Stage) -> None:
    await stage.sim.arm(SiblingFlood(5))
    assert [await refused(stage, stage.ada) for _ in range(2)] == [5, 5]


async def test_a_supergroup_is_slowed_down_and_stars_are_given(stage: Stage) -> None:
    sim = stage.sim
    group = await sim.add_chat("supergroup", "Quay", users=(stage.ada,), bots=(BOT,))
    await sim.slows(stage.ada, 30, chat=group.id)
    await stage.bot.send_message(group.id, "a")
    assert await refused(stage, group.id) in (29, 30)

    await sim.stars(BOT, 10)
    await sim.limits("off", bot_per_second=1)
    for _ in range(2):
        await stage.bot.send_message(stage.ada, "c", allow_paid_broadcast=True)
    assert sum(each.paid_tenths for each in (await sim.ledger()).arrivals()) == 1


async def test_faults_come_by_seeded_chance_until_all_is_healed(stage: Stage) -> None:
    await stage.sim.chances(1, [(0.5, HalfAlbum(inner="BY_CHANCE")), (0.5, Hold(1))])
    refusals = 0
    for _ in range(20):
        try:
            await stage.bot.send_message(stage.ada, "x")
        except BadRequest:
            refusals += 1
    assert 4 < refusals < 16
    await stage.sim.heal()
    assert (await stage.bot.send_message(stage.ada, "x")).text == "x"
