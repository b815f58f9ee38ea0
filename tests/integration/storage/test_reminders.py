"""Reminders are kept in their turn's transaction, one of each name, and end in another."""

from functools import partial

import pytest

from storage import reminders
from storage.database import Database, Tx
from storage.lifecycle import BotName
from storage.reminders import Reminder, ReminderId, Wanted
from tests.simulator.clock import VirtualClock

BOT = BotName("main")
OTHER = BotName("other")
DAILY = Wanted("app:digest", name="digest", rule='{"every_ms":60000}', elapses=True, chat_id=7)


async def keep(db: Database, wanted: Wanted, due_ms: int, *, bot: BotName = BOT) -> ReminderId:
    return await db.write(partial(reminders.keep, bot=bot, wanted=wanted, due_ms=due_ms))


async def shown(db: Database, reminder: ReminderId) -> Reminder | None:
    return await db.read(partial(reminders.show, bot=BOT, reminder=reminder))


async def due(db: Database) -> list[ReminderId]:
    found = await db.read(partial(reminders.due, bot=BOT, limit=10))
    return [each.id for each in found]


async def test_what_was_wished_is_kept_as_it_was(db: Database, clock: VirtualClock) -> None:
    wanted = Wanted(
        "app:ring", name="tea", data=b"\x00", chat_id=7, user_id=8, late_ms_max=5, elapses=True
    )
    kept = await keep(db, wanted, clock.now_ms() + 10)
    assert await shown(db, kept) == Reminder(kept, wanted, clock.now_ms() + 10, clock.now_ms())


async def test_only_what_is_due_is_found_the_earliest_first(
    db: Database, clock: VirtualClock
) -> None:
    now_ms = clock.now_ms()
    late = await keep(db, Wanted("app:ring"), now_ms + 20)
    soon = await keep(db, Wanted("app:ring"), now_ms + 10)
    await keep(db, Wanted("app:ring"), now_ms, bot=OTHER)
    assert await due(db) == []
    clock.advance_ms(20)
    assert await due(db) == [soon, late]


async def test_a_name_stands_for_one_reminder_the_newest(db: Database, clock: VirtualClock) -> None:
    first = await keep(db, Wanted("app:ring", name="tea"), 10)
    other = await keep(db, Wanted("app:ring", name="tea"), 10, bot=OTHER)
    second = await keep(db, Wanted("app:ring", name="tea"), 20)
    assert await shown(db, first) is None
    assert await due(db) == [second]
    assert other != second


async def test_a_rule_that_is_wished_again_keeps_what_was_missed(
    db: Database, clock: VirtualClock
) -> None:
    """As at each start of the bot."""
    missed = await keep(db, DAILY, clock.now_ms() - 5)
    assert await keep(db, DAILY, clock.now_ms() + 60_000) == missed
    assert await due(db) == [missed]


async def test_a_rule_that_is_wished_otherwise_begins_anew(
    db: Database, clock: VirtualClock
) -> None:
    await keep(db, DAILY, clock.now_ms() - 5)
    changed = Wanted("app:digest", name="digest", rule='{"every_ms":90000}', elapses=True)
    await keep(db, changed, clock.now_ms() + 90_000)
    assert await due(db) == []


async def test_an_occurrence_ends_and_the_next_one_has_a_number_of_its_own(
    db: Database, clock: VirtualClock
) -> None:
    kept = await keep(db, DAILY, clock.now_ms())
    found = await shown(db, kept)
    assert found is not None
    next_due_ms = clock.now_ms() + 60_000
    await db.write(partial(reminders.end, bot=BOT, reminder=found, next_due_ms=next_due_ms))
    assert await shown(db, kept) is None
    following = await shown(db, ReminderId(kept + 1))
    assert following is not None
    assert (following.wanted, following.due_ms) == (DAILY, next_due_ms)


async def test_nothing_follows_what_was_forgotten_meanwhile(
    db: Database, clock: VirtualClock
) -> None:
    kept = await keep(db, DAILY, clock.now_ms())
    found = await shown(db, kept)
    assert found is not None

    def forget_and_end(tx: Tx) -> bool:
        forgotten = reminders.forget(tx, BOT, "digest")
        reminders.end(tx, BOT, found, next_due_ms=clock.now_ms())
        return forgotten

    assert await db.write(forget_and_end)
    assert await due(db) == []
    assert not await db.write(partial(reminders.forget, bot=BOT, name="digest"))


@pytest.mark.parametrize("elapses", [True, False])
async def test_a_clock_that_is_set_back_lets_only_moments_wait_longer(
    db: Database, clock: VirtualClock, *, elapses: bool
) -> None:
    due_ms = clock.now_ms() + 60_000
    kept = await keep(db, Wanted("app:ring", elapses=elapses), due_ms)
    assert not await db.read(partial(reminders.is_ahead, bot=BOT))
    clock.step_wall_ms(-86_400_000)
    assert await db.read(partial(reminders.is_ahead, bot=BOT)) is elapses
    assert await db.write(partial(reminders.redate, bot=BOT)) == int(elapses)
    found = await shown(db, kept)
    assert found is not None
    assert found.due_ms == (clock.now_ms() + 60_000 if elapses else due_ms)
    assert not await db.read(partial(reminders.is_ahead, bot=BOT))


async def test_a_clock_that_is_set_ahead_makes_everything_due_once(
    db: Database, clock: VirtualClock
) -> None:
    kept = await keep(db, DAILY, clock.now_ms() + 60_000)
    clock.step_wall_ms(30 * 86_400_000)
    assert await due(db) == [kept]
