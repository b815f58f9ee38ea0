"""Every real payload ends handled, or buried with the reason; none stops the worker."""

import json
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

from telegram import Update

from bot.handlers import register
from storage.lifecycle import InboxState
from tests.integration.turns.stand import Stand, standing


def corpus() -> list[dict[str, Any]]:
    folder = resources.files("tests") / "data" / "updates"
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".json")),
        key=lambda file: file.name,
    )
    return [entry for file in files for entry in json.loads(file.read_text("utf-8"))]


async def ends(stand: Stand, updates: list[dict[str, Any]]) -> Counter[tuple[str, InboxState]]:
    found: Counter[tuple[str, InboxState]] = Counter()
    for entry in updates:
        update = await stand.receive_raw(entry["update"])
        await stand.handle(update)
        record = await stand.record(update)
        assert (record.reason is None) is (record.state is InboxState.DONE)
        readable = "readable" if entry["ptb_22_8"] == "ok" else "unreadable"
        found[readable, record.state] += 1
    return found


async def test_what_the_library_reads_is_handled_and_what_it_can_not_is_buried(
    tmp_path: Path,
) -> None:
    updates = corpus()
    assert len(updates) > 100
    async with standing(tmp_path, register) as stand:
        assert set(await ends(stand, updates)) == {
            ("readable", InboxState.DONE),
            ("unreadable", InboxState.DEAD),
        }


async def test_kinds_that_the_library_does_not_know_yet_are_handled(tmp_path: Path) -> None:
    updates = [entry for entry in corpus() if entry["kind"] not in Update.ALL_TYPES]
    assert updates
    async with standing(tmp_path, register) as stand:
        assert set(await ends(stand, updates)) == {("readable", InboxState.DONE)}
