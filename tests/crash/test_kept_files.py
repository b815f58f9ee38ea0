"""Files of a turn over the death of processes: no row without its content, none sent twice."""

import hashlib
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from storage.blobs import Blobs
from tests.crash.books import read_books
from tests.crash.living import Living, living
from tests.crash.picturing import picture_of
from tests.live.house import Role

HANDLERS: Final = "tests.crash.picturing:register"


async def dies(house: Living, role: Role, point: str, *, word: str = "") -> None:
    """Start a role that dies at this point, and say a word that brings it there."""
    process = await house.start(role, failpoint=point)
    if word:
        await house.sim.says(house.load.chats[0].user, word, bot=house.load.bot.id)
    await process.ended(within_s=20)


def kept(house: Living, content: bytes) -> bool:
    blobs = Blobs(house.house.state / "blobs")
    return blobs.size_bytes(hashlib.sha256(content).hexdigest()) == len(content)


@pytest.mark.timeout(120)
async def test_a_turn_that_dies_after_it_kept_its_files_sends_them_once_in_the_end(
    tmp_path: Path,
) -> None:
    async with living(tmp_path, handlers=HANDLERS) as house:
        await house.start_all("web")
        await dies(house, "worker", "worker.turn.committing", word="sea")
        assert kept(house, picture_of("sea")), "a file is on disk before its row is"
        assert not read_books(house.house.database_path).rows
        await dies(house, "worker", "worker.turn.committed")
        await dies(house, "sender", "sender.stamp.committing")
        await dies(house, "sender", "sender.settled")
        await house.start_all("worker", "sender")
        evidence = await house.drained()

        assert {row.state for row in evidence.books.rows} == {"sent"}
        effects = [arrival for arrival in evidence.ledger.arrivals() if arrival.effect]
        sent = [arrival for arrival in effects if arrival.method.startswith("send")]
        assert Counter(arrival.method for arrival in sent) == {"sendPhoto": 1, "sendMediaGroup": 1}
        photo = next(arrival for arrival in sent if arrival.method == "sendPhoto")
        assert photo.params["photo"] == f"({len(picture_of('sea'))} bytes)"
        assert not evidence.ledger.client_bugs()
