"""What each role costs: its share of a core while nothing happens, its memory after much has."""

from tests.bench.footprint import Memory, cpu_s, memory
from tests.bench.houses import RAISED, bench_house, number_of
from tests.bench.load import LoadPlan
from tests.bench.programs import Bench, Broken, count_of, load, pause, serving
from tests.bench.table import Below, Line
from tests.bench.updates import first_update_id
from tests.live.house import ROLES, House

_IDLE_BELOW_PERCENT = 1.0
_MEMORY_BELOW_MB = {"web": 80, "worker": 150, "sender": 100}
_SETTLE_S = 5.0
_LOOK_EVERY_S = 1.0
_WAITING = """
select
    (select count(*) from inbox where state in ('received', 'claimed'))
    + (select count(*) from outbox where state in ('queued', 'claimed')) as number
"""
_SENT = "select count(*) as number from outbox where state = 'sent'"
# Whoever pressed a button waits for seconds; an answer after minutes is dropped, as it should be.
_EXPIRED = "select count(*) as number from outbox where state = 'expired'"
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
        seconds = report.seconds + await _until_handled(house)
        sent, expired = number_of(house, _SENT), number_of(house, _EXPIRED)
        if sent != await count_of(port) or sent + expired != updates:
            raise Broken(f"of {updates} calls {sent} are recorded as sent, {expired} as expired")
        used = {role: memory(house.running[role].pid) for role in ROLES}
        await house.stop()
    peaks = ", ".join(f"{role} {used[role].peak_mb:.0f} MB" for role in ROLES)
    bench.notes.append(
        f"memory: {updates:,} updates over 5,000 chats, handled in {seconds:.0f} s "
        f"({updates / seconds:,.0f}/s through all roles); {sent:,} calls made, {expired:,} answers "
        f"to buttons expired before their turn; peaks: {peaks}"
    )
    return [_memory_line(role, used[role], updates) for role in ROLES]


def _memory_line(role: str, used: Memory, updates: int) -> Line:
    what = f"memory of {role} after {updates:,} updates"
    return Line(what, used.now_mb, "MB", Below(_MEMORY_BELOW_MB[role]))


async def _until_handled(house: House) -> float:
    """Wait until every update is done and every call has ended; seconds waited."""
    waited_s = still_s = 0.0
    waiting = number_of(house, _WAITING)
    while waiting:
        await pause(_LOOK_EVERY_S)
        waited_s += _LOOK_EVERY_S
        before, waiting = waiting, number_of(house, _WAITING)
        still_s = 0.0 if waiting != before else still_s + _LOOK_EVERY_S
        if still_s >= _STILL_S:
            raise Broken(f"{waiting} updates and calls wait, and none of them moves")
    return waited_s
