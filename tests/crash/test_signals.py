"""Asked to stop, a role finishes what it has in hand or hands it back, says so, and ends with 0."""

import asyncio
import random
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.crash import answers
from tests.crash.books import Books, read_books
from tests.crash.checkers import damage
from tests.crash.handlers import HANG
from tests.crash.living import Living, living
from tests.live.house import ROLES, Role
from tests.live.process import LiveProcess, until
from tests.simulator.faults import Acceptance, Hang, Hold

CALL_MS: Final = 100
# Between a look at the database and the signal what was in hand may have ended.
TRIES_MAX: Final = 5
END_MS_MAX: Final = 20_000
_BUSY_WITHIN_MS: Final = 20_000


def _in_hand(role: str, books: Books) -> int:
    """How much a role has in hand; web's own leaves no trace."""
    match role:
        case "worker":
            return sum(update.state == "claimed" for update in books.updates)
        case "sender":
            return sum(attempt.stage == "stamped" for attempt in books.attempts)
        case _:
            return len(books.updates)


async def _busy(house: Living, role: str, *, at_least: int = 1) -> None:
    async def has_work() -> bool:
        books = await asyncio.to_thread(read_books, house.house.database_path)
        return _in_hand(role, books) >= at_least

    await until(has_work, within_ms=_BUSY_WITHIN_MS, what=f"{role} has work in hand")


async def _stopped(house: Living, process: LiveProcess, *numbers: signal.Signals) -> int:
    """Send the signals, each as soon as the one before was heard; how long the end took."""
    began_ms = house.clock.monotonic_ms()

    async def stopping() -> bool:
        return process.times_said("role.stopping") > 0 or process.returncode is not None

    for number in numbers:
        process.send(number)
        await until(stopping, within_ms=END_MS_MAX, what="the signal is heard")
    code = await process.ended()
    took_ms = house.clock.monotonic_ms() - began_ms
    assert code == 0, process.tail()
    assert took_ms < END_MS_MAX, process.tail()
    return took_ms


async def _stopped_at_work(house: Living, role: Role, numbers: Sequence[signal.Signals]) -> bool:
    """Stop a role that is busy; whether it still had something in hand when it heard of it."""
    await _busy(house, role, at_least=3)
    took_ms = await _stopped(house, house.house.running[role], *numbers)
    report = _reported(house, role)
    print(f"{numbers[0].name} for {role}: ended in {took_ms} ms, {report}")
    assert report["uncertain"] == 0
    return report["finished"] + report["handed_back"] > 0


async def _caught_at_work(house: Living, role: Role, numbers: Sequence[signal.Signals]) -> bool:
    """Stop a role and start it again, until it was stopped with something in hand."""
    for _ in range(1 if role == "web" else TRIES_MAX):
        was_at_work = await _stopped_at_work(house, role, numbers)
        await house.start_all(role)
        if was_at_work:
            return True
    return False


def _reported(house: Living, role: str) -> dict[str, int]:
    """The last drain report of a role."""
    report = house.events(role, "drain.report")[-1]
    return {name: report[name] for name in ("finished", "handed_back", "uncertain")}


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("first", "second"),
    [(signal.SIGTERM, signal.SIGINT), (signal.SIGINT, signal.SIGTERM)],
    ids=["SIGTERM", "SIGINT"],
)
async def test_a_role_that_is_asked_to_stop_under_load_ends_in_order(
    tmp_path: Path, first: signal.Signals, second: signal.Signals
) -> None:
    """Each role in turn, with work in hand; a second and a third signal do no harm."""
    async with living(tmp_path) as house:
        await house.sim.arm(Hold(CALL_MS), times=None)
        await house.start_all()
        async with house.under_load(random.Random(1)):
            for role in ROLES:
                was_at_work = await _caught_at_work(house, role, (first, second, first))
                # An answer of web's takes two milliseconds: one is seldom caught under way.
                assert was_at_work or role == "web", f"{role} was never caught at work"
        evidence = await house.drained()
        assert {row.state for row in evidence.books.rows} == {"sent"}
        assert damage(evidence) == []
        assert answers.breaches(evidence, house.load) == []


@pytest.mark.timeout(120)
async def test_three_roles_in_one_process_stop_together(tmp_path: Path) -> None:
    """As on a laptop, where Ctrl-C ends all, and is pressed again at once."""
    async with living(tmp_path) as house:
        await house.sim.arm(Hold(CALL_MS), times=None)
        process = await house.start("run")
        await house.all_ready(process)
        async with house.under_load(random.Random(1)):
            for role in ("worker", "sender"):
                await _busy(house, role)
            await _stopped(house, process, signal.SIGINT, signal.SIGINT)
            assert len(house.events("run", "drain.report")) == len(ROLES)
            process = await house.start("run")
            await house.all_ready(process)
        evidence = await house.drained()
        await _stopped(house, process, signal.SIGTERM)
        assert {row.state for row in evidence.books.rows} == {"sent"}
        assert damage(evidence) == []
        assert answers.breaches(evidence, house.load) == []


@pytest.mark.prove
@pytest.mark.timeout(120)
async def test_what_never_ends_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """A call without an answer, a handler that hangs, a request that stops halfway."""
    async with living(tmp_path) as house:
        await house.start_all()
        chat = house.load.chats[0]
        await house.sim.arm(Hang(Acceptance.AFTER), method="sendMessage")
        await house.load.ask(chat)
        await _busy(house, "sender")
        await house.sim.says(house.load.chats[1].user, HANG, bot=house.load.bot.id)
        await _busy(house, "worker")
        with socket.create_connection(("127.0.0.1", house.house.port)) as half:
            half.sendall(_half_a_request(house))
            processes = [house.house.running[role] for role in ROLES]
            took_ms = await asyncio.gather(
                *(_stopped(house, process, signal.SIGTERM) for process in processes)
            )
        print(f"ended in {dict(zip(ROLES, took_ms, strict=True))} ms")
        assert _reported(house, "sender") == {"finished": 0, "handed_back": 0, "uncertain": 1}
        assert _reported(house, "worker") == {"finished": 0, "handed_back": 1, "uncertain": 0}
        books = read_books(house.house.database_path)
        assert [update.state for update in books.updates] == ["done", "received"]
        assert books.rows[0].state == "uncertain"


def _half_a_request(house: Living) -> bytes:
    bot = house.load.bot
    return (
        f"POST /telegram/{bot.name} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
        f"X-Telegram-Bot-Api-Secret-Token: {bot.secret}\r\n\r\n{{"
    ).encode()
