"""The network of a world: how a sender's calls, a worker's reads and Telegram's posts travel.

What has left a process travels on whatever becomes of that process. Before a call leaves, the
world's watch is told, so that it can judge whether it may. May never answer by itself: answers are
the simulator's, or none.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final, Protocol

from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData

from sender.answer import Answer, Stage
from sender.calls import Call
from sender.transport import Address, MayLeave, Transport, TransportOptions
from storage.clock import Clock
from storage.settings import Token
from tests.simulation.loop import Process, WorldLoop, passing, process_here
from tests.simulator.acting import act_out
from tests.simulator.form_bodies import read_body
from tests.simulator.model import Telegram
from tests.simulator.wire import Ending, Reply

_READ_TIMEOUT_S: Final = 30.0
_BROKEN: Final = frozenset({Ending.CUT, Ending.RESET, Ending.HALF})


@dataclass(frozen=True, slots=True)
class Passage:
    """How one call travels: the time it takes each way, and how it fails on its way there."""

    connect_s: float
    there_s: float
    back_s: float
    fails: str = ""
    """"refused" before it connects, "incomplete" in its body, "reset" before it is read."""


class Watch(Protocol):
    """Who judges what leaves and what comes back."""

    def leaves(self, process: Process, token: str, method: str, form: dict[str, str]) -> int:
        """A call leaves now, whole; its number in the world."""

    def arrives(self, number: int, reply: Reply) -> None:
        """It was read and answered."""

    def returns(self, number: int, process: Process, answer: Answer) -> None:
        """This is what its sender is told."""


class Network:
    """All ways between the house and Telegram."""

    def __init__(
        self,
        loop: WorldLoop,
        telegram: Telegram,
        dice: random.Random,
        passage: Callable[[], Passage],
        watch: Watch,
    ) -> None:
        self.loop = loop
        self.telegram = telegram
        self.dice = dice
        self.passage = passage
        self.watch = watch
        self.failures: list[BaseException] = []
        self._outside = Context()
        self._flights: set[asyncio.Task[Any]] = set()

    def fly(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something travel that belongs to no process."""
        task = self.loop.create_task(work, context=self._outside.copy())
        self._flights.add(task)
        task.add_done_callback(self.landed)

    def landed(self, task: "asyncio.Task[Any]") -> None:
        """Something of the world's own is over; an error of its own is not to be missed."""
        self._flights.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)

    @contextlib.asynccontextmanager
    async def open_transport(
        self, options: TransportOptions, clock: Clock
    ) -> AsyncIterator[Transport]:
        """The sender's door."""
        del clock
        transport = WorldTransport(self, options)
        try:
            yield transport
        finally:
            await transport.give_up()

    def reading(self, token: Token) -> BaseRequest:
        """The worker's way for reads."""
        return WorldReads(self, token)


class WorldTransport(Transport):
    """The sender's door to the simulated Telegram."""

    def __init__(self, network: Network, options: TransportOptions) -> None:
        self._network = network
        self._timeout_s = options.read_timeout_s
        self._process = process_here()
        self._under_way: dict[asyncio.Future[Answer], None] = {}
        self._is_closed = False

    async def call(
        self, address: Address, call: Call, may_leave: MayLeave = lambda: True
    ) -> Answer:
        """Make one call and say what became of it."""
        await asyncio.sleep(0)
        if self._is_closed:
            return Answer(stage=Stage.UNCONNECTED, fault="given up")
        network, passage = self._network, self._network.passage()
        if passage.connect_s:
            await passing(passage.connect_s)
        if passage.fails == "refused" or not network.telegram.reachable:
            return Answer(stage=Stage.UNCONNECTED, fault="ClientConnectorError")
        if not may_leave():
            return Answer(stage=Stage.HANDED_BACK)
        if passage.fails == "incomplete":
            return Answer(stage=Stage.BODY_INCOMPLETE, fault="ClientConnectionResetError")
        token = address.url("x").path.removeprefix("/bot").removesuffix("/x")
        form, files = _read(call)
        number = network.watch.leaves(self._process, token, call.method, form)
        answer: asyncio.Future[Answer] = network.loop.create_future()
        self._under_way[answer] = None
        network.fly(self._flight(answer, number, passage, (token, call.method, form, files)))
        try:
            told = await answer
        finally:
            self._under_way.pop(answer, None)
        network.watch.returns(number, self._process, told)
        return told

    async def give_up(self) -> None:
        """Close all connections."""
        self._is_closed = True
        for answer in list(self._under_way):
            if not answer.done():
                answer.set_result(Answer(stage=Stage.BODY_COMPLETE, fault="given up"))

    async def _flight(
        self,
        answer: "asyncio.Future[Answer]",
        number: int,
        passage: Passage,
        call: tuple[str, str, dict[str, str], dict[str, bytes]],
    ) -> None:
        network = self._network
        late = network.loop.call_later(self._timeout_s, _set, answer, _silent("SocketTimeoutError"))
        await passing(passage.there_s)
        if passage.fails == "reset" or not network.telegram.reachable:
            _set(answer, _silent("ClientOSError"))
        else:
            reply = network.telegram.call(*call)
            network.watch.arrives(number, reply)
            reply = await act_out(network.telegram, reply)
            await passing(passage.back_s)
            _set(answer, _as_answer(reply))
        late.cancel()


def _read(call: Call) -> tuple[dict[str, str], dict[str, bytes]]:
    """The call as the other end reads it."""
    pieces = [
        piece if isinstance(piece, bytes) else piece.path.read_bytes() for piece in call.ahead
    ]
    return read_body(call.content_type, b"".join([*pieces, call.body]), b"")


def _set(answer: "asyncio.Future[Answer]", told: Answer) -> None:
    if not answer.done():
        answer.set_result(told)


def _silent(fault: str, status: int | None = None) -> Answer:
    return Answer(stage=Stage.BODY_COMPLETE, status=status, fault=fault)


def _as_answer(reply: Reply) -> Answer:
    if reply.ending is Ending.HALF:
        return _silent("ClientPayloadError", reply.status)
    if reply.ending in _BROKEN:
        return _silent("ServerDisconnectedError")
    return Answer(
        stage=Stage.ANSWERED,
        status=reply.status,
        retry_after_header=reply.headers.get("Retry-After", ""),
        body=reply.body,
    )


class WorldReads(BaseRequest):
    """The library's HTTP client, in the world."""

    def __init__(self, network: Network, token: Token) -> None:
        self._network = network
        self._token = token.reveal()

    @property
    def read_timeout(self) -> float:
        return _READ_TIMEOUT_S

    async def initialize(self) -> None:
        pass

    async def shutdown(self) -> None:
        pass

    async def do_request(  # type: ignore[override]  # the world has time-outs of its own
        self,
        url: str,
        method: str,  # noqa: ARG002  # the library's signature
        request_data: RequestData | None = None,
        **_: object,
    ) -> tuple[int, bytes]:
        name = url.rsplit("/", 1)[-1]
        form = {} if request_data is None else request_data.json_parameters
        network, passage = self._network, self._network.passage()
        await passing(passage.there_s)
        if passage.fails == "refused" or not network.telegram.reachable:
            raise NetworkError("ConnectError")
        if passage.fails:
            raise NetworkError("ReadError")
        reply = network.telegram.call(self._token, name, form)
        await passing(passage.back_s + reply.hold_ms / 1000)
        if reply.ending is Ending.SILENT:
            await passing(_READ_TIMEOUT_S)
            raise TimedOut
        if reply.ending is not Ending.WHOLE:
            raise NetworkError("RemoteProtocolError")
        return reply.status, reply.body
