"""A database made by an earlier version is brought up whole: rows, numbers and lanes."""

from pathlib import Path
from typing import Any, Final

import pytest

from storage.carriers import RawConnection, columns
from storage.database import connect
from storage.migrate import migrate, migrations, statements_of
from tests.simulator.clock import VirtualClock

ROWS: Final = 2_000

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


def test_no_row_is_looked_at_when_columns_are_added(tmp_path: Path) -> None:
    """SQLite looks through a strict table for each column: with millions of rows for minutes."""
    path = tmp_path / "old.db"
    raw = _made_by(path, 3)
    raw.execute(
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < :rows)"
        " insert into outbox (bot, key, digest, method, params, lane, chat_id, priority,"
        " on_uncertain, joined, state, created_at_ms, finished_at_ms, placeholder, result)"
        " select 'main', i, 'd', 'sendMessage', '{}', 'c:7', 7, 'interactive', 'hold', 1, 'sent',"
        " 1, 1, -i, zeroblob(500) from n",
        {"rows": ROWS},
    )
    raw.close()
    steps = 0

    def counted(path: Path) -> RawConnection:
        raw: Any = connect(path)

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        raw.set_progress_handler(step, 1)
        opened: RawConnection = raw
        return opened

    migrate(path, VirtualClock(), connector=counted)
    assert ROWS < steps < 30 * ROWS, "an index looks at each row, and nothing else may"


def test_added_columns_hold_for_old_rows_and_new_values(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    raw = _made_by(path, 3)
    raw.execute(_OLD_ROW, {"key": "a"})
    raw.close()
    migrate(path, VirtualClock())
    raw = connect(path)
    asked = "select inbox_id, follows, awaited, tell, created_at_ms from outbox"
    [row] = raw.execute(asked, {}).fetchall()
    assert tuple(columns(row).values()) == (None, None, 0, "", 1)
    raw.execute("update outbox set tell = 'all', follows = -5, awaited = 1, inbox_id = 3", {})
    [row] = raw.execute(asked, {}).fetchall()
    assert tuple(columns(row).values()) == (3, -5, 1, "all", 1)
    for broken in ("tell = 'x'", "follows = 5", "awaited = 2", "inbox_id = 'x'", "tell = null"):
        with pytest.raises(Exception, match=r"constraint failed|cannot store"):
            raw.execute(f"update outbox set {broken}", {})  # noqa: S608 - our own words
    [row] = raw.execute("pragma integrity_check", {}).fetchall()
    assert columns(row) == {"integrity_check": "ok"}
    raw.close()
