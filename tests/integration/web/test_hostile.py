"""Every hostile request gets the answer, and leaves the rows, that the corpus states."""

import asyncio
import json
from pathlib import Path

import pytest

from tests.integration.web.door import SECRET, Door, open_door, update
from tests.integration.web.replay import DATA, Posting, postings, talk

PATH = "/telegram/main"


def _is_expected(posting: Posting, got: int | str, rows: tuple[int, int]) -> bool:
    is_2xx = isinstance(got, int) and 200 <= got < 300 and 200 in posting.statuses
    return (got in posting.statuses or is_2xx) and any(
        {
            "inbox": rows == (1, 0),
            "quarantine": rows == (0, 1),
            "none": rows == (0, 0),
            "duplicate": rows[0] == 0,
        }[stored]
        for stored in posting.stored
    )


async def _differences(door: Door) -> list[str]:
    found = []
    for posting in postings(PATH, SECRET):
        before = door.counts()
        got = await asyncio.to_thread(talk, door.port, posting)
        after = door.counts()
        rows = (after[0] - before[0], after[1] - before[1])
        if not _is_expected(posting, got, rows):
            found.append(f"{posting.name}: got {got} want {posting.statuses}, rows {rows}")
    return found


async def test_every_hostile_request_is_answered_as_the_corpus_states(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_door(tmp_path) as door:
        assert await _differences(door) == []
        assert (await door.post(update(999))).status_code == 200, "and the door still stands"
    assert not [record for record in caplog.records if record.exc_info], "no traceback"
    assert "Traceback" not in caplog.text


def test_the_corpus_is_whole() -> None:
    assert len(json.loads((DATA / "manifest.json").read_text("utf-8"))) == 71
    assert len(list(postings(PATH, SECRET))) == 79
