"""A second contract beside Telegram's: its own encoding, its own answers, its own floods."""

import json
import logging
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from storage import cooldowns
from storage.clock import deadline_in
from storage.lifecycle import OnUncertain, OutboxState
from storage.options import ChannelOptions, Limits
from storage.outgoing import Outgoing, chat_lane
from tests.integration.sender.house import BOT, CHANNEL_TOKEN, TOKEN, House
from tests.integration.sender.service import Answered, Service, coded, rate_limited, serving
from tests.integration.sender.stub import flood
from tests.integration.sender.test_evidence import result_of
from tests.integration.storage.calls import call

CHANNEL = "sms"
WORDS = "the words of nobody else"


@pytest.fixture
async def service(house: House) -> AsyncIterator[Service]:
    """A service that the house knows as the channel `sms`."""
    async with serving(house.clock) as service:
        # The chat's own pace stays out of the way of the pauses that are measured here.
        house.limits = Limits(chat_per_second=20)
        house.channels[CHANNEL] = ChannelOptions(contract="coded", base_url=service.url)
        yield service


def sms(key: str, *, to: str = "7", **wishes: Any) -> Outgoing:  # noqa: ANN401 - fields of Outgoing
    """A call to the service; its method has the name of one of Telegram's."""
    fields: dict[str, Any] = {
        "method": "sendMessage",
        "params": {"to": json.dumps(to), "text": json.dumps(WORDS), "flash": "true"},
        "lane": chat_lane(to, channel=CHANNEL),
        "key": key,
        "channel": CHANNEL,
    }
    return Outgoing(**fields | wishes)


async def test_a_row_of_another_channel_is_posted_as_json_with_its_token_in_a_header(
    house: House, service: Service
) -> None:
    await house.start()
    [row] = await house.says(sms("a"))
    found = await house.becomes(row, OutboxState.SENT)
    [posted] = service.posted
    assert posted.path == "/v1/sendMessage"
    assert posted.body == {"to": "7", "text": WORDS, "flash": True}
    assert posted.headers["content-type"] == "application/json"
    assert posted.headers["authorization"] == f"Bearer {CHANNEL_TOKEN.reveal()}"
    assert found.message_id is None
    assert not house.stub.arrivals


async def test_what_a_service_answered_is_kept_with_its_name_for_the_call(
    house: House, service: Service
) -> None:
    service.will(rate_limited())
    await house.start()
    [row] = await house.says(sms("a"))
    await house.passes(1_000)
    found = await house.becomes(row, OutboxState.SENT)
    assert [attempt.request_id for attempt in found.history] == ["req-1", "req-2"]
    assert found.history[0].description == "RATE_LIMITED: slow down"
    assert found.history[0].code == 429
    assert json.loads(result_of(house, row) or b"") == {"id": "m-2", "request_id": "req-2"}
    for posted in service.posted:
        assert "req-" not in json.dumps([posted.path, posted.body, dict(posted.headers)])


@pytest.mark.parametrize(
    "refusal",
    [
        rate_limited(),
        rate_limited(retry_after=3_600, parameters={"retry_after": 3_600}),
        Answered(429, b"<html>slow down</html>", {"Retry-After": "3600"}),
        Answered(429, b"", {}),
        coded(429, "RATE_LIMITED", "Too Many Requests: retry after 3600"),
    ],
)
async def test_a_429_there_waits_out_a_pause_of_our_own_and_never_becomes_review(
    house: House, service: Service, refusal: Answered
) -> None:
    """No wait that somebody puts beside the error is believed: the contract has no field for it."""
    service.will(*[refusal] * 4)
    await house.start()
    [row] = await house.says(sms("a"))
    await house.passes(16_000)
    found = await house.becomes(row, OutboxState.SENT)
    assert found.attempts == 1, "a refusal for haste is no attempt"
    assert [attempt.verdict for attempt in found.history] == ["throttled"] * 4 + ["sent"]
    moments = [posted.at_ms for posted in service.posted]
    pauses = [later - sooner for sooner, later in pairwise(moments)]
    assert pauses == [1_000, 2_000, 4_000, 8_000]


async def test_a_refusal_for_haste_stops_its_own_chat_alone(house: House, service: Service) -> None:
    house.limits = Limits(chat_per_second=20, flood_scope="bot")
    service.will(rate_limited())
    await house.start()
    [slow] = await house.says(sms("a"))
    await house.sees(slow, lambda row: len(row.history) == 1, "refused")
    ids = await house.says(sms("b", to="8"), call("c"))
    for row in ids:
        await house.becomes(row, OutboxState.SENT)
    scopes = await house.db.read(lambda tx: [each.scope for each in cooldowns.of_bot(tx, BOT)])
    assert scopes == [chat_lane("7", channel=CHANNEL)]
    await house.passes(1_000)
    await house.becomes(slow, OutboxState.SENT)


async def test_a_pause_outlives_the_sender(house: House, service: Service) -> None:
    service.will(rate_limited())
    await house.start()
    [row] = await house.says(sms("a"))
    await house.sees(row, lambda found: len(found.history) == 1, "refused")
    await house.stop()
    await house.start()
    await house.passes(999)
    assert len(service.posted) == 1
    await house.passes(1)
    await house.becomes(row, OutboxState.SENT)


async def test_a_flood_at_telegram_holds_nothing_back_there(house: House, service: Service) -> None:
    house.limits = Limits(chat_per_second=20, flood_scope="bot")
    house.stub.will("sendMessage", flood(120))
    await house.start()
    [flooded] = await house.says(call("a"))
    await house.sees(flooded, lambda row: row.reason == "cooling", "cooling")
    ids = await house.says(sms("b"), sms("c", to="8"))
    for row in ids:
        await house.becomes(row, OutboxState.SENT)
    [other] = await house.says(call("d", chat_id=8))
    await house.passes(119_000)
    assert (await house.row(other)).state is OutboxState.QUEUED
    assert len(house.stub.arrivals) == 1
    await house.passes(2_500)
    for row in (flooded, other):
        await house.becomes(row, OutboxState.SENT)


async def test_the_channels_own_scope_holds_back_that_channel_alone(
    house: House, service: Service
) -> None:
    def cool(tx: Any) -> None:  # noqa: ANN401 - a transaction
        deadline = deadline_in(5_000, house.clock)
        cooldowns.merge(tx, BOT, f"bot@{CHANNEL}", deadline, reason="the test's")

    await house.db.write(cool)
    await house.start()
    held, free = await house.says(sms("a"), call("b"))
    await house.becomes(free, OutboxState.SENT)
    await house.passes(4_999)
    assert not service.posted
    await house.passes(1_000)
    await house.becomes(held, OutboxState.SENT)


async def test_an_outage_there_costs_no_attempt_and_opens_no_breaker(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ferryman")
    await service.close()
    await house.start()
    [row] = await house.says(sms("a"))
    await house.passes(7_500)
    found = await house.row(row)
    assert (found.state, found.attempts, len(found.history)) == (OutboxState.QUEUED, 0, 4)
    [telegrams] = await house.says(call("b"))
    await house.becomes(telegrams, OutboxState.SENT)
    assert "sender.breaker_opened" not in caplog.messages
    await service.open()
    await house.passes(8_000)
    assert (await house.becomes(row, OutboxState.SENT)).attempts == 1


async def test_errors_of_the_service_there_open_no_breaker(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="ferryman")
    service.will(*[coded(503, "UNAVAILABLE")] * 9)
    await house.start()
    ids = await house.says(*[sms(f"k{chat}", to=str(chat)) for chat in range(6)])
    for row in ids:
        await house.becomes(row, OutboxState.UNCERTAIN)
    assert "sender.breaker_opened" not in caplog.messages


async def test_an_outage_of_telegram_holds_nothing_back_there(
    house: House, service: Service
) -> None:
    await house.stub.close()
    await house.start()
    [lost] = await house.says(call("a"))
    await house.sees(lost, lambda row: len(row.history) == 1, "tried")
    ids = await house.says(sms("b"), sms("c", to="8"))
    for row in ids:
        await house.becomes(row, OutboxState.SENT)
    assert (await house.row(lost)).attempts == 0
    await house.stub.open()
    await house.passes(3_000)
    await house.becomes(lost, OutboxState.SENT)


@pytest.mark.parametrize(
    ("answer", "on_uncertain", "state", "reason"),
    [
        (coded(500, "INTERNAL"), OnUncertain.HOLD, OutboxState.UNCERTAIN, "500 INTERNAL"),
        (coded(500, "INTERNAL"), OnUncertain.DROP, OutboxState.DEAD, "dropped"),
        (coded(403, "NO_CREDIT"), OnUncertain.HOLD, OutboxState.DEAD, "permission refused: 403"),
        (coded(404, "NO_SUCH_NUMBER"), OnUncertain.HOLD, OutboxState.DEAD, "target refused: 404"),
        (coded(422, "TOO_LONG"), OnUncertain.HOLD, OutboxState.DEAD, "content refused: 422"),
        (coded(401, "BAD_TOKEN"), OnUncertain.HOLD, OutboxState.DEAD, "permission refused: 401"),
    ],
)
async def test_other_answers_there_end_the_row_and_nothing_else(
    house: House,
    service: Service,
    answer: Answered,
    on_uncertain: OnUncertain,
    state: OutboxState,
    reason: str,
) -> None:
    """A method of this name is harmless to repeat at Telegram; of this service nothing is known."""
    service.will(answer)
    await house.start()
    ids = await house.says(
        sms("a", method="deleteMessage", on_uncertain=on_uncertain), sms("b", to="8"), call("c")
    )
    found = await house.becomes(ids[0], state)
    assert reason in (found.reason or "")
    assert found.history[0].request_id == "req-1"
    for row in ids[1:]:
        await house.becomes(row, OutboxState.SENT)


async def test_a_text_that_is_no_json_is_buried(house: House, service: Service) -> None:
    await house.start()
    [row] = await house.says(sms("a", params={"text": "not in quotes"}))
    found = await house.becomes(row, OutboxState.DEAD)
    assert found.reason == "a parameter is not written as JSON"
    assert not service.posted


async def test_no_secret_and_no_words_are_logged(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="ferryman")
    service.will(rate_limited(), coded(400, "INVALID", f'can not say "{WORDS}"'))
    await house.start()
    ids = await house.says(sms("a"), sms("b", to="8"), call("c"))
    await house.passes(2_000)
    history = [(await house.row(row)).history for row in ids]
    told = repr([(record.getMessage(), vars(record)) for record in caplog.records])
    assert "req-1" in told, "what is kept for tracing is told"
    for secret in (CHANNEL_TOKEN.reveal(), TOKEN.reveal(), WORDS):
        assert secret not in told + repr(history)
