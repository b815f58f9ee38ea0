"""A database made by an earlier version is brought up whole: rows, numbers and lanes."""

from pathlib import Path

from storage.carriers import RawConnection, columns
from storage.database import connect
from storage.migrate import migrate, migrations, statements_of
from tests.simulator.clock import VirtualClock

_OLD_ROW = (
    "insert into outbox (bot, key, digest, method, params, lane, chat_id, priority, on_uncertain,"
    " joined, state, created_at_ms) values ('main', :key, 'd', 'sendMessage', '{}', 'c:7', 7,"
    " 'interactive', 'hold', 1, 'queued', 1)"
)


def _made_by(path: Path, version: int) -> RawConnection:
    raw = connect(path)
    raw.execute(
        "create table migrations (number integer primary key, name text not null, "
        "applied_at_ms integer not null) strict",
        {},
    )
    for migration in migrations()[:version]:
        for statement in statements_of(migration.sql):
            raw.execute(statement, {})
        raw.execute(
            "insert into migrations values (:number, :name, 0)",
            {"number": migration.number, "name": migration.name},
        )
    return raw


def test_what_waited_before_an_upgrade_waits_after_it(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    raw = _made_by(path, 1)
    raw.execute(_OLD_ROW, {"key": "a"})
    raw.execute(_OLD_ROW, {"key": "b"})
    raw.close()
    migrate(path, VirtualClock())
    raw = connect(path)
    rows = raw.execute("select id, key, channel, items, state from outbox order by id", {})
    assert [columns(row) for row in rows.fetchall()] == [
        {"id": 1, "key": "a", "channel": "telegram", "items": 1, "state": "queued"},
        {"id": 2, "key": "b", "channel": "telegram", "items": 1, "state": "queued"},
    ]
    lanes = raw.execute("select lane, head_id, claimed from lanes", {}).fetchall()
    assert [columns(row) for row in lanes] == [{"lane": "c:7", "head_id": 1, "claimed": 0}]
    raw.close()


def test_an_upgrade_never_gives_a_row_number_twice(tmp_path: Path) -> None:
    """Placeholders and keys are made from row numbers: one that was pruned must not come back."""
    path = tmp_path / "old.db"
    raw = _made_by(path, 1)
    for key in "abc":
        raw.execute(_OLD_ROW, {"key": key})
    raw.execute("delete from outbox where key in ('b', 'c')", {})
    raw.close()
    migrate(path, VirtualClock())
    raw = connect(path)
    raw.execute(_OLD_ROW, {"key": "d"})
    rows = raw.execute("select id from outbox order by id", {}).fetchall()
    assert [row["id"] for row in rows] == [1, 4]
    raw.close()
