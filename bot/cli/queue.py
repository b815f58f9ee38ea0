"""`ferryman queue`: the calls that wait to be sent or are in hand, without what they say."""

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.cli.ground import bots_of, settings_of, visit
from bot.cli.output import say, say_json
from bot.cli.parser import Commands, add_json, add_limit
from bot.cli.text import call_ref, or_dash, printable, since, table, unquoted, until
from storage import reports
from storage.clock import SystemClock
from storage.database import Tx
from storage.lifecycle import BotName, Priority
from storage.reports import QueuedRow
from storage.settings import Settings

_ROWS_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Waiting:
    """The calls that wait or are in hand, as of `at_ms`."""

    at_ms: int
    rows: Sequence[QueuedRow]


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "queue", _queue, purpose="List the calls that wait to be sent, chat by chat."
    )
    parser.add_argument("--bot", metavar="NAME", help="list only this bot's calls")
    add_limit(parser, default=_ROWS_SHOWN)
    add_json(parser)


def _queue(given: Namespace) -> int:
    settings = settings_of(given)
    names = bots_of(settings, [given.bot] if given.bot else [])
    waiting = asyncio.run(_look(settings, names, given.limit))
    if given.json:
        say_json(waiting)
    else:
        say(as_lines(waiting, limit=given.limit))
    return 0


async def _look(settings: Settings, names: Sequence[BotName], limit: int) -> Waiting:
    def look(tx: Tx) -> Waiting:
        rows: list[QueuedRow] = []
        for name in names:
            rows += reports.queue(tx, name, limit=limit - len(rows))
        told = [replace(row, reason=unquoted(row.reason or "") or None) for row in rows]
        return Waiting(SystemClock().now_ms(), told)

    async with visit(settings) as database:
        return await database.read(look)


def as_lines(waiting: Waiting, *, limit: int) -> Iterator[str]:
    """The waiting calls for a person."""
    if not waiting.rows:
        yield "Nothing waits to be sent."
        return
    titles = ("CALL", "BOT", "CHAT", "METHOD", "STATE", "TRIES", "WAITING", "DUE", "WHY")
    yield from table(titles, [_cells(row, waiting.at_ms) for row in waiting.rows])
    if len(waiting.rows) == limit:
        yield f"The first {limit}; --limit shows more."


def _cells(row: QueuedRow, now_ms: int) -> Sequence[str]:
    return (
        call_ref(row.id),
        row.bot,
        or_dash(row.chat_id),
        printable(row.method),
        str(row.state) if row.priority == Priority.INTERACTIVE else f"{row.state} {row.priority}",
        str(row.attempts),
        since(row.created_at_ms, now_ms),
        until(max(row.due_ms, row.not_before_ms), now_ms),
        or_dash(row.reason),
    )
