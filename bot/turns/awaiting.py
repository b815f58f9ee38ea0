"""Wait for Telegram's own answer to a call that is a row: a poll, an invite link, `wait=True`.

The sender makes the call, in whatever process it lives; here its row is looked at until it has
ended. Nothing is decided here. A handler that gave up waiting may be run again: its call has the
same key then, and the answer is found where it was recorded.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from contextvars import Context
from functools import partial
from typing import Final, assert_never

from telegram.error import TimedOut

from bot.turns.refusals import body_of
from storage import ends
from storage.database import Database
from storage.ends import End
from storage.errors import StorageError
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.outgoing import Outgoing
from storage.telemetry import event

PATIENCE_S: Final = 30.0
"""How long a caller waits; the library's own calls give up much earlier."""
_LOOK_S: Final = 0.1
_OK, _BAD_REQUEST = 200, 400

Answer = tuple[int, bytes]
"""Status and body, as Telegram has answered."""


class NotYet(TimedOut):
    """The call still waits to be made: the answer is to come, or the call will expire."""


class Undecided(TimedOut):
    """Nobody can tell what became of the call until a person does: there is nothing to wait for."""


class Answers:
    """Looks for the ends of one bot's rows, for all who wait at once."""

    def __init__(self, db: Database, bot: BotName) -> None:
        self._db = db
        self._bot = bot
        self._waiting: dict[OutboxId, list[asyncio.Future[End]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """Something may have ended."""
        self._rung.set()

    async def of(self, outgoing: Outgoing) -> Answer:
        """Telegram's answer to a call that is on disk.

        Raises NotYet when there is none yet, Undecided when nobody can tell what became of the
        call; StorageError, and whatever else keeps us from looking.
        """
        named = await self._db.read(partial(ends.named, bot=self._bot, outgoing=outgoing))
        assert named, "what is waited for was committed"
        assert named[0].is_same, outgoing.method
        row_id = named[0].id
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(row_id, []).append(waiter)
        self._begin_looking()
        try:
            async with asyncio.timeout(PATIENCE_S):
                end = await waiter
        except TimeoutError:
            told = f"{outgoing.method} was not made within {PATIENCE_S:g} s: row {row_id}"
            raise NotYet(f"{told} waits for its turn") from None
        finally:
            self._leave(row_id, waiter)
        return answer_of(end)

    def _begin_looking(self) -> None:
        self._rung.set()
        if self._looking is None or self._looking.done():
            # In nobody's name: whose handler happened to come first must not matter.
            self._looking = asyncio.get_running_loop().create_task(
                self._look(), name="answers", context=Context()
            )

    def _leave(self, row_id: OutboxId, waiter: "asyncio.Future[End]") -> None:
        waiters = self._waiting.get(row_id, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiting.pop(row_id, None)

    async def _look(self) -> None:
        """Look while anybody waits, when it is rung and each tenth of a second."""
        while self._waiting:
            self._rung.clear()
            for end in await self._ended():
                for waiter in self._waiting.pop(end.id, ()):
                    if not waiter.done():
                        waiter.set_result(end)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._rung.wait()

    async def _ended(self) -> Sequence[End]:
        try:
            return await self._db.read(partial(ends.among, ids=tuple(self._waiting)))
        except StorageError as error:
            event("storage.failed", bot=self._bot, operation="reading answers", error=error)
            return ()


def answer_of(end: End) -> Answer:
    """Telegram's answer as it came, or rebuilt from the last attempt.

    Raises Undecided when nobody can tell what became of the call.
    """
    match end.state:
        case OutboxState.SENT if end.result is not None:
            return _OK, end.result
        case OutboxState.SENT | OutboxState.DEAD:
            return _refusal(end)
        case OutboxState.UNCERTAIN | OutboxState.REVIEW:
            raise Undecided(
                f"nobody can tell what became of {end.method}: row {end.id} is held for a person "
                f"({end.reason})"
            )
        case OutboxState.EXPIRED | OutboxState.CANCELLED | OutboxState.SUPERSEDED:
            return _refused(f"{end.method} was not made: {end.state} ({end.reason})")
        case OutboxState.QUEUED | OutboxState.CLAIMED:
            raise AssertionError(f"a row that is {end.state} has no answer yet")
        case _:
            assert_never(end.state)


def _refusal(end: End) -> Answer:
    """What Telegram said against it; ours where it said nothing.

    What it calls done already counts as sent, and is an error to who wants the answer.
    """
    if end.code is not None:
        told = end.description or end.reason or ""
        return end.code, body_of(end.code, told, wait_ms=end.wait_ms)
    if end.state is OutboxState.SENT:
        return _refused(f"{end.method} was made, and its answer is lost: {end.reason}")
    return _refused(f"{end.method} was not made: {end.reason}")


def _refused(description: str) -> Answer:
    return _BAD_REQUEST, body_of(_BAD_REQUEST, description)
