"""A queue of any depth, and the sender's claim on it, again and again, the same work each time.

The rows are made by SQLite itself, so that a million of them takes seconds. A tenth belongs to one
chat. Each round leaves as many new calls as the last one took, a few of them interactive, then
claims with the sender's own transaction, and settles what was claimed as sent.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sender.claiming import Look, Picked, pick
from sender.limits import pace_of
from sender.memory import BotMemory
from sender.policy import MarkSent
from sender.settling import Settling, settle_all
from storage import claims, lanes, leases, outbox
from storage.claims import AttemptEnd
from storage.clock import Clock
from storage.database import Database, Tx, connect
from storage.leases import Lease
from storage.lifecycle import AttemptStage, BotName, Priority
from storage.migrate import migrate
from storage.options import BotOptions, Limits, SenderOptions, Settings
from storage.outgoing import Outgoing, chat_lane

BOT = BotName("main")
ONE_IN = 10
"""Of so many rows one is for the same chat."""

THE_CHAT = 5_000_000_000
INTERACTIVE_A_ROUND = 4
_FIRST_CHAT = 6_000_000_000
_FIRST_NEW_CHAT = 7_000_000_000
_FAR_MS = 365 * 86_400_000
_RAISED = Limits(
    chat_per_second=1e6,
    chat_burst=1_000_000,
    group_per_minute=10**6,
    bot_per_second=1e6,
    bulk_per_second=1e6,
)
_QUICKLY = ("pragma journal_mode = off", "pragma synchronous = off", "pragma cache_size = -200000")
_INDEXES = """
select name, sql from sqlite_schema where type = 'index' and tbl_name = 'outbox' and sql is not null
"""
_ROWS = """
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :rows)
insert into outbox (
    bot, key, digest, method, params, lane, chat_id, priority, on_uncertain, joined,
    expires_at_ms, placeholder, created_at_ms
)
select
    :bot, 'campaign:' || n, hex(randomblob(12)), 'sendMessage',
    '{"chat_id":"' || chat || '","text":"Your ferry leaves at nine from pier ' || (n % 7) || '."}',
    'c:' || chat, chat, 'bulk', 'hold', 1, :expires_at_ms, -n, :now_ms
from (
    select n, case when n % :one_in = 1 then :the_chat else :first_chat + n end as chat
    from numbers
)
"""


def fill(path: Path, rows: int, clock: Clock) -> None:
    """Make a database with so many queued rows of one bot."""
    migrate(path, clock)
    connection = connect(path)
    try:
        for pragma in _QUICKLY:
            connection.execute(pragma, {}).fetchall()
        indexes = connection.execute(_INDEXES, {}).fetchall()
        connection.execute("begin", {})
        for index in indexes:
            connection.execute(f"drop index {index['name']}", {})
        now_ms = clock.now_ms()
        params = {
            "rows": rows,
            "bot": BOT,
            "one_in": ONE_IN,
            "the_chat": THE_CHAT,
            "first_chat": _FIRST_CHAT,
            "expires_at_ms": now_ms + _FAR_MS,
            "now_ms": now_ms,
        }
        connection.execute(_ROWS, params)
        for index in indexes:
            connection.execute(index["sql"], {})
        lanes.rebuild(Tx(connection, now_ms), BOT)
        connection.execute("commit", {})
        connection.execute("pragma journal_mode = wal", {}).fetchall()
    finally:
        connection.close()
    # Else the system writes it out later, in the way of whoever syncs then.
    with path.open("rb") as file:
        os.fsync(file.fileno())


@dataclass(slots=True)
class Queue:
    """A filled queue and the sender that owns it. Take it with `owned`."""

    db: Database
    clock: Clock
    lease: Lease
    memory: BotMemory
    _claimed: Sequence[claims.Claim] = field(default=(), init=False)
    _left: int = field(default=0, init=False)

    async def refill(self) -> None:
        """Leave as many calls as the last round took."""
        took = len(self._claimed) or SenderOptions().in_flight_max
        await self.db.write(lambda tx: self._leave(tx, took))

    async def claim(self) -> Picked:
        """Claim as the sender does: one transaction, on disk when this returns."""
        look = self._look()
        picked = await self.db.write(lambda tx: pick(tx, look, self.clock))
        self._claimed = [taken.claim for taken in picked.taken]
        return picked

    async def settle(self) -> None:
        """All that was claimed is sent."""
        await self.db.write(self._settle)

    def _look(self) -> Look:
        return self.memory.look(BOT, self.lease, in_flight=0, reload_cooldowns=False)

    def _leave(self, tx: Tx, count: int) -> None:
        for number in range(count):
            self._left += 1
            chat_id = _FIRST_NEW_CHAT + self._left
            is_interactive = number < INTERACTIVE_A_ROUND
            outgoing = Outgoing(
                method="sendMessage",
                params={"chat_id": str(chat_id), "text": "Your ferry leaves at nine."},
                lane=chat_lane(chat_id),
                key=f"turn:{self._left}:0:0",
                chat_id=chat_id,
                priority=Priority.INTERACTIVE if is_interactive else Priority.BULK,
                expires_at_ms=tx.now_ms() + _FAR_MS,
            )
            outbox.enqueue(tx, BOT, outgoing)

    def _settle(self, tx: Tx) -> None:
        claims.stamp(tx, self._claimed)
        end = AttemptEnd(AttemptStage.ANSWERED, "sent", duration_ms=5, status=200)
        settle_all(
            tx, [Settling(claim, end, MarkSent(claim.item.id, "")) for claim in self._claimed]
        )


async def owned(db: Database, clock: Clock) -> Queue:
    """Own the bot of a filled database, with limits that hold nobody back."""
    settings = Settings(bots={BOT: BotOptions()}, limits=_RAISED, sender=SenderOptions())
    lease = await db.write(
        lambda tx: leases.take(tx, f"sender:{BOT}", "bench", is_dead=lambda _: True)
    )
    assert lease is not None
    return Queue(db, clock, lease, BotMemory(pace_of(settings, BOT), clock))
