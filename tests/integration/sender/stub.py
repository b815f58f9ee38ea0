"""A stub of Telegram on a loopback socket: canned answers, cut connections, and a list of arrivals.

It knows none of Telegram's rules; a test says what each call is answered. Time is the test's own.
"""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from urllib.parse import parse_qsl

from storage.clock import Clock
from tests.simulator.form_bodies import read_body


class Cut(Enum):
    """What the stub does instead of answering."""

    AFTER_READING = auto()
    """Read the whole call, then close."""

    IN_THE_ANSWER = auto()
    """Read the whole call, begin to answer that all is well, then close."""

    NEVER_ANSWER = auto()
    """Read the whole call, then keep silent until `release`."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One canned answer."""

    status: int
    body: bytes
    headers: Mapping[str, str]


SENT = Reply(200, b'{"ok": true, "result": {"message_id": 90}}', {})
"""An acceptance."""


@dataclass(frozen=True, slots=True, eq=False)
class Late:
    """An answer that comes when the test gives it, as Telegram holds a call before it answers."""

    reply: Reply
    given: asyncio.Event = field(default_factory=asyncio.Event)

    def give(self) -> None:
        """Answer now."""
        self.given.set()


Deed = Reply | Cut | Late
"""What the stub does about a call."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A call that arrived whole."""

    method: str
    form: Mapping[str, str]
    at_ms: int
    raw: bytes
    files: Mapping[str, bytes] = field(default_factory=dict)


def refusal(code: int, description: str, parameters: Mapping[str, object] | None = None) -> Reply:
    """An answer as Telegram refuses."""
    told: dict[str, object] = {"ok": False, "error_code": code, "description": description}
    if parameters is not None:
        told["parameters"] = parameters
    return Reply(code, json.dumps(told).encode(), {})


def flood(seconds: int) -> Reply:
    """A flood with its wait."""
    return refusal(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})


class Stub:
    """The stub, while it serves."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._scripts: dict[str, deque[Deed]] = {}
        self._lates: list[Late] = []
        self._message_id = 100
        self._changed = asyncio.Condition()
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self.port = 0
        self.arrivals: list[Arrival] = []
        self.under_way = 0
        self.silent = 0
        self.most_under_way = 0

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def texts(self) -> list[str]:
        """What was said, in order of arrival."""
        return [call.form["text"] for call in self.arrivals if "text" in call.form]

    def will(self, method: str, *deeds: Deed) -> None:
        """Answer the next calls of a method so; after them, as if all were well."""
        self._scripts.setdefault(method, deque()).extend(deeds)
        self._lates += [deed for deed in deeds if isinstance(deed, Late)]

    def forget(self, method: str) -> None:
        """From now on all is well with this method."""
        self._scripts.pop(method, None)

    def release(self) -> None:
        """End the silence of `Cut.NEVER_ANSWER` by closing, and give all that is late."""
        self._released.set()
        for late in self._lates:
            late.give()

    async def arrived(self, count: int) -> None:
        """Wait until so many calls have arrived in all."""
        async with asyncio.timeout(20), self._changed:
            await self._changed.wait_for(lambda: len(self.arrivals) >= count)

    async def open(self) -> None:
        """Begin to listen, at the same port as before."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Refuse connections, and close those that are open."""
        if self._server is None:
            return
        self._released.set()
        self._server.close()
        for task in self._handlers:
            task.cancel()
        await asyncio.gather(*self._handlers, return_exceptions=True)
        await self._server.wait_closed()
        self._server = None
        self._released.clear()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer_one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        headers = {}
        for line in head.split("\r\n"):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        method = head.split(" ", 2)[1].rpartition("/")[2]
        form, files = _read(headers.get("content-type", ""), raw)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        async with self._changed:
            self.arrivals.append(Arrival(method, form, self._clock.now_ms(), raw, files))
            self._changed.notify_all()
        try:
            return await self._reply(method, form, writer)
        finally:
            self.under_way -= 1

    async def _reply(
        self, method: str, form: Mapping[str, str], writer: asyncio.StreamWriter
    ) -> bool:
        script = self._scripts.get(method)
        reply = script.popleft() if script else self._plain(method, form)
        match reply:
            case Cut.AFTER_READING:
                return False
            case Cut.IN_THE_ANSWER:
                writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{"ok":true,"res')
                await writer.drain()
                return False
            case Cut.NEVER_ANSWER:
                self.silent += 1
                await self._released.wait()
                self.silent -= 1
                return False
            case Late():
                self.silent += 1
                await reply.given.wait()
                self.silent -= 1
                await _write(writer, reply.reply)
                return True
            case Reply():
                await _write(writer, reply)
                return True

    def _plain(self, method: str, form: Mapping[str, str]) -> Reply:
        result: object = True
        if method.startswith("send") and method != "sendChatAction":
            self._message_id += 1
            result = {"message_id": self._message_id, "chat": {"id": form.get("chat_id")}}
        return Reply(200, json.dumps({"ok": True, "result": result}).encode(), {})


def _read(content_type: str, raw: bytes) -> tuple[Mapping[str, str], Mapping[str, bytes]]:
    if content_type.startswith("multipart/"):
        return read_body(content_type, raw, b"")
    return dict(parse_qsl(raw.decode("ascii"), keep_blank_values=True)), {}


async def _write(writer: asyncio.StreamWriter, reply: Reply) -> None:
    head = [f"HTTP/1.1 {reply.status} X", f"Content-Length: {len(reply.body)}"]
    head += [f"{name}: {value}" for name, value in reply.headers.items()]
    writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + reply.body)
    await writer.drain()


@asynccontextmanager
async def serving(clock: Clock) -> AsyncIterator[Stub]:
    """A stub for a block."""
    stub = Stub(clock)
    await stub.open()
    try:
        yield stub
    finally:
        await stub.close()
