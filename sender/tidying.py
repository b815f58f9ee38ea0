"""Remove the contents of files that no call needs any more, a few at a time.

First a content's row goes, then the content: should the process end in between, what is left has no
row, and so is what a worker kept for a turn that came to nothing. Such orphans are found by looking
through the store's folders, some of them each time. Nothing is removed that was kept lately, as a
row for it may be on its way; nor does it count as long ago because the wall clock was set ahead.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from storage import files
from storage.blobs import FOLDERS, Blobs
from storage.clock import Clock
from storage.database import Database
from storage.retention import BATCH_ROWS_MAX

FOLDERS_AT_ONCE: Final = 32
"""Of 256: all are looked through within eight rounds."""

BATCHES_MAX: Final = 40
"""Looks at the contents' rows in one round: as many as a busy bot keeps in that time, and more."""


class Tidying:
    """The store of one house, kept as small as its rows allow."""

    def __init__(self, db: Database, clock: Clock, blobs: Blobs, *, kept_ms: int) -> None:
        """`kept_ms`: how long a content stays at least since it was last kept."""
        self._db = db
        self._clock = clock
        self._blobs = blobs
        self._kept_ms = kept_ms
        self._next_folder = 0
        self._looked = files.BEGINNING
        # How far the wall clock was from the one that nobody sets, and when that was seen.
        self._apart: list[tuple[int, int]] = [self._seen()]

    async def round(self) -> int:
        """Remove contents and orphans that are needed no more; how many there were."""
        before_ms = self._before_ms()
        if not self._blobs.exists:
            return 0
        removed = await self._remove_unneeded(before_ms)
        begin = self._next_folder
        self._next_folder = (begin + FOLDERS_AT_ONCE) % len(FOLDERS)
        for folder in FOLDERS[begin : begin + FOLDERS_AT_ONCE]:
            removed += await self._remove_orphans(folder, before_ms)
        await asyncio.to_thread(self._blobs.remove_unfinished, before_ms=before_ms)
        return removed

    def _before_ms(self) -> int:
        """The moment (UTC) before which a content counts as kept long ago.

        While it may have been kept before the wall clock was set ahead, as if that had not been.
        """
        now_ms, apart_ms = self._seen()
        self._apart.append((now_ms, apart_ms))
        # One more than have passed since: what was kept right after it counts by it.
        while len(self._apart) > 1 and self._apart[1][0] < now_ms - self._kept_ms:
            del self._apart[0]
        return now_ms + min(apart for _, apart in self._apart) - self._kept_ms

    def _seen(self) -> tuple[int, int]:
        boot_ms = self._clock.boot_ms()
        return boot_ms, self._clock.now_ms() - boot_ms

    async def _remove_unneeded(self, before_ms: int) -> int:
        removed = 0
        for _ in range(BATCHES_MAX):
            # Looking takes longer than deleting, and nobody has to wait for it.
            free, self._looked = await self._db.read(
                partial(files.aged, after=self._looked, before_ms=before_ms, limit=BATCH_ROWS_MAX)
            )
            if free:
                forget = partial(files.forget_blobs, hashes=free, before_ms=before_ms)
                forgotten = await self._db.write(forget, point="sender.prune")
                removed += await asyncio.to_thread(self._remove, forgotten, before_ms)
            if self._looked == files.BEGINNING:
                break
        return removed

    async def _remove_orphans(self, folder: str, before_ms: int) -> int:
        aged = await asyncio.to_thread(self._blobs.aged, folder, before_ms=before_ms)
        removed = 0
        for begin in range(0, len(aged), BATCH_ROWS_MAX):
            hashes = aged[begin : begin + BATCH_ROWS_MAX]
            kept = await self._db.read(partial(files.kept, hashes=hashes))
            orphans = [sha256 for sha256 in hashes if sha256 not in kept]
            removed += await asyncio.to_thread(self._remove, orphans, before_ms)
        return removed

    def _remove(self, hashes: Sequence[str], before_ms: int) -> int:
        return sum(self._blobs.remove(sha256, before_ms=before_ms) for sha256 in hashes)
