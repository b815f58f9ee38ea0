"""Acknowledgements per second: our webhook beside a no-op route and beside the peers' servers.

All four run all the time and are loaded in turns, round after round, so that whatever else this
machine does falls on all alike; compared are the medians of the rounds. Each gets the same updates
over the same number of connections. Ours validates them, stores them and syncs the disk before it
answers; the others keep nothing.
"""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from tests.bench.footprint import cpu_s
from tests.bench.houses import bench_bot, bench_house, number_of
from tests.bench.load import LoadPlan, LoadReport
from tests.bench.programs import Bench, Broken, load, serving
from tests.bench.table import AtLeast, Below, Line, Peer, median
from tests.bench.updates import first_update_id

CONNECTIONS = 32
_STORED = "select count(*) as number from inbox where state = 'received'"
_OURS, _NOOP, _PTB, _AIOGRAM = "ferryman", "no-op Starlette", "PTB webhook", "aiogram webhook"


@dataclass(frozen=True, slots=True)
class _Server:
    """A server under load, and what its rounds have brought."""

    name: str
    pid: int
    port: int
    rounds: list[LoadReport]
    cores: list[float]

    @property
    def per_second(self) -> float:
        return median([report.per_second for report in self.rounds])

    @property
    def p99_ms(self) -> float:
        return median([report.p99_ms for report in self.rounds])


async def measure(bench: Bench) -> list[Line]:
    """Load all servers in turns."""
    rounds, seconds = (2, 1.5) if bench.quick else (5, 4.0)
    bot = bench_bot()
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        _, stub_port = await enter(serving(bench, "stub"))
        api_url = f"http://127.0.0.1:{stub_port}"
        house = await enter(bench_house(bench, "web", api_url, bot=bot))
        await house.start("web")
        peer = (bot.secret, bot.token, api_url)
        noop = await enter(serving(bench, "noop"))
        ptb = await enter(serving(bench, "peer_ptb_webhook", *peer, peer=True))
        aiogram = await enter(serving(bench, "peer_aiogram", *peer, peer=True))
        servers = [
            _Server(_OURS, house.running["web"].pid, house.port, [], []),
            *(
                _Server(name, process.pid, port, [], [])
                for name, (process, port) in ((_NOOP, noop), (_PTB, ptb), (_AIOGRAM, aiogram))
            ),
        ]
        acknowledged = 0
        for server in servers:
            acknowledged += await _round(bench, server, bot.secret, 0.5) * (server is servers[0])
        for server in servers:
            server.rounds.clear()
            server.cores.clear()
        for _ in range(rounds):
            for server in servers:
                count = await _round(bench, server, bot.secret, seconds)
                acknowledged += count * (server is servers[0])
        stored = number_of(house, _STORED)
        if stored < acknowledged:
            raise Broken(f"{acknowledged} updates were acknowledged and {stored} stored")
    _note(bench, servers, seconds)
    return _lines(servers)


async def _round(bench: Bench, server: _Server, secret: str, seconds: float) -> int:
    plan = LoadPlan(
        port=server.port,
        path="/telegram/main",
        secret=secret,
        first_update_id=first_update_id(bench.next_load()),
        seconds=seconds,
        connections=CONNECTIONS,
    )
    began_s = cpu_s(server.pid)
    report = await load(bench, plan)
    server.cores.append((cpu_s(server.pid) - began_s) / report.seconds)
    server.rounds.append(report)
    return report.answers


def _lines(servers: list[_Server]) -> list[Line]:
    ours, noop, ptb, aiogram = servers
    acks = "webhook, acknowledged"
    return [
        Line(acks, ours.per_second, "/s", AtLeast(0.65), Peer(noop.name, noop.per_second)),
        Line(acks, ours.per_second, "/s", AtLeast(2.5), Peer(ptb.name, ptb.per_second)),
        Line(acks, ours.per_second, "/s", AtLeast(1.5), Peer(aiogram.name, aiogram.per_second)),
        Line(f"webhook, p99 of {CONNECTIONS} connections", ours.p99_ms, "ms", Below(50)),
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
