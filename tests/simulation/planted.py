"""Known bugs, planted into the product's code in this process to see that the worlds catch them.

Each replaces a function or a statement for as long as the process lives; the product itself has no
switch for any of it. A bug that no world catches would be a hole in the judgement, not a pass.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from types import MappingProxyType
from typing import Any, Final

from bot.web.intake import Intake
from sender import app, botapi, claiming
from sender.answer import Answer, Stage
from sender.delivery import Delivery
from sender.memory import BotMemory
from sender.pacing import Gates
from sender.policy import Requeue, Spend
from sender.settling import settle_all
from sender.verdict import Review, Transient, Verdict
from storage import claims, cooldowns, database
from storage.carriers import RawConnection
from storage.errors import LeaseLost
from storage.inbox import Received, Reception

_OVERTAKE: Final = """
update lanes set due_ms = 0, head_id = coalesce((
    select min(o.id) from outbox as o
    where o.bot = lanes.bot and o.lane = lanes.lane and o.priority = lanes.priority
    and o.joined = 1 and o.state = 'queued' and o.id > :id
), head_id)
where bot = :bot and lane = :lane and priority = :priority
"""
_UNLESS_CANCELLED: Final = "and not exists ("


def _around(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:  # noqa: ANN401 - a module or a class
    """Put a function in the place of another, which it is given."""
    before = getattr(owner, name)
    setattr(owner, name, wraps(before)(make(before)))


def _say(name: str, change: Callable[[str], str]) -> None:
    """Put a statement in the place of another."""
    statements: Mapping[str, str] = vars(database)["STATEMENTS"]
    changed = change(statements[name])
    assert changed != statements[name], f"nothing of {name} was changed"
    vars(database)["STATEMENTS"] = {**statements, name: changed}


def marked_before_sent() -> None:
    """A row is marked sent when it is stamped."""

    def make(stamp: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def stamped(tx: Any, taken: Sequence[claims.Claim]) -> Any:  # noqa: ANN401 - the same
            going = stamp(tx, taken)
            claims.mark_sent(tx, [claims.Accepted(each, 1) for each in taken])
            return going

        return stamped

    _around(claims, "stamp", make)


def timeout_is_not_sent() -> None:
    """A call whose answer never came counts as not sent."""

    def make(classify: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def classified(answer: Answer, method: str, **more: Any) -> Verdict:  # noqa: ANN401 - the same
            if answer.stage is Stage.BODY_COMPLETE:
                answer = replace(answer, stage=Stage.BODY_INCOMPLETE)
            verdict: Verdict = classify(answer, method, **more)
            return verdict

        return classified

    _around(botapi, "classify", make)


def bare_flood_ignored() -> None:
    """A flood without a usable wait is a failure like any other."""

    def make(classify: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def classified(answer: Answer, method: str, **more: Any) -> Verdict:  # noqa: ANN401 - the same
            verdict: Verdict = classify(answer, method, **more)
            if isinstance(verdict, Review) and answer.status == 429:
                return Transient(reason="a flood", outage=False)
            return verdict

        return classified

    _around(botapi, "classify", make)


def cooldown_in_memory() -> None:
    """A wait is remembered by the process and written nowhere."""
    _around(cooldowns, "merge", lambda _: lambda *_, **__: True)


def calendar_seconds() -> None:
    """A chat's limit is counted by the seconds of the calendar."""

    def make(after: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def counted(gates: Gates, chat: Any, call: Any, now_ms: int) -> Any:  # noqa: ANN401 - the same
            found = after(gates, chat, call, now_ms)
            next_ms = (now_ms // 1_000 + 1) * 1_000
            return replace(found, spread_until_ms=min(found.spread_until_ms, next_ms))

        return counted

    _around(Gates, "_after", make)


def counted_at_start() -> None:
    """A call counts from when it left, not from when it had arrived at the latest."""
    left: dict[tuple[int, str], int] = {}
    clocks: dict[int, Any] = {}

    def remember(begin: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def began(memory: BotMemory, *given: Any) -> None:  # noqa: ANN401 - the same
            begin(memory, *given)
            clocks[id(memory.gates)] = memory._clock

        return began

    def leave(begin: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def began(gates: Gates, call: Any) -> None:  # noqa: ANN401 - the same
            if id(gates) in clocks:
                left[id(gates), call.lane] = clocks[id(gates)].boot_ms()
            begin(gates, call)

        return began

    def end(ended: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def over(gates: Gates, call: Any, now_ms: int) -> None:  # noqa: ANN401 - the same
            ended(gates, call, left.pop((id(gates), call.lane), now_ms))

        return over

    _around(BotMemory, "__init__", remember)
    _around(Gates, "began", leave)
    _around(Gates, "ended", end)


class _Deferred:
    """A connection that begins no transaction at once."""

    def __init__(self, raw: RawConnection) -> None:
        self._raw = raw

    def execute(self, sql: str, *given: Any) -> Any:  # noqa: ANN401 - as the connection's
        return self._raw.execute("begin" if sql == "begin immediate" else sql, *given)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the connection's
        return getattr(self._raw, name)


def deferred_begin() -> None:
    """A transaction takes its lock only when it writes."""

    def make(run: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def run_deferred(self: database.Database, raw: RawConnection, **more: Any) -> Any:  # noqa: ANN401 - the same
            return run(self, _Deferred(raw), **more)

        return run_deferred

    _around(database.Database, "_run_batch", make)


def synchronous_normal() -> None:
    """A commit is not synced."""

    def make(prepare: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def prepared(raw: RawConnection, **more: Any) -> RawConnection:  # noqa: ANN401 - the same
            made: RawConnection = prepare(raw, **more)
            made.execute("pragma synchronous = normal", {})
            return made

        return prepared

    _around(database, "_prepare", make)


def deduplicated_by_order() -> None:
    """An update is taken only when its number is above all before it."""
    last: dict[str, int] = {}

    def make(receive: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        async def received(intake: Intake, updates: list[Received]) -> Sequence[Reception]:
            fresh = [each for each in updates if each.update_id > last.get(each.bot, 0)]
            if fresh:
                await receive(intake, fresh)
                for each in fresh:
                    last[each.bot] = max(last.get(each.bot, 0), each.update_id)
            return [Reception.STORED if each in fresh else Reception.DUPLICATE for each in updates]

        return received

    _around(Intake, "_receive_all", make)


def acknowledged_before_commit() -> None:
    """An update is answered with 200 before it is on disk."""

    def make(keep: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def kept(intake: Intake, update: Received) -> "asyncio.Future[Reception]":
            keep(intake, update).add_done_callback(lambda told: told.exception())
            answered: asyncio.Future[Reception] = asyncio.get_running_loop().create_future()
            answered.set_result(Reception.STORED)
            return answered

        return kept

    _around(Intake, "keep", make)


def cancel_not_looked_at() -> None:
    """A row is stamped although its cancel was asked for."""
    _say(
        "claims.stamp",
        lambda sql: sql.replace(_UNLESS_CANCELLED, "and (1 or not exists (").replace(
            "\n    )\nreturning", "\n    ))\nreturning"
        ),
    )


def retry_overtaken() -> None:
    """A row that is to be tried again lets the next one of its lane go first."""

    def make(requeue: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def requeued(tx: Any, claimed: claims.Claim, **more: Any) -> Any:  # noqa: ANN401 - the same
            told = requeue(tx, claimed, **more)
            item = claimed.item
            where = {"id": item.id, "bot": item.bot, "lane": item.lane, "priority": item.priority}
            tx._connection.execute(_OVERTAKE, where)
            return told

        return requeued

    _around(claims, "requeue", make)


def late_result_dropped() -> None:
    """An answer that comes when the lease has moved on is thrown away."""

    def make(_: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        async def recorded(delivery: Delivery, settling: Any) -> Any:  # noqa: ANN401 - the same
            try:
                return await delivery._tools.join("settle", settle_all, settling)
            except LeaseLost:
                return None

        return recorded

    _around(Delivery, "_record", make)


def stamped_is_forgotten() -> None:
    """Whoever takes over sends again what may have left: so does a restored backup, unnoticed."""

    def make(_: Any) -> Callable[..., Any]:  # noqa: ANN401 - the function replaced
        def fate(orphan: Any, heir: Any, now_ms: int) -> Requeue:  # noqa: ANN401 - the same
            return Requeue(now_ms, Spend.NOTHING, "it was in hand")

        return fate

    _around(claiming, "_fate_of", make)


def timetable_never_fires() -> None:
    """Nothing is ever done by the clock."""
    _around(app, "entries", lambda _: lambda _upkeep: ())


@dataclass(frozen=True, slots=True)
class Bug:
    """A known bug, and the invariants any of which must be seen to break by it."""

    plant: Callable[[], None]
    breaks: tuple[str, ...]


PLANTED: Final[Mapping[str, Bug]] = MappingProxyType(
    {
        "mark sent before sending": Bug(marked_before_sent, ("I5",)),
        "treat ReadTimeout as not sent": Bug(timeout_is_not_sent, ("I4",)),
        "ignore 429 without retry_after": Bug(bare_flood_ignored, ("I6",)),
        "cooldown only in memory": Bug(cooldown_in_memory, ("I6",)),
        "limiter on calendar seconds": Bug(calendar_seconds, ("I8",)),
        "window counted at start": Bug(counted_at_start, ("I8",)),
        "deferred BEGIN": Bug(deferred_begin, ("I14",)),
        "synchronous=NORMAL": Bug(synchronous_normal, ("I14",)),
        "dedup by update_id > last": Bug(deduplicated_by_order, ("I1",)),
        "200 before COMMIT": Bug(acknowledged_before_commit, ("I1",)),
        "cancel not re-checked at claim": Bug(cancel_not_looked_at, ("I9",)),
        "retry overtakes in the chat": Bug(retry_overtaken, ("I7",)),
        "result dropped when the lease has moved": Bug(late_result_dropped, ("I13",)),
        "take-over that forgets what may have left": Bug(stamped_is_forgotten, ("I4",)),
        "timetable that never fires": Bug(timetable_never_fires, ("I11",)),
    }
)
"""The fourteen of reliability.md 2.4, and a timetable that never fires.

A house has no backups: what goes wrong when a restored one is not noticed is that the rows in hand
are sent again, and that is planted.
"""


def plant(name: str) -> None:
    """Plant one bug into this process, for good."""
    if name not in _planted:
        _planted.add(name)
        PLANTED[name].plant()


def is_caught(name: str, breaches: Sequence[str]) -> bool:
    """Whether these breaches are such as this bug makes."""
    return any(breach.split(":")[0].split(" ")[0] in PLANTED[name].breaks for breach in breaches)


_planted: set[str] = set()
