"""Several real sender processes: one owner for each bot, taken over within seconds, never faster.

What left is judged at the simulator, which enforces Telegram's own limits and counts every window.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from storage import heartbeats, leases, outbox
from storage.clock import SystemClock
from storage.database import Tx
from storage.lifecycle import BotName, Priority
from storage.outgoing import Outgoing, chat_lane
from tests.crash.books import read_books
from tests.live.house import House, LiveBot, Plan, house, made_up_bot
from tests.live.process import LiveProcess, until
from tests.simulator.control import Control
from tests.simulator.faults import Flood, Hold
from tests.simulator.ledger import Ledger
from tests.simulator.run import simulator_process

# The flood is the whole bot's, and is to be taken for no less.
SETTINGS: Final = """
[limits]
flood_scope = "bot"
"""
TAKEN_OVER_WITHIN_MS: Final = 15_000
DONE_WITHIN_MS: Final = 60_000
FLOOD_S: Final = 6
PEOPLE: Final = 40
BULK_PER_SECOND: Final = 25
BOT_PER_SECOND: Final = 30
GROUP_PER_MINUTE: Final = 20
# A shared machine is not hurried: each call takes this long, so that some are always under way.
CALL_MS: Final = 40
# What was already under way when a wait was ordered can't be called back.
ON_THE_WAY_MS: Final = 500


@dataclass
class Fleet:
    """Sender processes around one database; there may be any number of them."""

    built: House
    sim: Control
    bots: tuple[LiveBot, ...]
    senders: list[LiveProcess]

    async def start(self) -> LiveProcess:
        """Start one more sender and wait until it has said that it is there."""
        process = await LiveProcess.start(
            "sender",
            ["-m", "sender", "--config", str(self.built.config)],
            log=self.built.log_of(f"sender{len(self.senders)}"),
        )
        self.senders.append(process)

        async def is_there() -> bool:
            if not self.built.database_path.exists():
                return False
            beats = await self.built.read(heartbeats.everyone)
            return any(beat.owner.startswith(f"sender.{process.pid}.") for beat in beats)

        await process.ready(is_there)
        return process

    async def owners(self) -> Mapping[str, LiveProcess]:
        """Which of the processes owns each bot."""
        held = await self.built.read(lambda tx: leases.owners(tx, "sender:"))
        return {
            name.removeprefix("sender:"): process
            for name, owner in held.items()
            for process in self.senders
            if owner.startswith(f"sender.{process.pid}.")
        }

    async def counts(self) -> list[int]:
        """How many bots each living process owns, most first."""
        owners = list((await self.owners()).values())
        living = [process for process in self.senders if process.returncode is None]
        return sorted((owners.count(process) for process in living), reverse=True)

    async def comes_to(self, counts: list[int]) -> None:
        """Wait until the living processes own so many bots each."""

        async def is_so() -> bool:
            return await self.counts() == counts

        await until(is_so, within_ms=TAKEN_OVER_WITHIN_MS, what=f"they own {counts}")

    async def says(self, bot: LiveBot, calls: Iterable[Outgoing]) -> None:
        """Leave calls in the outbox, as a turn does; no bell is rung."""

        def enqueue(tx: Tx) -> None:
            for call in calls:
                outbox.enqueue(tx, BotName(bot.name), call)

        await self.built.write(enqueue)

    async def all_sent(self) -> Ledger:
        """Wait until nothing waits any more."""

        async def at_rest() -> bool:
            return read_books(self.built.database_path).at_rest

        await until(at_rest, within_ms=DONE_WITHIN_MS, what="everything was sent")
        return await self.sim.ledger()


@asynccontextmanager
async def fleet(folder: Path, bots: int) -> AsyncIterator[Fleet]:
    """Bots that Telegram knows, and no sender yet."""
    made = tuple(made_up_bot(f"bot{number}", number) for number in range(1, bots + 1))
    async with (
        simulator_process(limits="telegram") as running,
        house(Plan(folder, running.api_url, made, settings=SETTINGS)) as built,
    ):
        for bot in made:
            await running.control.add_bot(bot.token)
        await running.control.arm(Hold(CALL_MS), times=None)
        found = Fleet(built, running.control, made, [])
        try:
            yield found
        finally:
            for process in found.senders:
                await process.kill()


def _greeting(bot: LiveBot, number: int, chat_id: int, priority: Priority) -> Outgoing:
    return Outgoing(
        method="sendMessage",
        params={"chat_id": str(chat_id), "text": f"{bot.name} says {number}"},
        lane=chat_lane(chat_id),
        key=f"greeting:{number}",
        chat_id=chat_id,
        priority=priority,
    )


async def _audience(sim: Control, bot: LiveBot) -> tuple[list[int], int]:
    """People who wrote to the bot, and a group that it is in."""
    people = [(await sim.add_user(f"Person {n}")).id for n in range(PEOPLE)]
    for person in people:
        await sim.says(person, "hello", bot=bot.id)
    group = await sim.add_chat("group", "All", users=tuple(people[:1]), bots=(bot.id,))
    return people, group.id


def _within_limits(ledger: Ledger) -> None:
    """No sliding window held more than it may, as Telegram counts them."""
    assert ledger.early(grace_ms=ON_THE_WAY_MS) == []
    assert max(found.calls for found in ledger.bot_maxima(1_000)) <= BOT_PER_SECOND
    assert max(found.calls for found in ledger.chat_maxima(1_000)) <= 1
    groups = ledger.group_maxima(60_000)
    assert max((found.calls for found in groups), default=0) <= GROUP_PER_MINUTE


@pytest.mark.timeout(120)
async def test_a_killed_senders_cooldown_and_last_minute_bind_the_one_that_takes_over(
    tmp_path: Path,
) -> None:
    """Two senders on one bot; the owner dies by SIGKILL while the bot cools."""
    async with fleet(tmp_path, bots=1) as found:
        [bot] = found.bots
        people, group = await _audience(found.sim, bot)
        bulk = [
            _greeting(bot, number, person, Priority.BULK)
            for number, person in enumerate((*people, *people), start=1)
        ]
        told = [_greeting(bot, 500 + n, group, Priority.INTERACTIVE) for n in range(6)]
        await found.start()
        await found.start()
        await found.says(bot, [*bulk, *told])
        await found.sim.wait_arrivals("sendMessage", PEOPLE // 2)
        # The first fault that fits a call is the one that strikes it.
        await found.sim.heal()
        await found.sim.arm(Flood(FLOOD_S, scope="bot"), bot=bot.id, method="sendMessage")

        async def is_cooling() -> bool:
            books = read_books(found.built.database_path)
            return any(attempt.status == 429 for attempt in books.attempts)

        await until(is_cooling, within_ms=20_000, what="a flood was met")
        owner = (await found.owners())[bot.name]
        killed_ms = SystemClock().monotonic_ms()
        await owner.kill()

        async def is_taken_over() -> bool:
            return (await found.owners()).get(bot.name) not in {None, owner}

        await until(is_taken_over, within_ms=TAKEN_OVER_WITHIN_MS, what="the other takes over")
        taken_ms = SystemClock().monotonic_ms() - killed_ms
        ledger = await found.all_sent()
        _within_limits(ledger)
        assert ledger.doubled() == {}
        books = read_books(found.built.database_path)
        states = [row.state for row in books.rows]
        sent, doubts = states.count("sent"), states.count("uncertain")
        assert sent + doubts == len(states) == len(bulk) + len(told)
        print(f"taken over after {taken_ms} ms: {sent} sent, {doubts} uncertain, none early")


@pytest.mark.timeout(180)
async def test_many_bots_are_spread_over_the_senders_that_there_are(tmp_path: Path) -> None:
    """A second sender gets its half, a killed one's half is taken over, and no bot is faster."""
    async with fleet(tmp_path, bots=4) as found:
        audiences = {bot.name: (await _audience(found.sim, bot))[0] for bot in found.bots}
        await found.start()
        await found.comes_to([4])
        for bot in found.bots:
            people = audiences[bot.name] * 4
            await found.says(
                bot, [_greeting(bot, n, person, Priority.BULK) for n, person in enumerate(people)]
            )
        await found.start()
        await found.comes_to([2, 2])
        await (await found.owners())[found.bots[0].name].kill()
        await found.comes_to([4])
        ledger = await found.all_sent()
        _within_limits(ledger)
        assert ledger.doubled() == {}
        assert max(seen.calls for seen in ledger.bot_maxima(1_000)) <= BULK_PER_SECOND
        states = [row.state for row in read_books(found.built.database_path).rows]
        assert set(states) <= {"sent", "uncertain"}
        print(f"{len(states)} rows of 4 bots, {states.count('uncertain')} of them uncertain")
