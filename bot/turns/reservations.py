"""Who may change what of a bot's common memory while somebody else needs it unchanged.

A turn that has lost to others reserves what it lost over: whoever else has changed that waits
before the commit until the reservation is given back, and then finds that he has lost himself. So
does a turn that is heard before its end: it may have told what it has read. Nobody who only read,
and nobody who changed something else, waits for anything.

Two never wait for each other: who waits to reserve holds nothing yet, and who has reserved
something waits for nothing more.
"""

import asyncio
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

Keys = frozenset[Hashable] | None
"""Some keys; None means all of them."""

Owner = asyncio.Task[object] | None
"""The task in which a turn is brought to its end, or a job."""

_NOTHING: Final[frozenset[Hashable]] = frozenset()


@dataclass(frozen=True, slots=True)
class _Held:
    """What one owner has reserved, and what of it is his alone, as he is about to change it."""

    keys: Keys
    changed: Keys


class Reservations:
    """What is reserved, and by which task."""

    def __init__(self) -> None:
        self._held: dict[Owner, _Held] = {}
        self._news = asyncio.Event()

    async def reserve(self, keys: Keys) -> None:
        """Reserve these for the task that asks, in place of what it has; wait until they are free.

        Until `release` nobody else's change of them is committed.
        """
        self.release()
        await self.until_free(keys)
        self._held[asyncio.current_task()] = _Held(keys, keys)

    async def hold(self, owner: Owner, keys: Keys, *, changed: Keys, patient: bool) -> bool:
        """Reserve these for an owner, beside what he has, as somebody who has read them.

        Those who have only read the same things hold them together; `changed` waits for everybody
        else. False where that would take a wait and the caller is not `patient`.
        """
        while owner not in self._held and self._is_taken(owner, keys, changed):
            if not patient:
                return False
            await self._next()
        before = self._held.get(owner)
        if before is None:
            if keys == changed == _NOTHING:
                return True
            before = _Held(_NOTHING, _NOTHING)
        self._held[owner] = _Held(_with(before.keys, keys), _with(before.changed, changed))
        return True

    def release(self) -> None:
        """Give back what the task that asks has reserved, if anything."""
        self._held.pop(asyncio.current_task(), None)
        self._news.set()

    async def until_free(self, keys: Keys) -> None:
        """Wait until no other task has any of these reserved, unless this one has something."""
        me = asyncio.current_task()
        while me not in self._held and any(
            _meet(keys, held.keys) for owner, held in self._held.items() if owner is not me
        ):
            await self._next()

    def _is_taken(self, owner: Owner, keys: Keys, changed: Keys) -> bool:
        return any(
            _meet(changed, held.keys) or _meet(keys, held.changed)
            for holder, held in self._held.items()
            if holder is not owner
        )

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()


def _meet(some: Keys, others: Keys) -> bool:
    if _NOTHING in (some, others):
        return False
    if some is None or others is None:
        return True
    return not some.isdisjoint(others)


def _with(some: Keys, more: Keys) -> Keys:
    return None if some is None or more is None else some | more
