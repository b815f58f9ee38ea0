"""Waits, floods, rates and spending on record."""

from functools import partial
from typing import Any

import pytest

from storage import cooldowns, floods, outbox, rates, spending
from storage.clock import deadline_in
from storage.database import Database, Tx
from storage.floods import Flood
from storage.lifecycle import BotName, Priority
from tests.integration.storage.calls import BOT, call
from tests.simulator.clock import VirtualClock

OTHER = BotName("other")


def cooling(lane: str = "c:7") -> Flood:
    return Flood(lane, "sendMessage", "bulk", 60_000, "chat", "adaptive", 5_000, 60_000, 0)


async def test_only_what_was_inferred_can_be_lifted(db: Database, clock: VirtualClock) -> None:
    deadline = deadline_in(60_000, clock)

    await db.write(lambda tx: cooldowns.merge(tx, BOT, "bot", deadline, reason="said"))
    await db.write(
        lambda tx: cooldowns.merge(
            tx, BOT, "bot:inferred", deadline, reason="concluded", inferred=True
        )
    )
    assert not await db.write(lambda tx: cooldowns.lift(tx, BOT, "bot"))
    assert await db.write(lambda tx: cooldowns.lift(tx, BOT, "bot:inferred"))
    [kept] = await db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert (kept.scope, kept.inferred) == ("bot", False)


async def test_what_is_said_after_it_was_inferred_is_no_inference_any_more(
    db: Database, clock: VirtualClock
) -> None:
    def set_it(tx: Tx, wait_ms: int, *, inferred: bool) -> None:
        deadline = deadline_in(wait_ms, clock)
        cooldowns.merge(tx, BOT, "bot", deadline, reason="", inferred=inferred)

    await db.write(partial(set_it, wait_ms=1_000, inferred=True))
    await db.write(partial(set_it, wait_ms=9_000, inferred=False))
    [kept] = await db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert (kept.deadline.wait_ms, kept.inferred) == (9_000, False)


async def test_floods_are_told_newest_first_and_by_their_lanes(
    db: Database, clock: VirtualClock
) -> None:
    await db.write(lambda tx: floods.record(tx, BOT, cooling()))
    await db.write(lambda tx: floods.record(tx, OTHER, cooling("c:1")))
    clock.advance_ms(5_000)
    await db.write(lambda tx: floods.record(tx, BOT, cooling("c:8")))
    found = await db.read(lambda tx: floods.latest(tx, BOT, limit=10))
    assert [flood.lane for flood in found] == ["c:8", "c:7"]
    since_ms = clock.now_ms() - 4_999
    assert await db.read(lambda tx: floods.lanes_since(tx, BOT, since_ms=since_ms)) == {"c:8"}


async def test_floods_of_long_ago_are_forgotten(db: Database, clock: VirtualClock) -> None:
    await db.write(lambda tx: floods.record(tx, BOT, cooling()))
    clock.advance_ms(1_000)
    await db.write(lambda tx: floods.record(tx, BOT, cooling("c:8")))
    before_ms = clock.now_ms()
    assert await db.write(lambda tx: floods.prune(tx, before_ms=before_ms, limit=10)) == 1
    [left] = await db.read(lambda tx: floods.latest(tx, BOT, limit=10))
    assert left.lane == "c:8"


async def test_a_rate_is_learned_and_forgotten(db: Database) -> None:
    assert await db.read(lambda tx: rates.learned(tx, BOT)) is None
    await db.write(lambda tx: rates.learn(tx, BOT, 20.0, reason="a flood"))
    await db.write(lambda tx: rates.learn(tx, BOT, 16.0, reason="a flood"))
    learned = await db.read(lambda tx: rates.learned(tx, BOT))
    assert learned is not None
    assert learned.bulk_per_second == 16
    await db.write(lambda tx: rates.forget(tx, BOT))
    assert await db.read(lambda tx: rates.learned(tx, BOT)) is None


async def test_each_bot_pays_for_itself(db: Database) -> None:
    await db.write(lambda tx: spending.charge(tx, BOT, 3))
    await db.write(lambda tx: spending.charge(tx, BOT, 4))
    assert await db.read(lambda tx: spending.spent(tx, BOT)) == 7
    assert await db.read(lambda tx: spending.spent(tx, OTHER)) == 0


@pytest.mark.parametrize("asked", list(Priority))
async def test_a_row_that_pays_stands_in_the_paid_lane(db: Database, asked: Priority) -> None:
    paying = call("a", priority=asked, params={"chat_id": "7", "allow_paid_broadcast": "true"})
    await db.write(lambda tx: outbox.enqueue(tx, BOT, paying))
    lanes = await db.fetch("reports.outbox_waiting", {"bot": BOT})
    assert [row["priority"] for row in lanes] == ["paid"]


@pytest.mark.parametrize(("old_ms", "new_ms"), [(1_000, 3_600_000), (3_600_000, 1_000)])
async def test_a_chat_that_moves_keeps_the_later_of_two_waits(
    db: Database, clock: VirtualClock, old_ms: int, new_ms: int
) -> None:
    for scope, wait_ms in (("c:-5", old_ms), ("c:-1005", new_ms)):
        deadline = deadline_in(wait_ms, clock)
        await db.write(
            partial(cooldowns.merge, bot=BOT, scope=scope, deadline=deadline, reason="r")
        )
    await db.write(lambda tx: cooldowns.move(tx, BOT, "c:-5", new_scope="c:-1005"))
    [wait] = await db.read(lambda tx: cooldowns.of_bot(tx, BOT))
    assert (wait.scope, wait.deadline.wait_ms) == ("c:-1005", 3_600_000)


@pytest.mark.parametrize(
    "wishes",
    [
        {"channel": "sms", "lane": "x:sms:7", "method": "send"},
        {"method": "answerCallbackQuery", "lane": "q:81"},
    ],
)
async def test_what_takes_no_stars_is_not_paid_whatever_it_says(
    db: Database, wishes: dict[str, Any]
) -> None:
    """A row in a lane that nothing may leave would hold back what is behind it."""
    row = call("a", params={"chat_id": "7", "allow_paid_broadcast": "true"}, **wishes)
    await db.write(lambda tx: outbox.enqueue(tx, BOT, row))
    lanes = await db.fetch("reports.outbox_waiting", {"bot": BOT})
    assert [row["priority"] for row in lanes] == ["interactive"]
