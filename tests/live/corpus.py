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


def collected() -> list[dict[str, Any]]:
    """Every entry of the corpus, as its README describes it."""
    folder = resources.files("tests") / "data" / "updates"
    files = sorted(folder.iterdir(), key=lambda each: each.name)
    texts = [each.read_text(encoding="utf-8") for each in files if each.name.endswith(".json")]
    return [entry for text in texts for entry in json.loads(text)]


def corpus(now_s: int) -> Iterator[Collected]:
    """Every update of the corpus, dated `now_s`."""
    for entry in collected():
        update = _dated(entry["update"], now_s)
        name = f"{entry['repo']}: {entry['name']}"
        yield Collected(name, update, is_readable=entry["ptb_22_8"] == "ok")


def _dated(update: dict[str, Any], now_s: int) -> dict[str, Any]:
    for kind in _DATED:
        message = update.get(kind)
        if isinstance(message, dict):
            dates = {name: now_s for name in ("date", "edit_date") if message.get(name)}
            return {**update, kind: {**message, **dates}}
    return update
