"""Houses to be measured: our real processes, with the limits as they are or out of the way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage.database import connect
from tests.bench.programs import Bench
from tests.live.house import House, LiveBot, Plan, house, made_up_bot

# The rules stay on; only their figures are beyond what this machine can do.
RAISED = """
[limits]
chat_per_second = 1000000.0
chat_burst = 1000000
group_per_minute = 1000000
bot_per_second = 1000000.0
bulk_per_second = 1000000.0
"""
# A load is faster than any worker: the depth at which web would refuse is out of the way as well.
_DEEP_INBOX = {"FERRYMAN_WEB__INBOX_DEPTH_MAX": "100000000"}


def bench_bot() -> LiveBot:
    """The bot of every house here: it answers whatever it is told."""
    return made_up_bot(handlers="tests.bench.handlers:register")


@asynccontextmanager
async def bench_house(
    bench: Bench, name: str, telegram_url: str, *, settings: str = "", bot: LiveBot | None = None
) -> AsyncIterator[House]:
    """A house with fresh state and nothing started yet."""
    plan = Plan(
        bench.place(name),
        telegram_url,
        bots=(bot or bench_bot(),),
        settings=settings,
        environment=_DEEP_INBOX,
    )
    async with house(plan) as built:
        yield built


def number_of(house: House, statement: str) -> int:
    """One number out of a house's database, read beside the processes that use it."""
    connection = connect(house.database_path)
    try:
        rows = connection.execute(statement, {}).fetchall()
        return int(rows[0]["number"] or 0)
    finally:
        connection.close()
