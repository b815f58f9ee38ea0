"""The transport: how far each call got, told by its own body; and a token that nobody sees."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from sender.answer import Stage
from sender.calls import Call
from sender.transport import (
    ANSWER_BYTES_MAX,
    BODY_CHUNK_BYTES,
    Address,
    CountedBody,
    Transport,
    TransportOptions,
    open_transport,
)
from storage.clock import SystemClock
from storage.secret import Token

TOKEN = Token("7000000001:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
CALL = Call("sendMessage", b"chat_id=7&text=hello")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def transport() -> AsyncIterator[Transport]:
    """A transport of short patience."""
    options = TransportOptions(read_timeout_s=0.3, connections_max=4, connect_timeout_s=1.0)
    async with open_transport(options, SystemClock()) as transport:
        yield transport


@asynccontextmanager
async def peer(handler: Handler) -> AsyncIterator[Address]:
    """A peer that does with each connection what `handler` says."""
    tasks: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(carry(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield Address(f"http://127.0.0.1:{port}", TOKEN)
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def read_call(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    [length] = [
        int(line.partition(":")[2])
        for line in head.split("\r\n")
        if line.lower().startswith("content-length")
    ]
    return head, await reader.readexactly(length)


async def test_a_call_is_one_post_of_one_form(transport: Transport) -> None:
    seen = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_call(reader))
        writer.write(OK)
        await writer.drain()

    async with peer(answer) as address:
        got = await transport.call(address, CALL)
    assert (got.stage, got.status, got.body) == (Stage.ANSWERED, 200, b"ok")
    [(head, body)] = seen
    assert head.startswith(f"POST /bot{TOKEN.reveal()}/sendMessage HTTP/1.1\r\n")
    assert "Content-Type: application/x-www-form-urlencoded\r\n" in head
    assert "Accept-Encoding: identity\r\n" in head
    assert body == CALL.body


async def test_a_refused_connection_is_unconnected(transport: Transport) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        address = Address(f"http://127.0.0.1:{unheard.getsockname()[1]}", TOKEN)
        got = await transport.call(address, CALL)
    assert (got.stage, got.fault) == (Stage.UNCONNECTED, "ClientConnectorError")


async def test_a_name_that_nobody_knows_is_unconnected(transport: Transport) -> None:
    got = await transport.call(Address("http://nowhere.invalid", TOKEN), CALL)
    assert got.stage is Stage.UNCONNECTED


async def test_a_body_that_is_not_taken_whole_is_incomplete(transport: Transport) -> None:
    async def abort(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.transport.abort()

    async with peer(abort) as address:
        got = await transport.call(address, Call("sendDocument", b"x" * 30_000_000))
    assert got.stage is Stage.BODY_INCOMPLETE


async def test_a_peer_that_never_reads_leaves_the_body_incomplete(transport: Transport) -> None:
    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with peer(ignore) as address:
        got = await transport.call(address, Call("sendDocument", b"x" * 30_000_000))
    assert got.stage is Stage.BODY_INCOMPLETE


async def _close_after_reading(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_call(reader)


async def _never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_call(reader)
    await asyncio.Event().wait()


async def _break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_call(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok")
    await writer.drain()


async def _ramble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_call(reader)
    size = ANSWER_BYTES_MAX + 1
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
    await writer.drain()


async def _babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_call(reader)
    writer.write(b"no http at all\r\n\r\n")
    await writer.drain()


@pytest.mark.parametrize(
    "handler", [_close_after_reading, _never_answer, _break_off, _ramble, _babble]
)
async def test_a_whole_call_without_a_whole_answer_is_body_complete(
    transport: Transport, handler: Handler
) -> None:
    async with peer(handler) as address:
        got = await transport.call(address, CALL)
    assert got.stage is Stage.BODY_COMPLETE
    assert got.fault
    assert TOKEN.reveal() not in repr(got)


async def test_a_redirect_is_an_answer_and_is_not_followed(transport: Transport) -> None:
    calls = 0

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        while True:
            await read_call(reader)
            calls += 1
            writer.write(b"HTTP/1.1 307 X\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()

    async with peer(redirect) as address:
        got = await transport.call(address, CALL)
    assert (got.stage, got.status, calls) == (Stage.ANSWERED, 307, 1)


async def test_nothing_is_ever_called_twice_by_itself(transport: Transport) -> None:
    calls = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        while True:
            await read_call(reader)
            calls += 1
            if calls == 2:
                return
            writer.write(OK)
            await writer.drain()

    async with peer(count) as address:
        await transport.call(address, CALL)
        got = await transport.call(address, CALL)
    assert (got.stage, calls) == (Stage.BODY_COMPLETE, 2)


async def test_a_connection_that_died_while_idle_is_noticed_before_reuse(
    transport: Transport,
) -> None:
    """The peer closes while our loop is not looking, as it may while a commit takes long."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    accepted = []
    closed = threading.Semaphore(0)

    def serve() -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            accepted.append(connection)
            connection.recv(65536)
            connection.sendall(OK)
            connection.close()
            closed.release()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    address = Address(f"http://127.0.0.1:{listener.getsockname()[1]}", TOKEN)
    first = await transport.call(address, CALL)
    closed.acquire()
    second = await transport.call(address, CALL)
    thread.join(5)
    listener.close()
    assert (first.stage, second.stage) == (Stage.ANSWERED, Stage.ANSWERED)
    assert len(accepted) == 2


async def test_giving_up_ends_each_call_where_it_stands(transport: Transport) -> None:
    async with peer(_never_answer) as address:
        call = asyncio.get_running_loop().create_task(transport.call(address, CALL))
        for _ in range(50):
            await asyncio.sleep(0)
        await transport.give_up()
        got = await call
        assert got.stage in {Stage.BODY_COMPLETE, Stage.BODY_INCOMPLETE, Stage.UNCONNECTED}
        after = await transport.call(address, CALL)
        assert (after.stage, after.fault) == (Stage.UNCONNECTED, "given up")


@pytest.mark.parametrize("size", [10, 3 * BODY_CHUNK_BYTES])
async def test_a_call_that_may_not_leave_any_more_is_never_whole_at_the_other_end(
    transport: Transport, size: int
) -> None:
    """It waited for its connection, and meanwhile the bot was lost or a wait was ordered."""
    asked = []
    arrived = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            arrived.append(await read_call(reader))
        writer.close()

    def may_leave() -> bool:
        asked.append(True)
        return False

    async with peer(listen) as address:
        got = await transport.call(address, Call("sendMessage", bytes(size)), may_leave)
    assert got.stage is Stage.HANDED_BACK
    assert asked
    assert not arrived


async def test_the_header_that_tells_to_wait_is_kept(transport: Transport) -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_call(reader)
        writer.write(b"HTTP/1.1 429 X\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async with peer(flood) as address:
        got = await transport.call(address, CALL)
    assert (got.status, got.retry_after_header) == (429, "7")


def test_nothing_shows_the_token_or_a_users_words() -> None:
    address = Address("https://api.telegram.org", TOKEN)
    service = Address("https://service.example.org", TOKEN, token_in_header=True)
    assert TOKEN.reveal() not in repr((address, service))
    body = CountedBody(Call("sendMessage", b"text=my+secret"), lambda: True)
    assert "my+secret" not in repr(body)
    assert "my+secret" not in str(body.decode())


@pytest.mark.parametrize("size", [1, BODY_CHUNK_BYTES, BODY_CHUNK_BYTES + 1, 3 * BODY_CHUNK_BYTES])
async def test_a_body_of_any_size_arrives_whole(transport: Transport, size: int) -> None:
    bodies = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bodies.append((await read_call(reader))[1])
        writer.write(OK)
        await writer.drain()

    sent = bytes(number % 251 for number in range(size))
    async with peer(answer) as address:
        got = await transport.call(address, Call("sendDocument", sent))
    assert got.stage is Stage.ANSWERED
    assert bodies == [sent]
