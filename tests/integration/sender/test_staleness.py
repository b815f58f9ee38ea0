"""What has lost its reason is never sent, also when it lost it while nobody looked."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest

from storage import cancelling, chats, pauses, review, withdrawals
from storage.lifecycle import OutboxId, OutboxState, Priority, Withdrawal
from storage.options import DeliveryOptions
from storage.outgoing import Fallback, Outgoing, Source, coalesce_key, query_lane
from storage.pauses import BOT_SCOPE, BULK_SCOPE
from storage.review import Decision
from tests.integration.sender import guarding
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import SENT, Cut, Late, flood, refusal
from tests.integration.sender.test_sending import edit
from tests.integration.storage.calls import call

REASONS = withdrawals.REASONS


async def _note(house: House, what: Withdrawal, subject: str = "", *, at_ms: int) -> None:
    await house.db.write(
        lambda tx: withdrawals.note(tx, BOT, "c:7", what, subject=subject, at_ms=at_ms)
    )


@pytest.mark.parametrize(
    ("what", "subject", "wishes"),
    [
        (Withdrawal.MESSAGE_DELETED, "55", {"source": Source("c:7", 55)}),
        (
            Withdrawal.MESSAGE_EDITED,
            "55",
            {"source": Source("c:7", 55), "cancel_on_edit": True},
        ),
        (Withdrawal.GENERATION_STOPPED, "9", {"generation": "9"}),
        (Withdrawal.PERSON_ANSWERED, "", {}),
    ],
)
async def test_a_turn_that_was_late_says_nothing_whose_reason_is_gone(
    house: House, what: Withdrawal, subject: str, wishes: dict[str, Any]
) -> None:
    """Noted before the row was left, so that nothing but its claim can tell."""
    caused_ms = house.clock.now_ms() - 5_000
    await _note(house, what, subject, at_ms=caused_ms + 1_000)
    await house.start()
    ids = await house.says(
        call("late", caused_at_ms=caused_ms, **wishes),
        call("fresh", text="fresh", caused_at_ms=caused_ms + 1_000),
    )
    row = await house.becomes(ids[0], OutboxState.CANCELLED)
    assert (row.reason, row.history) == (REASONS[what], [])
    await house.becomes(ids[1], OutboxState.SENT)
    assert house.stub.texts == ["fresh"]


async def test_what_waited_through_a_restart_is_judged_by_what_is_so_now(house: House) -> None:
    house.stub.will("sendMessage", flood(60))
    await house.start()
    now_ms = house.clock.now_ms()
    ids = await house.says(
        call("a", text="first"),
        call("b", text="answers", source=Source("c:7", 55)),
        call("c", text="expires", expires_at_ms=now_ms + 90_000),
        call("d", text="last"),
    )
    await house.stub.arrived(1)
    await house.rests()
    await house.stop()
    house.clock.advance_ms(100_000)
    await _note(house, Withdrawal.MESSAGE_DELETED, "55", at_ms=house.clock.now_ms())
    await house.start()
    await house.passes(5_000)
    states = [(await house.row(row)).state for row in ids]
    sent, cancelled = OutboxState.SENT, OutboxState.CANCELLED
    assert states == [sent, cancelled, OutboxState.EXPIRED, sent]
    assert house.stub.texts == ["first", "first", "last"]


async def test_rows_behind_a_cooling_head_end_when_their_reason_goes(house: House) -> None:
    house.stub.will("sendMessage", flood(3_600))
    await house.start()
    ids = await house.says(call("a"), call("b", source=Source("c:7", 55)))
    await house.stub.arrived(1)
    await house.rests()
    await _note(house, Withdrawal.MESSAGE_DELETED, "55", at_ms=house.clock.now_ms())
    assert (await house.row(ids[1])).state is OutboxState.CANCELLED


async def test_a_person_who_answers_ends_even_the_row_that_cools(house: House) -> None:
    house.stub.will("sendMessage", flood(3_600))
    await house.start()
    [row] = await house.says(call("a"))
    await house.stub.arrived(1)
    await house.rests()
    await _note(house, Withdrawal.PERSON_ANSWERED, at_ms=house.clock.now_ms() + 1)
    assert (await house.row(row)).state is OutboxState.CANCELLED
    await house.passes(4_000_000)
    assert len(house.stub.arrivals) == 1


async def test_broadcasts_leave_alone_whoever_stopped_them_or_is_gone(house: House) -> None:
    await house.db.write(lambda tx: chats.opt_out(tx, BOT, 1))
    await house.db.write(lambda tx: chats.mark_unreachable(tx, BOT, 2, reason="blocked"))
    house.clock.advance_ms(1_000)
    bulk = Priority.BULK
    stopped, gone, reply, knock = await house.says(
        call("a", chat_id=1, priority=bulk),
        call("b", chat_id=2, priority=bulk),
        call("c", chat_id=1),
        call("d", chat_id=2),
    )
    await house.start()
    assert (await house.becomes(stopped, OutboxState.CANCELLED)).reason == (
        "the user wants no broadcasts"
    )
    assert (await house.becomes(gone, OutboxState.CANCELLED)).reason == "its chat can't be reached"
    await house.becomes(reply, OutboxState.SENT)
    await house.becomes(knock, OutboxState.SENT)


async def test_of_many_edits_that_wait_out_a_flood_only_the_latest_is_made(house: House) -> None:
    house.stub.will("editMessageText", flood(30))
    await house.start()

    def progress(number: int) -> Outgoing:
        plain = edit(f"e{number}", 4, text=f"{number} %")
        key = coalesce_key(plain.method, plain.params, plain.lane)
        return call(plain.key, method=plain.method, params=plain.params, coalesce_key=key)

    [first] = await house.says(progress(0))
    await house.stub.arrived(1)
    await house.rests()
    ids = await house.says(*[progress(number) for number in range(1, 11)])
    await house.passes(60_000)
    await house.becomes(ids[-1], OutboxState.SENT)
    assert house.stub.texts == ["0 %", "10 %"]
    for row in (first, *ids[:-1]):
        assert (await house.row(row)).state is OutboxState.SUPERSEDED


async def test_what_refers_to_a_doubt_waits_for_the_person_and_nobody_waits_for_it(
    house: House,
) -> None:
    house.stub.will("sendMessage", Cut.AFTER_READING)
    await house.start()
    parent, child, other = await house.says(
        call("a", text="asked", placeholder=-5), edit("b", -5), call("c", text="other")
    )
    await house.becomes(parent, OutboxState.UNCERTAIN)
    await house.passes(5_000)
    await house.becomes(other, OutboxState.SENT)
    row = await house.row(child)
    assert (row.state, row.joined) == (OutboxState.QUEUED, False)
    assert (
        row.reason == f"waits until it is decided whether c{parent}, which it refers to, was sent"
    )
    sent = Decision.SENT
    await house.db.write(lambda tx: review.resolve(tx, parent, sent, by="ada", message_id=4_711))
    await house.ring()
    await house.passes(5_000)
    await house.becomes(child, OutboxState.SENT)
    assert house.stub.arrivals[-1].form["message_id"] == "4711"


@pytest.mark.parametrize("decision", [Decision.DROP, Decision.SENT])
async def test_a_child_without_a_message_to_refer_to_is_cancelled(
    house: House, decision: Decision
) -> None:
    house.stub.will("sendMessage", Cut.AFTER_READING)
    await house.start()
    parent, child = await house.says(call("a", placeholder=-5), edit("b", -5))
    await house.becomes(parent, OutboxState.UNCERTAIN)
    await house.passes(5_000)
    await house.db.write(lambda tx: review.resolve(tx, parent, decision, by="ada"))
    await house.ring()
    await house.passes(5_000)
    await house.becomes(child, OutboxState.CANCELLED)


async def test_a_parent_that_is_sent_again_takes_its_children_along(house: House) -> None:
    house.stub.will("sendMessage", Cut.AFTER_READING)
    await house.start()
    parent, child = await house.says(call("a", placeholder=-5), edit("b", -5))
    await house.becomes(parent, OutboxState.UNCERTAIN)
    await house.passes(5_000)
    await house.db.write(lambda tx: review.resolve(tx, parent, Decision.RESEND, by="ada"))
    await house.ring()
    await house.passes(10_000)
    row = await house.becomes(parent, OutboxState.SENT)
    await house.becomes(child, OutboxState.SENT)
    assert house.stub.arrivals[-1].form["message_id"] == str(row.message_id)


def _answer(house: House, **wishes: Any) -> Outgoing:  # noqa: ANN401 - fields of Outgoing
    return call(
        "q",
        method="answerCallbackQuery",
        params={"callback_query_id": "81", "text": "done"},
        lane=query_lane("81"),
        caused_at_ms=house.clock.now_ms(),
        **wishes,
    )


INSTEAD = Fallback("sendMessage", {"chat_id": "7", "text": "done, late"}, "c:7", 7, ttl_ms=60_000)
TOO_OLD = "Bad Request: query is too old and response timeout expired or query ID is invalid"


async def test_an_answer_that_is_too_late_is_dropped_without_a_noise(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    [row] = await house.says(_answer(house, expires_at_ms=house.clock.now_ms() + 150_000))
    house.clock.advance_ms(150_000)
    caplog.set_level("DEBUG", "ferryman")
    await house.start()
    found = await house.becomes(row, OutboxState.EXPIRED)
    await house.rests()
    assert (found.history, house.stub.arrivals) == ([], [])
    told = {record.getMessage(): record.levelname for record in caplog.records}
    assert told["outbox.answer_late"] == "DEBUG"
    assert "outbox.expired" not in told


async def test_an_answer_that_telegram_finds_too_old_is_nobodys_failure(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.stub.will("answerCallbackQuery", refusal(400, TOO_OLD))
    caplog.set_level("DEBUG", "ferryman")
    await house.start()
    [row] = await house.says(_answer(house))
    found = await house.becomes(row, OutboxState.EXPIRED)
    await house.rests()
    assert [attempt.code for attempt in found.history] == [400]
    told = {record.getMessage(): record.levelname for record in caplog.records}
    assert told["outbox.answer_late"] == "DEBUG"
    assert "sender.refusal" not in told


async def test_what_an_answer_came_too_late_to_say_is_said_as_a_message(house: House) -> None:
    expires_ms = house.clock.now_ms() + 150_000
    await house.says(_answer(house, expires_at_ms=expires_ms, fallback=INSTEAD))
    house.clock.advance_ms(150_000)
    await house.start()
    await house.stub.arrived(1)
    assert house.stub.texts == ["done, late"]


async def test_it_is_said_as_a_message_too_when_telegram_finds_it_too_old(house: House) -> None:
    house.stub.will("answerCallbackQuery", refusal(400, TOO_OLD))
    await house.start()
    await house.says(_answer(house, fallback=INSTEAD))
    await house.stub.arrived(2)
    assert house.stub.texts == ["done", "done, late"]


async def _cancel(house: House, row: OutboxId) -> cancelling.Told:
    [answer] = await house.db.write(lambda tx: cancelling.by_ids(tx, BOT, [row], reason="asked"))
    return answer.told


async def test_a_call_under_way_keeps_its_truth_when_it_was_to_be_cancelled(house: House) -> None:
    late = Late(SENT)
    house.stub.will("sendMessage", late)
    await house.start()
    [row] = await house.says(call("a"))
    await house.stub.arrived(1)
    assert await _cancel(house, row) is cancelling.Told.TOO_LATE
    late.give()
    await house.becomes(row, OutboxState.SENT)


async def test_a_call_that_is_refused_after_it_was_to_be_cancelled_does_not_go_again(
    house: House,
) -> None:
    late = Late(flood(5))
    house.stub.will("sendMessage", late)
    await house.start()
    [row] = await house.says(call("a"))
    await house.stub.arrived(1)
    await _cancel(house, row)
    late.give()
    assert (await house.becomes(row, OutboxState.CANCELLED)).reason == "asked"
    await house.passes(60_000)
    assert len(house.stub.arrivals) == 1


async def _pause(house: House, scope: str, until_ms: int | None = None) -> None:
    act = partial(pauses.pause, reason="r", by_whom="ada", until_ms=until_ms)
    await house.db.write(lambda tx: act(tx, BOT, scope))


@pytest.mark.parametrize(("scope", "sent"), [(BOT_SCOPE, ""), (BULK_SCOPE, "ac"), ("c:1", "c")])
async def test_what_is_paused_waits_until_it_is_resumed(
    house: House, scope: str, sent: str
) -> None:
    await _pause(house, scope)
    await house.start()
    ids = await house.says(
        call("a", text="a", chat_id=1),
        call("b", text="b", chat_id=1, priority=Priority.BULK),
        call("c", text="c", chat_id=2),
    )
    await house.passes(10_000)
    assert sorted(house.stub.texts) == list(sent)
    await house.db.write(lambda tx: pauses.resume(tx, BOT, scope))
    await house.ring()
    await house.passes(10_000)
    for row in ids:
        await house.becomes(row, OutboxState.SENT)


@pytest.mark.parametrize("scope", [BOT_SCOPE, BULK_SCOPE, "c:7"])
async def test_a_pause_ends_by_itself_at_its_moment(house: House, scope: str) -> None:
    await _pause(house, scope, house.clock.now_ms() + 7_300)
    await house.start()
    [row] = await house.says(call("a", priority=Priority.BULK))
    await house.passes(7_299)
    assert not house.stub.arrivals
    await house.passes(2)
    await house.becomes(row, OutboxState.SENT)


async def test_what_is_paused_still_expires(house: House) -> None:
    await _pause(house, BOT_SCOPE)
    await house.start()
    [row] = await house.says(call("a", expires_at_ms=house.clock.now_ms() + 5_000))
    await house.passes(20_000)
    await house.becomes(row, OutboxState.EXPIRED)


@pytest.fixture
async def guarded(house: House) -> AsyncIterator[House]:
    """A house whose application has a guard."""
    house.delivery = DeliveryOptions(guard=guarding.NAME)
    guarding.asked.clear()
    guarding.answers.clear()
    yield house
    guarding.answers.clear()


async def test_a_guard_is_asked_about_what_is_about_to_go(guarded: House) -> None:
    await guarded.start()
    [row] = await guarded.says(call("a", caused_at_ms=5))
    await guarded.becomes(row, OutboxState.SENT)
    [intent] = guarding.asked
    assert (intent.outbox_id, intent.key, intent.caused_at_ms) == (row, "a", 5)


async def test_what_a_guard_objects_to_is_cancelled_with_its_reason(guarded: House) -> None:
    guarding.answers.append("the order was withdrawn")
    await guarded.start()
    ids = await guarded.says(call("a", text="a"), call("b", text="b"))
    row = await guarded.becomes(ids[0], OutboxState.CANCELLED)
    assert row.reason == "its guard said no: the order was withdrawn"
    await guarded.becomes(ids[1], OutboxState.SENT)
    assert guarded.stub.texts == ["b"]


async def test_a_guard_that_raises_puts_the_row_off_and_loses_nothing(
    guarded: House, caplog: pytest.LogCaptureFixture
) -> None:
    guarding.answers.append(KeyError("a user's words"))
    await guarded.start()
    [row] = await guarded.says(call("a"))
    await guarded.passes(29_999)
    found = await guarded.row(row)
    assert (found.state, found.reason) == (OutboxState.QUEUED, "the guard raised KeyError")
    assert not guarded.stub.arrivals
    assert "guard.failed" in {record.getMessage() for record in caplog.records}
    await guarded.passes(1)
    await guarded.becomes(row, OutboxState.SENT)


async def test_nobody_waits_for_what_refers_to_a_message_of_paused_bulk(house: House) -> None:
    await _pause(house, BULK_SCOPE)
    await house.start()
    bulk, change, reply = await house.says(
        call("a", text="bulk", priority=Priority.BULK, placeholder=-5),
        edit("b", -5, text="changed"),
        call("c", text="reply"),
    )
    await house.passes(5_000)
    await house.becomes(reply, OutboxState.SENT)
    assert house.stub.texts == ["reply"]
    assert (await house.row(change)).reason == (
        f"waits until it is decided whether c{bulk}, which it refers to, was sent"
    )
    await house.db.write(lambda tx: pauses.resume(tx, BOT, BULK_SCOPE))
    await house.ring()
    await house.passes(5_000)
    assert house.stub.texts == ["reply", "bulk", "changed"]
