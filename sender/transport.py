"""The only door to Telegram for anything that changes a chat or a bot.

One call, one request: no retry, no redirect, no cookie. What the sender must know of a call that
failed is how far it got, and aiohttp does not say so (its tracing reports "sent" on dead
connections and unread bodies); so the body is our own, and notes when its last byte is handed to a
connection that is alive. A token is in every address, so no address, and no exception that may
quote one, ever leaves this file: a failure is told by its type.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from aiohttp.payload import Payload
from yarl import URL

from sender.answer import Answer, Stage
from sender.calls import Call
from sender.multipart import Stored
from storage.claims import LONGEST_CALL_MS
from storage.clock import Clock
from storage.secret import Secret

CONNECT_TIMEOUT_S = 10
KEEPALIVE_S = 60
ANSWER_BYTES_MAX = 1 << 20
"""Telegram's largest answer is a fraction of this; more is not Telegram's."""

BODY_CHUNK_BYTES = 64 << 10
"""A larger body is handed over in parts, so that a dying connection shows before the end."""

FILE_CHUNK_BYTES = 256 << 10
"""How much of a file is in memory at once, for each call."""

UPLOAD_BYTES_PER_S_MIN = 256 << 10
"""A call that carries files gets more time by its size, as if it went at this rate: to be uploaded,
and for the server to pass it on before it answers."""

MayLeave = Callable[[], bool]

URLS_KEPT_MAX = 1_000
"""Addresses kept ready; the methods of a service may be any number of paths."""

_NOT_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.InvalidURL,
)


@dataclass(frozen=True, slots=True)
class TransportOptions:
    """How calls are made. A read timeout under 30 s makes doubles: Telegram holds calls for 8 s."""

    read_timeout_s: float
    connections_max: int
    connect_timeout_s: float = CONNECT_TIMEOUT_S


class Address:
    """Where one bot's calls go on one channel. It holds a token and shows it to nobody."""

    __slots__ = ("_headers", "_prefix", "_urls")

    def __init__(self, base_url: str, token: Secret, *, token_in_header: bool = False) -> None:
        """Telegram has the token in its addresses; other services are shown it in a header."""
        base = base_url.rstrip("/")
        self._prefix = f"{base}/" if token_in_header else f"{base}/bot{token.reveal()}/"
        bearer = {"Authorization": f"Bearer {token.reveal()}"}
        self._headers: Mapping[str, str] = bearer if token_in_header else {}
        self._urls: dict[str, URL] = {}

    def __repr__(self) -> str:
        return "Address(hidden)"

    @property
    def headers(self) -> Mapping[str, str]:
        """What goes with every call: for the wire alone."""
        return self._headers

    def url(self, method: str) -> URL:
        """The address of a method: for the wire alone."""
        url = self._urls.get(method)
        if url is None:
            url = URL(self._prefix + quote(method), encoded=True)
            if len(self._urls) < URLS_KEPT_MAX:
                self._urls[method] = url
        return url


class CountedBody(Payload):
    """A request body that knows how much of it was handed over to a living connection."""

    _autoclose = True

    def __init__(self, call: Call, may_leave: MayLeave) -> None:
        super().__init__(call.body, content_type=call.content_type)
        self._ahead = call.ahead
        self._body = call.body
        self._size = call.size_bytes
        self._may_leave = may_leave
        self.has_begun = False
        self.is_complete = False
        self.is_held_back = False

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Hand the body over; complete from the moment before the last part could have left."""
        self.has_begun = True
        for piece in self._ahead:
            if isinstance(piece, bytes):
                await writer.write(piece)
            else:
                await _stream(piece, writer)
        last = max(0, (len(self._body) - 1) // BODY_CHUNK_BYTES * BODY_CHUNK_BYTES)
        for start in range(0, last, BODY_CHUNK_BYTES):
            await writer.write(self._body[start : start + BODY_CHUNK_BYTES])
        connection = writer.transport
        if connection is None or connection.is_closing():
            raise aiohttp.ClientConnectionResetError
        if not self._may_leave():
            # A request that lacks the end of its body is never executed.
            self.is_held_back = True
            raise aiohttp.ClientConnectionResetError
        self.is_complete = True
        # Not drained: the answer, not the buffer, tells when the call is over.
        await writer.write(self._body[last:], drain=False)  # type: ignore[call-arg]  # as above

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Show nothing: it holds users' words."""
        del encoding, errors
        return "(hidden)"


class Transport:
    """Makes calls. Made by `open_transport`."""

    def __init__(
        self, session: aiohttp.ClientSession, clock: Clock, options: TransportOptions
    ) -> None:
        self._session = session
        self._clock = clock
        self._options = options

    async def call(
        self, address: Address, call: Call, may_leave: MayLeave = lambda: True
    ) -> Answer:
        """Make one call and say what became of it; nothing about it is ever raised.

        `may_leave` is asked at the last moment, as the wait for a connection may have been long:
        whether the caller still owns the bot, and no wait was ordered meanwhile. The caller bounds
        how many calls are under way at once.
        """
        # A connection that died while it was idle is noticed only by a loop that has looked: once
        # for the end of the stream, once for its consequence.
        await self._clock.sleep_ms(0)
        await self._clock.sleep_ms(0)
        body = CountedBody(call, may_leave) if call.body else None
        try:
            async with self._session.post(
                address.url(call.method),
                data=body,
                headers=address.headers,
                allow_redirects=False,
                timeout=timeout_of(self._options, call.size_bytes if call.ahead else 0),
            ) as response:
                return await _read(response)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return Answer(stage=_stage_reached(error, body), fault=type(error).__name__)
        except RuntimeError:
            # aiohttp raises no error of its own when its session was closed before the call.
            if self._session.closed and not (body and body.has_begun):
                return Answer(stage=Stage.UNCONNECTED, fault="given up")
            raise

    async def give_up(self) -> None:
        """Close all connections: each call under way ends, and says how far it got."""
        await self._session.close()


def timeout_of(options: TransportOptions, upload_bytes: int) -> aiohttp.ClientTimeout:
    """How long a call may take that uploads this much. Reading begins when all has left.

    No call may be under way for longer than its row counts as in flight after a crash.
    """
    upload_s = upload_bytes / UPLOAD_BYTES_PER_S_MIN
    read_s = options.read_timeout_s + upload_s
    # An answer that trickles must end too; a whole one never takes two read timeouts.
    total_s = options.connect_timeout_s + 2 * (options.read_timeout_s + upload_s)
    return aiohttp.ClientTimeout(
        total=min(total_s, LONGEST_CALL_MS / 1000),
        connect=options.connect_timeout_s,
        sock_connect=options.connect_timeout_s,
        sock_read=read_s,
    )


async def _stream(piece: Stored, writer: AbstractStreamWriter) -> None:
    """Hand a file over piece by piece, read beside the event loop: the disk may be slow.

    Raises OSError where it is not as long as was announced.
    """
    left = piece.size_bytes
    with await asyncio.to_thread(piece.path.open, "rb") as file:
        while left > 0:
            data = await asyncio.to_thread(file.read, min(left, FILE_CHUNK_BYTES))
            if not data:
                raise OSError("a file is shorter than it was")
            left -= len(data)
            await writer.write(data)


async def _read(response: aiohttp.ClientResponse) -> Answer:
    """Read an answer whole; one that breaks off or is too large is none, though it has a status."""
    parts: list[bytes] = []
    size = 0
    fault = ""
    try:
        while part := await response.content.readany():
            size += len(part)
            if size > ANSWER_BYTES_MAX:
                response.close()
                fault = "answer too large"
                break
            parts.append(part)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        fault = type(error).__name__
    if fault:
        return Answer(stage=Stage.BODY_COMPLETE, status=response.status, fault=fault)
    return Answer(
        stage=Stage.ANSWERED,
        status=response.status,
        retry_after_header=response.headers.get("Retry-After", ""),
        body=b"".join(parts),
    )


def _stage_reached(error: Exception, body: CountedBody | None) -> Stage:
    if isinstance(error, _NOT_CONNECTED):
        return Stage.UNCONNECTED
    if body is None or body.is_complete:
        return Stage.BODY_COMPLETE
    if body.is_held_back:
        return Stage.HANDED_BACK
    return Stage.BODY_INCOMPLETE


@contextlib.asynccontextmanager
async def open_transport(options: TransportOptions, clock: Clock) -> AsyncIterator[Transport]:
    """Open the door for a block; connections are shared and kept, as each new one costs TLS."""
    connector = aiohttp.TCPConnector(
        limit=options.connections_max, keepalive_timeout=KEEPALIVE_S, ttl_dns_cache=60
    )
    session = aiohttp.ClientSession(
        connector=connector,
        timeout=timeout_of(options, 0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"User-Agent": "ferryman", "Accept-Encoding": "identity"},
    )
    try:
        yield Transport(session, clock, options)
    finally:
        await session.close()
