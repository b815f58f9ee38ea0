"""The simulator over loopback: real clients take its answers, real sockets feel its faults."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import httpx
import pytest
from starlette.applications import Starlette
from telegram import Bot, InlineKeyboardButton, InlineKeyboardMarkup, Update
from telegram.error import BadRequest, Conflict, Forbidden, InvalidToken, NetworkError, RetryAfter

from tests.simulator.control import BotView, Control, ControlError, UserView
from tests.simulator.faults import (
    Acceptance,
    Cut,
    Fault,
    Flood,
    Gateway,
    Hang,
    Rule,
    ServerError,
    Truncated,
)
from tests.simulator.limits import OFF
from tests.simulator.listening import LOOPBACK, Port
from tests.simulator.run import RunningHere, simulator_here, simulator_process

TOKEN = "123456:simulated-secret"


@dataclass(frozen=True, slots=True)
class Stage:
    """A running simulator, a bot and a person who has written to it."""

    running: RunningHere
    sim: Control
    bot: BotView
    ada: UserView
    http: httpx.AsyncClient

    async def send(self, text: str = "hello") -> httpx.Response:
        form = {"chat_id": self.ada.id, "text": text}
        return await self.http.post(f"/bot{TOKEN}/sendMessage", json=form)

    async def arrived(self) -> list[str]:
        ledger = await self.sim.ledger()
        return [each.text for each in ledger.messages(self.bot.id, self.ada.id)]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with (
        simulator_here(limits=OFF) as running,
        httpx.AsyncClient(base_url=running.api_url, trust_env=False, timeout=5.0) as http,
    ):
        sim = running.control
        bot = await sim.add_bot(TOKEN, username="ferry_bot")
        ada = await sim.add_user("Ada", username="ada")
        await sim.says(ada.id, "/start", bot=bot.id)
        yield Stage(running, sim, bot, ada, http)


class TestRealClient:
    """python-telegram-bot takes the answers for Telegram's."""

    @pytest.fixture
    async def client(self, stage: Stage) -> AsyncIterator[Bot]:
        async with Bot(TOKEN, base_url=f"{stage.running.api_url}/bot") as client:
            yield client

    async def test_a_conversation_round(self, stage: Stage, client: Bot) -> None:
        (started,) = await client.get_updates(timeout=5)
        assert isinstance(started, Update)
        assert started.message is not None
        assert started.message.text == "/start"
        keyboard = InlineKeyboardMarkup([[InlineKeyboardButton("Go", callback_data="go")]])
        asked = await client.send_message(
            stage.ada.id,
            "<b>Ready?</b>",
            parse_mode="HTML",
            reply_markup=keyboard,
            reply_to_message_id=started.message.message_id,
        )
        assert asked.reply_to_message is not None
        assert asked.text_html == "<b>Ready?</b>"

        press = await stage.sim.presses(stage.ada.id, asked.message_id, "go", bot=stage.bot.id)
        (pressed,) = await client.get_updates(offset=started.update_id + 1, timeout=5)
        assert pressed.callback_query is not None
        assert await pressed.callback_query.answer("Off we go", show_alert=True)
        assert await stage.sim.wait_answered(press) == {"text": "Off we go", "show_alert": True}

        edited = await asked.edit_text("Gone")
        assert isinstance(edited, type(asked))
        assert edited.edit_date is not None
        assert await client.send_chat_action(stage.ada.id, "typing")
        assert (await client.get_chat(stage.ada.id)).username == "ada"
        assert await edited.delete()
        (deleted,) = [
            each
            for each in await stage.sim.conversation(stage.bot.id, stage.ada.id)
            if each.message_id == asked.message_id
        ]
        assert (deleted.deleted, deleted.text, deleted.from_bot) == (True, "Gone", True)
        assert (await stage.sim.ledger()).client_bugs() == []

    async def test_a_webhook_is_set_shown_and_deleted(self, stage: Stage, client: Bot) -> None:
        assert await client.set_webhook("http://127.0.0.1:9/hook", secret_token="s")
        info = await client.get_webhook_info()
        assert (info.url, info.pending_update_count) == ("http://127.0.0.1:9/hook", 1)
        with pytest.raises(Conflict):
            await client.get_updates()
        assert await client.delete_webhook()
        assert (await stage.sim.webhook(stage.bot.id))["url"] == ""

    # Its own: how long to wait is going to be a timedelta.
    @pytest.mark.filterwarnings("ignore:Deprecated since version v22.2")
    async def test_refusals_are_the_errors_it_knows(self, stage: Stage, client: Bot) -> None:
        with pytest.raises(BadRequest, match="Message is too long"):
            await client.send_message(stage.ada.id, "x" * 4_097)
        await stage.sim.arm(Flood(3), method="sendMessage")
        with pytest.raises(RetryAfter):
            await client.send_message(stage.ada.id, "x")
        await stage.sim.blocks(stage.ada.id, bot=stage.bot.id)
        with pytest.raises(Forbidden, match="bot was blocked by the user"):
            await client.send_chat_action(stage.ada.id, "typing")
        await stage.sim.revoke(stage.bot.id)
        with pytest.raises(InvalidToken):
            await client.get_me()

    @pytest.mark.parametrize(
        ("fault", "cause", "arrives"),
        [
            (Cut(Acceptance.BEFORE), httpx.RemoteProtocolError, False),
            (Cut(Acceptance.AFTER), httpx.RemoteProtocolError, True),
            (Cut(Acceptance.AFTER, reset=True), httpx.ReadError, True),
            (Truncated(short_of_length=True), httpx.RemoteProtocolError, True),
        ],
        ids=repr,
    )
    async def test_cuts_are_felt_on_the_socket(
        self, stage: Stage, client: Bot, fault: Fault, cause: type[Exception], *, arrives: bool
    ) -> None:
        await stage.sim.arm(fault, method="sendMessage")
        with pytest.raises(NetworkError) as caught:
            await client.send_message(stage.ada.id, "cut")
        assert isinstance(caught.value.__cause__, cause)
        assert await stage.arrived() == (["cut"] if arrives else [])


async def test_a_fault_that_answers_is_seen_as_it_is(stage: Stage) -> None:
    await stage.sim.plan(Rule(fault=Gateway(Acceptance.BEFORE), method="sendMessage", skip=1))
    await stage.sim.arm(ServerError(Acceptance.AFTER), method="sendMessage", contains="third")
    statuses = [(await stage.send(text)).status_code for text in ("first", "second", "third")]
    assert statuses == [200, 502, 500]
    assert await stage.arrived() == ["first", "third"]


async def test_a_flood_has_its_header_on_the_wire(stage: Stage) -> None:
    await stage.sim.arm(Flood(5), chat=stage.ada.id)
    response = await stage.send()
    assert (response.status_code, response.headers["Retry-After"]) == (429, "5")


async def test_a_truncated_answer_is_whole_http_and_half_json(stage: Stage) -> None:
    await stage.sim.arm(Truncated())
    response = await stage.send()
    with pytest.raises(json.JSONDecodeError):
        response.json()


async def test_a_hanging_call_is_answered_when_it_is_released(stage: Stage) -> None:
    await stage.sim.arm(Hang(Acceptance.AFTER), method="sendMessage")
    sending = asyncio.create_task(stage.send("slow"))
    await stage.sim.wait_arrivals("sendMessage", 1)
    assert not sending.done()
    await stage.sim.release()
    assert (await sending).status_code == 200


async def test_whoever_hangs_up_on_a_hanging_call_undoes_nothing(stage: Stage) -> None:
    await stage.sim.arm(Hang(Acceptance.AFTER), method="sendMessage")
    sending = asyncio.create_task(stage.send("impatient"))
    await stage.sim.wait_arrivals("sendMessage", 1)
    sending.cancel()
    await asyncio.gather(sending, return_exceptions=True)
    await stage.sim.release()
    assert await stage.arrived() == ["impatient"]


async def test_an_outage_refuses_connections_and_ends(stage: Stage) -> None:
    assert (await stage.send()).status_code == 200
    await stage.sim.goes_down()
    # A connection kept from before was cut as well, which only the first try may find out.
    troubles = [
        type(each) for each in await asyncio.gather(*[stage.send()], return_exceptions=True)
    ]
    assert troubles != [httpx.Response]
    with pytest.raises(httpx.ConnectError):
        await stage.send()
    await stage.sim.comes_back()
    assert (await stage.send()).status_code == 200
    assert len(await stage.arrived()) == 2


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/botnonsense/getMe", 404),
        ("/bot123456:wrong/getMe", 401),
        (f"/bot{TOKEN}/getMeSomething", 404),
        (f"/bot{TOKEN}", 404),
        ("/", 404),
        ("/_sim/ledger", 404),
    ],
)
async def test_other_addresses_are_answered_as_at_telegram(
    stage: Stage, path: str, status: int
) -> None:
    response = await stage.http.get(path)
    assert response.status_code == status
    assert response.json()["error_code"] == status


async def test_all_ways_to_write_a_call_are_read(stage: Stage) -> None:
    where = f"/bot{TOKEN}/sendMessage"
    form = {"chat_id": str(stage.ada.id), "text": "é"}
    for response in (
        await stage.http.post(where, json={**form, "chat_id": stage.ada.id}),
        await stage.http.post(where, data=form),
        await stage.http.get(where, params=form),
        await stage.http.post(where, files={name: (None, text) for name, text in form.items()}),
    ):
        assert response.json()["ok"], response.text
    refused = await stage.http.post(
        where, content=b"{", headers={"Content-Type": "application/json"}
    )
    assert refused.status_code == 400
    assert await stage.arrived() == ["é"] * 4


class TestWebhook:
    """Deliveries over real HTTP."""

    @dataclass(slots=True)
    class Hook:
        """A receiver: raw requests in, statuses out."""

        url: str
        requests: list[tuple[dict[bytes, bytes], bytes]]
        statuses: list[int]

    @pytest.fixture
    async def hook(self) -> AsyncIterator["TestWebhook.Hook"]:
        requests: list[tuple[dict[bytes, bytes], bytes]] = []
        statuses: list[int] = []

        async def app(
            scope: dict[str, list[tuple[bytes, bytes]]],
            receive: Callable[[], Awaitable[dict[str, bytes]]],
            send: Callable[[dict[str, object]], Awaitable[None]],
        ) -> None:
            body = (await receive())["body"]
            requests.append((dict(scope["headers"]), body))
            status = statuses.pop(0) if statuses else 200
            headers = [(b"content-length", b"0")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": b""})

        port = Port(app)  # type: ignore[arg-type]  # an application in its plainest form
        await port.open()
        yield self.Hook(f"http://{LOOPBACK}:{port.number}/hook", requests, statuses)
        await port.close()

    async def set(self, stage: Stage, url: str) -> None:
        form = {"url": url, "secret_token": "s3cret"}
        assert (await stage.http.post(f"/bot{TOKEN}/setWebhook", json=form)).status_code == 200

    async def test_an_update_arrives_with_telegrams_headers_and_nothing_more(
        self, stage: Stage, hook: Hook
    ) -> None:
        await self.set(stage, hook.url)
        await stage.sim.wait_idle(stage.bot.id)

        (headers, body), *others = hook.requests
        assert others == []
        assert headers == {
            b"host": hook.url.split("/")[2].encode(),
            b"content-type": b"application/json",
            b"content-length": str(len(body)).encode(),
            b"accept-encoding": b"gzip, deflate",
            b"x-telegram-bot-api-secret-token": b"s3cret",
        }
        assert body.startswith(b'{"update_id":')

    async def test_a_refused_update_comes_again_until_it_is_taken(
        self, stage: Stage, hook: Hook
    ) -> None:
        await stage.sim.delivery(delay_scale=0.001)
        hook.statuses[:] = [500, 302, 404, 503]
        await self.set(stage, hook.url)
        await stage.sim.wait_idle(stage.bot.id)

        assert len({body for _, body in hook.requests}) == 1
        assert len(hook.requests) == 5
        info = await stage.sim.webhook(stage.bot.id)
        assert info["last_error_message"] == (
            "Wrong response from the webhook: 503 Service Unavailable"
        )

    async def test_an_acknowledged_update_can_be_delivered_again(
        self, stage: Stage, hook: Hook
    ) -> None:
        await self.set(stage, hook.url)
        said = await stage.sim.says(stage.ada.id, "again", bot=stage.bot.id)
        await stage.sim.wait_end(stage.bot.id, said.update_ids[0])
        await stage.sim.redeliver(stage.bot.id, said.update_ids[0])
        await stage.sim.wait_deliveries(stage.bot.id, said.update_ids[0], 2)
        assert hook.requests[1][1] == hook.requests[2][1]

    async def test_nobody_at_the_webhook_is_the_last_error(self, stage: Stage) -> None:
        port = Port(Starlette())
        await port.open()
        await port.close()
        await self.set(stage, f"http://{LOOPBACK}:{port.number}/")
        said = await stage.sim.says(stage.ada.id, "anybody?", bot=stage.bot.id)
        await stage.sim.wait_deliveries(stage.bot.id, said.update_ids[0] - 1, 1)
        info = await stage.sim.webhook(stage.bot.id)
        assert info["last_error_message"] == "Connection refused"
        assert info["pending_update_count"] == 2


class TestControl:
    """The control port."""

    async def test_a_group_and_its_people(self, stage: Stage) -> None:
        sim = stage.sim
        quay = await sim.add_chat("group", "Quay", users=(stage.ada.id,), bots=(stage.bot.id,))
        said = await sim.says(stage.ada.id, "ahoy", chat=quay.id)
        await sim.edits(stage.ada.id, said.message_id, "ahoy!", chat=quay.id)
        await sim.deletes(stage.ada.id, said.message_id, chat=quay.id)
        await sim.kicks_bot(stage.ada.id, bot=stage.bot.id, chat=quay.id)
        await sim.adds_bot(stage.ada.id, bot=stage.bot.id, chat=quay.id)
        new = await sim.upgrades(stage.ada.id, chat=quay.id)
        assert (new.type, new.title) == ("supergroup", "Quay")
        await sim.dissolves(stage.ada.id, chat=new.id)
        kinds = [each["kind"] for each in (await sim.ledger()).export() if "queue" in each]
        assert kinds == [
            "message",
            "message",
            "edited_message",
            "my_chat_member",
            "my_chat_member",
            "message",
            "message",
        ]

    async def test_what_cannot_be_done_is_told(self, stage: Stage) -> None:
        with pytest.raises(ControlError, match="private chat needs a bot"):
            await stage.sim.says(stage.ada.id, "hello?")
        with pytest.raises(ControlError, match="there is no 77"):
            await stage.sim.says(77, "x", bot=stage.bot.id)
        with pytest.raises(ControlError, match="no webhook is set"):
            await stage.sim.redeliver(stage.bot.id, 1)
        with pytest.raises(ControlError, match="chat_burst"):
            await stage.sim.limits("telegram", chat_burst=None)
        with pytest.raises(ControlError, match="no such verb"):
            await stage.sim._ask("dance")

    async def test_waiting_ends_with_what_was_seen(self, stage: Stage) -> None:
        waiting = asyncio.create_task(stage.sim.wait_messages(stage.bot.id, stage.ada.id, 2))
        for text in ("one", "two"):
            await stage.send(text)
        assert [each.text for each in await waiting] == ["one", "two"]
        with pytest.raises(TimeoutError, match="'pending': 1"):
            await stage.sim.wait_idle(stage.bot.id, timeout_s=0)

    async def test_a_wait_ends_with_whoever_waits(self) -> None:
        """Else a test that fails while it waits would hold the simulator up."""
        async with asyncio.timeout(8), simulator_process() as running:
            await running.control.add_bot(TOKEN)
            waiting = asyncio.create_task(running.control.wait_arrivals("getMe", 1, timeout_s=600))
            await running.control.ledger()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)

    async def test_limits_can_be_changed_while_it_runs(self, stage: Stage) -> None:
        await stage.sim.limits("strict", wait_s_min=1)
        assert [(await stage.send(each)).status_code for each in "ab"] == [200, 429]
        await stage.sim.heal()

    async def test_news_for_the_page_come_as_events(self, stage: Stage) -> None:
        url = f"{stage.running.control_url}/_sim/events"
        async with stage.http.stream("GET", url) as events:
            await stage.sim.says(stage.ada.id, "news", bot=stage.bot.id)
            lines = aiter(events.aiter_lines())
            while not (line := await anext(lines)).startswith("data: "):
                pass
            news = json.loads(line.removeprefix("data: "))
        assert (news["kind"], news["bot"], news["chat"]) == ("message", stage.bot.id, stage.ada.id)

    async def test_the_page_is_served_with_nothing_from_elsewhere(self, stage: Stage) -> None:
        for path, kind in (
            ("/", "text/html"),
            ("/page.css", "text/css"),
            ("/page.js", "javascript"),
        ):
            response = await stage.http.get(stage.running.control_url + path)
            assert kind in response.headers["Content-Type"]
            assert "default-src 'none'" in response.headers["Content-Security-Policy"]
            assert "https://" not in response.text

    async def test_a_stranger_is_refused(self) -> None:
        async with simulator_process(control_token="c0ntrol") as running:
            bot = await running.control.add_bot(TOKEN)
            assert bot.id == 123456
            assert running.page_url.endswith("/#token=c0ntrol")
            async with httpx.AsyncClient(base_url=running.control_url, trust_env=False) as stranger:
                assert (await stranger.post("/_sim/ledger", json={})).status_code == 401
                assert (await stranger.get("/_sim/events")).status_code == 401
                known = {"Authorization": "Bearer c0ntrol"}
                plain = await stranger.post("/_sim/ledger", content="{}", headers=known)
                assert plain.status_code == 415
