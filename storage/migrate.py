"""Bring the database file to the schema that this version needs, and refuse one that is newer.

Migrations are numbered files; each runs in one transaction together with its own record. Runs
before anything else opens the file, in one short visit: several roles may start at once, and the
write lock lets one of them do the work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from storage.carriers import RawConnection
from storage.clock import Clock
from storage.database import Connector, connect, mapped_errors
from storage.errors import NewerSchema, ReadOnly
from storage.failpoint import UNARMED, Failpoints

_BUSY_MS = 10_000
_POINTS = ("storage.migrate",)


@dataclass(frozen=True, slots=True)
class Migration:
    """One change of the schema."""

    number: int
    name: str
    sql: str


def migrations() -> Sequence[Migration]:
    """All migrations of this version, in order, without gaps."""
    folder = resources.files("storage") / "migrations"
    found = []
    for entry in sorted(folder.iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, entry.read_text(encoding="utf-8")))
    assert [item.number for item in found] == list(range(1, len(found) + 1)), found
    return found


def statements_of(sql: str) -> Sequence[str]:
    """Split a migration into its statements; a semicolon ends one only at the end of a line."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";\n") if part.strip(" \n;")]


def migrate(
    path: Path, clock: Clock, *, connector: Connector = connect, failpoints: Failpoints = UNARMED
) -> Sequence[Migration]:
    """Apply what is missing and return it; the file and its directory are made when there are none.

    Raises NewerSchema when the file was made by a newer version, ReadOnly when it can't be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
    except OSError as error:
        raise ReadOnly(
            f"state_dir {path.parent} can't be made or written to: {error.strerror}"
        ) from error
    with mapped_errors():
        raw = connector(path)
        try:
            raw.execute(f"pragma busy_timeout = {_BUSY_MS}", {})
            if is_new:
                # Users' texts will be in it. SQLite makes the file at the first look into it, and
                # gives its log and its index the same mode.
                raw.execute("pragma user_version", {}).fetchall()
                path.chmod(0o600)
            # Must be set before the first table; it lets retention give space back in small steps.
            raw.execute("pragma auto_vacuum = incremental", {})
            raw.execute("pragma journal_mode = wal", {}).fetchall()
            raw.execute("pragma synchronous = full", {})
            # A big change needs room to undo itself; no other directory has to be writable for it.
            raw.execute("pragma temp_store = memory", {})
            applied = _apply_missing(raw, clock, failpoints)
            failpoints.committed(_POINTS if applied else ())
            return applied
        finally:
            raw.close()


def _apply_missing(raw: RawConnection, clock: Clock, failpoints: Failpoints) -> Sequence[Migration]:
    applied = []
    raw.execute("begin immediate", {})
    try:
        raw.execute(
            "create table if not exists migrations (number integer primary key, "
            "name text not null, applied_at_ms integer not null) strict",
            {},
        )
        known = migrations()
        done = raw.execute("select coalesce(max(number), 0) as last from migrations", {})
        last = int(done.fetchall()[0]["last"])
        if last > len(known):
            raise NewerSchema(
                f"the database has schema {last}, this version of Ferryman knows {len(known)}: "
                "install the version that made it, or restore a backup made before the upgrade"
            )
        for migration in known[last:]:
            _apply(raw, migration, clock.now_ms())
            applied.append(migration)
            failpoints.committing(_POINTS)
        raw.execute("commit", {})
    except BaseException:
        if raw.in_transaction:
            raw.execute("rollback", {})
        raise
    return applied


def _apply(raw: RawConnection, migration: Migration, now_ms: int) -> None:
    for statement in statements_of(migration.sql):
        raw.execute(statement, {})
    raw.execute(
        "insert into migrations (number, name, applied_at_ms) values (:number, :name, :now_ms)",
        {"number": migration.number, "name": migration.name, "now_ms": now_ms},
    )
