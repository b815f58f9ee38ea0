"""Long polling, for a machine that Telegram can't reach: updates are fetched instead of received.

They are stored exactly as the webhook stores them, and confirmed to Telegram only after the commit:
Telegram forgets an update when the next call asks for a later one. While a webhook is set Telegram
gives nothing this way, and taking the webhook away is not ours to decide; so this refuses to run.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal

import httpx
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.settings import WorkerSettings
from bot.turns.alias import AliasTransport, alias_of
from storage import arrival, inbox
from storage.arrival import Arrival
from storage.clock import Clock
from storage.database import Database, Tx, opened, require_sound_sqlite
from storage.doorbell import Doorbell
from storage.envelope import Unreadable, read_envelope
from storage.errors import FerrymanError
from storage.failpoint import Failpoints
from storage.inbox import Received
from storage.lifecycle import BotName
from storage.migrate import migrate
from storage.settings import Token
from storage.telemetry import event

# Telegram answers at once when there is something; else it holds the call this long.
POLL_S: Final = 50
BATCH_MAX: Final = 100
_MARGIN_S: Final = 15.0
_CONNECT_S: Final = 10.0
BACKOFF_MS_MIN: Final = 1_000
BACKOFF_MS_MAX: Final = 60_000
_ROLE: Final = "polling"


class WebhookIsSet(FerrymanError):
    """A webhook is set, so Telegram gives no updates to whoever polls."""


class TokenRejected(FerrymanError):
    """Telegram does not know this token."""


class _Failed(Exception):
    """A call brought nothing, for now. `wait_ms` is what Telegram asked for, or 0."""

    def __init__(self, reason: str, wait_ms: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.wait_ms = wait_ms


class _Parameters(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    retry_after: Annotated[int, Field(ge=0)] = 0


class _Refusal(BaseModel):
    """Telegram's no."""

    model_config = ConfigDict(extra="ignore", strict=True)
    ok: Literal[False]
    parameters: _Parameters = _Parameters()


class _Updates(BaseModel):
    """The answer to `getUpdates`; what an update is, the envelope tells."""

    model_config = ConfigDict(extra="ignore", strict=True)
    ok: Literal[True]
    result: list[dict[str, Any]]


class _WebhookInfo(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)
    url: str


class _WebhookAnswer(BaseModel):
    """The answer to `getWebhookInfo`."""

    model_config = ConfigDict(extra="ignore", strict=True)
    ok: Literal[True]
    result: _WebhookInfo


async def run_polling(
    settings: WorkerSettings, *, clock: Clock, stop: asyncio.Event, kinds: Sequence[str] = ()
) -> None:
    """Fetch the updates of every bot, of these kinds, until `stop` is set.

    Raises WebhookIsSet, TokenRejected, StorageError.
    """
    require_sound_sqlite(accept_affected=settings.settings.storage.accept_affected_sqlite)
    path = settings.settings.database_path
    failpoints = Failpoints(settings.settings.testing.failpoint)
    migrate(path, clock, failpoints=failpoints)
    async with opened(path, clock, failpoints=failpoints) as db:
        bell = Doorbell(settings.settings.state_dir, _ROLE)
        try:
            base_url = settings.settings.telegram.base_url
            pollers = [
                Poller(db, clock, bot, Line(token, base_url), bell=bell, kinds=kinds)
                for bot, token in settings.tokens.items()
            ]
            await _poll_all(pollers, stop)
        finally:
            bell.close()


async def _poll_all(pollers: Sequence["Poller"], stop: asyncio.Event) -> None:
    polling = [asyncio.ensure_future(poller.run()) for poller in pollers]
    stopped = asyncio.ensure_future(stop.wait())
    try:
        done, _ = await asyncio.wait((stopped, *polling), return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in (stopped, *polling):
            task.cancel()
        await asyncio.wait((stopped, *polling))


class Line:
    """One bot's own line to Telegram, for `getUpdates` and what goes with it."""

    def __init__(
        self, token: Token, base_url: str, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._bot_id = token.bot_id
        self._url = f"{base_url}/bot{alias_of(token)}"
        self._http = httpx.AsyncClient(
            transport=AliasTransport(token, transport),
            timeout=httpx.Timeout(POLL_S + _MARGIN_S, connect=_CONNECT_S),
        )

    async def close(self) -> None:
        """Hang up."""
        await self._http.aclose()

    async def call(self, method: str, params: Mapping[str, str | int]) -> bytes:
        """The body of Telegram's yes.

        Raises WebhookIsSet, TokenRejected, and _Failed for what may be better in a while.
        """
        try:
            answer = await self._http.post(f"{self._url}/{method}", data=dict(params))
        except httpx.HTTPError as error:
            raise _Failed(type(error).__name__) from error
        match answer.status_code:
            case HTTPStatus.OK:
                return answer.content
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.NOT_FOUND:
                raise TokenRejected(
                    f"bot {self._bot_id}: Telegram does not know this token; take the one it has "
                    "now from BotFather"
                )
            case status:
                raise _refused(status, answer.content)


def _refused(status: int, body: bytes) -> _Failed:
    try:
        wait_ms = _Refusal.model_validate_json(body).parameters.retry_after * 1000
    except ValidationError:
        wait_ms = 0
    if status == HTTPStatus.CONFLICT:
        return _Failed("another process polls this bot, or a webhook was just set", wait_ms)
    return _Failed(f"status {status}", wait_ms)


@dataclass(slots=True)
class Poller:
    """Fetches the updates of one bot."""

    db: Database
    clock: Clock
    bot: BotName
    line: Line
    bell: Doorbell
    kinds: Sequence[str] = ()
    """The kinds of updates to ask for. A list without a known kind means those that Telegram sends
    by default, those of tomorrow included; the webhook is set with the same."""
    offset: int = 0
    """The next update to ask for; asking for it confirms all before it."""

    async def run(self) -> None:
        """Fetch and store until cancelled. Raises WebhookIsSet, TokenRejected, StorageError."""
        wait_ms = BACKOFF_MS_MIN
        try:
            while True:
                before = self.offset
                try:
                    await self._require_no_webhook()
                    event("polling.started", bot=self.bot, offset=self.offset)
                    await self._fetch_on()
                except _Failed as error:
                    # What worked for a while begins anew with a short wait.
                    wait_ms = BACKOFF_MS_MIN if self.offset > before else wait_ms
                    pause_ms = max(wait_ms, error.wait_ms)
                    event("polling.failed", bot=self.bot, reason=error.reason, wait_ms=pause_ms)
                    await self.clock.sleep_ms(pause_ms)
                    wait_ms = min(wait_ms * 2, BACKOFF_MS_MAX)
        finally:
            await self.line.close()

    async def _fetch_on(self) -> None:
        while True:
            await self._fetch()

    async def _require_no_webhook(self) -> None:
        body = await self.line.call("getWebhookInfo", {})
        try:
            url = _WebhookAnswer.model_validate_json(body).result.url
        except ValidationError as error:
            raise _Failed("getWebhookInfo was not answered as it should be") from error
        if url:
            host = httpx.URL(url).host
            raise WebhookIsSet(
                f"bots.{self.bot}: a webhook at {host} is set, so Telegram gives no updates to "
                "whoever polls; take it away with `ferryman webhook delete`, or run without "
                "--polling"
            )

    async def _fetch(self) -> None:
        """Confirm what is stored, and store what has come since."""
        params: dict[str, str | int] = {
            "timeout": POLL_S,
            "limit": BATCH_MAX,
            "allowed_updates": json.dumps(list(self.kinds)),
        }
        if self.offset:
            params["offset"] = self.offset
        body = await self.line.call("getUpdates", params)
        try:
            updates = _Updates.model_validate_json(body).result
        except ValidationError as error:
            raise _Failed("getUpdates was not answered as it should be") from error
        if updates:
            bodies = [json.dumps(update, separators=(",", ":")).encode() for update in updates]
            last, arrived = await self.db.write(partial(self._store, bodies), point="worker.poll")
            arrival.tell(arrived)
            self.offset = max(self.offset, last + 1)
            self.bell.ring("worker")

    def _store(self, bodies: Sequence[bytes], tx: Tx) -> tuple[int, Arrival]:
        """Store a batch in one transaction; give its highest update id, and what became of it."""
        updates = []
        for body in bodies:
            envelope = read_envelope(body)
            if isinstance(envelope, Unreadable):
                inbox.quarantine(tx, self.bot, body, envelope.reason)
            else:
                updates.append(Received(self.bot, *envelope, body))
        last = max((update.update_id for update in updates), default=0)
        return last, arrival.receive_all(tx, updates)
