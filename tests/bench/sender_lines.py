"""Messages per second: our sender beside python-telegram-bot's `Bot.send_message`.

Ours claims prepared rows of distinct chats under all rules, stamps them, sends them, and records
each answer; the clock runs from the first claim to the last record, by the rows' own times. The
peer sends the same number of calls at once, stores nothing, and keeps no rule. Both talk to the
same kind of stub, and take turns.
"""

from functools import partial

from storage import outbox
from storage.clock import SystemClock
from storage.database import Tx
from storage.lifecycle import BotName
from storage.options import SenderOptions
from storage.outgoing import Outgoing, chat_lane
from tests.bench.houses import RAISED, bench_bot, bench_house, number_of
from tests.bench.programs import Bench, Broken, count_of, result_of, serving
from tests.bench.table import AtLeast, Line, Peer, median
from tests.live.house import House
from tests.live.process import until

CONCURRENCY = SenderOptions().in_flight_max
_FIRST_CHAT_ID = 5_000_000_000
_ROWS_PER_WRITE = 1_000
_PATIENCE_MS = 120_000
_LANES = "select count(*) as number from lanes"
_SENT = "select count(*) as number from outbox where state = 'sent'"
_TOOK_MS = """
select
    (select max(finished_at_ms) from outbox) - (select min(claimed_at_ms) from attempts) as number
"""


async def measure(bench: Bench) -> list[Line]:
    """Drain prepared outboxes and let the peer send, in turns."""
    rounds, rows, peers = (1, 5_000, 1_000) if bench.quick else (3, 20_000, 3_000)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(await _drain(bench, rows))
        theirs.append(await _peer(bench, peers))
    bench.notes.append(
        f"sender: medians of {rounds} rounds of {rows:,} rows and {peers:,} calls, {CONCURRENCY} "
        f"under way at once; ours {_spread(ours)}, peer {_spread(theirs)}"
    )
    peer = Peer("PTB Bot.send_message", median(theirs))
    return [
        Line("sender, claimed, sent and recorded", median(ours), "/s", AtLeast(2_500)),
        Line("sender, claimed, sent and recorded", median(ours), "/s", AtLeast(5), peer),
    ]


def _spread(figures: list[float]) -> str:
    return f"{min(figures):,.0f} to {max(figures):,.0f}/s"


async def _drain(bench: Bench, rows: int) -> float:
    async with (
        serving(bench, "stub") as (_, port),
        bench_house(bench, "sender", f"http://127.0.0.1:{port}", settings=RAISED) as house,
    ):
        await _fill(house, rows)
        await house.start("sender")

        async def done() -> bool:
            return await count_of(port) >= rows and number_of(house, _LANES) == 0

        await until(done, within_ms=_PATIENCE_MS, what=f"{rows} rows sent and recorded")
        sent, calls = number_of(house, _SENT), await count_of(port)
        if sent != rows or calls != rows:
            raise Broken(f"of {rows} rows {sent} are recorded as sent, after {calls} calls")
        return rows / number_of(house, _TOOK_MS) * 1000


async def _fill(house: House, rows: int) -> None:
    await house.read(lambda tx: tx.now_ms())  # brings the database to its schema
    for first in range(0, rows, _ROWS_PER_WRITE):
        await house.write(partial(_leave, chats=range(first, first + _ROWS_PER_WRITE)))


def _leave(tx: Tx, chats: range) -> None:
    expires_at_ms = SystemClock().now_ms() + 3_600_000
    for number in chats:
        chat_id = _FIRST_CHAT_ID + number
        text = f"Your ferry leaves at nine from pier {number % 7}."
        outgoing = Outgoing(
            method="sendMessage",
            params={"chat_id": str(chat_id), "text": text},
            lane=chat_lane(chat_id),
            key=f"turn:{number}:0:0",
            chat_id=chat_id,
            expires_at_ms=expires_at_ms,
            placeholder=-1 - number,
        )
        outbox.enqueue(tx, BotName("main"), outgoing)


async def _peer(bench: Bench, calls: int) -> float:
    async with serving(bench, "stub") as (_, port):
        words = [bench_bot().token, f"http://127.0.0.1:{port}", str(calls), str(CONCURRENCY)]
        told = await result_of(
            bench, "peer_ptb_sender", words, within_s=_PATIENCE_MS / 1000, peer=True
        )
        return float(told["messages"] / told["seconds"])
