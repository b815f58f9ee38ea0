"""A database that is locked, full, read-only or too new; an address that can't be had."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from bot.web.app import run_web
from bot.web.backpressure import BackPressure, Marks
from bot.web.intake import Intake
from bot.web.meter import Meter
from bot.web.webhook import Door, Webhook
from storage.carriers import RawConnection
from storage.clock import SystemClock
from storage.database import Database, connect, open_database
from storage.errors import ConfigurationError, NewerSchema, ReadOnly
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.queries import STATEMENTS
from tests.integration.web.door import HEADER, SECRET, open_door, settings, update
from tests.live.process import until

MAIN = BotName("main")
PAGES_LEFT = 30


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Another process that writes and does not end."""
    connection = connect(path)
    try:
        connection.execute("begin immediate", {})
        yield
        connection.execute("rollback", {})
    finally:
        connection.close()


async def test_while_another_process_holds_the_lock_telegram_is_asked_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("storage.database.BUSY_BUDGET_MS", 300)
    async with open_door(tmp_path) as door:
        with locked(door.database_path):
            answers = await asyncio.gather(*(door.post(update(n)) for n in range(1, 20)))
            assert {answer.status_code for answer in answers} == {503}
            assert {int(answer.headers["retry-after"]) for answer in answers} == {5}
            assert (await door.http.get("/livez")).status_code == 200, "it lives all the same"
        assert (await door.post(update(1))).status_code == 200
        assert door.counts() == (1, 0)
    assert "web.unstored" in caplog.messages
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_short_lock_is_waited_out(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        with locked(door.database_path):
            posted = asyncio.create_task(door.post(update(1)))
            await door.http.get("/livez")
            assert not posted.done()
        assert (await posted).status_code == 200


def nearly_full(path: Path) -> RawConnection:
    """A connection whose file may grow by a few pages only: SQLite says that the disk is full."""
    connection = connect(path)
    pages = connection.execute("pragma page_count", {}).fetchall()[0]["page_count"]
    connection.execute(f"pragma max_page_count = {pages + PAGES_LEFT}", {}).fetchall()
    return connection


def bare_door(
    database: Database, folder: Path, marks: Marks
) -> tuple[httpx.AsyncClient, BackPressure]:
    """The webhook alone, without a server, for a database with a fault of its own."""
    backpressure = BackPressure(database, folder, [MAIN], marks)
    webhook = Webhook(
        Intake(database, SystemClock()),
        Door({MAIN: (SECRET.encode(),)}),
        backpressure,
        meter=Meter(),
        clock=SystemClock(),
        on_stored=lambda: None,
    )
    app = Starlette(routes=[Route("/telegram/{bot}", webhook.receive, methods=["POST"])])
    transport = httpx.ASGITransport(app=app)
    headers = {HEADER: SECRET}
    return httpx.AsyncClient(
        transport=transport, base_url="http://x", headers=headers
    ), backpressure


async def test_on_a_full_disk_what_was_acknowledged_stays_and_the_rest_is_asked_for_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ferryman.db"
    migrate(path, SystemClock())
    database = await open_database(path, SystemClock(), connector=nearly_full)
    http, _ = bare_door(database, tmp_path, Marks(10**6, 0))
    acknowledged = []
    async with http:
        for number in range(1, 200):
            answer = await http.post("/telegram/main", content=update(number, "x" * 2000))
            if answer.status_code == 200:
                acknowledged.append(number)
            else:
                assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert 0 < len(acknowledged) < 199
        await database.close()
    raw = connect(path)
    stored = raw.execute("select update_id from inbox order by id", {}).fetchall()
    raw.close()
    assert [row["update_id"] for row in stored] == acknowledged


async def test_too_deep_an_inbox_leaves_updates_with_telegram_until_it_is_worked_off(
    tmp_path: Path, db: Database
) -> None:
    http, backpressure = bare_door(db, tmp_path, Marks(inbox_depth_max=3, disk_free_min_bytes=0))
    async with http:
        for number in range(1, 5):
            await http.post("/telegram/main", content=update(number))
        await backpressure.look()
        answer = await http.post("/telegram/main", content=update(5))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        await db.write(lambda tx: tx.run("inbox.claim", {"id": 1, "epoch": 1, "now_ms": 0}))
        await backpressure.look()
        assert (await http.post("/telegram/main", content=update(5))).status_code == 200


async def test_a_disk_that_is_nearly_full_leaves_updates_with_telegram(
    tmp_path: Path, db: Database
) -> None:
    http, backpressure = bare_door(db, tmp_path, Marks(10**6, disk_free_min_bytes=1 << 60))
    async with http:
        await backpressure.look()
        answer = await http.post("/telegram/main", content=update(1))
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


async def _fails(folder: Path, error: type[Exception], *, port: int = 0) -> str:
    with pytest.raises(error) as raised:
        await run_web(settings(folder, port=port), clock=SystemClock(), stop=asyncio.Event())
    return str(raised.value)


async def test_a_database_of_a_newer_version_is_not_opened(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ferryman.db"
    migrate(path, SystemClock())
    raw = connect(path)
    raw.execute("insert into migrations (number, name, applied_at_ms) values (999, 'x', 0)", {})
    raw.close()
    assert "999" in await _fails(tmp_path, NewerSchema)


async def test_a_state_directory_that_can_not_be_written_to_is_named(tmp_path: Path) -> None:
    """Below a file there is no directory, not even for root."""
    (tmp_path / "state").write_bytes(b"")
    assert str(tmp_path / "state") in await _fails(tmp_path, ReadOnly)


async def test_a_port_in_use_is_told_by_its_key(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        other = tmp_path / "other"
        other.mkdir()
        told = await _fails(other, ConfigurationError, port=door.port)
        assert told.startswith("web.port: expected a free address")
        assert str(door.port) in told
        assert not (other / "state").exists(), "and nothing was begun"


async def test_what_began_to_be_received_when_it_stops_is_finished(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        body = update(1)
        head = f"POST /telegram/main HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        await door.http.get("/livez")
        door.stop.set()

        async def is_closed() -> bool:
            try:
                await door.http.get("/livez")
            except httpx.TransportError:
                return True
            return False

        await until(is_closed, within_ms=5_000, what="nobody new is let in")
        writer.write(body[10:])
        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 200")
        writer.close()
    assert door.counts() == (1, 0)


async def test_one_unreadable_body_is_not_compared_with_every_update_there_is(
    db: Database,
) -> None:
    """It is looked for among what was given up, however many updates are remembered."""
    raw = connect(db.path)
    sql = STATEMENTS["inbox.same_quarantined"]
    plan = raw.execute(f"explain query plan {sql}", {"bot": MAIN, "body": b"x"}).fetchall()
    raw.close()
    assert ["inbox_given_up" in row["detail"] for row in plan] == [True]
