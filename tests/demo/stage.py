"""The demo's stage: the simulator, the house, the people, and the words they share."""

from dataclasses import dataclass
from functools import partial

from storage import reports
from storage.clock import Clock
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.reports import RowReport
from tests.demo.timeline import Timeline
from tests.live.house import House, LiveBot
from tests.live.process import until
from tests.simulator.control import Control, MessageView, UserView
from tests.simulator.ledger import Accepted

PATIENCE_S = 15.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything an act needs."""

    house: House
    sim: Control
    bot: LiveBot
    told: Timeline
    clock: Clock

    async def ask(self, who: UserView, text: str) -> int:
        """A person writes to the bot; the update's id."""
        self.told.tell(who.first_name, f"“{text}”")
        said = await self.sim.says(who.id, text, bot=self.bot.id)
        return said.update_ids[0]

    async def answers(self, who: UserView, count: int) -> list[MessageView]:
        """Wait until the bot has left `count` messages in the person's chat; these messages."""
        return await self.sim.wait_messages(self.bot.id, who.id, count, timeout_s=PATIENCE_S)

    async def answer_to(self, who: UserView, text: str) -> int:
        """Ask, wait for one more message of the bot, show it; how many there are now."""
        before = len(await self.said_to(who))
        await self.ask(who, text)
        found = await self.answers(who, before + 1)
        for message in found[before:]:
            self.told.tell("bot", f"→ {who.first_name}: {first_line(message.text)}")
        return len(found)

    async def said_to(self, who: UserView) -> list[MessageView]:
        """What the bot has left in the person's chat so far."""
        chat = await self.sim.conversation(self.bot.id, who.id)
        return [message for message in chat if message.from_bot]

    async def accepted(self, who: UserView) -> list[Accepted]:
        """What Telegram has accepted from the bot for this person, in order."""
        return (await self.sim.ledger()).messages(self.bot.id, who.id)

    async def row(self, row_id: OutboxId) -> RowReport:
        """An outbox row as it stands."""
        found = await self.house.read(partial(reports.show, row_id=row_id))
        assert found is not None, row_id
        return found

    async def waiting_row(self, who: UserView) -> RowReport:
        """The row that waits for this person, once there is one."""
        name = BotName(self.bot.name)

        async def rows() -> list[OutboxId]:
            queue = await self.house.read(partial(reports.queue, bot=name, limit=50))
            return [row.id for row in queue if row.chat_id == who.id]

        async def there() -> bool:
            return bool(await rows())

        await until(there, within_ms=int(PATIENCE_S * 1000), what=f"a row for {who.first_name}")
        return await self.row((await rows())[-1])

    async def row_in(self, row_id: OutboxId, state: OutboxState) -> RowReport:
        """Wait until a row is in this state."""

        async def there() -> bool:
            return (await self.row(row_id)).state is state

        await until(there, within_ms=int(PATIENCE_S * 1000), what=f"row {row_id} {state}")
        return await self.row(row_id)


def first_line(text: str, chars_max: int = 70) -> str:
    """A message's first line, shortened for the timeline."""
    line = text.splitlines()[0] if text else ""
    return line if len(line) <= chars_max else line[: chars_max - 1] + "…"
