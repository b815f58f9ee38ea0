"""Many updates at once are stored as one by one: the same rows, the same order, the same bytes."""

import asyncio
import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import inbox
from storage.carriers import InlineCarrier, Row
from storage.clock import SystemClock
from storage.database import Database, connect, open_database
from storage.inbox import Received, Reception
from storage.lifecycle import BotName
from storage.migrate import migrate

STORED, DUPLICATE, QUARANTINED = Reception.STORED, Reception.DUPLICATE, Reception.QUARANTINED


def received(update_id: int, body: bytes = b"{}", bot: str = "main") -> Received:
    return Received(BotName(bot), update_id, "message", f"c:{update_id}", None, body)


async def receive_all(db: Database, updates: Iterable[Received]) -> list[Reception]:
    return list(await db.write(partial(inbox.receive_all, updates=list(updates))))


async def rows(db: Database) -> list[Row]:
    return await db.read(lambda tx: tx.rows("reports.updates", {"bot": "main"}))


async def test_a_batch_keeps_its_order_and_its_columns(db: Database) -> None:
    batch = [received(5), received(3), received(2**63 - 1)]
    assert await receive_all(db, batch) == [STORED] * 3
    stored = await rows(db)
    assert [row["update_id"] for row in stored] == [5, 3, 2**63 - 1]
    record = await db.read(lambda tx: inbox.show(tx, stored[0]["id"]))
    assert record is not None
    assert (record.bot, record.kind, record.chat_lane, record.user_lane) == (
        "main",
        "message",
        "c:5",
        None,
    )
    assert record.body == b"{}"


async def test_only_what_is_new_counts_as_stored(db: Database) -> None:
    assert await receive_all(db, [received(1), received(2)]) == [STORED, STORED]
    again = [received(2), received(3), received(1), received(3), received(4)]
    assert await receive_all(db, again) == [DUPLICATE, STORED, DUPLICATE, DUPLICATE, STORED]
    assert await receive_all(db, again) == [DUPLICATE] * 5
    assert [row["update_id"] for row in await rows(db)] == [1, 2, 3, 4]


async def test_other_content_under_a_known_id_goes_aside(db: Database) -> None:
    batch = [received(1, b'{"a":1}'), received(1, b'{"a":2}'), received(2)]
    assert await receive_all(db, batch) == [STORED, QUARANTINED, STORED]
    assert [row["update_id"] for row in await rows(db)] == [1, 2]


async def test_the_same_id_of_two_bots_is_two_updates(db: Database) -> None:
    batch = [received(1, bot="main"), received(1, bot="other")]
    assert await receive_all(db, batch) == [STORED, STORED]


async def test_an_empty_batch_is_nothing(db: Database) -> None:
    assert await receive_all(db, []) == []


# Each example is a database of its own.
@settings(max_examples=25)
@given(
    texts=st.lists(st.text(), min_size=1, max_size=5),
    spaced=st.booleans(),
    in_ascii=st.booleans(),
)
def test_every_body_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], *, spaced: bool, in_ascii: bool
) -> None:
    separators = (", ", ": ") if spaced else (",", ":")
    bodies = [
        json.dumps({"text": text}, ensure_ascii=in_ascii, separators=separators).encode(
            "utf-8", "replace"
        )
        for text in texts
    ]
    assert (
        asyncio.run(_round_trip(tmp_path_factory.mktemp("one") / "ferryman.db", bodies)) == bodies
    )


async def _round_trip(path: Path, bodies: list[bytes]) -> list[bytes]:
    clock = SystemClock()
    migrate(path, clock)
    db = await open_database(path, clock, carrier=InlineCarrier)
    try:
        await receive_all(db, [received(n, body) for n, body in enumerate(bodies, start=1)])
    finally:
        await db.close()
    raw = connect(path)
    try:
        found = raw.execute("select body from inbox order by id", {}).fetchall()
    finally:
        raw.close()
    return [bytes(row["body"]) for row in found]
