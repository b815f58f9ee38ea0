"""Carriers: where the work of a database connection is done.

On aiosqlite's thread in production, or inline in the calling task of a simulated world, where
nothing may be left to a thread. A carrier knows nothing of transactions; that is
`storage/database.py`, the only module that may use one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import aiosqlite

from storage.errors import StorageError

Params = Mapping[str, object]
T = TypeVar("T")


class Row(Protocol):
    """One row of an answer, its columns reached by name."""

    def __getitem__(self, column: str, /) -> Any: ...  # noqa: ANN401 - typed where the row is read

    def keys(self) -> Sequence[str]:
        """Names of the columns, in order."""


class Cursor(Protocol):
    """The part of a DB-API cursor that is used here."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""

    @property
    def lastrowid(self) -> int | None:
        """The id of the row inserted last."""

    def fetchall(self) -> list[Row]:
        """All rows that are left."""


class RawConnection(Protocol):
    """The part of a DB-API connection that is used here; a test may bring another that has it."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    def execute(self, sql: str, parameters: Params = ..., /) -> Cursor:
        """Run one statement."""

    def executemany(self, sql: str, parameters: Iterable[Params], /) -> Cursor:
        """Run one statement for each set of parameters."""

    def close(self) -> None:
        """Close the connection."""


class Carrier(Protocol):
    """Where a connection's work is done: on a thread of its own, or inline in a simulated world."""

    async def open(self) -> None:
        """Open the connection."""

    async def run(self, work: Callable[[RawConnection], T]) -> T:
        """Carry out `work` with the connection."""

    async def fetchall(self, sql: str, params: Params) -> list[Row]:
        """Run one statement and give all its rows."""

    async def close(self) -> None:
        """Close the connection."""


def columns(row: Row, **kinds: Callable[[Any], Any]) -> dict[str, Any]:
    """The row as keyword arguments, for a dataclass that has a field for each of its columns.

    `kinds` turn a column's plain value into what it means (`state=OutboxState`).
    """
    found = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row is no mapping
    for name, kind in kinds.items():
        found[name] = kind(found[name])
    return found


class _Unopened:
    """What stands for a connection that could not be opened, until its thread has ended."""

    def close(self) -> None:
        """Nothing is open."""


Opener = Callable[[], RawConnection]
CarrierFactory = Callable[[Opener], Carrier]


class ThreadCarrier:
    """Carries a connection on aiosqlite's thread.

    aiosqlite's public methods run one statement each; a whole transaction goes through its
    `_execute`, the one private call of the house, tried out at open so that a changed aiosqlite is
    noticed before any update is.
    """

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._raw: RawConnection | None = None
        self._failure: Exception | None = None
        self._carried = aiosqlite.Connection(self._open_raw, iter_chunk_size=64)  # type: ignore[arg-type]  # any DB-API connection will do

    def _open_raw(self) -> RawConnection | _Unopened:
        """Open on the thread; after an exception here aiosqlite would not wait for its end."""
        try:
            self._raw = self._opener()
        except Exception as error:  # noqa: BLE001 - raised by `open`, once the thread has ended
            self._failure = error
            return _Unopened()
        return self._raw

    async def open(self) -> None:
        """Open the connection. Raises what the opener raised."""
        _ = await self._carried
        if self._failure is not None:
            await self._carried.close()
            raise self._failure
        try:
            answer = await self.run(lambda raw: raw.execute("select 1 as one", {}).fetchall())
            if answer[0]["one"] != 1:
                raise StorageError("aiosqlite no longer runs a function on its thread")
        except BaseException:
            await self.close()
            raise

    async def run(self, work: Callable[[RawConnection], T]) -> T:
        """Carry out `work` with the connection."""
        assert self._raw is not None, "carrier is not open"
        carry = self._carried._execute  # noqa: SLF001 - see the class
        result: T = await carry(work, self._raw)  # type: ignore[no-untyped-call]  # untyped there
        return result

    async def fetchall(self, sql: str, params: Params) -> list[Row]:
        """Run one statement and give all its rows."""
        rows = await self._carried.execute_fetchall(sql, params)
        return list(rows)

    async def close(self) -> None:
        """Close the connection."""
        await self._carried.close()


class InlineCarrier:
    """Carries a connection in the calling task: for worlds where no thread may decide."""

    def __init__(self, opener: Opener) -> None:
        self._opener = opener
        self._raw: RawConnection | None = None

    async def open(self) -> None:
        """Open the connection."""
        self._raw = self._opener()

    async def run(self, work: Callable[[RawConnection], T]) -> T:
        """Carry out `work` with the connection."""
        assert self._raw is not None, "carrier is not open"
        return work(self._raw)

    async def fetchall(self, sql: str, params: Params) -> list[Row]:
        """Run one statement and give all its rows."""
        return await self.run(lambda raw: raw.execute(sql, params).fetchall())

    async def close(self) -> None:
        """Close the connection."""
        if self._raw is not None:
            self._raw.close()
            self._raw = None
