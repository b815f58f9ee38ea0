"""One chore of the sender, alone: `python -m tests.crash.chore DATABASE CHORE POINT`.

In a house a checkpoint comes every five minutes and a prune every ten: nobody waits for that to see
a process die in one. CHORE is a method of the sender's upkeep; the process is armed at POINT.
"""

import asyncio
import sys
from pathlib import Path

from sender.sharing import Sharer
from sender.upkeep import Upkeep
from storage.blobs import Blobs
from storage.clock import SystemClock
from storage.database import opened
from storage.failpoint import Failpoints
from storage.migrate import migrate
from storage.retention import Kept


async def _do(path: Path, chore: str, failpoints: Failpoints) -> None:
    clock = SystemClock()
    migrate(path, clock, failpoints=failpoints)
    async with opened(path, clock, failpoints=failpoints) as db:
        sharer = Sharer("sender.0.chore", frozenset(), is_dead=lambda _: True)
        # Whatever has ended was long ago.
        kept = Kept(inbox_days=-1, outbox_days=-1, placeholders_days=-1)
        blobs = Blobs(path.parent / "blobs")
        upkeep = Upkeep(db, clock, [], sharer=sharer, kept=kept, blobs=blobs)
        match chore:
            case "prune":
                await upkeep.prune()
            case "checkpoint":
                await upkeep.checkpoint()
            case _:
                assert chore == "nothing", chore


if __name__ == "__main__":
    asyncio.run(_do(Path(sys.argv[1]), sys.argv[2], Failpoints(sys.argv[3])))
