"""What each role costs: its share of a core while nothing happens, its memory after much has."""

from tests.bench.footprint import Memory, cpu_s, memory
from tests.bench.houses import RAISED, bench_house
from tests.bench.load import LoadPlan
from tests.bench.programs import Bench, Broken, count_of, load, pause, serving
from tests.bench.table import Below, Line
from tests.bench.updates import first_update_id
from tests.live.house import ROLES

_IDLE_BELOW_PERCENT = 1.0
_MEMORY_BELOW_MB = {"web": 80, "worker": 150, "sender": 100}
_SETTLE_S = 5.0
_LOOK_EVERY_S = 1.0
# Nothing has moved for this long: something is stuck.
_STILL_S = 60
# A load in its own right; the worker and the sender follow when they can.
_LOAD_S_MAX = 600.0


async def measure_idle(bench: Bench) -> list[Line]:
    """Let all roles stand idle and count what they use."""
    seconds = 10 if bench.quick else 30
    async with (
        serving(bench, "stub") as (_, port),
        bench_house(bench, "idle", f"http://127.0.0.1:{port}") as house,
    ):
        await house.start()
        await pause(_SETTLE_S)
        before = {role: cpu_s(house.running[role].pid) for role in ROLES}
        await pause(seconds)
        used = {role: cpu_s(house.running[role].pid) - before[role] for role in ROLES}
        await house.stop()
    bench.notes.append(f"idle: {seconds} s, all threads of a process, user and system time")
    return [
        Line(f"idle {role}", used[role] / seconds * 100, "% core", Below(_IDLE_BELOW_PERCENT))
        for role in ROLES
    ]


async def measure_memory(bench: Bench) -> list[Line]:
    """Let a great many updates through all roles and look at what stays in memory."""
    updates = 10_000 if bench.quick else 100_000
    async with (
        serving(bench, "stub") as (_, port),
        bench_house(bench, "memory", f"http://127.0.0.1:{port}", settings=RAISED) as house,
    ):
        await house.start()
        plan = LoadPlan(
            port=house.port,
            path="/telegram/main",
            secret=house.plan.bots[0].secret,
            first_update_id=first_update_id(bench.next_load()),
            seconds=_LOAD_S_MAX,
            updates_max=updates,
            chats=5_000,
        )
        report = await load(bench, plan)
        seconds = report.seconds + await _until_answered(port, updates)
        used = {role: memory(house.running[role].pid) for role in ROLES}
        await house.stop()
    peaks = ", ".join(f"{role} {used[role].peak_mb:.0f} MB" for role in ROLES)
    bench.notes.append(
        f"memory: {updates:,} updates over 5,000 chats, each answered by a call, in "
        f"{seconds:.0f} s ({updates / seconds:,.0f}/s through all roles); peaks: {peaks}"
    )
    return [_memory_line(role, used[role], updates) for role in ROLES]


def _memory_line(role: str, used: Memory, updates: int) -> Line:
    what = f"memory of {role} after {updates:,} updates"
    return Line(what, used.now_mb, "MB", Below(_MEMORY_BELOW_MB[role]))


async def _until_answered(stub_port: int, updates: int) -> float:
    """Wait until every update was answered by a call; seconds waited."""
    waited_s = still_s = 0.0
    calls = await count_of(stub_port)
    while calls < updates:
        await pause(_LOOK_EVERY_S)
        waited_s += _LOOK_EVERY_S
        before, calls = calls, await count_of(stub_port)
        still_s = 0.0 if calls > before else still_s + _LOOK_EVERY_S
        if still_s >= _STILL_S:
            raise Broken(f"only {calls} of {updates} updates were answered, and no more come")
    return waited_s
