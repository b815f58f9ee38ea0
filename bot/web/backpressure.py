"""Decide when updates are better left with Telegram: a full inbox, or a disk about to be full.

Telegram keeps what we refuse and brings it again, so a refusal in time is cheaper than a database
that can't finish its transactions. Looked at once a second, never on the way to a 200. A cooling or
deep *outbox* is no reason: whoever writes to the bot has nothing to do with that.
"""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from storage import inbox
from storage.database import Database, Tx
from storage.errors import StorageError
from storage.lifecycle import BotName

INBOX_FULL = "inbox_full"
DISK_LOW = "disk_low"


@dataclass(frozen=True, slots=True)
class Marks:
    """Above how many waiting updates, and below how many free bytes, nothing more is taken."""

    inbox_depth_max: int
    disk_free_min_bytes: int


class BackPressure:
    """The last look at inbox and disk, and what follows from it."""

    def __init__(
        self, database: Database, state_dir: Path, bots: Sequence[BotName], marks: Marks
    ) -> None:
        self._database = database
        self._state_dir = state_dir
        self._bots = bots
        self._marks = marks
        self._full: frozenset[BotName] = frozenset()
        self._disk_low = False

    @property
    def is_disk_low(self) -> bool:
        """Whether the disk was nearly full at the last look."""
        return self._disk_low

    def reason(self, bot: BotName) -> str | None:
        """Why no update of this bot is taken at present; None when it is."""
        if self._disk_low:
            return DISK_LOW
        return INBOX_FULL if bot in self._full else None

    async def look(self) -> None:
        """Look at the disk and count what waits.

        What can't be counted now stays as it was: whether an update can be stored, storing tells.
        """
        usage = await asyncio.to_thread(shutil.disk_usage, self._state_dir)
        self._disk_low = usage.free < self._marks.disk_free_min_bytes
        try:
            self._full = await self._database.read(self._count)
        except StorageError:
            return

    def _count(self, tx: Tx) -> frozenset[BotName]:
        limit = self._marks.inbox_depth_max
        return frozenset(bot for bot in self._bots if inbox.depth(tx, bot, limit=limit + 1) > limit)
