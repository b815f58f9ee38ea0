"""`ferryman send`: leave one call for the sender from the command line, as a cron job does.

It writes the row itself, so it needs neither the API nor its token, and it works while no role
runs. What it accepts and how it refuses is the API's, word for word (`bot/orders.py`).
"""

import asyncio
import re
import sys
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from bot.cli.ground import ring, settings_of, visit
from bot.cli.output import say, say_json
from bot.cli.parser import EXIT_FAILED, Commands, add_json
from bot.cli.text import call_ref, printable, unquoted
from bot.orders import Order, read_order
from bot.parameters import Json, NotJson, is_encodable, read_json
from bot.producing import Left, leave, outgoing_of, terms_of
from storage import reports
from storage.clock import Clock, SystemClock, SystemDice, hex_name
from storage.database import Database
from storage.errors import FerrymanError, Usage
from storage.lifecycle import HELD, TERMINAL, OutboxId, OutboxState
from storage.reports import RowReport
from storage.settings import Settings

_LOOK_AGAIN_MS: Final = 100
_NOTES: Final = """\
examples:
  ferryman send --bot main --chat 5 --text "Backup done" --key backup-2026-08-24
  ferryman send --bot main --method sendPhoto --params '{"chat_id": 5, "photo": "https://…"}'
  echo '{"chat_id": 5, "text": "…"}' | ferryman send --bot main --params - --wait 60

The same --key is never two calls: a job that runs again leaves nothing new.
"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add(
        "send", _send, purpose="Leave a call for the sender: a text, or any method.", notes=_NOTES
    )
    parser.add_argument("--bot", metavar="NAME", required=True, help="the bot that is to say it")
    parser.add_argument("--chat", metavar="CHAT", help="the chat: its number, or its @name")
    parser.add_argument("--text", metavar="TEXT", help="the text of a message")
    parser.add_argument("--method", metavar="NAME", default="sendMessage", help="(sendMessage)")
    parser.add_argument(
        "--params", metavar="JSON", help="the method's parameters; - reads them from stdin"
    )
    parser.add_argument("--key", metavar="KEY", help="names the cause: never two calls for one key")
    parser.add_argument(
        "--class", metavar="CLASS", dest="priority", help="interactive (default), bulk or paid"
    )
    parser.add_argument("--not-before", metavar="MOMENT", help="2026-08-24T18:00:00+02:00")
    parser.add_argument("--expires-at", metavar="MOMENT", help="not to be sent after it")
    parser.add_argument(
        "--ttl", metavar="SECONDS", type=_seconds, help="not to be sent later than so long"
    )
    parser.add_argument("--supersede", metavar="NAME", help="replaces what waits under this name")
    parser.add_argument("--on-uncertain", metavar="POLICY", help="hold, resend or drop")
    parser.add_argument("--channel", metavar="NAME", help="the channel, if it is not Telegram")
    parser.add_argument(
        "--wait", metavar="SECONDS", type=_seconds, help="wait until it has ended, at most so long"
    )
    add_json(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError("expected a number of seconds above 0")
    return seconds


def _send(given: Namespace) -> int:
    settings = settings_of(given)
    order = read_order(_asked(given))
    return asyncio.run(_carry_out(given, settings, order))


async def _carry_out(given: Namespace, settings: Settings, order: Order) -> int:
    clock, dice = SystemClock(), SystemDice()
    fresh_key = f"send:{hex_name(dice)}{hex_name(dice)}"
    row = outgoing_of(order, terms_of(settings), now_ms=clock.now_ms(), key=fresh_key)
    async with visit(settings) as database:
        left = await database.write(partial(leave, order=order, outgoing=row))
        ring(settings, ["sender"])
        if given.wait is None:
            return _tell_left(left, as_json=given.json)
        call = await _ended(database, left.id, clock, within_ms=int(given.wait * 1000))
    return _tell_ended(call, as_json=given.json)


def _asked(given: Namespace) -> Json:
    """The order in the form of the API's body."""
    order: dict[str, Json] = {
        "bot": given.bot,
        "method": given.method,
        "params": _params(given),
        "class": given.priority,
        "not_before": _moment(given.not_before),
        "expires_at": _moment(given.expires_at),
        "ttl_s": given.ttl,
        "supersede": given.supersede,
        "key": given.key,
        "on_uncertain": given.on_uncertain,
        "channel": given.channel,
    }
    return {name: value for name, value in order.items() if value is not None}


def _moment(text: str | None) -> Json:
    """Milliseconds as a number, which a command line has no other form for."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]{1,18}", text) else text


def _params(given: Namespace) -> dict[str, Json]:
    params = _given_params(given.params)
    for option, name in (("--chat", "chat_id"), ("--text", "text")):
        value: str | None = getattr(given, option[2:])
        if value is None:
            continue
        if name in params:
            raise Usage(f"{option} and {name} in --params: expected one of them")
        if not is_encodable(value):
            raise Usage(f"{option}: expected UTF-8")
        params[name] = value
    return params


def _given_params(text: str | None) -> dict[str, Json]:
    if text is None:
        return {}
    raw = sys.stdin.buffer.read() if text == "-" else text.encode(errors="surrogateescape")
    try:
        params = read_json(raw)
    except NotJson as error:
        raise Usage(f"--params: {error}") from None
    if not isinstance(params, dict):
        raise Usage('--params: expected a JSON object, such as {"chat_id": 5, "text": "…"}')
    return params


async def _ended(
    database: Database, number: OutboxId, clock: Clock, *, within_ms: int
) -> RowReport:
    """The call as soon as it has ended or is held, or as it stands when the time is over."""
    until_ms = clock.monotonic_ms() + within_ms
    while True:
        call = await database.read(partial(reports.show, row_id=number))
        if call is None:
            raise FerrymanError(f"there is no call {call_ref(number)} any more")
        if call.state in TERMINAL | HELD or clock.monotonic_ms() >= until_ms:
            return call
        await clock.sleep_ms(_LOOK_AGAIN_MS)


def _tell_left(left: Left, *, as_json: bool) -> int:
    if as_json:
        say_json({"id": left.id, "state": left.state, "fresh": left.fresh})
    elif left.fresh:
        say([f"{call_ref(left.id)} left for the sender"])
    else:
        say([f"{call_ref(left.id)} stands under this key already: {left.state}"])
    return 0


def _tell_ended(call: RowReport, *, as_json: bool) -> int:
    reason = unquoted(call.reason or "") or None
    if as_json:
        say_json(_document(call, reason))
    else:
        say(_lines(call, reason))
    return 0 if call.state is OutboxState.SENT else EXIT_FAILED


def _document(call: RowReport, reason: str | None) -> Mapping[str, Any]:
    return {
        "id": call.id,
        "state": call.state,
        "reason": reason,
        "message_id": call.message_id,
        "attempts": len(call.history),
    }


def _lines(call: RowReport, reason: str | None) -> Sequence[str]:
    told = f"{call_ref(call.id)} {_became(call)}"
    return [told if reason is None else f"{told}: {printable(reason)}"]


def _became(call: RowReport) -> str:
    if call.state is OutboxState.SENT:
        return "sent" if call.message_id is None else f"sent as message {call.message_id}"
    if call.state in TERMINAL:
        return f"not sent, {call.state}"
    if call.state in HELD:
        return f"held for your decision, {call.state} (ferryman review list)"
    return f"not sent yet, {call.state} (ferryman show {call_ref(call.id)})"
