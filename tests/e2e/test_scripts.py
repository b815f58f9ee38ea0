"""Scripts as people write them show a person the same, by the library alone and under Ferryman."""

import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from storage.clock import SystemClock
from tests.live.dialogue import Hears, Says, is_as_expected, sees
from tests.live.dialogues import DIALOGUES, SCRIPTS, Meeting
from tests.live.house import made_up_bot, script_environment
from tests.live.person import Manner, NotSeen, Person
from tests.live.process import LiveProcess, free_port
from tests.simulator.limits import OFF
from tests.simulator.run import RunningHere, simulator_here

PEOPLE = 2
BOT = made_up_bot()
# A person who reads as fast as the script writes.
LIMITS = {
    "FERRYMAN_LIMITS__CHAT_PER_SECOND": "1000",
    "FERRYMAN_LIMITS__CHAT_BURST": "100",
}


@pytest.fixture
async def sim() -> AsyncIterator[RunningHere]:
    """A Telegram that knows the bot."""
    async with simulator_here(limits=OFF) as running:
        await running.control.add_bot(BOT.token)
        yield running


@asynccontextmanager
async def _running(
    words: list[str], sim: RunningHere, folder: Path, **more: str
) -> AsyncIterator[None]:
    """A script that fetches its updates, until it is interrupted as by Ctrl-C."""
    process = await LiveProcess.start(
        "script",
        words,
        log=folder / "script.log",
        environment={**script_environment(BOT.token, sim.api_url, folder), **more},
    )

    async def fetches() -> bool:
        return bool((await sim.control.ledger()).arrivals("getUpdates"))

    try:
        await process.ready(fetches)
        try:
            yield
        except (NotSeen, TimeoutError) as error:
            raise AssertionError(f"{error}\n{process.tail(40)}") from error
        assert await process.stop(signal.SIGINT) == 0, process.tail()
    finally:
        await process.kill()


async def _has_its_dialogues(name: str, sim: RunningHere) -> None:
    for nth in range(1, PEOPLE + 1):
        user = (await sim.control.add_user("Ada")).id
        await Person(sim.control, BOT.id, user, SystemClock()).has(
            DIALOGUES[name](Meeting(BOT.id, nth))
        )
    assert (await sim.control.ledger()).client_bugs() == []


def test_each_script_has_a_dialogue_and_knows_nothing_of_us() -> None:
    found = {path.stem: path.read_text() for path in SCRIPTS.glob("[!_]*.py")}
    assert found.keys() == DIALOGUES.keys()
    for text in found.values():
        for package in ("bot", "sender", "storage", "tests", "ferryman"):
            assert f"import {package}" not in text
            assert f"from {package}" not in text


@pytest.mark.parametrize("name", DIALOGUES)
async def test_a_person_sees_what_the_script_says_under_ferryman(
    name: str, sim: RunningHere, tmp_path: Path
) -> None:
    words = ["-m", "bot", "exec", str(SCRIPTS / f"{name}.py")]
    here = {
        **LIMITS,
        "FERRYMAN_STATE_DIR": str(tmp_path / "state"),
        "FERRYMAN_WEB__PORT": str(free_port()),
    }
    async with _running(words, sim, tmp_path, **here):
        await _has_its_dialogues(name, sim)


@pytest.mark.prove
@pytest.mark.parametrize("name", DIALOGUES)
async def test_a_person_sees_the_same_from_the_library_alone(
    name: str, sim: RunningHere, tmp_path: Path
) -> None:
    """The test of the test: what the dialogues expect is what the library itself says."""
    async with _running([str(SCRIPTS / f"{name}.py")], sim, tmp_path):
        await _has_its_dialogues(name, sim)


@pytest.mark.parametrize(
    "wrong", [(), ("a",), ("a", "b", "b"), ("b", "a"), ("a", "c")], ids=", ".join
)
async def test_a_person_misses_what_is_lost_doubled_out_of_order_or_different(
    wrong: tuple[str, ...], sim: RunningHere
) -> None:
    user = (await sim.control.add_user("Ada")).id
    manner = Manner(patience_ms=100)
    await sim.control.says(user, "/start", bot=BOT.id)
    bot = sim.server.telegram
    for text in wrong:
        bot.call(BOT.token, "sendMessage", {"chat_id": str(user), "text": text})
    person = Person(sim.control, BOT.id, user, SystemClock(), manner)
    with pytest.raises(NotSeen):
        await person.has((Says("x"), sees("a", "b")))


def test_only_the_place_of_what_was_sent_again_by_hand_is_free() -> None:
    assert is_as_expected(["b", "a [x]", "c"], ["a [x]", "b", "c"], ["a"])
    assert not is_as_expected(["b", "a", "c"], ["a", "b", "c"], [""])
    assert not is_as_expected(["c", "b", "a"], ["a", "b", "c"], ["a"])
    assert not is_as_expected(["b", "c"], ["a", "b", "c"], ["a"])
    assert not is_as_expected(["a", "b", "a", "c"], ["a", "b", "c"], ["a"])


async def test_a_lenient_person_still_counts_what_jobs_say(sim: RunningHere) -> None:
    user = (await sim.control.add_user("Ada")).id
    manner = Manner(patience_ms=100, is_lenient=True)
    person = Person(sim.control, BOT.id, user, SystemClock(), manner)
    await sim.control.says(user, "/start", bot=BOT.id)
    await person.has((Says("x"), Hears("Beep")))
    assert await person.too_often() == []
    for _ in range(2):
        form = {"chat_id": str(user), "text": "Beep"}
        sim.server.telegram.call(BOT.token, "sendMessage", form)
    assert await person.too_often() == ["Beep"]
