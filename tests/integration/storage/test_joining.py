"""Work that is done once for all who wait with it: shared when it goes well, apart when not."""

import asyncio
from collections.abc import Sequence

import pytest

from storage import bots, claims, outbox, reports
from storage.claims import Accepted, AttemptEnd, Claim
from storage.database import JOINED_MAX, Database, Tx
from storage.errors import IdentityChanged, LeaseLost
from storage.lifecycle import AttemptStage, BotName, OutboxId, OutboxState, Priority
from storage.reports import RowReport
from tests.integration.storage.calls import BOT, call

Item = tuple[str, int]


class Binding:
    """Binds many bots, and remembers how many it was given at a time."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def bind_all(self, tx: Tx, items: Sequence[Item]) -> Sequence[str]:
        self.sizes.append(len(items))
        for name, bot_id in items:
            bots.bind(tx, BotName(name), bot_id)
        return [name.upper() for name, _ in items]


async def _names(db: Database) -> list[str]:
    return sorted(row["name"] for row in await db.fetch("reports.bots"))


async def test_all_who_wait_together_are_served_at_once_each_with_its_own_result(
    db: Database,
) -> None:
    bind_all = Binding()
    work = bind_all.bind_all
    results = await asyncio.gather(*(db.join(work, (f"bot{n}", n)) for n in range(1, 10)))
    assert results == [f"BOT{n}" for n in range(1, 10)]
    assert bind_all.sizes == [9]
    assert len(await _names(db)) == 9


async def test_one_that_is_refused_takes_no_other_with_it(db: Database) -> None:
    """Where the function raises for all, each is tried alone."""
    await db.write(lambda tx: bots.bind(tx, BotName("taken"), 1))
    bind_all = Binding()
    items = [("first", 2), ("taken", 3), ("last", 4)]
    outcomes = await asyncio.gather(
        *(db.join(bind_all.bind_all, item) for item in items), return_exceptions=True
    )
    assert outcomes[0] == "FIRST"
    assert isinstance(outcomes[1], IdentityChanged)
    assert outcomes[2] == "LAST"
    assert await _names(db) == ["first", "last", "taken"]
    assert bind_all.sizes == [3, 1, 1, 1]


async def test_different_work_is_not_mixed_and_shares_the_commit(db: Database) -> None:
    one, other = Binding(), Binding()
    bind_one, bind_other = one.bind_all, other.bind_all
    await asyncio.gather(
        db.join(bind_one, ("a", 1)),
        db.join(bind_other, ("b", 2)),
        db.join(bind_one, ("c", 3)),
        db.write(lambda tx: bots.bind(tx, BotName("d"), 4)),
    )
    assert (one.sizes, other.sizes) == ([2], [1])
    assert await _names(db) == ["a", "b", "c", "d"]


async def test_no_crowd_is_larger_than_its_limit(db: Database) -> None:
    binding = Binding()
    work = binding.bind_all
    count = JOINED_MAX + 3
    await asyncio.gather(*(db.join(work, (f"bot{n}", n)) for n in range(1, count + 1)))
    assert binding.sizes == [JOINED_MAX, 3]


async def test_one_who_gives_up_waiting_changes_nothing_for_the_others(db: Database) -> None:
    binding = Binding()
    work = binding.bind_all
    leaves = asyncio.create_task(db.join(work, ("gone", 1)))
    stays = asyncio.create_task(db.join(work, ("here", 2)))
    await asyncio.sleep(0)
    leaves.cancel()
    assert await stays == "HERE"
    assert await _names(db) == ["gone", "here"]


def _claims(tx: Tx, *chats: int) -> Sequence[Claim]:
    for chat in chats:
        outbox.enqueue(tx, BOT, call(f"first:{chat}", chat_id=chat))
        outbox.enqueue(tx, BOT, call(f"second:{chat}", chat_id=chat))
    heads = claims.heads(tx, BOT, Priority.INTERACTIVE, limit=100)
    return claims.claim(tx, heads, 1)


async def _row(db: Database, row_id: OutboxId) -> RowReport:
    row = await db.read(lambda tx: reports.show(tx, row_id))
    assert row is not None
    return row


def _record(tx: Tx, accepted: Sequence[Accepted]) -> None:
    end = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=7, status=200)
    claims.close_attempts(tx, [(each.claim, end) for each in accepted])
    claims.mark_sent(tx, accepted)


async def test_each_of_many_rows_gets_its_own_attempt_and_its_own_answer(db: Database) -> None:
    taken = await db.write(lambda tx: _claims(tx, 11, 12, 13))
    await db.write(lambda tx: claims.stamp(tx, taken))
    accepted = [Accepted(claim, claim.item.id * 100) for claim in taken]
    await db.write(lambda tx: _record(tx, accepted))
    for claim in taken:
        row = await _row(db, claim.item.id)
        assert (row.state, row.message_id) == (OutboxState.SENT, claim.item.id * 100)
        (attempt,) = row.history
        assert (attempt.id, attempt.stage) == (claim.attempt_id, AttemptStage.ANSWERED)
        assert attempt.duration_ms == 7


async def test_every_lane_goes_on_with_its_next_row_or_is_closed(db: Database) -> None:
    taken = await db.write(lambda tx: _claims(tx, 11, 12))
    later_ms = await db.read(lambda tx: tx.now_ms()) + 5_000
    first, other = taken
    await db.write(lambda tx: _record(tx, [Accepted(first, 1), Accepted(other, 2, later_ms)]))
    heads = await db.write(lambda tx: claims.heads(tx, BOT, Priority.INTERACTIVE, limit=100))
    assert [head.chat_id for head in heads] == [11]
    assert await db.read(lambda tx: outbox.next_due_ms(tx, BOT)) == later_ms


async def test_one_row_in_another_hand_keeps_the_whole_record_back(db: Database) -> None:
    """So that each is then recorded alone, and only the lost one is refused."""
    claims = await db.write(lambda tx: _claims(tx, 11, 12))
    stale = Claim(claims[0].item, claims[0].attempt_id, epoch=0)
    with pytest.raises(LeaseLost):
        await db.write(lambda tx: _record(tx, [Accepted(stale, 1), Accepted(claims[1], 2)]))
    rows = [await _row(db, claim.item.id) for claim in claims]
    assert [row.state for row in rows] == [OutboxState.CLAIMED, OutboxState.CLAIMED]
    assert [row.history[0].verdict for row in rows] == [None, None]
