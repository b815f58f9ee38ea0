"""However turns interleave over `bot_data`, it is as if they had run one after the other.

Each turn says its number when it ends; the rows of the outbox tell in which order turns were
committed. What they did is done again in that order on a plain dictionary, and must give the same.
"""

import asyncio
import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from telegram import Update
from telegram.ext import MessageHandler, filters

from bot.turns.application import TurnApplication
from tests.integration.turns.stand import Context, standing

KEYS = ("a", "b", "c")
keys = st.sampled_from(KEYS)


@dataclass(frozen=True)
class Step:
    """One thing that a turn does with a key, after it has let others run so often."""

    what: str
    key: str
    other: str
    pauses: int


@dataclass(frozen=True)
class Plan:
    """What one turn does."""

    steps: Sequence[Step]
    fails: bool


steps = st.builds(
    Step,
    st.sampled_from(("add", "append", "copy", "drop", "put", "sum", "clear_if_many")),
    keys,
    keys,
    st.integers(0, 6),
)
plans = st.builds(Plan, st.lists(steps, min_size=1, max_size=4), st.booleans())


def do(data: dict[str, Any], step: Step, number: int) -> None:
    """Do one step, to whatever is a dictionary."""
    match step.what:
        case "add":
            data[step.key] = [*data.get(step.key, []), f"+{number}"]
        case "append":
            data.setdefault(step.key, []).append(number)
        case "copy":
            data[step.key] = list(data.get(step.other, ["nothing"]))
        case "drop":
            data.pop(step.key, None)
        case "put":
            data[step.key] = [number]
        case "sum":
            data[step.key] = [len(data), *sorted(map(len, data.values()))]
        case "clear_if_many":
            if len(data) == len(KEYS):
                data.clear()
        case _:
            raise AssertionError(step)


def in_turn(planned: Sequence[Plan], order: Sequence[int]) -> dict[str, Any]:
    """What these turns leave, one after the other."""
    data: dict[str, Any] = {}
    for number in order:
        for step in planned[number].steps:
            do(data, step, number)
    return data


async def run(folder: Path, planned: Sequence[Plan]) -> tuple[dict[str, Any], list[int]]:
    """Run these turns at the same time; what is stored then, and who was committed, in order."""

    async def handle(update: Update, context: Context) -> None:
        assert update.message is not None
        number = int(update.message.text or "")
        for step in planned[number].steps:
            for _ in range(step.pauses):
                await asyncio.sleep(0)
            do(context.bot_data, step, number)
        await update.message.reply_text(str(number))
        if planned[number].fails:
            raise ValueError

    def register(application: TurnApplication) -> None:
        application.add_handler(MessageHandler(filters.TEXT, handle))

    async with standing(folder, register) as stand:
        numbers = range(len(planned))
        await asyncio.gather(*(stand.hears(str(number), user=number + 1) for number in numbers))
        order = [int(text) for text in await stand.texts()]
    async with standing(folder, register) as stand:
        return dict(stand.application.bot_data), order


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(plans, min_size=2, max_size=7))
def test_turns_over_shared_keys_are_as_if_one_after_the_other(planned: Sequence[Plan]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stored, order = asyncio.run(run(Path(folder), planned))
    assert sorted(order) == [n for n, plan in enumerate(planned) if not plan.fails]
    # As a rule in the order of their commits; one that in the end changed nothing may stand before.
    orders = itertools.chain((order,), itertools.permutations(order))
    assert any(stored == in_turn(planned, each) for each in orders), order
