"""A strict Telegram with a crowd: the simulator with its limits, and bots that have met everyone.

`python -m tests.bench.strict PORT CONTROL_PORT PEOPLE TOKEN...`. The people have the chat ids from
`FIRST_PERSON` on. Its ledger tells afterwards how many calls each bot had refused.
"""

import asyncio
import sys
from collections.abc import Sequence

import uvloop

from tests.simulator.server import Server

FIRST_PERSON = 5_000_000_000


async def _serve(port: int, control_port: int, people: int, tokens: Sequence[str]) -> None:
    async with Server(port=port, control_port=control_port) as server:
        telegram = server.telegram
        crowd = range(FIRST_PERSON, FIRST_PERSON + people)
        for person in crowd:
            telegram.people.add_user("Ada", user_id=person)
        for token in tokens:
            telegram.bot(token).met.update(crowd)
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(_serve(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
