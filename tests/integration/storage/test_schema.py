"""The schema says the truth again: it equals the migrations, its CHECKs equal the lifecycles."""

import re
from importlib import resources
from pathlib import Path

import pytest

from storage.carriers import RawConnection
from storage.database import connect
from storage.lifecycle import (
    BLOCKING,
    HELD,
    INBOX_MOVES,
    OUTBOX_MOVES,
    TERMINAL,
    AttemptStage,
    InboxState,
    OnUncertain,
    OutboxState,
    Priority,
)
from storage.migrate import migrate, migrations, statements_of
from storage.queries import STATEMENTS
from tests.simulator.clock import VirtualClock


def _shape(raw: RawConnection) -> dict[str, str]:
    rows = raw.execute(
        "select type || ' ' || name as thing, sql from sqlite_schema where name not like 'sqlite_%'"
        " and name != 'migrations'",
        {},
    ).fetchall()
    # Where a column was added SQLite leaves spaces before what follows it, which mean nothing.
    return {row["thing"]: re.sub(r" (?=[,)])", "", _plain(row["sql"] or "")) for row in rows}


def _plain(sql: str) -> str:
    """The definition in one line; a renamed table's name stands in quotes, which mean nothing."""
    return re.sub(
        r'^create table "(\w+)"', r"CREATE TABLE \1", re.sub(r"\s+", " ", sql), flags=re.IGNORECASE
    )


@pytest.fixture
def migrated(tmp_path: Path) -> RawConnection:
    path = tmp_path / "migrated.db"
    migrate(path, VirtualClock())
    return connect(path)


def test_the_schema_file_equals_the_migrations(tmp_path: Path, migrated: RawConnection) -> None:
    schema = (resources.files("storage") / "sql" / "schema.sql").read_text(encoding="utf-8")
    fresh = connect(tmp_path / "schema.db")
    for statement in statements_of(schema):
        fresh.execute(statement, {})
    assert _shape(fresh) == _shape(migrated)
    fresh.close()
    migrated.close()


def test_migration_files_are_numbered_without_gaps() -> None:
    assert [item.number for item in migrations()] == list(range(1, len(migrations()) + 1))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", item.name) for item in migrations())


def _allowed(sql: str, column: str) -> set[str]:
    found = re.search(rf"check \( ?{column} in \(([^)]*)\)", sql)
    assert found is not None, column
    return set(re.findall(r"'([^']+)'", found.group(1)))


@pytest.mark.parametrize(
    ("table", "column", "kind"),
    [
        ("inbox", "state", InboxState),
        ("outbox", "state", OutboxState),
        ("outbox", "priority", Priority),
        ("outbox", "on_uncertain", OnUncertain),
        ("attempts", "stage", AttemptStage),
        ("lanes", "priority", Priority),
    ],
)
def test_a_check_allows_exactly_the_states_of_the_lifecycle(
    migrated: RawConnection, table: str, column: str, kind: type[InboxState]
) -> None:
    assert _allowed(_shape(migrated)[f"table {table}"], column) == {str(state) for state in kind}
    migrated.close()


def test_terminal_states_are_those_that_have_an_end(migrated: RawConnection) -> None:
    sql = _shape(migrated)["table outbox"]
    found = re.search(r"check \( \(state in \(([^)]*)\)\) = \(finished_at_ms is not null\)", sql)
    assert found is not None
    assert set(re.findall(r"'([^']+)'", found.group(1))) == {str(state) for state in TERMINAL}
    migrated.close()


def test_every_state_has_its_moves_and_no_move_leads_nowhere() -> None:
    assert set(INBOX_MOVES) == set(InboxState)
    assert set(OUTBOX_MOVES) == set(OutboxState)
    assert set(OutboxState) == TERMINAL | BLOCKING | HELD


def test_every_named_statement_compiles(migrated: RawConnection) -> None:
    for name, sql in STATEMENTS.items():
        parameters = dict.fromkeys(re.findall(r":([a-z_]+)", sql), 0)
        try:
            migrated.execute(f"explain {sql}", parameters)
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
    migrated.close()


PLANS = {
    "claims.heads": [
        "SEARCH l USING COVERING INDEX lanes_due",
        "SEARCH o USING INTEGER PRIMARY KEY",
    ],
    "claims.other_heads": [
        "SEARCH l USING PRIMARY KEY (bot=? AND lane>? AND lane<?)",
        "SEARCH o USING INTEGER PRIMARY KEY",
    ],
    "claims.claim": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "lanes.hold_claimed": ["SEARCH lanes USING PRIMARY KEY", "SEARCH o USING INTEGER PRIMARY KEY"],
    "claims.open_attempts": ["SEARCH o USING INTEGER PRIMARY KEY"],
    "claims.stamp": ["SEARCH attempts USING INTEGER PRIMARY KEY"],
    "claims.close_attempts": ["SEARCH attempts USING INTEGER PRIMARY KEY"],
    "claims.mark_sent": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "claims.lane": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "lanes.close_all": ["SEARCH lanes USING PRIMARY KEY", "SEARCH o USING INDEX outbox_lane"],
    "lanes.reopen": ["SEARCH lanes USING PRIMARY KEY", "SEARCH outbox USING INDEX"],
    "lanes.head": ["SEARCH outbox USING INDEX outbox_lane"],
    "outbox.by_key": ["SEARCH outbox USING INDEX outbox_identity"],
    "ends.named": ["SEARCH outbox USING INDEX outbox_identity"],
    "ends.among": [
        "SEARCH o USING INTEGER PRIMARY KEY",
        "SEARCH a USING INTEGER PRIMARY KEY",
    ],
    "outbox.supersede": ["SEARCH outbox USING COVERING INDEX outbox_supersedable"],
    "outbox.expiring": ["SEARCH outbox USING INDEX outbox_expiring"],
    "outbox.next_due": ["SEARCH lanes USING COVERING INDEX lanes_due"],
    "claims.recent_attempts": ["SEARCH attempts USING INDEX attempts_recent"],
    "review.held": ["SCAN o USING INDEX outbox_held"],
    "outbox.cancel_lane": ["SEARCH outbox USING INDEX outbox_lane"],
    "claims.claimed_before": ["SEARCH o USING INDEX outbox_claimed"],
    "claims.standings": [
        "SEARCH o USING INTEGER PRIMARY KEY",
        "SEARCH deleted USING PRIMARY KEY",
        "SEARCH edited USING PRIMARY KEY",
        "SEARCH stopped USING PRIMARY KEY",
        "SEARCH answered USING PRIMARY KEY",
        "SEARCH chat USING PRIMARY KEY",
        "SEARCH newer USING COVERING INDEX outbox_supersedable",
        "SEARCH newer USING COVERING INDEX outbox_coalescing",
    ],
    "claims.put_off": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "claims.requeue": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "outbox.coalesce": ["SEARCH outbox USING COVERING INDEX outbox_coalescing"],
    "outbox.join_scheduled": ["SEARCH outbox USING INDEX outbox_scheduled"],
    "outbox.next_scheduled": ["SEARCH outbox USING INDEX outbox_scheduled"],
    "outbox.move": ["SEARCH outbox USING INDEX outbox_lane"],
    "outbox.move_scheduled": ["SEARCH outbox USING INDEX outbox_scheduled_lane"],
    "lanes.step_out": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "lanes.step_in": ["SEARCH outbox USING COVERING INDEX outbox_stepped_out"],
    "cancelling.by_ids": [
        "SEARCH o USING INTEGER PRIMARY KEY",
        "SEARCH a USING INDEX attempts_of_row",
    ],
    "cancelling.by_key": ["SEARCH o USING INDEX outbox_identity"],
    "cancelling.joined": ["SEARCH o USING INDEX outbox_lane"],
    "cancelling.scheduled": ["SEARCH o USING INDEX outbox_scheduled_lane"],
    "cancelling.ask": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "withdrawals.joined": ["SEARCH o USING INDEX outbox_lane"],
    "withdrawals.scheduled": ["SEARCH o USING INDEX outbox_scheduled_lane"],
    "withdrawals.prune": [
        "SEARCH w USING COVERING INDEX withdrawals_age",
        "SEARCH o USING INDEX outbox_lane",
        "SEARCH o USING COVERING INDEX outbox_scheduled_lane",
    ],
    "pauses.among": ["SEARCH pauses USING PRIMARY KEY"],
    "turn_state.load": ["SEARCH turn_state USING PRIMARY KEY (bot=? AND scope=?)"],
    "turn_state.load_aged": ["SEARCH turn_state USING PRIMARY KEY (bot=? AND scope=?)"],
    "turn_state.with_prefix": ["SEARCH turn_state USING PRIMARY KEY (bot=? AND scope>?"],
    "turn_state.any": ["SEARCH turn_state USING PRIMARY KEY (bot=?)"],
    "turn_state.forget_keyboards": ["SEARCH turn_state USING"],
    "turn_state.prune_keyboards": [
        "SEARCH turn_state USING PRIMARY KEY",
        "SEARCH turn_state USING COVERING INDEX turn_state_keyboards",
    ],
    "pauses.of_bot": ["SEARCH pauses USING PRIMARY KEY"],
    "evidence.before": ["SEARCH attempts USING INDEX attempts_recent"],
    "evidence.after": ["SEARCH attempts USING INDEX attempts_recent"],
    "evidence.row": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "outbox.give_up_placeholders": [
        "SEARCH outbox USING INTEGER PRIMARY KEY",
        "SEARCH outbox USING COVERING INDEX outbox_placeholder (bot=? AND placeholder>? AND",
        "SEARCH outbox USING INDEX outbox_placeholder (bot=? AND placeholder>?)",
    ],
    "outbox.to_prune": ["SEARCH outbox USING INDEX outbox_finished"],
    "outbox.prune": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "message_ids.owner": ["SEARCH outbox USING INDEX outbox_placeholder"],
    "message_ids.kept": ["SEARCH message_ids USING PRIMARY KEY"],
    "message_ids.to_keep": ["SEARCH o USING INTEGER PRIMARY KEY"],
    "message_ids.prune": [
        "SEARCH message_ids USING PRIMARY KEY",
        "SEARCH message_ids USING COVERING INDEX message_ids_age",
    ],
    "outbox.prune_attempts": ["SEARCH attempts USING"],
    "files.of_rows": [
        "SEARCH f USING PRIMARY KEY",
        "SEARCH b USING PRIMARY KEY",
        "SEARCH a USING INDEX attempts_of_row",
    ],
    "files.known": ["SEARCH f USING PRIMARY KEY (bot=? AND sha256=? AND kind=? AND filename=?)"],
    "files.forget": ["SEARCH file_ids USING PRIMARY KEY"],
    "files.release": ["SEARCH outbox_files USING PRIMARY KEY"],
    "files.aged": [
        "SEARCH b USING COVERING INDEX blobs_age",
        "SEARCH f USING COVERING INDEX outbox_files_of_blob",
    ],
    "files.forget_blobs": [
        "SEARCH blobs USING PRIMARY KEY",
        "SEARCH f USING COVERING INDEX outbox_files_of_blob",
    ],
    "files.kept": ["SEARCH b USING PRIMARY KEY"],
    "files.prune_ids": [
        "SEARCH file_ids USING PRIMARY KEY",
        "SEARCH file_ids USING COVERING INDEX file_ids_age",
    ],
    "claims.answer_heads": [
        "SEARCH l USING PRIMARY KEY (bot=? AND lane>? AND lane<?)",
        "SEARCH o USING INTEGER PRIMARY KEY",
    ],
    "cooldowns.of_bot": ["SEARCH cooldowns USING PRIMARY KEY"],
    "floods.lanes_since": ["SEARCH floods USING INDEX floods_of_bot"],
    "floods.latest": ["SEARCH floods USING INDEX floods_of_bot"],
    "floods.others": ["SEARCH attempts USING INDEX attempts_recent"],
    "rates.learned": ["SEARCH learned_rates USING INDEX"],
    "spending.spent": ["SEARCH paid_spending USING INDEX"],
    "spending.in_hand": ["SEARCH outbox USING INDEX outbox_claimed"],
    "inbox.pending": ["SEARCH inbox USING INDEX inbox_waiting"],
    "inbox.same": ["SEARCH inbox USING INDEX inbox_identity"],
    "inbox.depth": ["SEARCH inbox USING COVERING INDEX inbox_waiting"],
    "inbox.to_forget": ["SEARCH inbox USING INDEX inbox_kept"],
    "inbox.dead_list": ["SCAN inbox USING INDEX inbox_given_up"],
    "inbox.dead_among": ["SEARCH inbox USING INDEX inbox_given_up"],
    "review.dead_list": ["SCAN outbox USING INDEX outbox_given_up"],
    "review.dead_among": ["SEARCH outbox USING INDEX outbox_given_up"],
    "inbox.newest": ["SEARCH inbox"],
    "inbox.prune": ["SEARCH inbox USING INTEGER PRIMARY KEY"],
    "told.due": ["SEARCH o USING INDEX outbox_to_tell", "SEARCH i USING INTEGER PRIMARY KEY"],
    "told.show": [
        "SEARCH o USING INTEGER PRIMARY KEY",
        "SEARCH a USING INTEGER PRIMARY KEY",
        "SEARCH attempts USING COVERING INDEX attempts_of_row",
        "SEARCH i USING INTEGER PRIMARY KEY",
        "SEARCH c USING PRIMARY KEY",
    ],
    "told.settle": ["SEARCH outbox USING INTEGER PRIMARY KEY"],
    "reminders.due": ["SEARCH reminders USING INDEX reminders_due"],
    "reminders.named": ["SEARCH reminders USING INDEX reminders_named"],
    "reminders.forget": ["SEARCH reminders USING INDEX reminders_named"],
    "reminders.show": ["SEARCH reminders USING INTEGER PRIMARY KEY"],
    "reminders.end": ["SEARCH reminders USING INTEGER PRIMARY KEY"],
    "reminders.ahead": ["SEARCH reminders USING COVERING INDEX reminders_elapsing"],
    "reminders.redate": ["SEARCH reminders USING INDEX reminders_elapsing"],
}


# Sorted in memory: never more rows than can be in flight.
# Of the lanes of other channels there are few, and they are looked at only while Telegram waits.
# Answers to queries live for seconds.
SORTED_IN_MEMORY = {
    "claims.claimed_before",
    "claims.open_attempts",
    "claims.other_heads",
    "claims.answer_heads",
}


@pytest.mark.parametrize("name", PLANS)
def test_what_runs_all_the_time_never_scans_a_table(migrated: RawConnection, name: str) -> None:
    """Cost stays flat as the queues grow."""
    sql = STATEMENTS[name]
    parameters = dict.fromkeys(re.findall(r":([a-z_]+)", sql), 0)
    rows = migrated.execute(f"explain query plan {sql}", parameters).fetchall()
    plan = [row["detail"] for row in rows]
    for step in PLANS[name]:
        assert any(detail.startswith(step) for detail in plan), plan
    scans = [step for step in plan if step.startswith("SCAN") and "INDEX" not in step]
    assert not [step for step in scans if "subquery" not in step], plan
    if name not in SORTED_IN_MEMORY:
        assert not [step for step in plan if "TEMP B-TREE" in step], plan
    migrated.close()
