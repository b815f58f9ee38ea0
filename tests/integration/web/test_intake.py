"""What arrives together is committed together, and one bad update is nobody else's harm."""

import asyncio
from functools import partial

import pytest

from bot.web.intake import BATCH_MAX, Intake
from storage import inbox, outbox
from storage.carriers import Params
from storage.database import Database
from storage.errors import StorageError
from storage.inbox import Received, Reception
from storage.lifecycle import BotName
from storage.outgoing import Outgoing, Source
from tests.simulator.clock import VirtualClock

MAIN = BotName("main")
NO_UTF8 = b"\xff"


def received(number: int, body: bytes = b"{}") -> Received:
    return Received(MAIN, number, "message", None, None, body)


@pytest.fixture
def commits(db: Database, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A mark for each transaction that was asked for."""
    marks: list[str] = []
    run = db.run

    async def counted(name: str, params: Params, *, point: str) -> int:
        marks.append("commit")
        return await run(name, params, point=point)

    monkeypatch.setattr(db, "run", counted)
    return marks


async def stored(db: Database) -> int:
    return await db.read(lambda tx: inbox.depth(tx, MAIN, limit=10_000))


async def test_what_arrives_together_is_one_transaction(
    db: Database, clock: VirtualClock, commits: list[str]
) -> None:
    intake = Intake(db, clock)
    receptions = await asyncio.gather(*(intake.keep(received(n)) for n in range(1, 41)))
    assert receptions == [Reception.STORED] * 40
    assert len(commits) == 1
    assert await stored(db) == 40


async def test_one_that_comes_alone_does_not_wait_for_others(
    db: Database, clock: VirtualClock, commits: list[str]
) -> None:
    """The clock stands still, so that a timer would wait for ever."""
    intake = Intake(db, clock)
    for number in (1, 2):
        assert await intake.keep(received(number)) is Reception.STORED
    assert len(commits) == 2


async def test_a_flood_is_taken_in_batches_of_bounded_size(
    db: Database, clock: VirtualClock, commits: list[str]
) -> None:
    intake = Intake(db, clock)
    await asyncio.gather(*(intake.keep(received(n)) for n in range(1, 2 * BATCH_MAX + 2)))
    assert len(commits) == 3
    assert await stored(db) == 2 * BATCH_MAX + 1


async def test_bytes_that_are_no_text_are_kept_as_they_are(
    db: Database, clock: VirtualClock
) -> None:
    receipt = await Intake(db, clock).keep(received(2, NO_UTF8))
    assert receipt is Reception.STORED
    (kept,) = await db.read(lambda tx: inbox.pending(tx, MAIN, after_id=0, limit=1))
    record = await db.read(lambda tx: inbox.show(tx, kept.id))
    assert record is not None
    assert record.body == NO_UTF8


async def test_one_that_can_not_be_stored_harms_no_other(db: Database, clock: VirtualClock) -> None:
    intake = Intake(db, clock)
    asked = [received(1), received(2**64), received(3)]
    first, second, third = await asyncio.gather(
        *(intake.keep(each) for each in asked), return_exceptions=True
    )
    assert (first, third) == (Reception.STORED, Reception.STORED)
    assert isinstance(second, Exception)
    assert await stored(db) == 2


async def test_a_database_that_takes_nothing_is_told_to_everybody(
    db: Database, clock: VirtualClock
) -> None:
    intake = Intake(db, clock)
    await db.close()
    told = await asyncio.gather(*(intake.keep(received(n)) for n in (1, 2)), return_exceptions=True)
    assert [type(each) for each in told] == [StorageError, StorageError]


async def test_one_who_gives_up_waiting_stops_nobody(db: Database, clock: VirtualClock) -> None:
    intake = Intake(db, clock)
    waiting = [intake.keep(received(n)) for n in (1, 2, 3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert told[0] is told[2] is Reception.STORED
    assert isinstance(told[1], asyncio.CancelledError)
    assert await stored(db) == 3, "its transaction was whole all the same"


async def test_what_tells_the_sender_something_is_committed_with_what_came_with_it(
    db: Database, clock: VirtualClock, commits: list[str]
) -> None:
    """An odd one among them tells nothing, and is stored all the same."""
    answer = Outgoing(
        "sendMessage",
        {"chat_id": "7", "text": "hi"},
        lane="c:7",
        key="turn:1:0:0",
        source=Source("c:7", 5),
        cancel_on_edit=True,
        caused_at_ms=1,
    )
    await db.write(partial(outbox.enqueue, bot=MAIN, outgoing=answer))
    edited = b'{"update_id": 2, "edited_message": {"message_id": 5}}'
    together = [
        received(1),
        Received(MAIN, 2, "edited_message", "c:7", None, edited),
        Received(MAIN, 3, "my_chat_member", "c:8", None, b"{}"),
        received(4),
    ]
    intake = Intake(db, clock)
    told = await asyncio.gather(*(intake.keep(each) for each in together))
    assert told == [Reception.STORED] * 4
    assert commits == [], "not as one statement alone"
    assert await stored(db) == 4
    assert await db.fetch("outbox.queue", {"bot": MAIN, "limit": 9}) == []


async def test_a_batch_without_such_a_kind_is_one_statement_as_ever(
    db: Database, clock: VirtualClock, commits: list[str]
) -> None:
    """Ordinary deliveries pay nothing for the rare ones."""
    kinds = ("message", "callback_query", "chat_member", "moon_landing")
    updates = [Received(MAIN, n, kind, None, None, b"{}") for n, kind in enumerate(kinds, 1)]
    intake = Intake(db, clock)
    await asyncio.gather(*(intake.keep(each) for each in updates))
    assert commits == ["commit"]
