"""What a bot's handlers remember together: `bot_data`, one row for each of its keys.

A turn works on private copies of the keys that it touches, made from the bytes that are stored.
What it leaves is written in its own transaction, and only if what it had read is still what is
stored: else another turn was faster, nothing of this one is kept, and it runs again. So it is as if
the turns that changed `bot_data` had run one after the other, in the order of their commits. What a
turn says before its end can't be taken back: from then on what it has read is reserved for it.

What is put in outside any turn belongs to the process: it is written at once, over whatever is
stored. What has no bytes (a pool, a client, a lock) lives in memory, the same object for all, and
is gone with the process. A `bot_data` of a class of one's own has no keys that could be told apart:
it is one row.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from telegram import Bot

from bot.turns.bot_view import BotView
from bot.turns.entries import Conflict, Entries, Staged
from bot.turns.reservations import Owner, Reservations
from bot.turns.touched import InProcess, Touched
from bot.turns.turn import Effect, Voice
from storage.database import Database
from storage.errors import LeaseLost, StorageError
from storage.lifecycle import BotName
from storage.telemetry import event

T = TypeVar("T")

# A turn that has lost so often reserves what it lost over, and can't lose that again.
LOSSES_MAX: Final = 2
_TASK: Final = "writing the bot_data of the process"

_in_hand: ContextVar[Touched | None] = ContextVar("bot_data", default=None)


@dataclass(slots=True)
class Share:
    """A turn's or a job's share in `bot_data`: what it has touched, and what it leaves of it.

    `owner` brings it to its end.
    """

    touched: Touched
    owner: Owner = None
    staged: Staged | None = None

    @property
    def effects(self) -> Sequence[Effect]:
        """What is to be done in the turn's transaction."""
        return () if self.staged is None else (self.staged.commit,)


class BotData:
    """One bot's `bot_data`: who sees what of it, and how changes come in."""

    def __init__(self, of_bot: Callable[[], Bot], kind: type[Any]) -> None:
        """`kind` is the class that the application was told to use."""
        self._entries = Entries(of_bot, kind)
        self._process = InProcess(self._entries, self._soon)
        self._reservations = Reservations()
        self._writing = asyncio.Lock()
        self._is_started = False
        self._is_dirty = False
        self._flusher: asyncio.Task[None] | None = None
        self._db: Database
        self._outside: Voice

    def equip(self, db: Database, bot: BotName, outside: Voice) -> None:
        """Tell where it is stored and in whose name the process writes."""
        self._db = db
        self._entries.name = bot
        self._outside = outside

    def here(self) -> Any:  # noqa: ANN401  # of the class that the handlers' author has chosen
        """What the code that asks may use: its turn's, its job's, or the process's."""
        touched = self._touched_here()
        return BotView(touched) if self._entries.whole_of is None else touched.whole()

    def replace(self, value: Any) -> None:  # noqa: ANN401  # of the class that the handlers' author has chosen
        """Let this be all that there is, for the code that says so."""
        touched = self._touched_here()
        given = dict(self._entries.keys_of(value))
        for key in touched.names():
            if key not in given:
                touched.drop(key)
        for key, each in given.items():
            touched.put(key, each)

    def _touched_here(self) -> Touched:
        touched = _in_hand.get()
        return (
            touched if touched is not None and touched.belongs_to(self._entries) else self._process
        )

    async def load(self) -> None:
        """Read what is stored. Raises what pickle raises when something can't be read any more."""
        self._entries.load(await self._db.read(self._entries.read))
        self._process.loaded()

    def begin(self) -> Share:
        """Give whoever runs in this context a share of his own."""
        touched = Touched(self._entries, self._process)
        _in_hand.set(touched)
        return Share(touched, asyncio.current_task())

    async def secure(self, share: Share, *, patient: bool) -> Effect | None:
        """Something that a turn says is about to go out: what it has read must stay as it is.

        Gives what sees to it that it still was so, to be run in the transaction; None where that
        would take a wait, and nobody is `patient`. It raises Conflict.
        """
        read = share.touched.stage_read()
        keys, changed = read.keys, _written(read)
        if not await self._reservations.hold(share.owner, keys, changed=changed, patient=patient):
            return None
        return read.verify

    async def finish(self, share: Share) -> None:
        """A turn's handlers are done: tell what they leave, and wait until it may be written."""
        share.staged = share.touched.harvest()
        share.touched.end()
        if share.staged is not None:
            await self._reservations.until_free(_written(share.staged))

    def settle(self, share: Share) -> None:
        """A turn is committed: everybody sees what it has changed."""
        if share.staged is not None:
            self._entries.settle(share.staged)
            share.staged = None
        self.look_through()

    def drop(self, share: Share) -> None:
        """A turn has left nothing."""
        if share.staged is not None:
            self._entries.let_go()
            share.staged = None

    async def keep(self, share: Share) -> None:
        """A job is done: write what it has changed, in a transaction of its own.

        Raises LeaseLost, or StorageError with nothing written.
        """
        staged = share.touched.harvest()
        share.touched.end()
        if staged is not None:
            await self._overwrite(staged)

    async def start(self) -> None:
        """Write what the process has put in so far, and from now on whatever it puts in.

        Raises LeaseLost, or StorageError with nothing written.
        """
        await self.flush()
        self._is_started = True

    async def stop(self) -> None:
        """Write what is left."""
        if self._is_started:
            self._is_started = False
            if self._flusher is not None:
                await asyncio.wait((self._flusher,))
            try:
                await self.flush()
            except (LeaseLost, StorageError) as error:
                event("task.failed", bot=self._entries.name, task=_TASK, error=error)

    async def flush(self) -> None:
        """Write what the process has changed.

        Raises LeaseLost, or StorageError with nothing written.
        """
        async with self._writing:
            staged = self._process.harvest()
            if staged is not None:
                await self._overwrite(staged)
                self._process.settled(staged)
            self._process.forget_idle()

    def look_through(self) -> None:
        """Some time has passed: what the process has in hand may have changed."""
        if self._process.has_something:
            self._soon()

    async def until_settled(
        self, run: Callable[[], Awaitable[T]], tell: Callable[[int], None]
    ) -> T:
        """Run a turn until what it leaves is committed; `tell` how often it has lost so far.

        Raises whatever else it raises. A turn that loses again and again gets its way in the end.
        """
        losses = 0
        try:
            while True:
                try:
                    return await run()
                except Conflict as conflict:
                    self._reservations.release()
                    losses += 1
                    tell(losses)
                    if losses > LOSSES_MAX:
                        # Nobody else can have won: what we know is not what is stored.
                        self._entries.load(await self._db.read(self._entries.read))
                    if losses >= LOSSES_MAX:
                        await self._reservations.reserve(conflict.keys)
        finally:
            self._reservations.release()

    async def _overwrite(self, staged: Staged) -> None:
        await self._reservations.until_free(_written(staged))
        try:
            await self._outside.write(staged.overwrite)
        except BaseException:
            self._entries.let_go()
            raise
        self._entries.settle(staged)
        if staged.lost_to_me:
            event("memory.overwritten", bot=self._entries.name, count=len(staged.lost_to_me))

    def _soon(self) -> None:
        self._is_dirty = True
        if self._is_started and (self._flusher is None or self._flusher.done()):
            self._flusher = asyncio.get_running_loop().create_task(
                self._flush_soon(), name="bot-data"
            )
            self._flusher.add_done_callback(self._flushed)

    async def _flush_soon(self) -> None:
        while self._is_dirty:
            self._is_dirty = False
            await self.flush()

    def _flushed(self, flusher: "asyncio.Task[None]") -> None:
        if not flusher.cancelled() and (error := flusher.exception()) is not None:
            event("task.failed", bot=self._entries.name, task=_TASK, error=error)


def _written(staged: Staged) -> "frozenset[Any]":
    return frozenset(change.key for change in staged.changes)
