"""`ferryman pause` and `ferryman resume`: stop a bot, its bulk or one chat for a while.

What is paused waits where it stands, and still expires; nothing is lost by a pause, and nothing
that has left is taken back.
"""

import asyncio
from argparse import Namespace
from typing import Any, Final

from bot.cli.ground import one_bot, ring, settings_of, visit
from bot.cli.output import say, say_json
from bot.cli.parser import EXIT_FAILED, Commands, Parser, add_json, span_ms
from bot.cli.scopes import add_bot, add_chat
from bot.cli.text import moment
from storage import pauses
from storage.clock import SystemClock
from storage.errors import Usage
from storage.outgoing import chat_lane
from storage.pauses import BOT_SCOPE, BULK_SCOPE
from storage.telemetry import event

_WHO: Final = "an operator"


def add(commands: Commands) -> None:
    """Add both commands."""
    pausing = commands.add(
        "pause",
        _pause,
        purpose="Stop sending for a bot, its bulk or one chat, and say why.",
    )
    _add_scope(pausing)
    pausing.add_argument(
        "--for",
        metavar="SPAN",
        dest="span",
        type=span_ms,
        help="so long (90s, 2h); else until resumed",
    )
    pausing.add_argument("--reason", metavar="TEXT", required=True, help="what others are told")
    add_json(pausing)
    resuming = commands.add("resume", _resume, purpose="Let what was paused go on.")
    _add_scope(resuming)
    add_json(resuming)


def _add_scope(parser: Parser) -> None:
    add_bot(parser)
    parser.add_argument("--bulk", action="store_true", help="only broadcasts, paid ones included")
    add_chat(parser)


def _scope(given: Namespace) -> str:
    """Name what is meant.

    Raises Usage where two things are.
    """
    if given.bulk and given.chat is not None:
        raise Usage("--bulk and --chat: expected one of them")
    if given.chat is not None:
        return chat_lane(given.chat, given.business)
    return BULK_SCOPE if given.bulk else BOT_SCOPE


def told_scope(scope: str) -> str:
    """What a scope is called before a person."""
    if scope == BOT_SCOPE:
        return "everything"
    return "bulk" if scope == BULK_SCOPE else f"chat {scope.rpartition(':')[2]}"


def _pause(given: Namespace) -> int:
    settings = settings_of(given)
    bot, scope, reason = one_bot(settings, given.bot), _scope(given), given.reason
    until_ms = None if given.span is None else SystemClock().now_ms() + given.span

    async def carry_out() -> None:
        async with visit(settings) as database:
            await database.write(
                lambda tx: pauses.pause(
                    tx,
                    bot,
                    scope,
                    reason=reason,
                    by_whom=_WHO,
                    until_ms=until_ms,
                ),
            )

    asyncio.run(carry_out())
    event("pause.set", bot=bot, scope=scope, reason=reason, until_ms=until_ms, by=_WHO)
    ring(settings, ["sender"])
    document: dict[str, Any] = {"bot": bot, "scope": scope, "until_ms": until_ms, "reason": reason}
    if given.json:
        say_json(document)
    else:
        ends = "until it is resumed" if until_ms is None else f"until {moment(until_ms)}"
        say([f"{told_scope(scope)} of {bot} is paused {ends}"])
    return 0


def _resume(given: Namespace) -> int:
    settings = settings_of(given)
    bot, scope = one_bot(settings, given.bot), _scope(given)

    async def carry_out() -> bool:
        async with visit(settings) as database:
            return await database.write(lambda tx: pauses.resume(tx, bot, scope))

    was_paused = asyncio.run(carry_out())
    if was_paused:
        event("pause.ended", bot=bot, scope=scope, by=_WHO)
    ring(settings, ["sender"])
    if given.json:
        say_json({"bot": bot, "scope": scope, "was_paused": was_paused})
    else:
        told = "goes on" if was_paused else "was not paused"
        say([f"{told_scope(scope)} of {bot} {told}"])
    return 0 if was_paused else EXIT_FAILED
