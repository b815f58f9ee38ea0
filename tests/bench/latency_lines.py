"""From an update posted to our webhook to the call that answers it, all roles idle otherwise.

This process posts the update and is itself the stub that the answer comes to, so that one clock
times both ends: from just before the first byte of the update to the last byte of the call.
"""

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import parse_qs

from tests.bench.houses import bench_house
from tests.bench.programs import Bench, Broken, pause
from tests.bench.stub import Stub
from tests.bench.table import Below, Line, percentile
from tests.bench.updates import FIRST_UPDATE_ID, Mix
from tests.live.house import LiveBot
from tests.live.process import free_port

# Under the limits as they are: each chat comes again only when its second is long over.
_CHATS = 500
# The whole bot may send 30 a second.
_EVERY_S = 0.05
_PATIENCE_S = 10.0
_WARM_UP = 20


@dataclass(slots=True)
class _Expected:
    """The chat that is to be answered next, and when its answer came."""

    chat_id: str
    arrived: asyncio.Future[float]


class _Crossing:
    """Posts updates and waits for what comes of them, one at a time."""

    def __init__(self, bot: LiveBot, port: int) -> None:
        self._bot = bot
        self._port = port
        self._mix = Mix(FIRST_UPDATE_ID, _CHATS, "When does the ferry leave?", seldom_every=1)
        self._expected: _Expected | None = None

    def on_call(self, method: str, body: bytes) -> None:
        """Note when the expected answer has arrived; other calls are none."""
        at = time.perf_counter()
        expected = self._expected
        if method != "sendMessage" or expected is None or expected.arrived.done():
            return
        if parse_qs(body.decode("utf-8"))["chat_id"] == [expected.chat_id]:
            expected.arrived.set_result(at)

    async def sample_ms(self, number: int) -> float:
        """Post one update; milliseconds until the call that answers it has arrived."""
        body = self._mix.body(number)
        head = (
            f"POST /telegram/main HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"X-Telegram-Bot-Api-Secret-Token: {self._bot.secret}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        arrived: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._expected = _Expected(str(5_000_000_000 + number % _CHATS), arrived)
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        began = time.perf_counter()
        writer.write(head.encode("ascii") + body)
        status = await reader.readuntil(b"\r\n\r\n")
        if not status.startswith(b"HTTP/1.1 200"):
            raise Broken(f"update {number} was answered with {status[:12]!r}")
        try:
            async with asyncio.timeout(_PATIENCE_S):
                ended = await arrived
        except TimeoutError:
            raise Broken(f"nothing came of update {number} within {_PATIENCE_S} s") from None
        writer.close()
        return (ended - began) * 1000


async def measure(bench: Bench) -> list[Line]:
    """Post updates one after the other, at a pace that leaves every role idle in between."""
    samples = 80 if bench.quick else 400
    port = free_port()
    async with bench_house(bench, "latency", f"http://127.0.0.1:{port}") as house:
        crossing = _Crossing(house.plan.bots[0], house.port)
        async with Stub(crossing.on_call).serving(port):
            await house.start()
            took_ms = []
            for number in range(_WARM_UP + samples):
                took_ms.append(await crossing.sample_ms(number))
                await pause(max(0.0, _EVERY_S - took_ms[-1] / 1000))
            await house.stop()
    counted = took_ms[_WARM_UP:]
    p50_ms, p99_ms = percentile(counted, 0.50), percentile(counted, 0.99)
    bench.notes.append(
        f"update to sendMessage: {len(counted)} samples, one at a time, limits as they are; "
        f"fastest {min(counted):.1f} ms, slowest {max(counted):.1f} ms"
    )
    return [
        Line("update to sendMessage, p50", p50_ms, "ms", Below(25)),
        Line("update to sendMessage, p99", p99_ms, "ms", Below(100)),
    ]
