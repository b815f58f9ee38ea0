"""Errands: turns that no update causes. An end of a call is told, a reminder's moment has come.

An errand stands in the lanes of its chat and its user, among the updates: no two turns ever have
the same memories in hand. How one is run is for `bot/turns/reporter.py` and `bot/turns/caller.py`
to say; here it is only found, placed and let go.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NewType, assert_never

from bot.turns.caller import Caller
from bot.turns.handling import Again, Finish, Handling
from bot.turns.reporter import Reporter
from storage import leases, reminders, told
from storage.database import Tx
from storage.errors import StorageError
from storage.inbox import PendingUpdate
from storage.leases import Lease
from storage.lifecycle import InboxId
from storage.outgoing import chat_lane
from storage.reminders import Due
from storage.telemetry import event
from storage.told import DueEnd

Place = NewType("Place", int)
"""The place of an errand among the updates: negative, where an update's is its number."""

Errand = DueEnd | Due

IN_HAND_MAX: Final = 64
"""Errands of a kind that stand in the lanes at once: many ends must not crowd out the updates."""
LOOK_EVERY_MS: Final = 500
_STORAGE_REST_MS: Final = 1_000


class Errands:
    """The errands of one bot, under one lease."""

    def __init__(self, handling: Handling, lease: Lease) -> None:
        self._db = handling.db
        self._clock = handling.clock
        self._bot = handling.bot
        self._shared = handling.application.shared
        self._lease = lease
        self._reporter = Reporter(handling, lease)
        self._caller = Caller(handling, lease)
        self._in_hand: dict[Place, Errand] = {}
        self._look_due_ms = 0

    async def look(self) -> Sequence[PendingUpdate]:
        """What has become due since, for the lanes; asked often, it looks twice a second.

        Raises LeaseLost and StorageError.
        """
        now_ms = self._clock.boot_ms()
        if now_ms < self._look_due_ms:
            return ()
        self._look_due_ms = now_ms + LOOK_EVERY_MS
        found, is_ahead = await self._db.read(self._read)
        if is_ahead:
            redated = await self._db.write(self._redate, point="worker.redate")
            event("reminder.redated", bot=self._bot, count=redated)
        fresh = {place_of(each): each for each in found}
        fresh = {place: each for place, each in fresh.items() if place not in self._in_hand}
        self._in_hand |= fresh
        return [_pending(place, each) for place, each in fresh.items()]

    async def handle(self, place: Place) -> Finish | Again:
        """Run one errand to its end.

        Raises LeaseLost, with nothing of it kept, when another worker owns the bot.
        """
        errand = self._in_hand[place]
        match errand:
            case DueEnd():
                run: Callable[[], Awaitable[Finish | Again]]
                run = partial(self._reporter.tell, errand.id)
            case Due():
                run = partial(self._caller.call, errand.id)
            case _:
                assert_never(errand)
        try:
            after = await self._shared.until_settled(run, self._conflicted)
        except StorageError as error:
            event("storage.failed", bot=self._bot, operation="an errand", error=error)
            return Again(self._clock.boot_ms() + _STORAGE_REST_MS)
        if isinstance(after, Finish):
            del self._in_hand[place]
        return after

    def _conflicted(self, losses: int) -> None:
        event("turn.conflicted", bot=self._bot, count=losses)

    def _read(self, tx: Tx) -> tuple[Sequence[Errand], bool]:
        unreadable = self._caller.unreadable
        due = reminders.due(tx, self._bot, limit=IN_HAND_MAX + len(unreadable))
        found: list[Errand] = [each for each in due if each.id not in unreadable]
        found += told.due(tx, self._bot, limit=IN_HAND_MAX)
        return found, reminders.is_ahead(tx, self._bot)

    def _redate(self, tx: Tx) -> int:
        leases.require(tx, self._lease)
        return reminders.redate(tx, self._bot)


def place_of(errand: Errand) -> Place:
    """The place of an errand among the updates: before them all, as there are few."""
    match errand:
        case DueEnd():
            return Place(-2 * errand.id)
        case Due():
            return Place(-2 * errand.id - 1)
        case _:
            assert_never(errand)


def is_errand(place: int) -> bool:
    """Whether this place is an errand's, and no update's."""
    return place < 0


def _pending(place: Place, errand: Errand) -> PendingUpdate:
    """The errand as the lanes take it: in line with the turns that use the same memories."""
    chat, user = _lanes(errand)
    return PendingUpdate(InboxId(place), chat, user, not_before_ms=0)


def _lanes(errand: Errand) -> tuple[str | None, str | None]:
    match errand:
        case DueEnd():
            of_update = errand.update_chat_lane, errand.update_user_lane
            if of_update != (None, None):
                return of_update
            # Of what was said outside any turn, or long ago, only its chat is known.
            user_id = errand.chat_id if errand.chat_id is not None and errand.chat_id > 0 else None
        case Due():
            user_id = errand.user_id
        case _:
            assert_never(errand)
    chat = None if errand.chat_id is None else chat_lane(errand.chat_id)
    return chat, None if user_id is None else f"u:{user_id}"
