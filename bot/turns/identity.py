"""Who the bot is: what Telegram says of it, kept so that a worker starts without Telegram.

The stored copy answers the library's `getMe`. Before there is one, the token's numeric id is all
that is known; Telegram is then asked until it tells.
"""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError
from telegram.error import TelegramError

from bot.turns.turn import Json
from storage import bots
from storage.clock import Clock
from storage.database import Database, Tx
from storage.lifecycle import BotName
from storage.telemetry import event

RETRY_MS_MIN: Final = 1_000
RETRY_MS_MAX: Final = 60_000


class _Me(BaseModel):
    """What a User must have to be this bot's description."""

    model_config = ConfigDict(extra="allow", strict=True)
    id: int
    is_bot: bool
    first_name: str
    username: str


class Identity:
    """What is known of one bot. `me` is its own User, as Telegram describes it."""

    def __init__(self, bot: BotName, bot_id: int, stored: str | None = None) -> None:
        self._bot = bot
        self._bot_id = bot_id
        self.me: Json = {"id": bot_id, "is_bot": True, "first_name": bot, "username": ""}
        if stored is not None:
            self.me = self._read(json.loads(stored)) or self.me

    async def learn(self, db: Database, clock: Clock, ask: Callable[[], Awaitable[object]]) -> None:
        """Ask Telegram who the bot is until it tells, and remember it.

        `ask` gives the result of `getMe`, or raises TelegramError.
        """
        wait_ms = RETRY_MS_MIN
        while (me := await self._ask(ask, wait_ms)) is None:
            await clock.sleep_ms(wait_ms)
            wait_ms = min(wait_ms * 2, RETRY_MS_MAX)
        self.me = me
        await db.write(partial(self._remember, json.dumps(me)), point="worker.identify")

    async def _ask(self, ask: Callable[[], Awaitable[object]], wait_ms: int) -> Json | None:
        try:
            me = self._read(await ask())
        except TelegramError as error:
            # A refused token comes this way too; the sender says so, and stops.
            event(
                "telegram.read_failed", bot=self._bot, method="getMe", wait_ms=wait_ms, error=error
            )
            return None
        if me is None:
            event(
                "telegram.read_failed",
                bot=self._bot,
                method="getMe",
                reason="not this bot's description",
                wait_ms=wait_ms,
            )
        return me

    def _read(self, found: Any) -> Json | None:  # noqa: ANN401  # whatever came over the wire
        """The description, if it is one of this bot."""
        try:
            me = _Me.model_validate(found)
        except ValidationError:
            return None
        return me.model_dump() if me.id == self._bot_id else None

    def _remember(self, me: str, tx: Tx) -> None:
        bots.set_me(tx, self._bot, me)
