"""The only door to disk: one SQLite file, one writer, transactions that no caller can leave open.

A transaction is a plain function, run whole on the database's thread between `begin immediate` and
`commit`. Nothing is awaited inside it, so a cancelled caller can't split it. Writers that wait
together commit together, each under a SAVEPOINT of its own: one sync of the disk serves them all,
and one that fails takes no other with it.

What is promised: when `write` returns, the transaction has been synced to disk (WAL with
`synchronous=FULL`, read back after it was set). Only this file knows which SQLite module is used
and maps its errors, by code.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import pysqlite3.dbapi2 as sqlite

from storage.batch import Waiting, Work, tell_all, tell_each
from storage.carriers import (
    Carrier,
    CarrierFactory,
    Params,
    RawConnection,
    Row,
    ThreadCarrier,
)
from storage.clock import NO_BOOT, BootMoment, Clock, boot_moment
from storage.errors import (
    AffectedSqlite,
    Corrupt,
    DiskFull,
    ReadOnly,
    StorageBusy,
    StorageError,
)
from storage.failpoint import UNARMED, Failpoints
from storage.queries import STATEMENTS

Item = TypeVar("Item")
T = TypeVar("T")

# More would make the first of a batch wait for the last; this many share one sync well enough.
BATCH_MAX: Final = 256
# The lock is another process's too: who has held it for so long commits and stands in line again.
HOLD_MS_MAX: Final = 2
JOINED_MAX: Final = 256
# SQLite's own waiting sleeps longer and longer and is unfair to a second process: look again soon
# instead. Another process that commits one batch after the other leaves the lock for a fraction of
# a millisecond, so at first we look again at once.
BUSY_RETRY_MS: Final = 1
BUSY_EAGER_TRIES: Final = 100
BUSY_BUDGET_MS: Final = 5_000
# At open another process may still recover the log or remove it.
OPEN_BUSY_MS: Final = 10_000
READER_BUSY_MS: Final = 2_000
# The commit that fills the log moves it into the file, and its caller waits for that: one commit in
# a hundred under load, at SQLite's own 1,000 pages. What is moved rarely is also less, as a page
# that changed twice is moved once.
CHECKPOINT_PAGES: Final = 8_000
WAL_BYTES_MAX: Final = 64 << 20
CHECKPOINT: Final = "sender.checkpoint"
_FULL: Final = 2

_BUSY_CODES: Final = frozenset({5, 6})
_ERRORS_BY_CODE: Final[Mapping[int, type[StorageError]]] = {
    5: StorageBusy,
    6: StorageBusy,
    8: ReadOnly,
    11: Corrupt,
    13: DiskFull,
    14: ReadOnly,
    26: Corrupt,
}


Connector = Callable[[Path], RawConnection]


def connect(path: Path) -> RawConnection:
    """Open a connection in autocommit mode; every transaction is begun by name."""
    connection: RawConnection = sqlite.connect(
        str(path), isolation_level=None, check_same_thread=False, timeout=OPEN_BUSY_MS / 1000
    )
    connection.row_factory = sqlite.Row  # type: ignore[attr-defined]  # the module's own attribute
    return connection


def is_sound(version: tuple[int, int, int]) -> bool:
    """Tell whether this SQLite has the fix of the WAL-reset bug (sqlite.org/wal.html#walresetbug).

    Two processes that each checkpoint one WAL file can lose committed pages without it.
    """
    if (3, 50, 7) <= version < (3, 51, 0) or (3, 44, 6) <= version < (3, 45, 0):
        return True
    return version >= (3, 51, 3) and version != (3, 52, 0)


def library_version() -> tuple[int, int, int]:
    """Version of the SQLite library in use."""
    major, minor, patch = sqlite.sqlite_version_info
    return major, minor, patch


def require_sound_sqlite(
    *, accept_affected: bool = False, version: tuple[int, int, int] | None = None
) -> None:
    """Refuse to work on an SQLite that can lose committed data; `version` is the one in use.

    Raises AffectedSqlite, with the version found and what to do.
    """
    in_use = version or library_version()
    if accept_affected or is_sound(in_use):
        return
    found = ".".join(str(part) for part in in_use)
    message = (
        f"SQLite {found} has the WAL-reset bug, which can lose committed updates when two "
        "processes share a file. Install pysqlite3 >= 0.6.1, or set "
        "storage.accept_affected_sqlite = true to run at your own risk."
    )
    raise AffectedSqlite(message)


class Tx:
    """One transaction in progress, given to a transaction function. It must not be kept."""

    __slots__ = ("_connection", "_now_ms", "boot")

    def __init__(self, connection: RawConnection, now_ms: int, boot: BootMoment = NO_BOOT) -> None:
        """`boot`: the same moment by the clock that nobody sets."""
        self._connection = connection
        self._now_ms = now_ms
        self.boot = boot

    def now_ms(self) -> int:
        """Wall time at which the transaction began: the same for everything in it."""
        return self._now_ms

    def rows(self, name: str, params: Params) -> list[Row]:
        """Run a named statement and give all its rows."""
        return self._connection.execute(STATEMENTS[name], params).fetchall()

    def row(self, name: str, params: Params) -> Row | None:
        """Run a named statement and give its first row, if there is one."""
        found = self._connection.execute(STATEMENTS[name], params).fetchall()
        return found[0] if found else None

    def run(self, name: str, params: Params) -> int:
        """Run a named statement and give the number of rows it changed."""
        return self._connection.execute(STATEMENTS[name], params).rowcount

    def insert(self, name: str, params: Params) -> int | None:
        """Run a named insert and give the new row's id, or None when nothing was inserted."""
        cursor = self._connection.execute(STATEMENTS[name], params)
        return cursor.lastrowid if cursor.rowcount == 1 else None

    def insert_all(self, name: str, params: Params) -> range:
        """Run a named insert of many rows and give their ids, which follow each other, in order."""
        cursor = self._connection.execute(STATEMENTS[name], params)
        end = (cursor.lastrowid or 0) + 1
        return range(end - cursor.rowcount, end)

    def many(self, name: str, params: Iterable[Params]) -> None:
        """Run a named statement once for each set of parameters."""
        self._connection.executemany(STATEMENTS[name], params)


class Database:
    """One SQLite file, as one process uses it: a writer and a reader.

    Each transaction is written under a name, `point`: a test may have the process die right before
    its commit, or right after (`storage.failpoint.COMMITS`).
    """

    def __init__(
        self, path: Path, clock: Clock, writer: Carrier, reader: Carrier, failpoints: Failpoints
    ) -> None:
        self.path = path
        self._clock = clock
        self._writer = writer
        self._reader = reader
        self.failpoints = failpoints
        self._waiting: list[Work] = []
        # Those of the waiting that others may still join.
        self._joinable: dict[Callable[[Tx, Sequence[Any]], Sequence[Any]], Work] = {}
        self._flusher: asyncio.Task[None] | None = None
        self._closed = False

    async def write(self, work: Callable[[Tx], T], *, point: str = "") -> T:
        """Run `work` as one transaction and return its result once it is on disk.

        Raises what `work` raised, with nothing of it kept; StorageError when the database failed. A
        caller that is cancelled while it waits gives up the answer, not the transaction.
        """
        waiting = self._waiter(None)
        self._enlist(Work(lambda tx, _: (work(tx),), [waiting], point))
        result: T = await waiting.told
        return result

    async def run(self, name: str, params: Params, *, point: str = "") -> int:
        """Run one named statement as a transaction of its own; give the number of rows it changed.

        The quickest commit there is: it crosses to SQLite once. Raises StorageError when the
        database failed.
        """
        waiting = self._waiter(None)
        statement = (name, params)
        self._enlist(Work(lambda tx, _: (tx.run(name, params),), [waiting], point, statement))
        result: int = await waiting.told
        return result

    async def join(
        self, work: Callable[[Tx, Sequence[Item]], Sequence[T]], item: Item, *, point: str = ""
    ) -> T:
        """Run `work` as `write` does, once for all who wait with it: it is given their items.

        It returns a result for each, in their order. When it raises, each item is tried alone, so
        that nobody is refused for another's sake. What can be said of many rows in one statement
        costs a fraction of as many transaction functions.
        """
        waiting = self._waiter(item)
        joinable = self._joinable.get(work)
        if joinable is None or len(joinable.joined) >= JOINED_MAX:
            self._joinable[work] = joinable = Work(work, [], point)
            self._enlist(joinable)
        joinable.joined.append(waiting)
        result: T = await waiting.told
        return result

    async def fetch(self, name: str, params: Params | None = None) -> list[Row]:
        """Run one named reading statement and give all its rows."""
        try:
            return await self._reader.fetchall(STATEMENTS[name], params or {})
        except sqlite.Error as error:
            raise _mapped(error) from error

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run `work` as one reading transaction: all it reads is of one moment."""
        now_ms = self._clock.now_ms()
        try:
            return await self._reader.run(lambda raw: _read(raw, work, now_ms))
        except sqlite.Error as error:
            raise _mapped(error) from error

    async def checkpoint(self) -> int:
        """Move the log into the file and cut it; give the number of pages held back."""
        self.failpoints.committing((CHECKPOINT,))
        try:
            rows = await self._writer.run(
                lambda raw: raw.execute("pragma wal_checkpoint(truncate)", {}).fetchall()
            )
        except sqlite.Error as error:
            raise _mapped(error) from error
        self.failpoints.committed((CHECKPOINT,))
        return int(rows[0]["log"]) - int(rows[0]["checkpointed"])

    async def close(self) -> None:
        """Finish what waits to be written, then close."""
        self._closed = True
        while self._flusher is not None:
            await asyncio.shield(self._flusher)
        await self._reader.close()
        await self._writer.close()

    def _waiter(self, item: object) -> Waiting:
        if self._closed:
            raise StorageError("the database is closed")
        return Waiting(item, asyncio.get_running_loop().create_future())

    def _enlist(self, work: Work) -> None:
        self._waiting.append(work)
        if self._flusher is None:
            loop = asyncio.get_running_loop()
            self._flusher = loop.create_task(self._flush(), name="database-writer")

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:BATCH_MAX], self._waiting[BATCH_MAX:]
                # What is being run can't be joined any more.
                self._joinable.clear()
                done = await self._commit_batch(batch)
                self._waiting = batch[done:] + self._waiting
        finally:
            self._flusher = None

    async def _commit_batch(self, batch: list[Work]) -> int:
        """Commit as much of the batch as one hold of the lock allows; how many of it that was."""
        deadline_ms = self._clock.monotonic_ms() + BUSY_BUDGET_MS
        done = len(batch)
        for tried in itertools.count():
            try:
                run = partial(self._run_batch, batch=batch)
                done = await self._writer.run(run)
            except sqlite.Error as error:
                busy = _code(error) in _BUSY_CODES
                if busy and self._clock.monotonic_ms() < deadline_ms:
                    is_eager = tried < BUSY_EAGER_TRIES
                    await self._clock.sleep_ms(0 if is_eager else BUSY_RETRY_MS)
                    continue
                tell_all(batch, _mapped(error))
            except BaseException as error:
                tell_all(batch, error)
                raise
            else:
                tell_each(batch[:done])
            return done
        raise AssertionError("counting has no end")

    def _run_batch(self, raw: RawConnection, batch: list[Work]) -> int:
        """Run transactions of the batch in one, until it has held the lock for long; how many.

        Raises only when none of them may count as done.
        """
        if len(batch) == 1 and batch[0].statement is not None and not self.failpoints.is_armed:
            name, params = batch[0].statement
            batch[0].joined[0].result = raw.execute(STATEMENTS[name], params).rowcount
            return 1
        raw.execute("begin immediate", {})
        try:
            # Only now: the lock may have been waited for, and what is over must not be done.
            tx = Tx(raw, self._clock.now_ms(), boot_moment(self._clock))
            until_ms = self._clock.monotonic_ms() + HOLD_MS_MAX
            done = 0
            for work in batch:
                _run_work(raw, tx, work)
                done += 1
                if self._clock.monotonic_ms() >= until_ms:
                    break
            points = [work.point for work in batch[:done]]
            self.failpoints.committing(points)
            raw.execute("commit", {})
        except BaseException:
            if raw.in_transaction:
                raw.execute("rollback", {})
            raise
        self.failpoints.committed(points)
        return done


def _run_work(raw: RawConnection, tx: Tx, work: Work) -> None:
    """Run a function for all who joined it, and where it raised, for each of them alone."""
    error = _run_one(raw, tx, work, work.joined)
    if error is None:
        return
    if len(work.joined) == 1:
        work.joined[0].error = error
        return
    for waiting in work.joined:
        waiting.error = _run_one(raw, tx, work, [waiting])


def _run_one(raw: RawConnection, tx: Tx, work: Work, joined: Sequence[Waiting]) -> Exception | None:
    """Run a function under a SAVEPOINT; what it raised, with nothing of it kept."""
    raw.execute("savepoint one", {})
    failure: Exception | None = None
    try:
        results = work.run(tx, [waiting.item for waiting in joined])
        for waiting, result in zip(joined, results, strict=True):
            waiting.result, waiting.error = result, None
    except Exception as error:  # handed to those who wait
        if not raw.in_transaction:
            # SQLite has rolled back everything (disk full, I/O error): no other of the batch counts
            # either.
            raise
        raw.execute("rollback to one", {})
        failure = _mapped(error) if isinstance(error, sqlite.Error) else error
    raw.execute("release one", {})
    return failure


def _read(raw: RawConnection, work: Callable[[Tx], T], now_ms: int) -> T:
    raw.execute("begin", {})
    try:
        return work(Tx(raw, now_ms))
    finally:
        if raw.in_transaction:
            raw.execute("rollback", {})


def _code(error: BaseException) -> int:
    """Primary result code of an SQLite error; 0 when it has none."""
    return int(getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF


def _mapped(error: BaseException) -> StorageError:
    kind = _ERRORS_BY_CODE.get(_code(error), StorageError)
    detail = getattr(error, "sqlite_errorname", None) or type(error).__name__
    return kind(f"{(kind.__doc__ or '').strip()} ({detail})")


def _prepare(raw: RawConnection, *, reader: bool) -> RawConnection:
    """Set what SQLite does not store in the file, and read back what the promise rests on."""
    raw.execute(f"pragma busy_timeout = {OPEN_BUSY_MS}", {})
    mode = raw.execute("pragma journal_mode = wal", {}).fetchall()[0]["journal_mode"]
    if mode != "wal":
        raise StorageError(f"this file system does not carry SQLite's WAL mode (got {mode})")
    raw.execute("pragma synchronous = full", {})
    if raw.execute("pragma synchronous", {}).fetchall()[0]["synchronous"] != _FULL:
        raise StorageError("SQLite did not accept synchronous = full")
    raw.execute("pragma foreign_keys = on", {})
    raw.execute("pragma trusted_schema = off", {})
    raw.execute("pragma cell_size_check = on", {})
    raw.execute("pragma temp_store = memory", {})
    raw.execute(f"pragma journal_size_limit = {WAL_BYTES_MAX}", {})
    raw.execute(f"pragma wal_autocheckpoint = {CHECKPOINT_PAGES}", {})
    if reader:
        raw.execute("pragma query_only = on", {})
    raw.execute(f"pragma busy_timeout = {READER_BUSY_MS if reader else 0}", {})
    return raw


@contextlib.contextmanager
def mapped_errors() -> Iterator[None]:
    """Turn the SQLite module's errors into StorageError."""
    try:
        yield
    except sqlite.Error as error:
        raise _mapped(error) from error


async def open_database(
    path: Path,
    clock: Clock,
    *,
    carrier: CarrierFactory = ThreadCarrier,
    connector: Connector = connect,
    failpoints: Failpoints = UNARMED,
) -> Database:
    """Open the file, which `storage.migrate` has brought to the current schema.

    Raises StorageError when it can't be opened as the promise needs it.
    """
    writer = carrier(lambda: _prepare(connector(path), reader=False))
    reader = carrier(lambda: _prepare(connector(path), reader=True))
    with mapped_errors():
        await writer.open()
        try:
            await reader.open()
        except BaseException:
            await writer.close()
            raise
    return Database(path, clock, writer, reader, failpoints)


@contextlib.asynccontextmanager
async def opened(
    path: Path,
    clock: Clock,
    *,
    carrier: CarrierFactory = ThreadCarrier,
    connector: Connector = connect,
    failpoints: Failpoints = UNARMED,
) -> AsyncIterator[Database]:
    """Open the database for a block and close it whatever happens.

    An unclosed one would keep the process alive by its thread.
    """
    database = await open_database(
        path, clock, carrier=carrier, connector=connector, failpoints=failpoints
    )
    try:
        yield database
    finally:
        await database.close()
