"""A paced broadcast with replies in between: ours and PTB's `AIORateLimiter`, at the same time.

Each has a bot of its own at one strict Telegram, which counts 30 calls a second in a sliding window
and refuses the rest. Ours sends prepared rows with the limits as shipped. Meanwhile somebody is
answered three times a second: a row of ours, left by another process, is timed from that moment to
the record of its answer; a reply of the peer's from the call to its return.
"""

import asyncio
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from storage import outbox
from storage.clock import SystemClock
from storage.database import Database, Tx, connect, opened
from storage.doorbell import Doorbell
from storage.lifecycle import BotName, Priority
from storage.options import Limits
from storage.outgoing import Outgoing, chat_lane
from tests.bench.houses import bench_bot, bench_house, number_of
from tests.bench.programs import Bench, Broken, pause, result_of, serving
from tests.bench.strict import FIRST_PERSON
from tests.bench.table import Below, Line, Peer, percentile
from tests.live.house import House, LiveBot, made_up_bot
from tests.live.process import free_port
from tests.simulator.control import Control
from tests.simulator.ledger import Ledger

REPLY_EVERY_S = 1 / 3
"""Broadcast and replies together stay below what Telegram takes of one bot."""

_REPLY_CHATS = 200
_BOT = BotName("main")
_ROWS_PER_WRITE = 1_000
_TTL_MS = 3_600_000
_TOO_MANY = 429
_PATIENCE_S = 60.0
_PEERS_TIMES = 1.5
"""The peer is given up after so many times what the broadcast should take."""

_TOOK_MS = """
select
    (select max(finished_at_ms) from outbox where priority = 'bulk')
    - (select min(claimed_at_ms) from attempts where priority = 'bulk') as number
"""
_SENT = "select count(*) as number from outbox where state = 'sent' and priority = 'bulk'"
_BULK_LEFT = "select count(*) as number from lanes where priority = 'bulk'"
_REPLIES_LEFT = "select count(*) as number from lanes where priority = 'interactive'"
_REPLIES = """
select state, finished_at_ms - created_at_ms as took_ms from outbox where priority = 'interactive'
"""


@dataclass(frozen=True, slots=True)
class _Outcome:
    """How a broadcast went: how long, how many refused with 429, how long each reply took."""

    sent: int
    seconds: float
    floods: int
    replies_ms: list[float]
    failed: int = 0

    def seconds_for(self, rows: int) -> float:
        """How long all would have taken at the pace at which it went."""
        return self.seconds * rows / max(1, self.sent)


async def measure(bench: Bench) -> list[Line]:
    """Let both broadcast to the same crowd at the same time."""
    rows = 400 if bench.quick else 3_000
    ours, theirs = await _side_by_side(bench, rows)
    per_second = Limits().bulk_per_second
    bench.notes.append(
        f"broadcast: {rows:,} rows of as many chats, {1 / REPLY_EVERY_S:.0f} replies a second "
        f"meanwhile ({len(ours.replies_ms)} and {len(theirs.replies_ms)}), both bots at one "
        f"simulated Telegram that takes 30 calls a second; the peer sent {theirs.sent:,} in "
        f"{theirs.seconds:.0f} s, {theirs.failed} failed after its retries, p99 of its replies "
        f"{percentile(theirs.replies_ms, 0.99):,.0f} ms"
    )
    name = "PTB AIORateLimiter"
    pace = Peer(f"rows by {per_second:.0f} a second", rows / per_second)
    limiter = Peer(name, theirs.seconds_for(rows))
    floods = Peer(name, theirs.floods)
    worst = Peer(name, max(theirs.replies_ms))
    return [
        Line(f"broadcast to {rows:,} chats", ours.seconds, "s", Below(1.03), pace),
        Line(
            f"broadcast to {rows:,} chats",
            ours.seconds,
            "s",
            Below(pace.figure * 1.03),
            limiter,
            alone=True,
        ),
        Line("broadcast, floods drawn", ours.floods, "", Below(1), floods, alone=True),
        Line(
            "broadcast, replies meanwhile, p99", percentile(ours.replies_ms, 0.99), "ms", Below(150)
        ),
        Line("broadcast, slowest reply meanwhile", max(ours.replies_ms), "ms", Below(1), worst),
    ]


async def _side_by_side(bench: Bench, rows: int) -> tuple[_Outcome, _Outcome]:
    bot, other = bench_bot(), made_up_bot("peer", 2)
    control_port = free_port()
    words = [str(control_port), str(rows + _REPLY_CHATS), bot.token, other.token]
    within_s = _PEERS_TIMES * rows / Limits().bulk_per_second + _PATIENCE_S
    async with (
        serving(bench, "strict", *words) as (_, port),
        Control(f"http://127.0.0.1:{control_port}") as control,
        bench_house(bench, "broadcast", f"http://127.0.0.1:{port}", bot=bot) as house,
    ):
        await _fill(house, rows)
        _, theirs = await asyncio.gather(
            _ours(house, within_s),
            _peers(bench, other, f"http://127.0.0.1:{port}", rows=rows, within_s=within_s),
        )
        ledger = await control.ledger()
    sent = number_of(house, _SENT)
    if sent != rows:
        raise Broken(f"of {rows} rows {sent} are recorded as sent")
    ours = _Outcome(
        sent=sent,
        seconds=number_of(house, _TOOK_MS) / 1000,
        floods=_floods(ledger, bot),
        replies_ms=_replies_ms(house),
    )
    return ours, _Outcome(floods=_floods(ledger, other), **theirs)


def _floods(ledger: Ledger, bot: LiveBot) -> int:
    return sum(each.bot_id == bot.id and each.code == _TOO_MANY for each in ledger.arrivals())


async def _ours(house: House, within_s: float) -> None:
    """Send all of it, and leave a reply at each tick until it is over."""
    bell = Doorbell(house.state, "bench")
    try:
        async with opened(house.database_path, SystemClock()) as db, asyncio.timeout(within_s):
            await house.start("sender")
            await _reply(db, bell, lambda: number_of(house, _BULK_LEFT) == 0)
            while number_of(house, _REPLIES_LEFT):
                await pause(REPLY_EVERY_S)
    except TimeoutError:
        left = number_of(house, _BULK_LEFT)
        raise Broken(f"not within {within_s:.0f} s; {left} rows are left") from None
    finally:
        bell.close()


async def _reply(db: Database, bell: Doorbell, is_over: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in itertools.count():
        await pause(max(0.0, began + number * REPLY_EVERY_S - loop.time()))
        if is_over():
            break
        await db.write(partial(_leave_reply, number=number))
        bell.ring("sender")


def _leave_reply(tx: Tx, number: int) -> None:
    chat_id = FIRST_PERSON + number % _REPLY_CHATS
    text = "At nine, and again at noon."
    outbox.enqueue(tx, _BOT, _message(tx, f"turn:{number}:0:0", chat_id, text))


def _message(tx: Tx, key: str, chat_id: int, text: str, *, is_bulk: bool = False) -> Outgoing:
    return Outgoing(
        method="sendMessage",
        params={"chat_id": str(chat_id), "text": text},
        lane=chat_lane(chat_id),
        key=key,
        chat_id=chat_id,
        priority=Priority.BULK if is_bulk else Priority.INTERACTIVE,
        expires_at_ms=tx.now_ms() + _TTL_MS,
    )


async def _fill(house: House, rows: int) -> None:
    await house.read(lambda tx: tx.now_ms())  # brings the database to its schema
    for first in range(0, rows, _ROWS_PER_WRITE):
        numbers = range(first, min(rows, first + _ROWS_PER_WRITE))
        await house.write(partial(_leave_rows, numbers=numbers))


def _leave_rows(tx: Tx, numbers: range) -> None:
    for number in numbers:
        text = f"Your ferry leaves at nine from pier {number % 7}."
        chat_id = FIRST_PERSON + _REPLY_CHATS + number
        outgoing = _message(tx, f"campaign:{number}", chat_id, text, is_bulk=True)
        outbox.enqueue(tx, _BOT, outgoing)


def _replies_ms(house: House) -> list[float]:
    connection = connect(house.database_path)
    try:
        rows = connection.execute(_REPLIES, {}).fetchall()
    finally:
        connection.close()
    if not rows or any(row["state"] != "sent" for row in rows):
        raise Broken("not every reply was sent")
    return [float(row["took_ms"]) for row in rows]


async def _peers(bench: Bench, bot: LiveBot, api_url: str, *, rows: int, within_s: float) -> Any:  # noqa: ANN401 - a program's JSON
    plan = {
        "token": bot.token,
        "api_url": api_url,
        "first_chat": FIRST_PERSON + _REPLY_CHATS,
        "chats": rows,
        "seconds_max": _PEERS_TIMES * rows / Limits().bulk_per_second,
        "first_reply_chat": FIRST_PERSON,
        "reply_chats": _REPLY_CHATS,
        "reply_every_s": REPLY_EVERY_S,
    }
    words = [json.dumps(plan)]
    return await result_of(bench, "peer_ptb_broadcast", words, within_s=within_s, peer=True)
