"""The corpus of real updates, as the simulator may deliver it today.

Telegram doesn't deliver a message that is older than a day, so a message's date (or its edit's) is
set to now; everything else stays as it was collected (tests/data/updates/README.md).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

_DATED = (
    "message",
    "edited_message",
    "channel_post",
    "edited_channel_post",
    "business_message",
    "edited_business_message",
)


@dataclass(frozen=True, slots=True)
class Collected:
    """One update: its name in the corpus, and whether python-telegram-bot can parse it."""

    name: str
    update: dict[str, Any]
    is_readable: bool


def corpus(now_s: int) -> Iterator[Collected]:
    """Every update of the corpus, dated `now_s`."""
    folder = resources.files("tests") / "data" / "updates"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        if not file.name.endswith(".json"):
            continue
        for entry in json.loads(file.read_text(encoding="utf-8")):
            name = f"{file.name.removesuffix('.json')}: {entry['name']}"
            update = _dated(entry["update"], now_s)
            yield Collected(name, update, is_readable=entry["ptb_22_8"] == "ok")


def _dated(update: dict[str, Any], now_s: int) -> dict[str, Any]:
    for kind in _DATED:
        message = update.get(kind)
        if isinstance(message, dict):
            dates = {name: now_s for name in ("date", "edit_date") if message.get(name)}
            return {**update, kind: {**message, **dates}}
    return update
