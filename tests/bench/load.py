"""The load: posts updates to one webhook over keep-alive connections, and times every answer.

`python -m tests.bench.load PLAN`, PLAN being the JSON of `LoadPlan`; a process of its own, so that
it costs the server nothing but what is left of the machine. It speaks HTTP over raw sockets, since
a client that is slower than the server would measure itself: its own use of a core is part of what
it reports.

Closed loop by default: each connection posts again as soon as it has its answer. With `per_second`
it is open: updates fall due at a fixed pace, and an answer is timed from that moment, so that a
server that stalls pays for all that waited.
"""

import asyncio
import json
import math
import sys
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from typing import cast

import uvloop

from tests.bench.table import percentile
from tests.bench.updates import Mix

_HEAD = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    "Accept-Encoding: gzip, deflate\r\nX-Telegram-Bot-Api-Secret-Token: {secret}\r\n"
    "Content-Length: "
)
_HEAD_END = b"\r\n\r\n"
_STATUS_OK = b"HTTP/1.1 200"
_LENGTH = b"content-length:"


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What to post where. It ends after `seconds` or `updates_max`, whichever comes first."""

    port: int
    path: str
    secret: str
    first_update_id: int
    seconds: float
    updates_max: int = 1_000_000
    connections: int = 32
    chats: int = 500
    per_second: float = 0
    seldom_text: str = ""
    seldom_every: int = 0


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What came of a load. Times are in milliseconds; `busy` is the load's own share of a core.

    `took_ms` holds every answer's time, of a load at a pace of its own; others have too many.
    """

    answers: int
    seconds: float
    p50_ms: float
    p99_ms: float
    worst_ms: float
    busy: float
    refused: dict[str, int] = field(default_factory=dict)
    took_ms: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        """Answers with status 200, each second."""
        return self.answers / self.seconds


class Load:
    """One load, while it runs."""

    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._mix = Mix(plan.first_update_id, plan.chats, plan.seldom_text, plan.seldom_every)
        head = _HEAD.format(path=plan.path, port=plan.port, secret=plan.secret)
        self._head = head.encode("ascii")
        self._next = 0
        # At an open pace what fell due is posted however late it has become.
        self._deadline = math.inf
        self._idle: list[_Connection] = []
        self._due: deque[float] = deque()
        self._open = 0
        self._is_paced_out = False
        self._ended = asyncio.Event()
        self.took_ms: list[float] = []
        self.statuses: Counter[str] = Counter()

    async def run(self) -> LoadReport:
        """Post until the plan is done and every answer is in."""
        connections = [await self._connect() for _ in range(self._plan.connections)]
        self._open = len(connections)
        began, began_busy = time.perf_counter(), time.process_time()
        if self._plan.per_second:
            self._idle = list(connections)
            await self._keep_pace(began)
        else:
            self._deadline = began + self._plan.seconds
            for connection in connections:
                connection.post(time.perf_counter())
        await self._ended.wait()
        seconds = time.perf_counter() - began
        busy = (time.process_time() - began_busy) / seconds
        for connection in connections:
            connection.close()
        # Sockets are closed in the loop's next turn.
        await asyncio.sleep(0)
        return self._report(seconds, busy)

    def _report(self, seconds: float, busy: float) -> LoadReport:
        took_ms = self.took_ms or [0.0]
        return LoadReport(
            answers=len(self.took_ms),
            seconds=seconds,
            p50_ms=percentile(took_ms, 0.50),
            p99_ms=percentile(took_ms, 0.99),
            worst_ms=max(took_ms),
            busy=busy,
            refused=dict(self.statuses),
            took_ms=self.took_ms if self._plan.per_second else [],
        )

    async def _connect(self) -> "_Connection":
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self), "127.0.0.1", self._plan.port
        )
        return connection

    def request(self) -> bytes | None:
        """The next request; None when the load is over."""
        if self._next >= self._plan.updates_max or time.perf_counter() >= self._deadline:
            return None
        body = self._mix.body(self._next)
        self._next += 1
        return b"%b%d%b%b" % (self._head, len(body), _HEAD_END, body)

    def answered(self, connection: "_Connection") -> None:
        """A connection is free again: it posts what is due, or waits, or ends."""
        if not self._plan.per_second:
            connection.post(time.perf_counter())
        elif self._due:
            connection.post(self._due.popleft())
        else:
            self._idle.append(connection)
            self._rest()

    def ended(self) -> None:
        """A connection has nothing more to post."""
        self._open -= 1
        if self._open == 0:
            self._ended.set()

    def _rest(self) -> None:
        if self._is_paced_out and len(self._idle) == self._open:
            self._ended.set()

    async def _keep_pace(self, began: float) -> None:
        count = min(self._plan.updates_max, int(self._plan.seconds * self._plan.per_second))
        for number in range(count):
            due = began + number / self._plan.per_second
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if self._idle:
                self._idle.pop().post(due)
            else:
                self._due.append(due)
        self._is_paced_out = True
        self._rest()


class _Connection(asyncio.Protocol):
    """One keep-alive connection with at most one request under way."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._transport: asyncio.Transport | None = None
        self._since = 0.0
        self._buffer = b""
        # Answers of one server are all of one length: known after the first.
        self._answer_bytes = 0
        self._is_over = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are of no class of asyncio's.
        self._transport = cast("asyncio.Transport", transport)

    def post(self, since: float) -> None:
        """Post the next update; its answer is timed from `since`."""
        assert self._transport is not None
        request = self._load.request()
        if request is None:
            self._load.ended()
            return
        self._since = since
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        if len(data) != self._answer_bytes or not data.startswith(_STATUS_OK):
            data = self._buffer = self._buffer + data
            self._answer_bytes = whole_bytes(data)
            if not self._answer_bytes:
                return
            self._buffer = b""
        if data.startswith(_STATUS_OK):
            self._load.took_ms.append((time.perf_counter() - self._since) * 1000)
        else:
            self._load.statuses[data[9:12].decode("latin-1")] += 1
        self._load.answered(self)

    def close(self) -> None:
        """The load is over."""
        self._is_over = True
        if self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if not self._is_over:
            self._load.statuses["connection lost"] += 1
            self._load.ended()


def whole_bytes(data: bytes) -> int:
    """Length of the answer, if all of it is there; 0 while some is missing."""
    head, end, _ = data.partition(_HEAD_END)
    if not end:
        return 0
    at = head.lower().find(_LENGTH)
    length = 0 if at < 0 else int(head[at + len(_LENGTH) :].split(b"\r\n", 1)[0])
    whole = len(head) + len(_HEAD_END) + length
    return whole if len(data) >= whole else 0


def main() -> None:
    """Run the load that the command line names and print its report."""
    plan = LoadPlan(**json.loads(sys.argv[1]))
    print(json.dumps(asdict(uvloop.run(Load(plan).run()))))


if __name__ == "__main__":
    main()
