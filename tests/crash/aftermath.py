"""What is found in a database after a disaster, held against what had been promised before it.

Opens the file the way the product does at its start, with the product's own SQLite. Tells what is
missing in sentences; an empty list means that every promise was kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import assert_never

from storage import bots
from storage.carriers import InlineCarrier, RawConnection, Row
from storage.clock import Clock
from storage.database import connect, mapped_errors, opened
from storage.errors import StorageError
from storage.migrate import migrate
from tests.crash.crossing import (
    BOT,
    ROWS_PER_TURN,
    Fact,
    Sent,
    Stamped,
    Stored,
    Turned,
    body_of,
    chat_of,
)


async def lost(path: Path, promised: Sequence[Fact], clock: Clock) -> list[str]:
    """Start on this file as a role would; what of the promises does not hold."""
    try:
        migrate(path, clock)
        async with opened(path, clock, carrier=InlineCarrier) as database:
            await database.write(lambda tx: bots.bind(tx, BOT, 7_000_000_001))
    except StorageError as error:
        return [f"the product can't start on it: {error}"]
    raw = connect(path)
    try:
        with mapped_errors():
            return [*_damaged(raw), *_broken(raw, promised)]
    except StorageError as error:
        return [f"corrupt: it can't be read: {error}"]
    finally:
        raw.close()


def _damaged(raw: RawConnection) -> Iterator[str]:
    for row in raw.execute("pragma integrity_check", {}).fetchall():
        if row["integrity_check"] != "ok":
            yield f"corrupt: {row['integrity_check']}"
    for row in raw.execute("pragma foreign_key_check", {}).fetchall():
        yield f"corrupt: a row of {row['table']} refers to nothing"


def _broken(raw: RawConnection, promised: Sequence[Fact]) -> Iterator[str]:
    updates = {row["update_id"]: row for row in _all(raw, "inbox")}
    rows = {row["id"]: row for row in _all(raw, "outbox")}
    stamped = {row["outbox_id"] for row in _all(raw, "attempts") if row["stage"] != "claimed"}
    for fact in promised:
        match fact:
            case Stored(update_id):
                kept = update_id in updates and bytes(updates[update_id]["body"])
                holds = kept == body_of(update_id)
            case Turned(update_id):
                holds = update_id in updates and updates[update_id]["state"] == "done"
            case Stamped(outbox_id):
                holds = outbox_id in rows and outbox_id in stamped
            case Sent(outbox_id, message_id):
                holds = outbox_id in rows and rows[outbox_id]["message_id"] == message_id
            case _:
                assert_never(fact)
        if not holds:
            yield f"lost: {fact}"
    yield from _halves(updates, rows, raw)


def _halves(
    updates: Mapping[int, Row], rows: Mapping[int, Row], raw: RawConnection
) -> Iterator[str]:
    """Transactions of which only a part is there."""
    said = Counter(str(row["key"]).split(":")[1] for row in rows.values())
    for update_id, update in updates.items():
        expected = ROWS_PER_TURN if update["state"] == "done" else 0
        if said[str(update["id"])] != expected:
            yield f"half: update {update_id} is {update['state']} and has other rows than that"
    turns = Counter(chat_of(each) for each, row in updates.items() if row["state"] == "done")
    for row in _all(raw, "turn_state"):
        if turns[int(str(row["scope"]).partition(":")[2])] != int(row["data"]):
            yield f"half: {row['scope']} remembers other turns than were done"


def _all(raw: RawConnection, table: str) -> list[Row]:
    return raw.execute(f"select * from {table}", {}).fetchall()  # noqa: S608 - our own table names
