"""The door from the internet: `POST /telegram/{bot}`.

Bytes of an authentic update go into the inbox, are synced to disk, and only then is the answer 200:
empty, since Telegram would carry out a call that stood in it. Whatever is authentic and can't be
read is kept aside and answered 200 too, because a refusal makes Telegram bring the same bytes for a
day and hold back all that follows in that chat. So it refuses only what is not Telegram's (before
the body is read), and what can't be kept now (503, to be brought again soon). Never 410: a day of
those ends the webhook. Never a redirect: Telegram doesn't follow one.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from bot.web.address import client_address, is_allowed
from bot.web.backpressure import BackPressure
from bot.web.body import BODY_BYTES_MAX, read_body
from bot.web.head import is_one_of, read_head
from bot.web.intake import Intake
from bot.web.meter import Meter
from storage.clock import Clock
from storage.envelope import Unreadable, read_envelope
from storage.errors import StorageError
from storage.inbox import Received, Reception
from storage.lifecycle import BotName
from storage.options import Network
from storage.telemetry import event

# A callback query lives 150 s, and Telegram drops an update whose next try would come too late.
RETRY_AFTER_S = 5

_STORED = Response()
_UNKNOWN_BOT = Response(status_code=404)
_FORBIDDEN = Response(status_code=403)
_UNAUTHENTIC = Response(status_code=401)
_ENCODED = Response(status_code=415)
# What is left of the body is not waited for, so the connection is of no more use.
_TOO_LARGE = Response(status_code=413, headers={"connection": "close"})
_UNAVAILABLE = Response(status_code=503, headers={"retry-after": str(RETRY_AFTER_S)})


@dataclass(frozen=True, slots=True)
class Door:
    """Who may bring updates: each bot with the secrets that are valid for it, and from where."""

    secrets: Mapping[BotName, Sequence[bytes]] = field(repr=False)
    networks: Sequence[Network] = ()


class Webhook:
    """Receives updates. `on_stored` is called after the commit, once for all that came together."""

    def __init__(
        self,
        intake: Intake,
        door: Door,
        backpressure: BackPressure,
        *,
        meter: Meter,
        clock: Clock,
        on_stored: Callable[[], None],
    ) -> None:
        self._intake = intake
        self._door = door
        self._backpressure = backpressure
        self._meter = meter
        self._clock = clock
        self._on_stored = on_stored
        self._has_news = False

    async def receive(self, request: Request) -> Response:
        """Answer one delivery: 200 when it is on disk, and what the module says otherwise."""
        bot: BotName = request.scope["path_params"]["bot"]
        refusal = self._refusal(bot, request)
        if refusal is not None:
            return refusal
        try:
            body = await read_body(request)
        except ClientDisconnect:
            # Telegram got no answer and brings it again; this one goes nowhere.
            return _UNAVAILABLE
        if body is None:
            return self._refused("too_large", _TOO_LARGE)
        reason = self._backpressure.reason(bot)
        if reason is not None:
            return self._unstored(reason)
        began_ms = self._clock.monotonic_ms()
        outside = read_envelope(body)
        try:
            if isinstance(outside, Unreadable):
                await self._keep_aside(bot, body, outside.reason)
            else:
                # Kept here and not in a function of its own: each one more that waits costs.
                reception = await self._intake.keep(Received(bot, *outside, body))
                if reception is Reception.STORED:
                    self._tell_soon()
                else:
                    self._tell_odd(bot, outside.update_id, reception)
        except StorageError as error:
            return self._unstored(type(error).__name__)
        self._meter.acknowledged(self._clock.monotonic_ms() - began_ms)
        return _STORED

    def _refusal(self, bot: BotName, request: Request) -> Response | None:
        """Judge by the head alone; the body has not been read yet."""
        secrets = self._door.secrets.get(bot)
        if secrets is None:
            return self._refused("unknown_bot", _UNKNOWN_BOT)
        networks = self._door.networks
        if networks and not is_allowed(client_address(request), networks):
            return self._refused("address", _FORBIDDEN)
        head = read_head(request.scope["headers"])
        if not is_one_of(head.secret, secrets):
            return self._refused("secret", _UNAUTHENTIC)
        if head.is_encoded:
            return self._refused("encoding", _ENCODED)
        if head.declared_bytes > BODY_BYTES_MAX:
            return self._refused("too_large", _TOO_LARGE)
        return None

    async def _keep_aside(self, bot: BotName, body: bytes, reason: str) -> None:
        kept = await self._intake.keep_aside(bot, body, reason)
        event("inbox.quarantined", bot=bot, inbox_id=kept, reason=reason)

    def _tell_odd(self, bot: BotName, update_id: int, reception: Reception) -> None:
        if reception is Reception.DUPLICATE:
            event("web.duplicate", bot=bot, update_id=update_id)
        else:
            reason = "other content under a known id"
            event("inbox.quarantined", bot=bot, update_id=update_id, reason=reason)

    def _unstored(self, reason: str) -> Response:
        self._meter.unstored(reason)
        return _UNAVAILABLE

    def _refused(self, reason: str, answer: Response) -> Response:
        self._meter.refused(reason, answer.status_code)
        return answer

    def _tell_soon(self) -> None:
        """Ring once for all that were committed together; they come in one turn of the loop."""
        if not self._has_news:
            self._has_news = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._has_news = False
        self._on_stored()
