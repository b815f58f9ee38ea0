"""One owner for each bot: takeover, what a dead owner left in hand, and the fence."""

from typing import Any

import pytest

from sender.claiming import STRAY_MS, Heir, Taken, pick, take_over
from sender.floods import edits_scope
from sender.lessons import Deadlined, Lessons
from sender.memory import BotMemory, Pace
from sender.pacing import Rates
from sender.policy import MarkSent, Requeue, Spend
from sender.settling import Settling, settle, settle_late
from sender.sharing import Sharer, lease_name
from storage import claims, cooldowns, leases, outbox, review
from storage.claims import AttemptEnd
from storage.clock import deadline_in
from storage.database import Tx
from storage.doorbell import Doorbell
from storage.errors import LeaseLost
from storage.leases import Lease
from storage.lifecycle import AttemptStage, OnUncertain, OutboxState
from storage.options import Limits
from storage.review import Decision
from tests.integration.sender.house import BOT, House
from tests.integration.sender.stub import SENT, Late
from tests.integration.sender.test_sending import edit
from tests.integration.storage.calls import call

FAST = Rates(
    chat_per_second=1e6,
    chat_burst=1,
    group_per_minute=10**6,
    bot_per_second=1e6,
    bulk_per_second=1e6,
)


def own(tx: Tx, owner: str = "another") -> Lease:
    """Take the bot over as another process would."""
    sharer = Sharer(owner, frozenset({BOT}), is_dead=lambda _: True)
    heir = Heir(BOT, sharer, attempts_max=5, jitter=0.0, recent_ms=60_000)
    inherited = take_over(tx, heir)
    assert inherited is not None
    return inherited.lease


async def claim_as_another(house: House) -> tuple[Lease, list[Taken]]:
    """Claim all heads as a process that then ends without a word."""
    lease = await house.db.write(own)
    memory = BotMemory(Pace(FAST, "adaptive", in_flight_max=100), house.clock)
    look = memory.look(BOT, lease, in_flight=0, reload_cooldowns=False)
    picked = await house.db.write(lambda tx: pick(tx, look, house.clock))
    return lease, picked.taken


async def test_what_was_claimed_but_not_stamped_is_sent_once(house: House) -> None:
    [row] = await house.says(call("a"))
    await claim_as_another(house)
    await house.start()
    found = await house.becomes(row, OutboxState.SENT)
    assert [attempt.stage for attempt in found.history] == ["handed_back", "answered"]
    assert found.attempts == 1
    assert len(house.stub.arrivals) == 1


async def test_what_was_stamped_may_have_left_and_is_held(house: House) -> None:
    [row] = await house.says(call("a"))
    _, taken = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [each.claim for each in taken]))
    await house.start()
    found = await house.becomes(row, OutboxState.UNCERTAIN)
    assert [attempt.stage for attempt in found.history] == ["abandoned"]
    await house.passes(10_000)
    assert not house.stub.arrivals


async def test_a_stamped_edit_goes_again_by_itself(house: House) -> None:
    [row] = await house.says(edit("a", 4))
    _, taken = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [each.claim for each in taken]))
    await house.start()
    await house.passes(3_000)
    await house.becomes(row, OutboxState.SENT)


async def test_an_older_owner_can_neither_claim_nor_settle(house: House) -> None:
    [row] = await house.says(call("a"))
    old, [taken] = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [taken.claim]))
    await house.db.write(lambda tx: own(tx, "a third"))
    with pytest.raises(LeaseLost):
        await house.db.write(lambda tx: leases.require(tx, old))
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", status=200)
    late = Settling(taken.claim, end, MarkSent(message_id=5, note=""))
    with pytest.raises(LeaseLost):
        await house.db.write(lambda tx: settle(tx, late))
    found = await house.row(row)
    assert (found.state, found.message_id) == (OutboxState.UNCERTAIN, None)


async def test_a_true_answer_ends_a_doubt_whoever_brings_it(house: House) -> None:
    [row] = await house.says(call("a"))
    _, [taken] = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [taken.claim]))
    await house.db.write(lambda tx: own(tx, "a third"))
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", status=200)
    late = Settling(taken.claim, end, MarkSent(message_id=5, note=""))
    assert await house.db.write(lambda tx: settle_late(tx, late))
    found = await house.row(row)
    assert (found.state, found.message_id) == (OutboxState.SENT, 5)


async def test_a_late_answer_changes_nothing_that_a_person_has_decided(house: House) -> None:
    [row] = await house.says(call("a"))
    _, [taken] = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [taken.claim]))
    await house.db.write(lambda tx: own(tx, "a third"))
    await house.db.write(lambda tx: review.resolve(tx, row, Decision.DROP, by="ann"))
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", status=200)
    late = Settling(taken.claim, end, MarkSent(message_id=5, note=""))
    assert not await house.db.write(lambda tx: settle_late(tx, late))
    assert (await house.row(row)).state is OutboxState.DEAD


async def test_a_late_answers_wait_is_kept_for_the_chat_as_it_is_called_by_now(
    house: House,
) -> None:
    """Found in a world: a sender that was stopped came back after the next one had met the move."""
    params = {"chat_id": "-7", "message_id": "4", "text": "new"}
    await house.says(call("a", chat_id=-7, method="editMessageText", params=params))
    _, [taken] = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [taken.claim]))
    await house.db.write(lambda tx: own(tx, "a third"))
    await house.db.write(
        lambda tx: outbox.move_lane(tx, BOT, "c:-7", new_lane="c:-1007", chat_id=-1007)
    )
    deadline = deadline_in(60_000, house.clock)
    waits = [Deadlined(scope, deadline, "flood") for scope in ("c:-7", edits_scope("c:-7"), "bot")]
    end = AttemptEnd(AttemptStage.ANSWERED, "cooldown", status=429)
    fate = Requeue(0, Spend.NOTHING, "flood")
    late = Settling(taken.claim, end, fate, Lessons(waits))
    await house.db.write(lambda tx: settle_late(tx, late))
    kept = await house.db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert {wait.scope for wait in kept} == {"c:-1007", edits_scope("c:-1007"), "bot"}


async def test_what_comes_after_a_lost_call_does_not_overtake_it(house: House) -> None:
    """It may arrive a moment after its sender's death, and nothing else paces chat actions."""
    params = {"chat_id": "7", "action": "typing"}
    action: dict[str, Any] = {"method": "sendChatAction", "params": params}
    await house.says(call("a", attempts_max=1, on_uncertain=OnUncertain.DROP, **action))
    _, taken = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [each.claim for each in taken]))
    await house.says(call("b", **action))
    await house.start()
    await house.passes(STRAY_MS - 1)
    assert not house.stub.arrivals
    await house.passes(1_001)
    assert len(house.stub.arrivals) == 1


async def test_a_running_sender_that_loses_its_lease_stops_sending(house: House) -> None:
    await house.start()
    await house.passes(100)
    other = Doorbell(house.folder, "sender")
    try:
        await house.db.write(lambda tx: own(tx, other.name))
        [row] = await house.says(call("a"))
        await house.passes(3_500)
        assert not house.stub.arrivals
        assert (await house.row(row)).state is OutboxState.QUEUED
    finally:
        other.close()
    await house.passes(2_000)
    await house.becomes(row, OutboxState.SENT)


async def test_a_second_sender_stands_by_and_takes_over(house: House) -> None:
    await house.start()
    await house.start()
    first = house.running[0]
    ids = await house.says(call("a"))
    await house.becomes(ids[0], OutboxState.SENT)
    first[1].set()
    await first[0]
    house.running.pop(0)
    house.drivers.pop(0)
    await house.passes(2_000)
    [row] = await house.says(call("b"))
    await house.passes(2_000)
    await house.becomes(row, OutboxState.SENT)
    owner = await house.db.read(lambda tx: leases.current(tx, lease_name(BOT)))
    assert owner is not None
    assert owner.epoch == 2


async def test_the_last_seconds_sends_are_remembered_across_a_restart(house: House) -> None:
    await house.start()
    [first] = await house.says(call("a"))
    await house.becomes(first, OutboxState.SENT)
    await house.stop()
    await house.passes(300)
    await house.start()
    [second] = await house.says(call("b"))
    await house.passes(3_000)
    await house.becomes(second, OutboxState.SENT)
    before, after = house.stub.arrivals
    assert after.at_ms - before.at_ms >= 1_000


async def test_a_clock_set_forward_makes_no_send_look_older(
    house: House,
) -> None:
    [first] = await house.says(call("a"))
    lease, [taken] = await claim_as_another(house)
    await house.db.write(lambda tx: claims.stamp(tx, [taken.claim]))
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", status=200)
    late = Settling(taken.claim, end, MarkSent(message_id=5, note=""))
    await house.db.write(lambda tx: settle(tx, late))
    await house.db.write(lambda tx: leases.renew(tx, lease))
    died_ms = house.clock.boot_ms()
    house.clock.step_wall_ms(3_600_000)
    await house.start()
    [second] = await house.says(call("b"))
    await house.passes(3_000)
    await house.becomes(second, OutboxState.SENT)
    assert (await house.row(first)).state is OutboxState.SENT
    left_ms = house.stub.arrivals[0].at_ms - house.clock.now_ms() + house.clock.boot_ms()
    assert left_ms - died_ms >= 1_000


async def test_a_groups_minute_is_remembered_across_a_restart(house: House) -> None:
    group = [call(f"k{n}", chat_id=-7) for n in range(25)]
    await house.says(*group)
    await house.start()
    await house.passes(15_500)
    await house.stop()
    await house.start()
    await house.passes(120_000)
    await house.stub.arrived(25)
    moments = [arrival.at_ms for arrival in house.stub.arrivals]
    for at_ms in moments:
        assert sum(at_ms <= other < at_ms + 60_000 for other in moments) <= 20


async def test_a_call_that_was_long_under_way_counts_from_its_end_across_a_restart(
    house: House,
) -> None:
    """Telegram holds a call before it answers, and counts it when it likes in that time."""
    late = Late(SENT)
    house.stub.will("sendMessage", late)
    house.limits = Limits(group_per_minute=1)
    await house.start()
    [first, second] = await house.says(call("a", chat_id=-7), call("b", chat_id=-7))
    await house.stub.arrived(1)
    await house.passes(8_000)
    late.give()
    await house.becomes(first, OutboxState.SENT)
    ended_ms = house.clock.now_ms()
    await house.passes(54_000)
    await house.stop()
    await house.start()
    await house.passes(10_000)
    await house.becomes(second, OutboxState.SENT)
    assert house.stub.arrivals[1].at_ms - ended_ms >= 60_000
