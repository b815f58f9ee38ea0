"""`ferryman answered`: a person has answered in a chat, so that the bot need not any more.

What waits there and was caused before is cancelled, much of it in many short transactions; what a
turn that is late still leaves is cancelled at its claim.
"""

import asyncio
from argparse import Namespace
from collections.abc import Iterator
from functools import partial
from typing import Final

from bot.cli.ground import one_bot, ring, settings_of, visit
from bot.cli.output import say, say_json
from bot.cli.parser import Commands, add_json
from bot.cli.scopes import add_bot, add_business, chat
from bot.cli.text import call_ref, counted
from storage import withdrawals
from storage.clock import SystemClock
from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, Withdrawal
from storage.outgoing import chat_lane
from storage.settings import Settings
from storage.telemetry import event
from storage.withdrawals import Noted

_ROUNDS_MAX: Final = 10_000


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "answered",
        _answered,
        purpose="Say that a person has answered in a chat: what waits there is not said any more.",
    )
    parser.add_argument("chat", metavar="CHAT", type=chat, help="its number, or its @name")
    add_business(parser)
    add_bot(parser)
    add_json(parser)


def _answered(given: Namespace) -> int:
    settings = settings_of(given)
    bot = one_bot(settings, given.bot)
    lane = chat_lane(given.chat, given.business)
    noted = asyncio.run(_note(settings, bot, lane))
    ring(settings, ["sender"])
    if given.json:
        say_json({"cancelled": noted.cancelled, "too_late": noted.too_late})
    else:
        say(_answered_lines(noted))
    return 0


async def _note(settings: Settings, bot: BotName, lane: str) -> Noted:
    """Note it, and again as long as more of what waits is found by that."""
    cancelled: list[OutboxId] = []
    noted, at_ms = Noted(), SystemClock().now_ms()
    async with visit(settings) as database:
        for _ in range(_ROUNDS_MAX):
            noted = await database.write(partial(_answer_once, bot=bot, lane=lane, at_ms=at_ms))
            cancelled += noted.cancelled
            if not (noted.maybe_more and noted.cancelled):
                break
    if cancelled:
        reason = withdrawals.REASONS[Withdrawal.PERSON_ANSWERED]
        count, row = len(cancelled), cancelled[0]
        event("outbox.cancelled", bot=bot, outbox_id=row, count=count, reason=reason)
    return Noted(cancelled, noted.too_late)


def _answer_once(tx: Tx, bot: BotName, lane: str, at_ms: int) -> Noted:
    return withdrawals.note(tx, bot, lane, Withdrawal.PERSON_ANSWERED, at_ms=at_ms)


def _answered_lines(noted: Noted) -> Iterator[str]:
    yield f"{counted(len(noted.cancelled), 'call')} cancelled"
    if noted.too_late:
        told = f"{counted(len(noted.too_late), 'call')} under way: too late for"
        yield f"{told} {', '.join(map(call_ref, noted.too_late))}"
