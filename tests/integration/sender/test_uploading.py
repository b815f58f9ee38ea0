"""An upload over a real socket: whole, read from disk as it goes, and held back before its end."""

import asyncio
import contextlib
import hashlib
import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sender.answer import Stage
from sender.calls import Call, render
from sender.multipart import Enclosed, Stored
from sender.transport import (
    UPLOAD_BYTES_PER_S_MIN,
    CountedBody,
    Transport,
    TransportOptions,
    open_transport,
    timeout_of,
)
from storage.claims import LONGEST_CALL_MS
from storage.clock import SystemClock
from storage.outgoing import FilePart
from tests.integration.sender.test_transport import OK, peer

MIB = 1 << 20


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    options = TransportOptions(read_timeout_s=30, connections_max=4)
    async with open_transport(options, SystemClock()) as transport:
        yield transport


def upload(path: Path, size_bytes: int) -> Call:
    part = FilePart("document", "a.bin", "application/octet-stream", "0" * 64, size_bytes)
    enclosed = [Enclosed(part, Stored(path, size_bytes))]
    call = render("sendDocument", {"chat_id": "7"}, {}, enclosed=enclosed)
    assert isinstance(call, Call)
    return call


def written(path: Path, mebibytes: int) -> str:
    told = hashlib.sha256()
    with path.open("wb") as file:
        for number in range(mebibytes):
            piece = bytes([number % 251]) * MIB
            told.update(piece)
            file.write(piece)
    return told.hexdigest()


class Listener:
    """Reads a call to its announced end, and keeps nothing of it but a hash of the file."""

    def __init__(self, head_bytes: int, file_bytes: int) -> None:
        self.head_bytes, self.file_bytes = head_bytes, file_bytes
        self.told = hashlib.sha256()
        self.arrived = 0
        self.whole = False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        while self.arrived < length:
            piece = await reader.read(MIB // 4)
            if not piece:
                return
            begin = max(0, self.head_bytes - self.arrived)
            end = max(0, self.head_bytes + self.file_bytes - self.arrived)
            self.told.update(piece[begin:end])
            self.arrived += len(piece)
        self.whole = True
        writer.write(OK)
        await writer.drain()


def listener_for(call: Call, file_bytes: int) -> Listener:
    heads = call.ahead[:2]
    return Listener(sum(len(piece) for piece in heads if isinstance(piece, bytes)), file_bytes)


async def test_a_large_file_goes_whole_and_memory_stays_flat(
    transport: Transport, tmp_path: Path
) -> None:
    path = tmp_path / "content"
    sha256 = written(path, 50)
    call = upload(path, 50 * MIB)
    listener = listener_for(call, 50 * MIB)
    async with peer(listener) as address:
        tracemalloc.start()
        try:
            got = await transport.call(address, call)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert got.stage is Stage.ANSWERED
    assert listener.told.hexdigest() == sha256
    assert peak < 8 * MIB, f"{peak / MIB:.1f} MiB at once"


async def test_an_upload_that_may_not_leave_any_more_is_never_whole_at_the_other_end(
    transport: Transport, tmp_path: Path
) -> None:
    """It is asked for when all of the file has gone, as the upload may have been long."""
    path = tmp_path / "content"
    written(path, 2)
    call = upload(path, 2 * MIB)
    listener = listener_for(call, 2 * MIB)
    asked: list[int] = []

    def may_leave() -> bool:
        asked.append(listener.arrived)
        return False

    async with peer(listener) as address:
        got = await transport.call(address, call, may_leave)
    assert got.stage is Stage.HANDED_BACK
    assert len(asked) == 1
    assert asked[0] > MIB
    assert not listener.whole


@pytest.mark.parametrize("trouble", ["shorter", "gone"])
async def test_a_file_that_changes_on_disk_leaves_the_call_incomplete(
    transport: Transport, tmp_path: Path, trouble: str
) -> None:
    path = tmp_path / "content"
    written(path, 1)
    call = upload(path, 2 * MIB)
    if trouble == "gone":
        path.unlink()
    listener = listener_for(call, 2 * MIB)
    async with peer(listener) as address:
        got = await transport.call(address, call)
    assert got.stage is Stage.BODY_INCOMPLETE
    assert not listener.whole


async def test_a_connection_that_dies_during_an_upload_is_incomplete(
    transport: Transport, tmp_path: Path
) -> None:
    path = tmp_path / "content"
    written(path, 20)

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readexactly(MIB)
        writer.transport.abort()

    async with peer(hang_up) as address:
        got = await transport.call(address, upload(path, 20 * MIB))
    assert got.stage is Stage.BODY_INCOMPLETE


def test_the_size_counts_every_piece(tmp_path: Path) -> None:
    path = tmp_path / "content"
    written(path, 1)
    call = upload(path, MIB)
    assert CountedBody(call, lambda: True).size == call.size_bytes > MIB


def test_an_upload_has_time_by_its_size_and_an_end() -> None:
    options = TransportOptions(read_timeout_s=30, connections_max=1)
    plain, large, huge = [
        timeout_of(options, size) for size in (0, 100 * UPLOAD_BYTES_PER_S_MIN, 1 << 40)
    ]
    assert (plain.total, plain.sock_read) == (70, 30)
    assert (large.total, large.sock_read) == (270, 130)
    assert huge.total == LONGEST_CALL_MS / 1_000
