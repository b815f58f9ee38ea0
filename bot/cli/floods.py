"""`ferryman floods`: the floods that were met, and what each policy would have made of them.

By them `flood_scope` can be judged: a policy that stops the whole bot is too careful where calls to
other chats went through meanwhile, and one that stops a chat alone too bold where they were refused
too. No user's words are in it.
"""

import asyncio
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.cli.ground import bots_of, settings_of, visit
from bot.cli.output import say, say_json
from bot.cli.parser import Commands, add_json, add_limit
from bot.cli.text import printable, since, span, table
from storage import floods
from storage.clock import SystemClock
from storage.database import Tx
from storage.floods import FloodReport
from storage.lifecycle import BotName
from storage.settings import Settings

_FLOODS_SHOWN = 50

_NOTES = """\
CHAT, ADAPTIVE and BOT tell for how long each flood_scope would have stopped the whole bot; * marks
the one in force. SENT and REFUSED tell what became of calls to other chats that left while the
flood lasted; REFUSED counts those that met a flood as well.
"""


@dataclass(frozen=True, slots=True)
class Floods:
    """The latest floods of the bots asked for, as of `at_ms`."""

    at_ms: int
    floods: Sequence[FloodReport]


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "floods",
        _floods,
        purpose="List the floods that were met, and what each policy makes of them.",
        notes=_NOTES,
    )
    parser.add_argument("--bot", metavar="NAME", help="list only this bot's floods")
    add_limit(parser, default=_FLOODS_SHOWN)
    add_json(parser)


def _floods(given: Namespace) -> int:
    settings = settings_of(given)
    names = bots_of(settings, [given.bot] if given.bot else [])
    found = asyncio.run(_look(settings, names, given.limit))
    if given.json:
        say_json(found)
    else:
        say(as_lines(found))
    return 0


async def _look(settings: Settings, names: Sequence[BotName], limit: int) -> Floods:
    def look(tx: Tx) -> Floods:
        found = [flood for name in names for flood in floods.latest(tx, name, limit=limit)]
        found.sort(key=lambda flood: flood.at_ms, reverse=True)
        return Floods(SystemClock().now_ms(), found[:limit])

    async with visit(settings) as database:
        return await database.read(look)


def as_lines(found: Floods) -> Iterator[str]:
    """The floods for a person."""
    if not found.floods:
        yield "No flood is on record."
        return
    titles = (
        *("WHEN", "BOT", "LANE", "METHOD", "WAIT"),
        *("CHAT", "ADAPTIVE", "BOT", "SENT", "REFUSED"),
    )
    yield from table(titles, [_cells(flood, found.at_ms) for flood in found.floods])


def _cells(flood: FloodReport, now_ms: int) -> Sequence[str]:
    whole = {"chat": flood.chat_ms, "adaptive": flood.adaptive_ms, "bot": flood.bot_ms}
    return (
        f"{since(flood.at_ms, now_ms)} ago",
        flood.bot,
        printable(flood.lane),
        printable(flood.method),
        span(flood.wait_ms),
        *(_whole(ms, is_chosen=policy == flood.chosen) for policy, ms in whole.items()),
        str(flood.others_sent),
        str(flood.others_flooded),
    )


def _whole(ms: int, *, is_chosen: bool) -> str:
    told = span(ms) if ms else "-"
    return f"{told} *" if is_chosen else told
