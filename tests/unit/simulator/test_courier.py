"""Deliveries on virtual time: the courier posts what is due, and Telegram remembers how it went."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import pytest

from tests.simulator.clock import settle
from tests.simulator.courier import Couriers
from tests.simulator.deliverer import Answered, Outcome, Unconnected
from tests.simulator.faults import Acceptance, Cut, Hang, Hold, Truncated
from tests.simulator.inproc import (
    AnswerBrokeOff,
    ConnectionCut,
    InProcess,
    NobodyListens,
)
from tests.simulator.posting import Post
from tests.unit.simulator.conftest import TOKEN, Town

HOOK = "http://127.0.0.1:1/telegram/main"


class Receiver:
    """A webhook that answers as it is told, and keeps what it got."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self.answer: Callable[[Post], Outcome] = lambda _: Answered(200)
        self.slow = asyncio.Event()
        self.slow.set()

    async def post(self, post: Post) -> Outcome:
        self.posts.append(post)
        await self.slow.wait()
        return self.answer(post)

    @property
    def words(self) -> list[str]:
        bodies = [json.loads(each.body) for each in self.posts]
        return [each["message"]["text"] for each in bodies if "message" in each]


@pytest.fixture
async def receiver(town: Town) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    town.call("setWebhook", url=HOOK, secret_token="s3cret")
    async with Couriers(town.telegram, receiver):
        yield receiver


async def test_what_waited_is_delivered_with_telegrams_headers(
    town: Town, receiver: Receiver
) -> None:
    await settle()

    (post,) = receiver.posts
    assert post.url == HOOK
    assert post.headers == {
        "Content-Type": "application/json",
        "Accept-Encoding": "gzip, deflate",
        "X-Telegram-Bot-Api-Secret-Token": "s3cret",
    }
    assert post.body.startswith(b'{"update_id":')
    assert town.call("getWebhookInfo")["pending_update_count"] == 0


async def test_text_outside_ascii_is_escaped(town: Town, receiver: Receiver) -> None:
    town.telegram.people.says(town.ada, "🌊 é", bot_id=town.bot.id)
    await settle()
    assert rb'"text":"\ud83c\udf0a \u00e9"' in receiver.posts[-1].body


async def test_a_refused_update_comes_again_and_the_last_error_stays(
    town: Town, receiver: Receiver
) -> None:
    receiver.answer = lambda _: Answered(503, "Service Unavailable")
    await town.clock.travel_ms(1_000)
    assert len(receiver.posts) == 2

    receiver.answer = lambda _: Answered(200)
    await town.clock.travel_ms(1_500)
    assert len(receiver.posts) == 3

    info = town.call("getWebhookInfo")
    assert info["last_error_message"] == "Wrong response from the webhook: 503 Service Unavailable"
    assert info["pending_update_count"] == 0
    update_id = json.loads(receiver.posts[0].body)["update_id"]
    statuses = [each.status for each in town.telegram.ledger.deliveries(town.bot.id, update_id)]
    assert statuses == [503, 503, 200]


async def test_an_answer_that_takes_a_minute_is_no_answer(town: Town, receiver: Receiver) -> None:
    receiver.slow.clear()
    await town.clock.travel_ms(59_999)
    assert len(receiver.posts) == 1

    receiver.slow.set()
    receiver.slow = asyncio.Event()
    receiver.slow.set()
    await town.clock.travel_ms(1)
    assert town.call("getWebhookInfo")["pending_update_count"] == 0


async def test_a_silent_webhook_is_tried_again_after_a_minute(
    town: Town, receiver: Receiver
) -> None:
    receiver.slow.clear()
    await town.clock.travel_ms(62_000)
    assert len(receiver.posts) == 2
    assert town.call("getWebhookInfo")["last_error_message"] == "Read timeout expired"


async def test_nobody_listening_is_not_the_updates_fault(town: Town, receiver: Receiver) -> None:
    receiver.answer = lambda _: Unconnected("Connection refused")
    await town.clock.travel_ms(30_000)
    receiver.answer = lambda _: Answered(200)
    await town.clock.travel_ms(2_000)
    assert town.call("getWebhookInfo")["last_error_message"] == "Connection refused"
    assert town.call("getWebhookInfo")["pending_update_count"] == 0


async def test_a_query_that_waits_too_long_is_given_up(town: Town, receiver: Receiver) -> None:
    receiver.answer = lambda _: Answered(503)
    payload = {"id": "q", "from": {"id": town.ada, "is_bot": False, "first_name": "Ada"}}
    update_id = town.telegram.people.inject(town.bot.id, {"callback_query": payload})
    await town.clock.travel_ms(200_000)
    assert town.telegram.ledger.ends(town.bot.id) == {update_id: "expired"}


async def test_an_update_can_be_delivered_once_more(town: Town) -> None:
    receiver = Receiver()
    town.call("setWebhook", url=HOOK)
    async with Couriers(town.telegram, receiver) as couriers:
        await settle()
        update_id = json.loads(receiver.posts[0].body)["update_id"]
        assert couriers.repeat(town.bot, update_id)
        assert not couriers.repeat(town.bot, update_id + 1)
        await settle()

    assert receiver.posts[0].body == receiver.posts[1].body
    assert len(town.telegram.ledger.deliveries(town.bot.id, update_id)) == 2


async def test_a_method_in_the_answer_is_carried_out_unless_it_only_reads(
    town: Town, receiver: Receiver
) -> None:
    await settle()
    for method in ("sendMessage", "getMe", "setWebhook"):
        body = json.dumps({"method": method, "chat_id": town.ada, "text": "by answer"}).encode()
        receiver.answer = lambda _, body=body: Answered(200, body=body)  # type: ignore[misc]  # bound now
        town.telegram.people.says(town.ada, "go", bot_id=town.bot.id)
        await settle()
    assert [a.method for a in town.telegram.ledger.arrivals()] == ["setWebhook", "sendMessage"]


async def test_a_changed_webhook_gets_again_what_was_under_way(
    town: Town, receiver: Receiver
) -> None:
    receiver.slow.clear()
    await settle()
    town.clock.advance_ms(1_000)
    town.call("setWebhook", url=HOOK, secret_token="rotated")
    await settle()
    assert [each.headers["X-Telegram-Bot-Api-Secret-Token"] for each in receiver.posts] == [
        "s3cret",
        "rotated",
    ]


class TestInProcess:
    """The door for simulated worlds."""

    async def test_a_call_is_answered(self, town: Town) -> None:
        response = await InProcess(town.telegram).call(TOKEN, "getMe", {})
        assert response.status == 200
        assert json.loads(response.body)["result"]["username"] == "ferry_bot"

    async def test_a_held_call_takes_its_time(self, town: Town) -> None:
        town.telegram.faults.next("getMe", Hold(8_000))
        call = asyncio.create_task(InProcess(town.telegram).call(TOKEN, "getMe", {}))
        await town.clock.travel_ms(7_999)
        assert not call.done()
        await town.clock.travel_ms(1)
        assert (await call).status == 200

    async def test_a_hanging_call_waits_for_its_release(self, town: Town) -> None:
        town.telegram.faults.next("getMe", Hang(Acceptance.AFTER))
        call = asyncio.create_task(InProcess(town.telegram).call(TOKEN, "getMe", {}))
        await town.clock.travel_ms(86_400_000)
        assert not call.done()
        town.telegram.release()
        assert (await call).status == 200

    async def test_a_long_poll_waits_for_an_update(self, town: Town) -> None:
        form = {"offset": "2000000000", "timeout": "30"}
        call = asyncio.create_task(InProcess(town.telegram).call(TOKEN, "getUpdates", form))
        await town.clock.travel_ms(29_000)
        town.telegram.people.says(town.ada, "at last", bot_id=town.bot.id)
        assert b"at last" in (await call).body

    async def test_trouble_on_the_way_is_raised(self, town: Town) -> None:
        door = InProcess(town.telegram)
        town.telegram.faults.next("getMe", Cut(Acceptance.AFTER))
        with pytest.raises(ConnectionCut):
            await door.call(TOKEN, "getMe", {})
        town.telegram.faults.next("getMe", Truncated(short_of_length=True))
        with pytest.raises(AnswerBrokeOff):
            await door.call(TOKEN, "getMe", {})
        town.telegram.reachable = False
        with pytest.raises(NobodyListens):
            await door.call(TOKEN, "getMe", {})
