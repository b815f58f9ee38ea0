"""Acknowledgements per second: our webhook beside a no-op route and beside the peers' servers.

All four run all the time and are loaded in turns, round after round, so that whatever else this
machine does falls on all alike; compared are the medians of the rounds. Each gets the same updates
over the same number of connections. Ours validates them, stores them and syncs the disk before it
answers; the others keep nothing. A fifth, a no-op that at least reads the body, is there for a
note only: it tells how much of the distance is the body.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from tests.bench.footprint import cpu_s
from tests.bench.houses import bench_bot, bench_house, number_of
from tests.bench.load import LoadPlan, LoadReport
from tests.bench.programs import Bench, Broken, load, serving
from tests.bench.table import AtLeast, Below, Line, Peer, median
from tests.bench.updates import first_update_id
from tests.live.house import House

# As many as Telegram can be asked to open (Bot API, setWebhook, max_connections): the most that it
# can bring at once. The time that it waits for its answer is looked at with fewer.
CONNECTIONS = 100
CONNECTIONS_OF_P99 = 32
_STORED = "select count(*) as number from inbox where state = 'received'"
_WARM_UP_S = 0.5


@dataclass(slots=True)
class _Server:
    """A server under load, and what its rounds have brought."""

    name: str
    pid: int
    port: int
    path: str = "/telegram/main"
    acknowledged: int = 0
    rounds: list[LoadReport] = field(default_factory=list)
    calmer_rounds: list[LoadReport] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return median([report.per_second for report in self.rounds])

    @property
    def p99_ms(self) -> float:
        return median([report.p99_ms for report in self.rounds])


async def measure(bench: Bench) -> list[Line]:
    """Load all servers in turns."""
    rounds, seconds = (2, 1.5) if bench.quick else (5, 4.0)
    async with _servers(bench) as (house, servers):
        secret = house.plan.bots[0].secret
        for server in servers:
            await _load(bench, server, secret, _WARM_UP_S)
        for _ in range(rounds):
            for server in servers:
                server.rounds.append(await _load(bench, server, secret, seconds))
            calmer = await _load(bench, servers[0], secret, seconds, CONNECTIONS_OF_P99)
            servers[0].calmer_rounds.append(calmer)
        stored = number_of(house, _STORED)
        if stored < servers[0].acknowledged:
            raise Broken(f"{servers[0].acknowledged} updates were acknowledged, {stored} stored")
    _note(bench, servers, seconds)
    return _lines(servers)


@asynccontextmanager
async def _servers(bench: Bench) -> AsyncIterator[tuple[House, list[_Server]]]:
    bot = bench_bot()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        _, stub_port = await enter(serving(bench, "stub"))
        api_url = f"http://127.0.0.1:{stub_port}"
        house = await enter(bench_house(bench, "web", api_url, bot=bot))
        await house.start("web")
        peer = (bot.secret, bot.token, api_url)
        noop, noop_port = await enter(serving(bench, "noop"))
        ptb, ptb_port = await enter(serving(bench, "peer_ptb_webhook", *peer, peer=True))
        aiogram, aiogram_port = await enter(serving(bench, "peer_aiogram", *peer, peer=True))
        yield (
            house,
            [
                _Server("ferryman", house.running["web"].pid, house.port),
                _Server("no-op Starlette", noop.pid, noop_port),
                _Server("PTB webhook", ptb.pid, ptb_port),
                _Server("aiogram webhook", aiogram.pid, aiogram_port),
                _Server("no-op that reads", noop.pid, noop_port, "/read/main"),
            ],
        )


async def _load(
    bench: Bench, server: _Server, secret: str, seconds: float, connections: int = CONNECTIONS
) -> LoadReport:
    plan = LoadPlan(
        port=server.port,
        path=server.path,
        secret=secret,
        first_update_id=first_update_id(bench.next_load()),
        seconds=seconds,
        connections=connections,
    )
    began_s = cpu_s(server.pid)
    report = await load(bench, plan)
    server.cores.append((cpu_s(server.pid) - began_s) / report.seconds)
    server.acknowledged += report.answers
    return report


def _lines(servers: list[_Server]) -> list[Line]:
    ours, noop, ptb, aiogram, _ = servers
    p99_ms = median([report.p99_ms for report in ours.calmer_rounds])
    acks = "webhook, acknowledged"
    return [
        Line(acks, ours.per_second, "/s", AtLeast(0.65), Peer(noop.name, noop.per_second)),
        Line(acks, ours.per_second, "/s", AtLeast(2.5), Peer(ptb.name, ptb.per_second)),
        Line(acks, ours.per_second, "/s", AtLeast(1.5), Peer(aiogram.name, aiogram.per_second)),
        Line(f"webhook, p99 of {CONNECTIONS_OF_P99} connections", p99_ms, "ms", Below(50)),
    ]


def _note(bench: Bench, servers: list[_Server], seconds: float) -> None:
    rounds = len(servers[0].rounds)
    bench.notes.append(
        f"webhook: medians of {rounds} rounds of {seconds:g} s each, the servers in turns; "
        f"{CONNECTIONS} connections, unique updates, 4 messages to 1 button press"
    )
    for server in servers:
        spread = sorted(report.per_second for report in server.rounds)
        bench.notes.append(
            f"  {server.name}: {spread[0]:,.0f} to {spread[-1]:,.0f}/s, "
            f"p50 {median([report.p50_ms for report in server.rounds]):.2f} ms, "
            f"p99 {server.p99_ms:.2f} ms, {median(server.cores):.2f} of a core; "
            f"the load itself {median([report.busy for report in server.rounds]):.2f}"
        )
