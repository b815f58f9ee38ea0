"""A plain Bot API: it answers every call at once, and does nothing else.

`python -m tests.bench.stub PORT`. No limits, no floods, no ledger: what is measured against it is
the caller. `GET /count` tells how many calls have changed something; reads and set-up are not
counted.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import httptools
import uvloop

_READS = {b"getMe", b"getWebhookInfo", b"setWebhook", b"deleteWebhook"}
_OK = b'{"ok":true,"result":true}'
_ME = (
    b'{"ok":true,"result":{"id":%b,"is_bot":true,"first_name":"Ferry",'
    b'"username":"ferryman_bench_bot"}}'
)
_WEBHOOK_INFO = (
    b'{"ok":true,"result":{"url":"","has_custom_certificate":false,"pending_update_count":0}}'
)
_MESSAGE = (
    b'{"ok":true,"result":{"message_id":%d,"from":{"id":7000000001,"is_bot":true,'
    b'"first_name":"Ferry","username":"ferryman_bench_bot"},"chat":{"id":5000000001,'
    b'"first_name":"Ada","username":"ada_of_the_bench","type":"private"},"date":1790000000,'
    b'"text":"At nine, and again at noon."}}'
)
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

OnCall = Callable[[str, bytes], None]


class Stub:
    """What all connections of one stub share. `on_call` is told method and body of each call."""

    def __init__(self, on_call: OnCall | None = None) -> None:
        self.calls = 0
        self._on_call = on_call
        self._connected: set[asyncio.Transport] = set()

    @asynccontextmanager
    async def serving(self, port: int) -> AsyncIterator[asyncio.Server]:
        """Listen on loopback for a block, and leave no connection open."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port)
        async with server:
            yield server
            for transport in self._connected:
                transport.close()

    def connected(self, transport: asyncio.Transport) -> None:
        """A caller has come."""
        self._connected.add(transport)

    def left(self, transport: asyncio.Transport | None) -> None:
        """A caller has gone."""
        if transport is not None:
            self._connected.discard(transport)

    def answer(self, path: bytes, body: bytes) -> bytes:
        """The body of the answer to one request."""
        bot, _, method = path.lstrip(b"/").partition(b"/")
        if method in _READS:
            return self._read(method, bot)
        if not method:
            return json.dumps({"calls": self.calls}).encode("ascii")
        self.calls += 1
        if self._on_call is not None:
            self._on_call(method.decode("ascii"), body)
        return _MESSAGE % self.calls if method == b"sendMessage" else _OK

    def _read(self, method: bytes, bot: bytes) -> bytes:
        if method == b"getMe":
            return _ME % bot.removeprefix(b"bot").partition(b":")[0]
        return _WEBHOOK_INFO if method == b"getWebhookInfo" else _OK


class _Connection(asyncio.Protocol):
    """One keep-alive connection; the parser is the one that uvicorn uses."""

    def __init__(self, stub: Stub) -> None:
        self._stub = stub
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._path = b""
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._stub.connected(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._stub.left(self._transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._path = b""
        self._body = []

    def on_url(self, url: bytes) -> None:
        self._path += url

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        assert self._transport is not None
        answer = self._stub.answer(self._path, b"".join(self._body))
        self._transport.write(_HEAD % len(answer) + answer)


async def _serve(port: int) -> None:
    async with Stub().serving(port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1])))
