"""`ferryman status`: what runs, what waits, what cools, and what needs a person.

One look at one moment, through the database alone, so that it answers although every role is down.
No user's words are in it.
"""

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.cli.ground import settings_of, visit
from bot.cli.output import fields_of, say, say_json
from bot.cli.parser import Commands, add_json
from bot.cli.pause import told_scope
from bot.cli.text import (
    call_ref,
    counted,
    moment,
    or_dash,
    printable,
    since,
    span,
    table,
    unquoted,
    until,
)
from storage import reports
from storage.clock import SystemClock
from storage.heartbeats import SILENT_AFTER_MS, Heartbeat
from storage.lifecycle import BotName, OutboxState
from storage.reports import BotReport, HouseReport
from storage.settings import Settings

_COOLDOWNS_SHOWN_MAX = 10
_REFUSALS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Glance:
    """The house at one moment. `strangers` are bots in the database that no key names any more."""

    house: HouseReport
    strangers: Sequence[str]


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "status",
        _status,
        purpose="Show what runs, what waits, what cools and what needs a person.",
    )
    add_json(parser)


def _status(given: Namespace) -> int:
    glance = asyncio.run(_look(settings_of(given)))
    if given.json:
        say_json(as_document(glance))
    else:
        say(as_lines(glance))
    return 0


async def _look(settings: Settings) -> Glance:
    clock = SystemClock()
    names = [BotName(name) for name in settings.bots]
    async with visit(settings) as database:
        house = await database.read(
            lambda tx: reports.house(tx, names, clock, refusals_max=_REFUSALS_SHOWN_MAX),
        )
        known = [str(row["name"]) for row in await database.fetch("reports.bots")]
    return Glance(_without_quotes(house), [name for name in known if name not in settings.bots])


def _without_quotes(house: HouseReport) -> HouseReport:
    bots = [
        replace(
            bot,
            refusals=[
                replace(refusal, description=unquoted(refusal.description or "") or None)
                for refusal in bot.refusals
            ],
            cooldowns=[replace(each, reason=unquoted(each.reason)) for each in bot.cooldowns],
        )
        for bot in house.bots
    ]
    return replace(house, bots=bots)


def as_document(glance: Glance) -> dict[str, Any]:
    """The glance for a program; `silent` tells a process that was not heard of for long."""
    house = glance.house
    roles = [
        {**fields_of(role), "facts": dict(role.facts), "silent": _is_silent(role, house.at_ms)}
        for role in house.roles
    ]
    return {**fields_of(house), "roles": roles, "bots_not_configured": list(glance.strangers)}


def as_lines(glance: Glance) -> Iterator[str]:
    """The glance for a person."""
    house = glance.house
    yield f"{moment(house.at_ms)}, schema {house.schema}"
    yield ""
    yield from _roles(house)
    yield ""
    yield from _bots(house)
    yield from _cooling(house)
    yield from _paused(house)
    yield from _limits(house)
    yield from _refusals(house)
    yield from _needs(house)
    if glance.strangers:
        yield ""
        yield f"Known to the database, but not configured: {', '.join(glance.strangers)}"


def _is_silent(role: Heartbeat, now_ms: int) -> bool:
    return now_ms - role.beat_at_ms > SILENT_AFTER_MS


def _roles(house: HouseReport) -> Iterator[str]:
    if not house.roles:
        yield "No role is running: `ferryman run` starts all three."
        return
    rows = []
    for role in house.roles:
        silent = _is_silent(role, house.at_ms)
        rows.append(
            (
                role.role,
                "silent" if silent else str(role.state),
                since(role.started_at_ms, house.at_ms),
                f"{since(role.beat_at_ms, house.at_ms)} ago",
                role.owner,
            ),
        )
    yield from table(("ROLE", "STATE", "UP", "HEARD", "PROCESS"), rows)
    missing = {"web", "worker", "sender"} - {role.role for role in house.roles}
    if missing:
        yield f"Not running: {', '.join(sorted(missing))}"


def _bots(house: HouseReport) -> Iterator[str]:
    titles = ("BOT", "UPDATES", "OLDEST", "TURNS", "CALLS", "OLDEST", "IN HAND", "LATER", "SENT/H")
    rows = []
    for bot in house.bots:
        waiting = bot.outbox.values()
        oldest = [each.oldest_ms for each in waiting if each.oldest_ms is not None]
        rows.append(
            (
                bot.name,
                str(bot.updates_waiting),
                since(bot.updates_oldest_ms, house.at_ms),
                str(bot.turns_running),
                str(sum(each.queued for each in waiting)),
                since(min(oldest, default=None), house.at_ms),
                str(sum(each.claimed for each in waiting)),
                str(bot.scheduled),
                str(bot.ended_last_hour.get(OutboxState.SENT, 0)),
            ),
        )
    yield from table(titles, rows)


def _cooling(house: HouseReport) -> Iterator[str]:
    rows = [
        (bot.name, printable(each.scope), span(each.remaining_ms), printable(each.reason))
        for bot in house.bots
        for each in sorted(bot.cooldowns, key=lambda found: -found.remaining_ms)
    ]
    if not rows:
        return
    yield ""
    yield from table(("BOT", "COOLING", "STILL", "WHY"), rows[:_COOLDOWNS_SHOWN_MAX])
    if len(rows) > _COOLDOWNS_SHOWN_MAX:
        yield f"and {len(rows) - _COOLDOWNS_SHOWN_MAX} more (--json has them all)"


def _paused(house: HouseReport) -> Iterator[str]:
    rows = [
        (
            bot.name,
            told_scope(pause.scope),
            "until resumed" if pause.until_ms is None else until(pause.until_ms, house.at_ms),
            since(pause.at_ms, house.at_ms),
            pause.by_whom,
            printable(pause.reason),
        )
        for bot in house.bots
        for pause in bot.pauses
    ]
    if rows:
        yield ""
        yield from table(("BOT", "PAUSED", "ENDS", "SINCE", "BY", "WHY"), rows)


def _limits(house: HouseReport) -> Iterator[str]:
    told = [line for bot in house.bots for line in _limits_of(bot, house.at_ms)]
    if told:
        yield ""
        yield from told


def _limits_of(bot: BotReport, now_ms: int) -> Iterator[str]:
    learned, change = bot.bulk_learned, bot.limits_changed
    if learned is not None:
        ago = since(learned.changed_at_ms, now_ms)
        rate = f"{learned.bulk_per_second:g} bulk messages a second"
        yield f"{bot.name}: floods have taught {rate} ({printable(learned.reason)}, {ago} ago)"
    if change is not None:
        ago = since(change.at_ms, now_ms)
        names = [name for name, now in change.after.items() if change.before.get(name) != now]
        told = ", ".join(f"{n} {change.before.get(n, '-')} → {change.after[n]}" for n in names)
        yield f"{bot.name}: limits changed by {change.source} {ago} ago: {printable(told)}"
    if bot.paid_tenths:
        yield f"{bot.name}: paid broadcasts have cost {bot.paid_tenths / 10:g} Stars, or less"


def _refusals(house: HouseReport) -> Iterator[str]:
    rows = [
        (
            each.bot,
            call_ref(each.outbox_id),
            f"{since(each.ended_at_ms, house.at_ms)} ago",
            each.verdict,
            or_dash(each.code or each.status),
            or_dash(each.description),
        )
        for bot in house.bots
        for each in bot.refusals
    ]
    if rows:
        yield ""
        yield "Latest answers that were no yes"
        yield from table(("BOT", "CALL", "WHEN", "VERDICT", "CODE", "DESCRIPTION"), rows)


def _needs(house: HouseReport) -> Iterator[str]:
    held = sum(bot.uncertain + bot.review for bot in house.bots)
    told = [f"{counted(held, 'call')} held for your decision: ferryman review list"] if held else []
    outside = sum(bot.outside for bot in house.bots)
    if outside:
        told.append(
            f"{counted(outside, 'call')} waiting for a decision about another: ferryman queue"
        )
    dead = sum(map(_given_up, house.bots))
    if dead:
        told.append(f"{counted(dead, 'update')} given up or unreadable: ferryman dead list")
    if told:
        yield ""
        yield from told


def _given_up(bot: BotReport) -> int:
    return bot.updates_dead + bot.updates_quarantined
