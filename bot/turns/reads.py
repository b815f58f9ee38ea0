"""Reads: the only calls that go from the worker to Telegram.

They are passed on as the library makes them, unless the bot is cooling: then they wait for a few
seconds, and are answered as Telegram answers in a flood if that is not enough. A flood on one of
them is a flood on the bot: its wait is merged into the persisted cooldown, so that the sender takes
a breath too.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from telegram.error import TelegramError
from telegram.request import BaseRequest, RequestData

from bot.turns.messages import ReadData
from storage import cooldowns
from storage.clock import Clock, Deadline, deadline_in, remaining_ms
from storage.database import Database, Tx
from storage.lifecycle import BotName
from storage.telemetry import event

_FLOOD: Final = 429
# Telegram does not say whose limit a read ran into; unless every flood is the bot's, it costs the
# whole bot a breath (sender/README.md, scope of a 429).
BREATH_MS: Final = 5_000
READ_WAIT_MS_MAX: Final = 5_000
"""How long a read waits for a cooldown to end: a breath. Of longer ones its caller is told."""


class _Parameters(BaseModel):
    """Telegram's ResponseParameters, as far as they matter to a read."""

    model_config = ConfigDict(extra="ignore", strict=True)
    retry_after: int


class _Refusal(BaseModel):
    """A 429 that names its wait."""

    model_config = ConfigDict(extra="ignore", strict=True)
    parameters: _Parameters


@dataclass(frozen=True, slots=True)
class FloodMemory:
    """Where a flood on a read is remembered, and how much of the bot it stops."""

    db: Database
    bot: BotName
    clock: Clock
    scope: Literal["adaptive", "bot", "chat"]

    async def remember(self, wait_ms: int) -> None:
        """Merge the wait that Telegram ordered into the bot's cooldown."""
        kept_ms = wait_ms if self.scope == "bot" else min(wait_ms, BREATH_MS)
        await self.db.write(
            partial(self._merge, deadline_in(kept_ms, self.clock)), point="worker.cool_reads"
        )

    async def left_ms(self) -> int:
        """How long the bot as a whole has still to wait."""
        scopes = (cooldowns.BOT_SCOPE, cooldowns.INFERRED_SCOPE)
        found = await self.db.read(partial(cooldowns.among, bot=self.bot, scopes=scopes))
        waits = (remaining_ms(cooldown.deadline, self.clock) for cooldown in found)
        return max(waits, default=0)

    def _merge(self, deadline: Deadline, tx: Tx) -> None:
        # What a read was told says nothing about the rest of the bot unless the policy says so.
        inferred = self.scope != "bot"
        scope = cooldowns.INFERRED_SCOPE if inferred else cooldowns.BOT_SCOPE
        reason = "a flood on a read"
        cooldowns.merge(tx, self.bot, scope, deadline, reason=reason, inferred=inferred)


class Reads:
    """The way of reads to Telegram, through the library's own HTTP client."""

    def __init__(self, http: BaseRequest, floods: FloodMemory) -> None:
        self._http = http
        self._floods = floods

    @property
    def read_timeout(self) -> float | None:
        """How long a read waits for its answer, in seconds."""
        return self._http.read_timeout

    async def initialize(self) -> None:
        """Open the connections."""
        await self._http.initialize()

    async def shutdown(self) -> None:
        """Close the connections."""
        await self._http.shutdown()

    async def get_me(self, url: str) -> object:
        """Ask Telegram who the bot is, at the address of its `getMe`. Raises TelegramError."""
        return await self._http.post(url)

    async def pass_on(
        self,
        url: str,
        method: str,
        data: RequestData | ReadData | None,
        timeouts: Mapping[str, Any],
    ) -> tuple[int, bytes]:
        """Make the call once the bot is not cooling; give status and body.

        Raises TelegramError when no answer came.
        """
        wait_ms = await self._cooling_ms()
        if wait_ms:
            return _FLOOD, _flood(wait_ms)
        name = "download" if method == "GET" else url.rsplit("/", 1)[-1]
        try:
            status, body = await self._http.do_request(
                url,
                method,
                data,  # type: ignore[arg-type]  # its parameters are all that is looked at
                **timeouts,
            )
        except TelegramError as error:
            event("telegram.read_failed", bot=self._floods.bot, method=name, error=error)
            raise
        if status == _FLOOD:
            await self._feed(name, body)
        return status, body

    async def _cooling_ms(self) -> int:
        """Wait until the bot is not cooling; the wait that is left when that takes too long."""
        patience_ms = READ_WAIT_MS_MAX
        while wait_ms := await self._floods.left_ms():
            if wait_ms > patience_ms:
                return wait_ms
            patience_ms -= wait_ms
            await self._floods.clock.sleep_ms(wait_ms)
        return 0

    async def _feed(self, name: str, body: bytes) -> None:
        try:
            wait_ms = max(1, _Refusal.model_validate_json(body).parameters.retry_after) * 1000
        except ValidationError:
            wait_ms = BREATH_MS
        event(
            "telegram.read_failed",
            bot=self._floods.bot,
            method=name,
            reason="flood",
            code=_FLOOD,
            wait_ms=wait_ms,
        )
        await self._floods.remember(wait_ms)


def _flood(wait_ms: int) -> bytes:
    """A flood as Telegram answers it, in whole seconds that are not too few."""
    wait_s = -(-wait_ms // 1000)
    body = {
        "ok": False,
        "error_code": _FLOOD,
        "description": f"the bot is cooling for {wait_s} s more",
        "parameters": {"retry_after": wait_s},
    }
    return json.dumps(body).encode()
