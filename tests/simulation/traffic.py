"""Who writes in a world: people in private chats and groups, producers, operators.

Producers leave rows of their own; operators decide what is held and dead, cancel and pause.
All by the world's dice. People and operators act from outside; a producer has a database connection
like any other process of the house.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from storage import cancelling, outbox, pauses, review, withdrawals
from storage.database import Database, Tx
from storage.errors import StorageError
from storage.lifecycle import BotName, OnUncertain, OutboxId, Priority, Withdrawal
from storage.outgoing import Outgoing, chat_lane
from storage.review import Decision
from tests.simulation.clocks import MachineClock
from tests.simulation.house import WorldBot
from tests.simulation.watch import Watch
from tests.simulator.chats import ChatType
from tests.simulator.ledger import Accepted
from tests.simulator.model import Telegram
from tests.simulator.people import Impossible

T = TypeVar("T")

PEOPLE: Final = 8
GROUPS: Final = 3
PRIVATE_WORD: Final = "xyzzy"
"""A word that people write, and that no log may show."""

_VERBS: Final = (
    *("reply", "reply", "reply", "burst", "edit", "edit", "delete", "menu", "menu", "bulk"),
    *("resend", "resend", "drop", "hold", "stale", "newest", "newest", "typing", "read"),
)
_BROADCAST_MAX: Final = 40


class People:
    """The people of a world."""

    def __init__(self, telegram: Telegram, bots: tuple[WorldBot, ...], dice: random.Random) -> None:
        self._telegram = telegram
        self._bots = bots
        self._dice = dice
        self._number = 0
        self._pressed: set[tuple[int, int]] = set()
        people = telegram.people
        self.users = [people.add_user(f"Person {n}").id for n in range(PEOPLE)]
        self.groups: list[tuple[int, int]] = []
        self.moved: list[int] = []
        """What groups were called before they became supergroups: lists of others still say so."""

        ids = tuple(bot.id for bot in bots)
        for n in range(GROUPS):
            owner = self.users[n]
            group = people.add_chat(ChatType.GROUP, f"Group {n}", users=(owner,), bots=ids)
            self.groups.append((owner, group.id))

    def next_number(self) -> int:
        """A number that nothing else in the world has."""
        self._number += 1
        return self._number

    def say(self, *, odd: str = "") -> None:
        """Somebody writes something; `odd` is what is to go wrong with it."""
        dice, number = self._dice, self.next_number()
        text = f"{number} {odd or dice.choice(_VERBS)} {PRIVATE_WORD}"
        people = self._telegram.people
        if dice.random() < 0.3:
            place = dice.randrange(len(self.groups))
            user, chat_id = self.groups[place]
            people.says(user, text, chat_id=chat_id)
        else:
            bot = dice.choice(self._bots)
            people.says(dice.choice(self.users), text, bot_id=bot.id)

    def press(self, message: Accepted) -> None:
        """Somebody presses the button under a menu."""
        if (message.bot_id, message.message_id) in self._pressed:
            return
        number = message.text.partition(".")[0]
        chat_id = message.chat_id if message.chat_id < 0 else None
        owners = {group: owner for owner, group in self.groups}
        user = owners.get(message.chat_id, message.chat_id)
        try:
            self._telegram.people.presses(
                user, message.message_id, number, bot_id=message.bot_id, chat_id=chat_id
            )
        except (Impossible, KeyError):
            return
        self._pressed.add((message.bot_id, message.message_id))

    def block(self) -> None:
        """Somebody stops a bot."""
        bot = self._dice.choice(self._bots)
        self._telegram.people.blocks(self._dice.choice(self.users), bot_id=bot.id)

    def migrate(self) -> bool:
        """A group becomes a supergroup; False when none is left to."""
        for place, (user, chat_id) in enumerate(self.groups):
            chat = self._telegram.state.chats[chat_id]
            if chat.type is ChatType.GROUP and chat.migrated_to is None:
                new = self._telegram.people.upgrades(user, chat_id=chat_id)
                self.groups[place] = (user, new.id)
                self.moved.append(chat_id)
                return True
        return False


class Producer:
    """Leaves rows as a broadcast or a cron job would, and decides what an operator decides."""

    def __init__(
        self,
        database: Database,
        people: People,
        watch: Watch,
        clock: MachineClock,
        dice: random.Random,
    ) -> None:
        self._db = database
        self._people = people
        self._watch = watch
        self._clock = clock
        self._dice = dice

    async def broadcast(self, bot: WorldBot, ring: Callable[[], None]) -> None:
        """Many rows in bulk, some for later, some soon stale."""
        count = self._dice.randint(5, _BROADCAST_MAX)
        rows = [self._row() for _ in range(count)]
        await self._write(partial(_enqueue, bot=bot.name, rows=rows))
        ring()

    def _row(self) -> Outgoing:
        dice, number = self._dice, self._people.next_number()
        people = self._people
        places = [*people.users, *(chat_id for _, chat_id in people.groups), *people.moved]
        chat_id, now_ms = dice.choice(places), self._clock.now_ms()
        later_ms = dice.choice((0, 0, 0, 30_000, 600_000))
        return Outgoing(
            method="sendMessage",
            params={"chat_id": str(chat_id), "text": f"{number}.0 produced"},
            lane=chat_lane(chat_id),
            key=f"world:{number}",
            chat_id=chat_id,
            priority=dice.choice((Priority.BULK, Priority.BULK, Priority.INTERACTIVE)),
            on_uncertain=dice.choice(tuple(OnUncertain)),
            expires_at_ms=dice.choice((None, now_ms + later_ms + 60_000)),
            not_before_ms=now_ms + later_ms if later_ms else 0,
        )

    async def operate(self, bot: BotName) -> str:
        """Do one thing that an operator does; its name, or nothing when there was nothing to do."""
        acts = (self._decide, self._decide, self._cancel, self._cancel, self._pause)
        return await self._dice.choice((*acts, self._resume, self._answer))(bot)

    async def _decide(self, bot: BotName) -> str:  # noqa: ARG002 - as all acts
        """Decide about a row that is held or dead."""
        held = await self._read(lambda tx: review.held(tx, limit=20))
        dead = await self._read(lambda tx: review.dead_list(tx, limit=20))
        if held and (not dead or self._dice.random() < 0.8):
            row, decision = self._dice.choice(held).id, self._dice.choice(tuple(Decision))
            await self._write(partial(review.resolve, row=row, decision=decision, by="operator"))
            return f"{decision} {row}"
        if dead:
            row = self._dice.choice(dead).id
            await self._write(partial(review.requeue, row=row))
            return f"requeue {row}"
        return ""

    async def _cancel(self, bot: BotName) -> str:
        """Cancel a row or a chat, whatever is being done about it."""
        rows = [row for row in self._watch.history.rows.values() if row.bot == bot]
        living = [row for row in rows if row.state in ("queued", "claimed")]
        if not rows:
            return ""
        row = self._dice.choice(living or rows)
        if self._dice.random() < 0.7:
            await self.cancel_row(bot, OutboxId(row.id))
        else:
            await self._cancel_by(partial(cancelling.by_lane, bot=bot, lane=row.lane))
        return f"cancel {row.id}"

    async def cancel_row(self, bot: BotName, row: OutboxId) -> None:
        """Cancel one row."""
        await self._cancel_by(partial(cancelling.by_ids, bot=bot, rows=[row]))

    async def _cancel_by(self, work: Callable[..., Sequence[cancelling.Answer]]) -> None:
        for answer in await self._write(partial(work, reason="an operator said so")) or ():
            self._watch.cancelled(answer.id, str(answer.told))

    async def _pause(self, bot: BotName) -> str:
        """Pause the bot, its bulk or a chat for a while."""
        scope = self._dice.choice(
            (pauses.BOT_SCOPE, pauses.BULK_SCOPE, chat_lane(self._dice.choice(self._people.users)))
        )
        until_ms = self._clock.now_ms() + int(1_000 * 300 ** self._dice.random())
        work = partial(
            pauses.pause, bot=bot, scope=scope, reason="a test", by_whom="op", until_ms=until_ms
        )
        await self._write(work)
        return f"pause {scope}"

    async def _resume(self, bot: BotName) -> str:
        """Let everything go on."""
        paused = [scope for whose, scope in self._watch.paused if whose == bot]
        for scope in paused:
            await self._write(partial(pauses.resume, bot=bot, scope=scope))
        return f"resume {paused}" if paused else ""

    async def resume_all(self, bots: tuple[WorldBot, ...]) -> None:
        """Let everything of every bot go on."""
        for bot in bots:
            await self._resume(bot.name)

    async def _answer(self, bot: BotName) -> str:
        """A person has answered in a chat: what waits there is pointless."""
        lane = chat_lane(self._dice.choice(self._people.users))
        now_ms = self._clock.now_ms()
        what = Withdrawal.PERSON_ANSWERED
        work = partial(withdrawals.note, bot=bot, lane=lane, what=what, at_ms=now_ms)
        noted = await self._write(work)
        for row in noted.cancelled if noted is not None else ():
            self._watch.cancelled(row, "cancelled")
        return f"answered in {lane}"

    async def _write(self, work: Callable[[Tx], T]) -> T | None:
        try:
            return await self._db.write(work)
        except StorageError:
            return None

    async def _read(self, work: Callable[[Tx], Sequence[T]]) -> Sequence[T]:
        try:
            return await self._db.read(work)
        except StorageError:
            return []


def _enqueue(tx: Tx, bot: BotName, rows: list[Outgoing]) -> list[OutboxId]:
    return [outbox.enqueue(tx, bot, row).id for row in rows]
