"""The machine's wall clock is set, by a second or by a month, either way, while the sender works.

A wait that Telegram ordered is kept to the end, and not a moment longer: it is counted by the clock
that nobody sets. Telegram's own clock, in a process of its own, is the judge.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from storage import outbox
from storage.database import Tx, opened
from storage.heartbeats import BEAT_EVERY_MS
from storage.lifecycle import BotName, OutboxState
from storage.outgoing import Outgoing, chat_lane
from tests.crash.books import read_books
from tests.crash.checkers import damage
from tests.crash.living import SETTINGS, Living, living
from tests.crash.stepped import SteppedClock
from tests.live.process import LiveProcess, until
from tests.simulator.faults import Flood

SECOND_MS: Final = 1_000
DAY_MS: Final = 86_400 * SECOND_MS
STEPS_MS: Final = (SECOND_MS, 60 * SECOND_MS, 3_600 * SECOND_MS, DAY_MS, 30 * DAY_MS)
FLOOD_S: Final = 3
# What ended a month ago, by a clock that was set, is asked for at the end.
_SETTINGS: Final = f"{SETTINGS}[retention]\noutbox_days = 365\n"
# That the clock was set back is noticed at a heartbeat; who was not there when it was knows it from
# the one before.
LATE_MS_MAX: Final = 2 * BEAT_EVERY_MS + 3_000
_WITHIN_MS: Final = 30_000


def _leave(tx: Tx, *, chat: int, text: str) -> None:
    params = {"chat_id": str(chat), "text": text}
    row = Outgoing("sendMessage", params, chat_lane(chat), f"cli:{text}", chat_id=chat)
    outbox.enqueue(tx, BotName("main"), row)


async def _write(house: Living, clock_file: Path, work: Callable[[Tx], None]) -> None:
    """Write as another process of the machine does, by the machine's clock."""
    async with opened(house.house.database_path, SteppedClock(clock_file)) as database:
        await database.write(work)


async def _started(house: Living, clock_file: Path) -> LiveProcess:
    process = await LiveProcess.start(
        "sender",
        ["-m", "tests.crash.stepped", str(house.house.config), str(clock_file)],
        log=house.house.log_of("sender"),
    )
    house.house.running["sender"] = process
    await house.ready(process)
    return process


async def _stepped(house: Living, clock_file: Path, step_ms: int, *, restarts: bool) -> int:
    """Set the clock in the middle of a wait; how late the next call came after its end."""
    sim, chat = house.sim, house.load.chats[0].id
    before = len((await sim.ledger()).arrivals("sendMessage"))
    await sim.arm(Flood(FLOOD_S), method="sendMessage")
    text = f"{before}: by {step_ms} ms"
    await _write(house, clock_file, partial(_leave, chat=chat, text=text))
    flooded = (await sim.wait_arrivals("sendMessage", before + 1, timeout_s=20))[-1]
    await until(partial(_is_waiting, house, text), within_ms=_WITHIN_MS, what="the wait is kept")
    set_by_ms = int(clock_file.read_text(encoding="ascii"))
    clock_file.write_text(str(set_by_ms + step_ms), encoding="ascii")
    if restarts:
        await house.house.kill("sender")
        await _started(house, clock_file)
    again = (await sim.wait_arrivals("sendMessage", before + 2, timeout_s=30))[-1]
    await until(partial(_is_sent, house, text), within_ms=_WITHIN_MS, what=f"{text} is sent")
    return again.at_ms - (flooded.at_ms + FLOOD_S * SECOND_MS)


async def _is_waiting(house: Living, text: str) -> bool:
    return _state(house, text) == OutboxState.QUEUED


async def _is_sent(house: Living, text: str) -> bool:
    return _state(house, text) == OutboxState.SENT


def _state(house: Living, text: str) -> str:
    rows = read_books(house.house.database_path).rows
    return next(row.state for row in rows if row.text == text)


async def _proven(folder: Path, steps_ms: list[int], *, restarts: bool) -> None:
    clock_file = folder / "clock"
    clock_file.write_text("0", encoding="ascii")
    async with living(folder, settings=_SETTINGS, has_webhook=False) as house:
        await house.sim.says(house.load.chats[0].user, "hello", bot=house.load.bot.id)
        await _started(house, clock_file)
        late_ms = [await _stepped(house, clock_file, ms, restarts=restarts) for ms in steps_ms]
        evidence = await house.evidence()
    assert evidence.ledger.early() == []
    assert damage(evidence) == []
    assert max(late_ms) <= LATE_MS_MAX, dict(zip(steps_ms, late_ms, strict=True))
    how = "and the sender killed" if restarts else "under the sender"
    print(
        f"the clock set {how}: {len(steps_ms)} steps from {min(map(abs, steps_ms))} ms to "
        f"{max(map(abs, steps_ms))} ms either way, 0 early, at most {max(late_ms)} ms late"
    )


@pytest.mark.timeout(120)
async def test_a_clock_that_is_set_makes_no_call_early_and_none_late(tmp_path: Path) -> None:
    """By a month and back: whatever is counted by the wall clock would show."""
    await _proven(tmp_path, [-STEPS_MS[-1], STEPS_MS[-1]], restarts=False)


@pytest.mark.prove
@pytest.mark.timeout(600)
async def test_a_clock_that_is_set_by_anything_makes_no_call_early_and_none_late(
    tmp_path: Path, *, full_proof: bool
) -> None:
    """A second to a month, either way; also when the sender dies meanwhile, within one boot."""
    sizes_ms = STEPS_MS if full_proof else STEPS_MS[::2]
    steps_ms = [sign * ms for ms in sizes_ms for sign in (-1, 1)]
    folders = [tmp_path / name for name in ("running", "killed")]
    for folder in folders:
        folder.mkdir()
    # Most of it is waiting: two houses wait as long as one.
    async with asyncio.TaskGroup() as group:
        for folder, restarts in zip(folders, (False, True), strict=True):
            group.create_task(_proven(folder, steps_ms, restarts=restarts))
