"""The six cases that every sender with a queue and limits must pass, each from end to end.

The real role over a real database and a real socket; only time is the test's own.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Literal

import pytest

from sender import app
from storage import cancelling, claims, cooldowns, review
from storage.cancelling import Answer, Cursor, Told, Wanted
from storage.clock import deadline_in
from storage.cooldowns import BOT_SCOPE
from storage.database import Tx
from storage.lifecycle import OutboxId, OutboxState
from storage.options import Limits
from storage.review import Decision
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import Arrival, Cut, Deed, Late, Reply, flood, refusal
from tests.integration.sender.test_ownership import claim_as_another
from tests.integration.sender.test_sending import edit
from tests.integration.storage.calls import call

Scope = Literal["adaptive", "bot", "chat"]

NGINX = Reply(502, b"<html><h1>502 Bad Gateway</h1></html>", {})
RESTARTED = refusal(500, "Internal Server Error: restart")
NOT_TELEGRAMS = Reply(200, b"<html>Welcome to the captive portal</html>", {})
DAY_S = 24 * 3600


async def cools(house: House, row: OutboxId) -> None:
    """Wait until a row's flood is on disk."""
    await house.sees(row, lambda found: found.reason == "cooling", "cooling")


def most_within(arrivals: Sequence[Arrival], span_ms: int) -> int:
    """The most calls in any window of this length."""
    moments = [arrival.at_ms for arrival in arrivals]
    return max(sum(at_ms <= other < at_ms + span_ms for other in moments) for at_ms in moments)


def by_chat(arrivals: Sequence[Arrival]) -> Mapping[str, list[Arrival]]:
    """What arrived for each chat, in order."""
    found: defaultdict[str, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        found[arrival.form["chat_id"]].append(arrival)
    return found


# Two workers on one bot


@pytest.mark.parametrize("workers", [2, 3])
async def test_two_workers_on_one_bot(house: House, workers: int) -> None:
    """One owns the bot, the others stand by: nothing is sent twice, and no rate is raised."""
    house.limits = Limits(bot_per_second=5, bulk_per_second=5)
    for _ in range(workers):
        await house.start()
    texts = [f"text {number}" for number in range(30)]
    calls = [call(text, chat_id=1 + n % 7, text=text) for n, text in enumerate(texts)]
    ids = await house.says(*calls)
    for _ in range(workers - 1):
        await house.passes(1_500)
        await house.stop_first()
    await house.passes(12_000)
    for row in ids:
        assert (await house.becomes(row, OutboxState.SENT)).attempts == 1
    assert sorted(house.stub.texts) == sorted(texts)
    assert most_within(house.stub.arrivals, 1_000) <= 5
    for arrivals in by_chat(house.stub.arrivals).values():
        said = [arrival.form["text"] for arrival in arrivals]
        assert said == sorted(said, key=texts.index), "the order of a chat outlives its sender"
        assert most_within(arrivals, 1_000) == 1


# A restart in the middle of a cooldown


@pytest.mark.parametrize("flood_scope", ["adaptive", "bot", "chat"])
@pytest.mark.parametrize("restarts_ms", [(42_000,), (1, 70_000, 141_999)])
async def test_a_restart_in_the_middle_of_a_cooldown(
    house: House, flood_scope: Scope, restarts_ms: Sequence[int]
) -> None:
    """The deadline is read from disk: no try before it, exactly one after it, nothing charged."""
    house.limits = Limits(flood_scope=flood_scope)
    house.stub.will("sendMessage", flood(142))
    await house.start()
    [row] = await house.says(call("a"))
    await cools(house, row)
    began_ms = house.clock.now_ms()
    if flood_scope == "bot":
        await house.says(call("of another chat", chat_id=8))
    for restart_ms in restarts_ms:
        await house.passes(began_ms + restart_ms - house.clock.now_ms())
        await house.stop()
        await house.start()
    await house.passes(began_ms + 141_999 - house.clock.now_ms())
    assert len(house.stub.arrivals) == 1
    await house.passes(1)
    found = await house.becomes(row, OutboxState.SENT)
    await house.passes(5_000)
    first, second = by_chat(house.stub.arrivals)["7"]
    assert second.at_ms - first.at_ms == 142_000
    assert found.attempts == 1


# A longer wait arriving after a shorter one, and the reverse


async def two_calls_flooded(
    house: House, flood_scope: Scope, *, first_s: int, second_s: int, restarts: bool
) -> None:
    """Two calls are under way; one is refused, and two seconds later the other one."""
    late = Late(flood(second_s))
    house.limits = Limits(flood_scope=flood_scope)
    house.stub.will("sendMessage", flood(first_s), late)
    ids = dict(zip("12", await house.says(call("a", chat_id=1), call("b", chat_id=2)), strict=True))
    await house.start()
    await house.stub.arrived(2)
    first, second = (arrival.form["chat_id"] for arrival in house.stub.arrivals)
    await cools(house, ids[first])
    began_ms = house.clock.now_ms()
    await house.passes(2_000)
    late.give()
    await cools(house, ids[second])
    await house.says(call("c", chat_id=3))
    if restarts:
        await house.stop()
        await house.start()
    ends_ms = began_ms + max(first_s * 1_000, 2_000 + second_s * 1_000)
    await house.passes(ends_ms - house.clock.now_ms() - 1)
    assert len(house.stub.arrivals) == 2, "nothing of this bot leaves before the later end"
    await house.passes(1_500)
    await house.stub.arrived(5)


async def flooded_and_told(house: House, scope: str, *, first_s: int, second_s: int) -> None:
    """A call is refused; two seconds later another role writes down a wait for this scope."""
    house.limits = Limits(flood_scope="chat")
    method = "editMessageText" if scope.startswith("edits:") else "sendMessage"
    house.stub.will(method, flood(first_s))
    await house.start()
    [row] = await house.says(edit("a", 4) if scope.startswith("edits:") else call("a"))
    await cools(house, row)
    began_ms = house.clock.now_ms()
    await house.passes(2_000)
    deadline = deadline_in(second_s * 1_000, house.clock)
    await house.db.write(lambda tx: cooldowns.merge(tx, BOT, scope, deadline, reason="a read"))
    await house.ring()
    ends_ms = began_ms + max(first_s * 1_000, 2_000 + second_s * 1_000)
    await house.passes(ends_ms - house.clock.now_ms() - 1)
    assert len(house.stub.arrivals) == 1
    await house.passes(1)
    await house.becomes(row, OutboxState.SENT)


RESTARTS = pytest.mark.parametrize("restarts", [False, True], ids=["", "restarted"])
FLOOD_SCOPES = pytest.mark.parametrize("flood_scope", ["adaptive", "bot"])
SCOPES = pytest.mark.parametrize("scope", [BOT_SCOPE, "c:7", "edits:c:7"])


@RESTARTS
@FLOOD_SCOPES
async def test_a_longer_wait_arriving_after_a_shorter_one(
    house: House, flood_scope: Scope, *, restarts: bool
) -> None:
    await two_calls_flooded(house, flood_scope, first_s=3, second_s=30, restarts=restarts)


@RESTARTS
@FLOOD_SCOPES
async def test_a_shorter_wait_arriving_after_a_longer_one(
    house: House, flood_scope: Scope, *, restarts: bool
) -> None:
    await two_calls_flooded(house, flood_scope, first_s=30, second_s=3, restarts=restarts)


@SCOPES
@pytest.mark.parametrize(("first_s", "second_s"), [(3, 30), (30, 3)])
async def test_of_a_wait_met_and_a_wait_written_by_another_role_the_later_end_holds(
    house: House, scope: str, first_s: int, second_s: int
) -> None:
    await flooded_and_told(house, scope, first_s=first_s, second_s=second_s)


# A 429 without a wait


def bare(parameters: object) -> Reply:
    """A 429 whose parameters name no wait that can be obeyed."""
    told = {"ok": False, "error_code": 429, "description": "Too Many Requests"}
    if parameters is not None:
        told["parameters"] = parameters
    return Reply(429, json.dumps(told).encode(), {})


NO_WAITS: Sequence[object] = (
    *(None, True, False, -1, 3.5, 0.0, "7", ""),
    *([7], {}, 15 * DAY_S, 10**30),
)
UNUSABLE = [
    bare(None),
    bare({}),
    *(bare({"retry_after": wait}) for wait in NO_WAITS),
    bare("7"),
    Reply(429, b"", {}),
    Reply(429, b"<html>Too Many Requests</html>", {}),
    Reply(429, b'{"ok":false,"error_code":429,"description":"Too Ma', {}),
    Reply(429, bare(None).body, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}),
]


@pytest.mark.parametrize("answer", UNUSABLE, ids=range(len(UNUSABLE)))
async def test_a_429_without_a_wait(house: House, answer: Reply) -> None:
    """Held for a person, never tried again; its lane pauses longer each time, others go on."""
    house.stub.will("sendMessage", answer, answer, answer)
    await house.start()
    ids = await house.says(*[call(f"k{n}", text=f"text {n}") for n in range(4)])
    await house.becomes(ids[0], OutboxState.REVIEW)
    [other] = await house.says(edit("other", 4, chat_id=8))
    await house.passes(7_000)
    await house.becomes(other, OutboxState.SENT)
    await house.passes(40_000)
    for row in ids[:3]:
        found = await house.becomes(row, OutboxState.REVIEW)
        assert found.reason is not None
        assert "429" in found.reason
    await house.becomes(ids[3], OutboxState.SENT)
    arrivals = by_chat(house.stub.arrivals)["7"]
    assert [each.form["text"] for each in arrivals] == [f"text {n}" for n in range(4)]
    gaps = [after.at_ms - before.at_ms for before, after in pairwise(arrivals)]
    for gap_ms, pause_ms in zip(gaps, (5_000, 10_000, 20_000), strict=True):
        assert pause_ms <= gap_ms <= pause_ms + 5_000


# A cancellation while waiting


UNWANTED = "no longer wanted"
LATER = refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
WAITS: Mapping[str, tuple[str, Sequence[Deed]]] = {
    "cooling": ("sendMessage", [flood(20)]),
    "backing off": ("sendMessage", [LATER]),
    "scheduled": ("sendMessage", []),
    "outage": ("sendMessage", []),
    "behind another": ("editMessageText", [Cut.NEVER_ANSWER]),
    "paced": ("editMessageText", []),
}
Canceller = Callable[[Tx, OutboxId], Sequence[Answer]]
IT = Wanted(lane_prefix="c:7", method="sendMessage")


def by_filter(tx: Tx, _: OutboxId) -> Sequence[Answer]:
    """Cancel all that fits, batch after batch."""
    answers: list[Answer] = []
    after: Cursor | None = cancelling.start(IT)
    while after is not None:
        batch = cancelling.matching(tx, BOT, IT, after, reason=UNWANTED)
        answers += batch.answers
        after = batch.after
    return answers


BY: Mapping[str, Canceller] = {
    "id": lambda tx, row: cancelling.by_ids(tx, BOT, [row], reason=UNWANTED),
    "key": lambda tx, _: cancelling.by_key(tx, BOT, "it", reason=UNWANTED),
    "chat": lambda tx, _: cancelling.by_lane(tx, BOT, "c:7", reason=UNWANTED),
    "filter": by_filter,
}


async def told(house: House, row: OutboxId, by: str) -> Told:
    """Cancel, and say what the canceller was told of this row."""
    answers = await house.db.write(lambda tx: BY[by](tx, row))
    [found] = [each.told for each in answers if each.id == row]
    return found


async def waits(house: House, why: str) -> OutboxId:
    """Have one row of chat 7 wait for this reason."""
    method, deeds = WAITS[why]
    house.stub.will(method, *deeds)
    if why == "outage":
        await house.stub.close()
    await house.start()
    if method == "editMessageText":
        await house.says(edit("other", 90, "another"))
        await house.stub.arrived(1)
    not_before_ms = house.clock.now_ms() + 30_000 if why == "scheduled" else 0
    [row] = await house.says(call("it", text="unwanted", not_before_ms=not_before_ms))
    if why in {"cooling", "backing off", "outage"}:
        await house.sees(row, lambda found: found.reason is not None, why)
    return row


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("why", WAITS)
async def test_a_cancellation_while_waiting(house: House, why: str, by: str) -> None:
    """Whatever it waits for, and whoever cancels: it never leaves again, and holds nobody up."""
    row = await waits(house, why)
    before = house.stub.texts.count("unwanted")
    assert await told(house, row, by) is Told.CANCELLED
    [following] = await house.says(call("next", text="next"))
    house.stub.release()
    if why == "outage":
        await house.stub.open()
    await house.passes(10_000)
    await house.stop()
    await house.start()
    await house.passes(40_000)
    found = await house.becomes(row, OutboxState.CANCELLED)
    assert found.reason == UNWANTED
    await house.becomes(following, OutboxState.SENT)
    assert house.stub.texts.count("unwanted") == before


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Late(Reply(200, b'{"ok":true,"result":{"message_id":9}}', {})), OutboxState.SENT),
        (Late(flood(3)), OutboxState.CANCELLED),
        (Late(LATER), OutboxState.CANCELLED),
        (Late(NGINX), OutboxState.UNCERTAIN),
    ],
    ids=["sent", "flooded", "failed", "in doubt"],
)
async def test_a_cancellation_while_waiting_for_the_answer_is_told_that_it_is_too_late(
    house: House, answer: Late, state: OutboxState, by: str
) -> None:
    """The call is under way: it keeps its truth, and is only not tried again."""
    # Given once, it stays given.
    answer = Late(answer.reply)
    house.stub.will("sendMessage", answer)
    await house.start()
    [row] = await house.says(call("it", text="unwanted"))
    await house.stub.arrived(1)
    assert await told(house, row, by) is Told.TOO_LATE
    answer.give()
    await house.becomes(row, state)
    await house.passes(60_000)
    assert house.stub.texts == ["unwanted"]


@pytest.mark.parametrize("by", BY)
async def test_a_cancellation_while_waiting_for_the_stamp_is_in_time(house: House, by: str) -> None:
    """Claimed, but nothing has left: it never will, even if its sender dies or stamps it now."""
    [row] = await house.says(call("it", text="unwanted"))
    _, taken = await claim_as_another(house)
    assert await told(house, row, by) is Told.CANCELLED
    await house.db.write(lambda tx: claims.stamp(tx, [each.claim for each in taken]))
    assert [each.stage for each in (await house.row(row)).history] == ["claimed"]
    await house.start()
    await house.becomes(row, OutboxState.CANCELLED)
    await house.passes(60_000)
    assert house.stub.texts == []


# A lost response


LOST = [Cut.AFTER_READING, Cut.IN_THE_ANSWER, NGINX, RESTARTED, NOT_TELEGRAMS]


@pytest.mark.parametrize("answer", LOST, ids=["cut", "broken off", "502", "500", "no json"])
async def test_a_lost_response(house: House, answer: Cut | Reply) -> None:
    """It may have arrived: never sent again by itself, whatever happens; a person decides."""
    house.stub.will("sendMessage", answer)
    await house.start()
    ids = await house.says(call("a", text="lost"), call("b", text="next"))
    found = await house.becomes(ids[0], OutboxState.UNCERTAIN)
    assert found.history[0].verdict == "uncertain"
    await house.passes(60_000)
    await house.becomes(ids[1], OutboxState.SENT)
    await house.stop()
    await house.start()
    await house.passes(60_000)
    assert house.stub.texts == ["lost", "next"]
    [held] = await house.db.read(lambda tx: review.held(tx, limit=10))
    assert held.id == ids[0]
    assert held.stage in {"body_complete", "answered"}
    assert held.description or held.status
    await house.db.write(lambda tx: review.resolve(tx, ids[0], Decision.RESEND, by="an admin"))
    await house.ring()
    await house.becomes(ids[0], OutboxState.SENT)
    assert house.stub.texts == ["lost", "next", "lost"]


async def test_a_lost_response_when_the_sender_has_to_end(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "FINISH_MS", 100)
    house.stub.will("sendMessage", Cut.NEVER_ANSWER)
    await house.start()
    [row] = await house.says(call("a"))
    await house.stub.arrived(1)
    await house.stop()
    assert (await house.row(row)).state is OutboxState.UNCERTAIN
    house.stub.release()
    await house.start()
    await house.passes(60_000)
    assert len(house.stub.arrivals) == 1


@pytest.mark.parametrize("answer", LOST, ids=["cut", "broken off", "502", "500", "no json"])
async def test_a_lost_response_to_what_may_be_repeated(house: House, answer: Cut | Reply) -> None:
    """A second edit to the same text changes nothing, so it goes again by itself."""
    house.stub.will("editMessageText", answer)
    await house.start()
    [row] = await house.says(edit("a", 4))
    await house.passes(3_000)
    found = await house.becomes(row, OutboxState.SENT)
    assert [attempt.verdict for attempt in found.history] == ["uncertain", "sent"]
