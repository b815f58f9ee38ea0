"""A service of the other contract on a loopback socket: JSON in, coded errors out.

It knows no limits of its own; a test says what each call is answered. Time is the test's own.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from storage.clock import Clock


@dataclass(frozen=True, slots=True)
class Posted:
    """A call that arrived whole; header names are in small letters."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, object]
    at_ms: int


@dataclass(frozen=True, slots=True)
class Answered:
    """One canned answer."""

    status: int
    body: object
    headers: Mapping[str, str]


def coded(status: int, code: str, message: str = "", **beside: object) -> Answered:
    """A refusal as this contract has it; `beside` stands in the frame, where nothing belongs."""
    error = {"code": code, "numeric_code": status, "message": message}
    return Answered(status, {"error": error} | beside, {})


def rate_limited(**beside: object) -> Answered:
    """A refusal for haste."""
    return coded(429, "RATE_LIMITED", "slow down", **beside)


class Service:
    """The service, while it serves. Each answer gets a request id of its own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._script: deque[Answered] = deque()
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self._port = 0
        self.posted: list[Posted] = []
        self.request_ids: list[str] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}/v1"

    def will(self, *answers: Answered) -> None:
        """Answer the next calls so; after them, as if all were well."""
        self._script.extend(answers)

    async def open(self) -> None:
        """Begin to listen, at the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Refuse connections, and close those that are open."""
        if self._server is None:
            return
        self._server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await self._answer_one(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:])
        }
        raw = await reader.readexactly(int(headers.get("content-length", "0")))
        path = head[0].split(" ", 2)[1]
        self.posted.append(Posted(path, headers, json.loads(raw), self._clock.now_ms()))
        plain = Answered(202, {"id": f"m-{len(self.posted)}"}, {})
        answer = self._script.popleft() if self._script else plain
        self.request_ids.append(f"req-{len(self.posted)}")
        body = answer.body
        if isinstance(body, dict):
            body = body | {"request_id": self.request_ids[-1]}
        told = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {answer.status} X", f"Content-Length: {len(told)}"]
        lines += [f"{name}: {value}" for name, value in answer.headers.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + told)
        await writer.drain()


@asynccontextmanager
async def serving(clock: Clock) -> AsyncIterator[Service]:
    """A service for a block."""
    service = Service(clock)
    await service.open()
    try:
        yield service
    finally:
        await service.close()
