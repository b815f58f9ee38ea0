"""Planned misbehaviour: it meets the call it is meant for, and is what it says."""

import json
import random

import pytest

from tests.simulator import faults
from tests.simulator.faults import (
    Acceptance,
    BareFlood,
    Chances,
    Cut,
    Exhausted,
    Fault,
    FaultPlan,
    Flood,
    Gateway,
    Guard,
    HalfAlbum,
    Hang,
    HiddenFlood,
    Hold,
    Refusal,
    Rule,
    ServerError,
    SiblingFlood,
    Target,
    Truncated,
    Unnumbered,
)
from tests.simulator.limits import STRICT, Scope
from tests.simulator.media import file_id
from tests.simulator.wire import Ending
from tests.unit.simulator.conftest import Town

CALL = Target(bot_id=1, method="sendMessage", chat_id=5, text="hello there")
ALL_FAULTS: list[Fault] = [
    Flood(3),
    Flood(3, "bot"),
    BareFlood("bool"),
    HiddenFlood(8),
    Hold(8_000),
    Cut(Acceptance.BEFORE),
    Cut(Acceptance.AFTER, reset=True),
    Hang(Acceptance.AFTER),
    ServerError(Acceptance.BEFORE),
    Gateway(Acceptance.AFTER, 504),
    Truncated(),
    Refusal(400, "Bad Request: TOPIC_CLOSED"),
    SiblingFlood(5),
    Guard(),
    Exhausted(1),
    HalfAlbum(2, "USER_IS_BLOCKED", 403),
    Unnumbered(),
]


def test_a_rule_meets_only_the_calls_it_names() -> None:
    plan = FaultPlan()
    plan.add(Rule(fault=Hold(1), method="SENDMESSAGE", chat_id=5, contains="there"))

    assert plan.take(Target(1, "sendMessage", 6, "hello there")) is None
    assert plan.take(Target(1, "deleteMessage", 5, "hello there")) is None
    assert plan.take(Target(1, "sendMessage", 5, "hello")) is None
    assert plan.take(CALL) == Hold(1)
    assert plan.take(CALL) is None


def test_a_rule_lets_some_pass_and_then_hits_as_often_as_it_says() -> None:
    plan = FaultPlan()
    plan.add(Rule(fault=Hold(1), skip=2, times=2))
    assert [plan.take(CALL) for _ in range(5)] == [None, None, Hold(1), Hold(1), None]
    assert plan.pending == 0


def test_a_rule_without_an_end_lasts_until_the_plan_is_cleared() -> None:
    plan = FaultPlan()
    plan.add(Rule(fault=Hold(1), times=None))
    assert all(plan.take(CALL) for _ in range(50))
    plan.clear()
    assert plan.take(CALL) is None


def test_the_same_seed_brings_the_same_misfortunes() -> None:
    table: tuple[tuple[float, Fault], ...] = ((0.2, Hold(1)), (0.3, Flood(3)))

    def hits(seed: int) -> list[Fault | None]:
        plan = FaultPlan(Chances(random.Random(seed).random, table))
        return [plan.take(CALL) for _ in range(200)]

    assert hits(1) == hits(1) != hits(2)
    assert 20 < sum(hit == Hold(1) for hit in hits(1)) < 60
    assert sum(hit is None for hit in hits(1)) > 60


def test_chance_spares_reading_calls() -> None:
    plan = FaultPlan(Chances(lambda: 0.0, ((1.0, Hold(1)),)))
    assert plan.take(Target(1, "getMe", None, "")) is None


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=repr)
def test_a_fault_survives_the_journey_through_json(fault: Fault) -> None:
    assert faults.from_json(json.loads(json.dumps(faults.to_json(fault)))) == fault


@pytest.mark.parametrize(
    "written", [{"kind": "Nonsense"}, {"kind": "Hold"}, {"kind": "Hold", "ms": 1, "s": 2}]
)
def test_a_fault_that_is_none_is_refused(written: dict[str, object]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        faults.from_json(written)


def fate(town: Town, fault: Fault) -> tuple[int, Ending, bool]:
    """Let one message meet a fault: status, ending, and whether it reached the chat."""
    town.telegram.faults.next("sendMessage", fault)
    reply = town.reply("sendMessage", chat_id=town.ada, text="hello")
    arrived = bool(town.telegram.ledger.messages(town.bot.id, town.ada))
    return reply.status, reply.ending, arrived


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Flood(3), (429, Ending.WHOLE, False)),
        (BareFlood("absent"), (429, Ending.WHOLE, False)),
        (HiddenFlood(8), (400, Ending.WHOLE, False)),
        (Hold(8_000), (200, Ending.WHOLE, True)),
        (Cut(Acceptance.BEFORE), (500, Ending.CUT, False)),
        (Cut(Acceptance.AFTER), (200, Ending.CUT, True)),
        (Cut(Acceptance.AFTER, reset=True), (200, Ending.RESET, True)),
        (Hang(Acceptance.BEFORE), (500, Ending.SILENT, False)),
        (Hang(Acceptance.AFTER), (200, Ending.SILENT, True)),
        (ServerError(Acceptance.BEFORE), (500, Ending.WHOLE, False)),
        (ServerError(Acceptance.AFTER), (500, Ending.WHOLE, True)),
        (Gateway(Acceptance.BEFORE), (502, Ending.WHOLE, False)),
        (Gateway(Acceptance.AFTER, 504), (504, Ending.WHOLE, True)),
        (Truncated(), (200, Ending.WHOLE, True)),
        (Truncated(short_of_length=True), (200, Ending.HALF, True)),
        (Refusal(403, "Forbidden: user is deactivated"), (403, Ending.WHOLE, False)),
        (SiblingFlood(5), (429, Ending.WHOLE, False)),
        (Guard(), (429, Ending.WHOLE, False)),
        (Exhausted(), (429, Ending.WHOLE, False)),
        (HalfAlbum(), (400, Ending.WHOLE, False)),
        (Unnumbered(), (200, Ending.WHOLE, True)),
    ],
    ids=repr,
)
def test_each_fault_answers_and_acts_as_it_says(
    town: Town, fault: Fault, expected: tuple[int, Ending, bool]
) -> None:
    assert fate(town, fault) == expected


def test_a_flood_carries_its_wait_three_times_over(town: Town) -> None:
    town.telegram.faults.next("sendMessage", Flood(97 * 60))
    reply = town.reply("sendMessage", chat_id=town.ada, text="x")

    assert reply.headers["Retry-After"] == "5820"
    assert json.loads(reply.body) == {
        "ok": False,
        "error_code": 429,
        "description": "Too Many Requests: retry after 5820",
        "parameters": {"retry_after": 5820},
    }


def test_a_planned_flood_is_a_real_one(town: Town) -> None:
    town.telegram.faults.next("sendMessage", Flood(3))
    town.reply("sendMessage", chat_id=town.ada, text="x")

    town.clock.advance_ms(2_999)
    assert town.refusal("sendMessage", chat_id=town.ada, text="x").startswith("429 ")
    early = town.telegram.ledger.early()
    assert [each.early_by_ms for each in early] == [1]

    # Asked too early, the wait begins again; reads and answers never wait.
    town.clock.advance_ms(2_999)
    assert town.call("getMe")
    town.clock.advance_ms(1)
    assert town.send()


def test_a_flood_of_the_bot_holds_every_chat(town: Town) -> None:
    bob = town.telegram.people.add_user("Bob")
    town.telegram.people.says(bob.id, "hi", bot_id=town.bot.id)
    town.telegram.faults.next("sendMessage", Flood(5, "bot"))
    town.reply("sendMessage", chat_id=town.ada, text="x")
    assert town.refusal("sendMessage", chat_id=bob.id, text="x").startswith("429 ")


@pytest.mark.parametrize(
    ("form", "parameters"),
    [
        ("absent", None),
        ("zero", {"retry_after": 0}),
        ("negative", {"retry_after": -1}),
        ("bool", {"retry_after": True}),
        ("string", {"retry_after": "5"}),
        ("huge", {"retry_after": 10_000_000}),
    ],
)
def test_a_bare_flood_has_no_wait_that_could_be_used(
    town: Town, form: str, parameters: dict[str, object] | None
) -> None:
    town.telegram.faults.next("sendMessage", faults.from_json({"kind": "BareFlood", "form": form}))
    reply = town.reply("sendMessage", chat_id=town.ada, text="x")
    assert json.loads(reply.body).get("parameters") == parameters
    assert "Retry-After" not in reply.headers


def test_a_broken_gateway_speaks_html(town: Town) -> None:
    town.telegram.faults.next("sendMessage", Gateway(Acceptance.BEFORE))
    reply = town.reply("sendMessage", chat_id=town.ada, text="x")
    assert reply.headers["Content-Type"] == "text/html"
    assert b"<h1>502 Bad Gateway</h1>" in reply.body


def test_limits_hold_behind_a_fault_that_carries_the_call_out(town: Town) -> None:
    """A cut answer hides a refusal as it hides a success."""
    town.telegram.limiter.order(Scope(town.bot.id, town.ada), 3, town.clock.now_ms())
    town.telegram.faults.next("sendMessage", Cut(Acceptance.AFTER))
    assert town.refusal("sendMessage", chat_id=town.ada, text="x").startswith("429 ")
    assert town.telegram.faults.pending == 1


def test_an_edit_shares_the_chats_budget_and_an_answer_does_not(town: Town) -> None:
    message_id = town.send()
    town.telegram.limiter.rules = STRICT
    assert town.call("editMessageText", chat_id=town.ada, message_id=message_id, text="b")
    edit = town.refusal("editMessageText", chat_id=town.ada, message_id=message_id, text="c")
    assert edit == "429 Too Many Requests: retry after 3"
    assert "query is too old" in town.refusal("answerCallbackQuery", callback_query_id="none")


@pytest.mark.parametrize(
    ("fault", "wait_s", "hold_ms"),
    [(Guard(), 60, 3_000), (Exhausted(8), 8, 7_000), (Exhausted(1), 1, 8_000)],
    ids=repr,
)
def test_a_server_that_gives_up_by_itself_takes_its_time_and_orders_no_flood(
    town: Town, fault: Fault, wait_s: int, hold_ms: int
) -> None:
    town.telegram.faults.next("sendMessage", fault)
    reply = town.reply("sendMessage", chat_id=town.ada, text="x")
    assert json.loads(reply.body)["parameters"] == {"retry_after": wait_s}
    assert reply.hold_ms == hold_ms
    assert town.send()
    assert town.telegram.ledger.early() == []


def test_siblings_of_a_limited_send_fail_with_it_and_do_not_prolong_it(town: Town) -> None:
    town.telegram.faults.next("sendMessage", SiblingFlood(5, within_ms=200))
    first = town.refusal("sendMessage", chat_id=town.ada, text="a")
    town.clock.advance_ms(200)
    second = town.refusal("sendMessage", chat_id=town.ada, text="b")

    assert first == second == "429 Too Many Requests: retry after 5"
    assert town.telegram.ledger.early() == []
    town.clock.advance_ms(4_800)
    assert town.send()


def test_who_comes_after_the_siblings_comes_early(town: Town) -> None:
    town.telegram.faults.next("sendMessage", SiblingFlood(5, within_ms=200))
    town.reply("sendMessage", chat_id=town.ada, text="a")
    town.clock.advance_ms(201)
    town.reply("sendMessage", chat_id=town.ada, text="b")
    assert len(town.telegram.ledger.early()) == 1


class TestGuard:
    """The server does not take a chat's messages without end."""

    def hold(self, town: Town, calls: int, fault: Fault) -> None:
        town.telegram.faults.next("sendMessage", fault, times=calls)
        for number in range(calls):
            assert town.reply("sendMessage", chat_id=town.ada, text=str(number)).status == 200

    def test_more_than_310_unsent_messages_of_a_chat_are_refused_until_they_are_gone(
        self, town: Town
    ) -> None:
        self.hold(town, 311, Hold(8_000))
        reply = town.reply("sendMessage", chat_id=town.ada, text="x")
        assert (json.loads(reply.body)["parameters"], reply.hold_ms) == ({"retry_after": 60}, 3_000)
        assert not town.telegram.ledger.arrivals()[-1].charged

        bob = town.telegram.people.add_user("Bob")
        town.telegram.people.says(bob.id, "hi", bot_id=town.bot.id)
        assert town.call("sendMessage", chat_id=bob.id, text="x")
        town.clock.advance_ms(8_000)
        assert town.send()

    def test_an_album_is_as_many_as_its_items(self, town: Town) -> None:
        media = [{"type": "photo", "media": file_id("photo", town.bot.id, n)} for n in range(10)]
        town.telegram.faults.next("sendMediaGroup", Hold(8_000), times=32)
        statuses = [
            town.reply("sendMediaGroup", chat_id=town.ada, media=media).status for _ in range(32)
        ]
        assert statuses == [200] * 32
        assert town.reply("sendMediaGroup", chat_id=town.ada, media=media).status == 429

    def test_a_call_that_hangs_is_unsent_until_it_is_released(self, town: Town) -> None:
        self.hold(town, 311, Hang(Acceptance.AFTER))
        town.clock.advance_ms(3_600_000)
        assert town.reply("sendMessage", chat_id=town.ada, text="x").status == 429
        town.telegram.release()
        assert town.send()
