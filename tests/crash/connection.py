"""A connection of apsw in the shape that the product expects of its own.

apsw lets a test stand in for the disk under SQLite. Rows answer by column name; errors are those of
the product's own module, with SQLite's code, so that what is proven of the product's handling of
errors holds for production. May judge nothing, and retries nothing.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw
import pysqlite3.dbapi2 as sqlite

from storage.carriers import Params, Row
from storage.database import OPEN_BUSY_MS

_CHANGING: Final = ("insert", "update", "delete", "replace")
_CODE_NAMES: Final = apsw.mapping_result_codes | apsw.mapping_extended_result_codes


class ApswRow:
    """One row of an answer."""

    __slots__ = ("_columns", "_values")

    def __init__(self, columns: Sequence[str], values: Sequence[Any]) -> None:
        self._columns = columns
        self._values = values

    def __getitem__(self, column: str, /) -> Any:  # noqa: ANN401 - typed where the row is read
        return self._values[self._columns.index(column)]

    def keys(self) -> Sequence[str]:
        """Names of the columns, in order."""
        return self._columns


class ApswCursor:
    """The outcome of a statement, which has run to its end."""

    __slots__ = ("_rows", "lastrowid", "rowcount")

    def __init__(self, rows: list[Row], *, rowcount: int, lastrowid: int | None) -> None:
        self._rows = rows
        self.rowcount = rowcount
        self.lastrowid = lastrowid

    def fetchall(self) -> list[Row]:
        """All rows that are left."""
        rows, self._rows = self._rows, []
        return rows


class ApswConnection:
    """A connection in autocommit mode, its files behind a VFS of the test."""

    def __init__(self, path: Path, vfs: str) -> None:
        with _translated():
            self._connection = apsw.Connection(str(path), vfs=vfs)
            self._connection.set_busy_timeout(OPEN_BUSY_MS)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Params = {}, /) -> ApswCursor:  # noqa: B006 - read only
        """Run one statement."""
        with _translated():
            cursor = self._connection.cursor()
            cursor.execute(sql, dict(parameters))
            columns = _columns(cursor)
            rows: list[Row] = [ApswRow(columns, values) for values in cursor.fetchall()]
            changes = sql.lstrip()[:7].lower().startswith(_CHANGING)
            return ApswCursor(
                rows,
                rowcount=self._connection.changes() if changes else -1,
                lastrowid=self._connection.last_insert_rowid(),
            )

    def executemany(self, sql: str, parameters: Iterable[Params], /) -> ApswCursor:
        """Run one statement for each set of parameters."""
        with _translated():
            self._connection.cursor().executemany(sql, [dict(each) for each in parameters])
        return ApswCursor([], rowcount=-1, lastrowid=None)

    def close(self) -> None:
        """Close the connection. SQLite hides what fails meanwhile, and apsw would tell it."""
        with contextlib.suppress(apsw.Error):
            self._connection.close()


def _columns(cursor: apsw.Cursor) -> Sequence[str]:
    """Names of the columns; a statement that gave no row has ended and names none."""
    try:
        return [column[0] for column in cursor.description]
    except apsw.ExecutionCompleteError:
        return ()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        code = getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
        kind = (
            sqlite.IntegrityError
            if isinstance(error, apsw.ConstraintError)
            else sqlite.OperationalError
        )
        told = kind(str(error))
        told.sqlite_errorcode = code
        told.sqlite_errorname = _CODE_NAMES.get(code, "SQLITE_ERROR")
        raise told from error
