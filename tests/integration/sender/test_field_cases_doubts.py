"""Duplicates and unknown outcomes as public bug reports tell them, each with its case's number.

 7  SiderealPress/Lobster 630: a read time-out, tried again every 20 s: four to six copies
 8  hermes-agent 64238, nearai/ironclaw 1528, HKUDS/nanobot 1099: three kinds of network error
    were taken for one another, or for a fault of the markup
10  openclaw 126246, 33403: a plain refusal was filed as unknown, or repeated at each start
32  rails/solid_queue 589: a worker that was deemed dead came back and finished
"""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sender.answer import Stage
from sender.botapi import classify
from sender.policy import Bury, Fate, MarkSent
from sender.settling import Settling, settle, settle_late
from sender.transport import Address, Transport, TransportOptions, open_transport
from sender.verdict import Transient, Uncertain
from storage import claims, review
from storage.claims import AttemptEnd
from storage.clock import SystemClock
from storage.errors import LeaseLost
from storage.lifecycle import AttemptStage, OutboxState
from storage.options import READ_TIMEOUT_S_MIN, DeliveryOptions, Limits
from tests.integration.sender.house import House
from tests.integration.sender.stub import Cut, Late, Reply, refusal
from tests.integration.sender.test_ownership import claim_as_another, own
from tests.integration.sender.test_transport import CALL, OK, TOKEN, peer, read_call
from tests.integration.storage.calls import call

ERRORS = json.loads(
    (Path(__file__).parents[2] / "data" / "botapi-errors.json").read_text(encoding="utf-8")
)["answers"]
SENT_OK = Reply(200, b'{"ok":true,"result":{"message_id":55,"chat":{"id":7}}}', {})
HELD_MS = 8_000
"""Telegram absorbs a flood by holding a call for as long before it answers."""


# 7


async def test_field_case_07_an_unknown_outcome_is_never_tried_again_by_itself(
    house: House,
) -> None:
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    [row] = await house.says(call("a"))
    await house.stub.arrived(1)
    house.stub.release()
    await house.becomes(row, OutboxState.UNCERTAIN)
    for _ in range(3):
        await house.passes(100_000)
        await house.stop()
        await house.start()
    assert len(house.stub.arrivals) == 1
    [held] = await house.db.read(lambda tx: review.held(tx, limit=10))
    assert (held.id, held.stage, held.attempts) == (row, "body_complete", 1)


async def test_field_case_07_a_call_that_telegram_holds_is_waited_for(house: House) -> None:
    """One slow chat: held for eight seconds, answered well, sent once; its next row waits."""
    held = Late(SENT_OK)
    house.stub.will("sendMessage", held)
    await house.start()
    ids = await house.says(call("slow", text="slow"), call("next", text="next"))
    await house.stub.arrived(1)
    await house.passes(HELD_MS)
    assert house.stub.texts == ["slow"]
    held.give()
    found = await house.becomes(ids[0], OutboxState.SENT)
    assert (found.message_id, found.attempts) == (55, 1)
    await house.passes(2_000)
    await house.becomes(ids[1], OutboxState.SENT)
    assert house.stub.texts == ["slow", "next"]


@pytest.mark.parametrize("seconds", [1, 5, 8, READ_TIMEOUT_S_MIN - 1])
def test_field_case_07_no_read_time_out_can_be_set_that_makes_duplicates(seconds: int) -> None:
    assert DeliveryOptions().read_timeout_s * 1_000 > 2 * HELD_MS
    with pytest.raises(ValidationError, match="read_timeout_s"):
        DeliveryOptions(read_timeout_s=seconds)


# 8


async def _of(address: Address, options: TransportOptions, *, busy: bool = False) -> Any:  # noqa: ANN401 - an answer, whose class is the transport's
    """Make one call, with the only connection taken by another when it is to be `busy`."""
    async with open_transport(options, SystemClock()) as transport:
        other = asyncio.create_task(transport.call(address, CALL)) if busy else None
        if other is not None:
            await _is_under_way(transport)
        answer = await transport.call(address, CALL)
        if other is not None:
            await transport.give_up()
            await other
        return answer


async def _is_under_way(transport: Transport) -> None:
    connector = transport._session.connector
    assert connector is not None
    async with asyncio.timeout(5):
        while not connector._acquired:  # noqa: ASYNC110  # aiohttp tells nobody
            await asyncio.sleep(0)


async def test_field_case_08_a_connect_time_out_is_certainly_not_sent() -> None:
    with socket.socket() as deaf, socket.socket() as taken:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        taken.connect(deaf.getsockname())
        address = Address(f"http://127.0.0.1:{deaf.getsockname()[1]}", TOKEN)
        options = TransportOptions(read_timeout_s=30, connections_max=4, connect_timeout_s=0.2)
        answer = await _of(address, options)
    assert answer.stage is Stage.UNCONNECTED
    assert classify(answer, "sendMessage") == Transient(
        f"not connected: {answer.fault}", outage=True
    )


async def test_field_case_08_waiting_too_long_for_a_connection_of_the_pool_is_not_sent() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)
        await asyncio.Event().wait()

    async with peer(silent) as address:
        options = TransportOptions(read_timeout_s=30, connections_max=1, connect_timeout_s=0.2)
        answer = await _of(address, options, busy=True)
    assert answer.stage is Stage.UNCONNECTED
    assert isinstance(classify(answer, "sendMessage"), Transient)


async def test_field_case_08_a_read_error_after_the_write_is_unknown() -> None:
    async def resets(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)
        writer.write(OK[:20])
        await writer.drain()
        writer.transport.abort()

    async with peer(resets) as address:
        options = TransportOptions(read_timeout_s=30, connections_max=1)
        answer = await _of(address, options)
    assert answer.stage is Stage.BODY_COMPLETE
    assert isinstance(classify(answer, "sendMessage"), Uncertain)


async def test_field_case_08_what_was_not_sent_goes_again_unchanged_and_unspent(
    house: House,
) -> None:
    """The markup has nothing to do with it: no other text and no plain one is tried."""
    text = "<b>use_sdk_poller</b> &lt;script&gt;"
    params = {"chat_id": "7", "text": text, "parse_mode": "HTML"}
    await house.stub.close()
    await house.start()
    [row] = await house.says(call("a", params=params))
    await house.passes(90_000)
    found = await house.row(row)
    assert (found.state, found.attempts) == (OutboxState.QUEUED, 0)
    await house.stub.open()
    await house.passes(60_000)
    found = await house.becomes(row, OutboxState.SENT)
    assert found.attempts == 1
    assert [arrival.form for arrival in house.stub.arrivals if arrival.form] == [params]


# 10


def _is_definite(told: dict[str, Any]) -> bool:
    """Whether Telegram refused this call for good, and this call alone."""
    return told["error_code"] < 500 and told["suggested"] in {"chat-gone", "permanent"}


DEFINITE = [
    *(
        (400, f"Bad Request: {text}")
        for text in (
            "message is too long",
            "chat not found",
            "message text is empty",
            "can't parse entities: unsupported start tag",
            "have no rights to send a message",
            "a text that nobody has seen before",
        )
    ),
    *((told["error_code"], told["description"]) for told in ERRORS if _is_definite(told)),
]


ENDED = {OutboxState.DEAD, OutboxState.EXPIRED}
"""Refused, or, for an answer to a query, refused as too late."""


async def test_field_case_10_a_refusal_that_can_be_read_is_the_end_of_the_row(
    house: House,
) -> None:
    """Whatever its text: ended at once, never unknown, and not repeated at the next start."""
    house.limits = Limits(bot_per_second=1_000)
    house.in_flight_max = 1
    house.stub.will("sendMessage", *[refusal(code, text) for code, text in DEFINITE])
    calls = [call(f"k{n}", chat_id=n + 1) for n in range(len(DEFINITE))]
    ids = await house.says(*calls)
    await house.start()
    for row in ids:
        found = await house.sees(row, lambda row: row.state in ENDED, "ended")
        assert found.attempts == 1
        assert found.reason
    await house.stop()
    await house.start()
    await house.passes(60_000)
    assert len(house.stub.arrivals) == len(DEFINITE)


@pytest.mark.parametrize(
    ("method", "answer", "state"),
    [
        ("sendMessage", refusal(500, "Internal Server Error: restart"), OutboxState.UNCERTAIN),
        (
            "sendMessage",
            refusal(500, "Internal Server Error: sent message was immediately deleted"),
            OutboxState.SENT,
        ),
        (
            "sendMessage",
            refusal(400, "Bad Request: group send failed: message 2 was not sent"),
            OutboxState.UNCERTAIN,
        ),
    ],
    ids=["restart", "immediately deleted", "partial"],
)
async def test_field_case_10_the_exceptions_are_no_refusals(
    house: House, method: str, answer: Reply, state: OutboxState
) -> None:
    house.stub.will(method, answer)
    await house.start()
    [row] = await house.says(call("a", method=method))
    await house.becomes(row, state)
    await house.passes(60_000)
    assert len(house.stub.arrivals) == 1


# 32


@pytest.mark.parametrize(
    "late", [MarkSent(message_id=5, note=""), Bury("refused")], ids=["sent", "dead"]
)
@pytest.mark.parametrize("person", [review.Decision.DROP, None])
async def test_field_case_32_who_comes_back_from_the_dead_changes_no_state(
    house: House, late: Fate, person: review.Decision | None
) -> None:
    """The row was sorted out meanwhile: one final state only; what was learned is kept.

    A doubt about which nobody has decided is no final state: the truth may end it.
    """
    [row] = await house.says(call("a"))
    _, [taken] = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [taken.claim]))
    await house.db.write(lambda tx: own(tx, "a third"))
    if person is not None:
        await house.db.write(lambda tx: review.resolve(tx, row, person, by="an admin"))
    before = await house.row(row)
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", status=200)
    settling = Settling(taken.claim, end, late)
    with pytest.raises(LeaseLost):
        await house.db.write(lambda tx: settle(tx, settling))
    ends_doubt = await house.db.write(lambda tx: settle_late(tx, settling))
    assert ends_doubt == (person is None and isinstance(late, MarkSent))
    after = await house.row(row)
    assert after.state == (OutboxState.SENT if ends_doubt else before.state)
    assert [attempt.status for attempt in after.history] == [200]
