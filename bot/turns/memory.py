"""What handlers remember between turns: read before a turn, written in its transaction.

Each turn reads its own memories anew when it begins. That is also the rollback: what a failed turn
changed is simply never written, and gone at the next reading. In memory they are kept only while
somebody uses them, so that a bot with a million users needs no more of it than one with ten.

Tasks that outlive their turn, and jobs, share what a running turn has in hand. What they changed is
written when they have ended and no turn has it in hand; a turn that begins reads it anew, and one
that fails puts it back as it was.

What has no bytes (a job that was armed, a client) can't be written: it lives in memory under its
key, from the turn that has put it there until one that takes it away, or the end of the process.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from telegram import Bot

from bot.turns.bot_data import BotData, Share
from bot.turns.persistence import TurnPersistence
from bot.turns.pickling import (
    NOTHING_LIVE,
    Live,
    dumps,
    join,
    loads,
    missing_live,
    says_the_same,
    split,
)
from bot.turns.scopes import ConversationKey, Scopes, chat_scope, user_scope
from bot.turns.turn import Effect, Voice
from bot.turns.unkept import Unkept
from storage import turn_state
from storage.database import Database, Tx
from storage.lifecycle import BotName


class Desk(Protocol):
    """The application's own dictionaries, where handlers find what they remember."""

    @property
    def bot(self) -> Bot:
        """The bot that remembered messages belong to."""

    @property
    def shared(self) -> BotData:
        """What the bot's handlers remember together."""

    def new_user_value(self) -> object:
        """What lies there for a user at first."""

    def new_chat_value(self) -> object:
        """What lies there for a chat at first."""

    def user_value(self, user_id: int) -> object | None:
        """What lies there for a user, or None."""

    def chat_value(self, chat_id: int) -> object | None:
        """What lies there for a chat, or None."""

    def place_user(self, user_id: int, value: object | None) -> None:
        """Lay it there for a user; None takes it away."""

    def place_chat(self, chat_id: int, value: object | None) -> None:
        """Lay it there for a chat; None takes it away."""

    def place_conversation(self, name: str, key: ConversationKey, state: object | None) -> None:
        """Put a conversation into a state; None ends it."""

    def passing_state(self, number: int, key: ConversationKey) -> object:
        """The state of a conversation that is in memory only, to be put back as it is."""

    def place_passing(self, number: int, key: ConversationKey, state: object) -> None:
        """Put it back."""

    async def update_persistence(self) -> None:
        """Hand the states of conversations over to the persistence."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """Memories in use. `stored` has those that were read for it: their bytes, or None.

    `live` is what of them has no bytes, once that has been told; `share` that of a turn or a job in
    `bot_data`; `passing` the states that conversations in memory had before it.
    """

    scopes: Scopes
    stored: Mapping[str, bytes | None]
    share: Share | None = None
    live: dict[str, Live] = field(default_factory=dict)
    passing: Sequence[object] = ()

    @property
    def effects(self) -> Sequence[Effect]:
        """What is to be done in the turn's transaction, besides writing what has changed."""
        return () if self.share is None else self.share.effects


class Memory:
    """The memories of one bot's handlers.

    `_uses` counts who has a memory laid out, `_turns` which of these are turns, and `_owed` who has
    ended and has still to write what was changed.
    """

    def __init__(self, db: Database, bot: BotName, persistence: TurnPersistence) -> None:
        self._db = db
        self._bot = bot
        self._persistence = persistence
        self._uses: Counter[str] = Counter()
        self._turns: Counter[str] = Counter()
        self._owed: Counter[str] = Counter()
        self._news = asyncio.Event()
        self._live: dict[str, Live] = {}
        self._unkept = Unkept()

    @property
    def persistence(self) -> TurnPersistence:
        """Where the library leaves the states of conversations."""
        return self._persistence

    @property
    def db(self) -> Database:
        """Where it is kept."""
        return self._db

    @property
    def bot(self) -> BotName:
        """Whose it is."""
        return self._bot

    def has(self, name: str) -> bool:
        """Tell whether somebody uses this memory now."""
        return name in self._uses

    async def recall(self, desk: Desk, scopes: Scopes) -> Recalled:
        """Read a turn's memories and lay them out.

        Raises what pickle raises when one can no longer be read.
        """
        names = scopes.names()
        await self._until_none(self._owed, names)
        self._turns.update(names)
        try:
            recalled = await self._lay_out(desk, scopes, names)
        except BaseException:
            self._turn_is_over(names)
            raise
        passing = [desk.passing_state(number, key) for number, key in scopes.passing]
        return replace(recalled, share=desk.shared.begin(), passing=passing)

    async def changes(self, desk: Desk, recalled: Recalled) -> dict[str, bytes | None]:
        """What has changed of them, by scope; None for what is forgotten.

        Raises what pickle raises for a conversation's state that can't be kept.
        """
        if recalled.share is not None:
            await desk.shared.finish(recalled.share)
        return await self._changes(desk, recalled)

    async def _changes(self, desk: Desk, recalled: Recalled) -> dict[str, bytes | None]:
        now = {user_scope(user): desk.user_value(user) for user in recalled.scopes.users}
        now |= {chat_scope(chat): desk.chat_value(chat) for chat in recalled.scopes.chats}
        data = {name: self._bytes(desk, recalled, name, value) for name, value in now.items()}
        changed = {
            name: found
            for name, found in data.items()
            if name not in recalled.stored or found != recalled.stored[name]
        }
        if recalled.scopes.places:
            await desk.update_persistence()
            for place, state in self._persistence.take(recalled.scopes.places).items():
                changed[place.name] = None if state is None else dumps(state, desk.bot)
        return changed

    def let_go(self, desk: Desk, recalled: Recalled) -> None:
        """A turn is committed: clear away what nobody else uses."""
        self._settle(desk, recalled)
        self._end(desk, recalled)

    def roll_back(self, desk: Desk, recalled: Recalled) -> None:
        """A turn has failed: whoever else uses its memories finds them as they were."""
        shared = [name for name in recalled.scopes.names() if self._uses[name] > 1]
        self._place(desk, recalled, shared)
        for (number, key), state in zip(recalled.scopes.passing, recalled.passing, strict=True):
            desk.place_passing(number, key, state)
        if recalled.share is not None:
            desk.shared.drop(recalled.share)
        self._end(desk, recalled)

    async def follow(
        self, desk: Desk, recalled: Recalled, tasks: Iterable[asyncio.Task[Any]], outside: Voice
    ) -> None:
        """Keep a committed turn's memories for tasks that go on, and write what these change."""
        self._settle(desk, recalled)
        self._turn_is_over(recalled.scopes.names())
        await asyncio.wait(tasks)
        # What the turn had read is no longer what is stored.
        await self._put_back(desk, Recalled(recalled.scopes, {}), outside)

    @asynccontextmanager
    async def borrowed(self, desk: Desk, scopes: Scopes, outside: Voice) -> AsyncIterator[None]:
        """Lay out a job's memories, shared with a turn that has them; write them afterwards."""
        absent = [name for name in scopes.names() if not self.has(name)]
        recalled = await self._lay_out(desk, scopes, absent)
        share = desk.shared.begin()
        try:
            yield
        finally:
            await self._put_back(desk, recalled, outside)
            await desk.shared.keep(share)

    def drop(self, name: str) -> None:
        """Forget what has no bytes of a memory that nobody uses."""
        if not self.has(name):
            self._live.pop(name, None)

    async def _put_back(self, desk: Desk, recalled: Recalled, outside: Voice) -> None:
        """Write what was changed, in a transaction of its own, once no turn has it in hand."""
        names = recalled.scopes.names()
        self._owed.update(names)
        try:
            await self._until_none(self._turns, names)
            changed = await self._changes(desk, recalled)
            if changed:
                await outside.write(partial(_save, changed))
            self._settle(desk, recalled)
        finally:
            _take_off(self._owed, names)
            self._clear_away(desk, recalled)

    async def _until_none(self, counted: Counter[str], names: Collection[str]) -> None:
        while any(name in counted for name in names):
            self._news.clear()
            await self._news.wait()

    def _settle(self, desk: Desk, recalled: Recalled) -> None:
        """It is written: what has no bytes is now what the next turn finds."""
        for name, live in recalled.live.items():
            if live:
                self._live[name] = live
            else:
                self._live.pop(name, None)
        if recalled.share is not None:
            desk.shared.settle(recalled.share)

    def _end(self, desk: Desk, recalled: Recalled) -> None:
        self._turn_is_over(recalled.scopes.names())
        self._clear_away(desk, recalled)

    def _turn_is_over(self, names: Collection[str]) -> None:
        _take_off(self._turns, names)
        self._news.set()

    def _clear_away(self, desk: Desk, recalled: Recalled) -> None:
        _take_off(self._uses, recalled.scopes.names())
        for user in recalled.scopes.users:
            if not self.has(user_scope(user)):
                desk.place_user(user, None)
        for chat in recalled.scopes.chats:
            if not self.has(chat_scope(chat)):
                desk.place_chat(chat, None)
        self._news.set()

    async def _lay_out(self, desk: Desk, scopes: Scopes, names: Collection[str]) -> Recalled:
        self._uses.update(scopes.names())
        try:
            stored = await self._db.read(partial(self._load, names)) if names else {}
            recalled = Recalled(scopes, stored)
            # Staged by others for a turn that failed: it no longer counts.
            self._persistence.take(scopes.places)
            self._place(desk, recalled, names)
        except BaseException:
            self._clear_away(desk, Recalled(scopes, {}))
            raise
        return recalled

    def _load(self, names: Collection[str], tx: Tx) -> dict[str, bytes | None]:
        found = turn_state.load(tx, self._bot, names)
        return {name: found.get(name) for name in names}

    def _place(self, desk: Desk, recalled: Recalled, names: Collection[str]) -> None:
        def value(name: str, new: Callable[[], object]) -> object | None:
            return self._thaw(desk, name, recalled.stored.get(name), new)

        for user in recalled.scopes.users:
            if user_scope(user) in names:
                desk.place_user(user, value(user_scope(user), desk.new_user_value))
        for chat in recalled.scopes.chats:
            if chat_scope(chat) in names:
                desk.place_chat(chat, value(chat_scope(chat), desk.new_chat_value))
        for place in recalled.scopes.places:
            # A handler of an earlier turn that still runs is about to give the next state.
            if place.name in names and self._uses[place.name] == 1:
                data = recalled.stored.get(place.name)
                state = None if data is None else loads(data, desk.bot)
                desk.place_conversation(place.conversation, place.key, state)

    def _thaw(
        self, desk: Desk, name: str, data: bytes | None, new: Callable[[], object]
    ) -> object | None:
        """A user's or a chat's memory, with what of it has no bytes; None for a new one."""
        live = self._live.get(name, NOTHING_LIVE)
        if data is None:
            return join(new(), live) if live else None
        value = loads(data, desk.bot)
        return join(value, live or missing_live(value, new, desk.bot))

    def _bytes(
        self, desk: Desk, recalled: Recalled, name: str, value: object | None
    ) -> bytes | None:
        if value is None or (isinstance(value, dict) and not value):
            recalled.live[name] = NOTHING_LIVE
            return None
        found = split(value, desk.bot)
        recalled.live[name] = found.live
        kind, _, _ = name.partition(":")
        self._unkept.tell(self._bot, f"{kind}_data", found.live)
        before = recalled.stored.get(name)
        if isinstance(value, dict) and len(value) == len(found.live):
            return None
        if found.data is not None and before is not None:
            return before if says_the_same(found.data, before, desk.bot) else found.data
        return found.data


def _take_off(counted: Counter[str], names: Iterable[str]) -> None:
    for name in names:
        counted[name] -= 1
        if not counted[name]:
            del counted[name]


def _save(changes: Mapping[str, bytes | None], tx: Tx, bot: BotName) -> None:
    turn_state.save(tx, bot, changes)
