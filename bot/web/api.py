"""The API for programs: `POST /api/messages` leaves a call, `GET /api/messages/{id}` tells of it.

A web form, a cron job or a script in any language gets the durable lane with one request. 202 means
that the call is on disk, not that it has been made. Whoever bears no token learns nothing, and is
answered before the body is read; whoever does is told every fault with its field. What was asked
for is never logged, and what is told of a call holds nobody's words.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from bot.orders import Unacceptable, read_order
from bot.parameters import Json, NotJson, Problem, read_json
from bot.producing import KeyTaken, Left, Terms, leave, outgoing_of
from bot.web.backpressure import DISK_LOW, BackPressure
from bot.web.bearer import ASK, bears
from bot.web.body import BODY_BYTES_MAX, read_body
from bot.web.dashboard.wording import unquoted
from bot.web.head import read_head
from bot.web.meter import Meter
from storage import reports
from storage.clock import Clock, Dice, hex_name
from storage.database import Database
from storage.errors import StorageError
from storage.lifecycle import HELD, TERMINAL, OutboxId, OutboxState
from storage.outgoing import Outgoing
from storage.reports import AttemptReport, RowReport
from storage.telemetry import event

PATH: Final = "/api/messages"
RETRY_AFTER_S: Final = 5

# SQLite's integers have 63 bits.
_ID_DIGITS_MAX: Final = 18
_OFF: Final = (
    "The HTTP API is off: no token is set. Name a file with one in web.api_token_file of the "
    "configuration, and start the web role again."
)
_NO_BEARER: Final = (
    "Expected the header `Authorization: Bearer <token>` once, with the token that is in "
    "web.api_token_file."
)
_TOO_LARGE: Final = f"Expected at most {BODY_BYTES_MAX} bytes."
_ENCODED: Final = "Expected a body without Content-Encoding."
_UPLOAD: Final = (
    "Expected a JSON body. Files can't be uploaded with this call: give a file_id or an https:// "
    "address, from which Telegram fetches the file."
)
_DISK_LOW: Final = "The disk is nearly full: nothing was left. Send the same again later."
_UNSTORED: Final = "It could not be stored: nothing was left. Send the same again, with its key."
_UNKNOWN: Final = "There is no such call here; one that ended long ago may have been forgotten."


@dataclass(frozen=True, slots=True)
class Means:
    """What the API works with. `on_left` is called after each commit."""

    database: Database
    clock: Clock
    dice: Dice
    backpressure: BackPressure
    meter: Meter
    on_left: Callable[[], None]


class Api:
    """Takes calls from programs that bear the token, and tells what became of them."""

    def __init__(self, means: Means, terms: Terms, *, token: bytes | None) -> None:
        self._means = means
        self._terms = terms
        self._token = token

    def routes(self) -> list[Route]:
        """Its two addresses."""
        return [
            Route(PATH, self.take, methods=["POST"]),
            Route(f"{PATH}/{{id}}", self.show, methods=["GET"]),
        ]

    async def take(self, request: Request) -> Response:
        """Leave one call: 202 with its id, which is the same for the same key."""
        refusal = self._stranger(request) or self._unreadable(request)
        if refusal is not None:
            return refusal
        try:
            body = await read_body(request)
        except ClientDisconnect:
            return self._unavailable("ClientDisconnect", _UNSTORED)
        if body is None:
            return self._too_large()
        if self._means.backpressure.is_disk_low:
            return self._unavailable(DISK_LOW, _DISK_LOW)
        try:
            left = await self._leave(read_json(body), request.headers.getlist("idempotency-key"))
        except NotJson as error:
            return self._refused("body", 400, _sentence(str(error)))
        except Unacceptable as error:
            problems = [{"field": each.field, "expected": each.expected} for each in error.problems]
            return self._refused("order", 422, str(error), problems=problems)
        except KeyTaken as error:
            return self._refused("key", 409, _sentence(str(error)))
        except StorageError as error:
            return self._unavailable(type(error).__name__, _UNSTORED)
        return _json(202, {"id": left.id, "state": left.state})

    async def show(self, request: Request) -> Response:
        """Tell how one call stands: its state, its reason, and every attempt."""
        refusal = self._stranger(request)
        if refusal is not None:
            return refusal
        number: str = request.path_params["id"]
        if not (number.isascii() and number.isdecimal() and len(number) <= _ID_DIGITS_MAX):
            return _told(404, _UNKNOWN)
        look = partial(reports.show, row_id=OutboxId(int(number)))
        try:
            found = await self._means.database.read(look)
        except StorageError as error:
            told = f"The database can't be read just now ({type(error).__name__})."
            return _told(503, told, {"retry-after": str(RETRY_AFTER_S)})
        return _told(404, _UNKNOWN) if found is None else _json(200, document_of(found))

    async def _leave(self, given: Json, keys: Sequence[str]) -> Left:
        means = self._means
        order = read_order(_with_key(given, keys))
        fresh_key = f"post:{hex_name(means.dice)}{hex_name(means.dice)}"
        row = outgoing_of(order, self._terms, now_ms=means.clock.now_ms(), key=fresh_key)
        left = await means.database.write(
            partial(leave, order=order, outgoing=row), point="web.leave_call"
        )
        means.on_left()
        _log(order.bot, row, left)
        return left

    def _stranger(self, request: Request) -> Response | None:
        """Turn away whoever bears no token; the body has not been read yet."""
        if self._token is None:
            return self._refused("off", 403, _OFF)
        if not bears(request, self._token):
            return self._refused("token", 401, _NO_BEARER, headers=ASK)
        return None

    def _unreadable(self, request: Request) -> Response | None:
        """Turn away what can't be read, by its head alone."""
        head = read_head(request.scope["headers"])
        if head.is_encoded:
            return self._refused("encoding", 415, _ENCODED)
        if request.headers.get("content-type", "").lower().startswith("multipart/"):
            return self._refused("upload", 415, _UPLOAD)
        return self._too_large() if head.declared_bytes > BODY_BYTES_MAX else None

    def _too_large(self) -> Response:
        # What is left of the body is not waited for, so the connection is of no more use.
        return self._refused("too_large", 413, _TOO_LARGE, headers={"connection": "close"})

    def _unavailable(self, reason: str, told: str) -> Response:
        self._means.meter.unstored(reason)
        return _told(503, told, {"retry-after": str(RETRY_AFTER_S)})

    def _refused(
        self,
        reason: str,
        status: int,
        told: str,
        *,
        headers: Mapping[str, str] | None = None,
        problems: Sequence[Mapping[str, str]] = (),
    ) -> Response:
        self._means.meter.refused(f"api_{reason}", status)
        more = {"problems": problems} if problems else {}
        return _json(status, {"error": told, **more}, headers)


def _with_key(given: Json, keys: Sequence[str]) -> Json:
    """The order with the key that its header named, which may also stand in it."""
    if not isinstance(given, dict) or not keys:
        return given
    if len(keys) > 1 or given.get("key") not in (None, keys[0]):
        raise Unacceptable([Problem("key", "expected one key, found several")])
    return {**given, "key": keys[0]}


def document_of(call: RowReport) -> dict[str, Any]:
    """What a program is told of a call: no parameters, and of Telegram's words no quotes."""
    return {
        "id": call.id,
        "state": call.state,
        "reason": unquoted(call.reason),
        "bot": call.bot,
        "method": call.method,
        "class": call.priority,
        "message_id": call.message_id,
        "next_ms": _next_ms(call),
        "expires_ms": call.expires_at_ms,
        "left_ms": call.created_at_ms,
        "ended_ms": call.finished_at_ms,
        "attempts": [_attempt(each) for each in call.history],
    }


def _next_ms(call: RowReport) -> int | None:
    """The next moment at which something may happen to it; None when nothing does by itself."""
    if call.state in TERMINAL or call.state in HELD:
        return None
    if call.state is OutboxState.CLAIMED:
        return call.due_ms or call.created_at_ms
    return max(call.due_ms, call.not_before_ms, call.created_at_ms)


def _attempt(attempt: AttemptReport) -> dict[str, Any]:
    return {
        "stage": attempt.stage,
        "verdict": attempt.verdict,
        "status": attempt.status,
        "code": attempt.code,
        "description": unquoted(attempt.description),
        "wait_ms": attempt.wait_ms,
        "left_ms": attempt.stamped_at_ms,
        "ended_ms": attempt.ended_at_ms,
        "took_ms": attempt.duration_ms,
        "request_id": attempt.request_id,
        "items": [
            {"number": each.number, "state": each.state, "reason": unquoted(each.reason)}
            for each in attempt.items_told
        ],
    }


def _log(bot: str, row: Outgoing, left: Left) -> None:
    event(
        "outbox.enqueued",
        bot=bot,
        outbox_id=left.id,
        method=row.method,
        lane=row.lane,
        priority=row.priority,
        fresh=left.fresh,
    )
    if left.superseded:
        event("outbox.superseded", bot=bot, by_outbox_id=left.id, count=len(left.superseded))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _told(status: int, told: str, headers: Mapping[str, str] | None = None) -> Response:
    return _json(status, {"error": told}, headers)


def _json(
    status: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        json.dumps(document, ensure_ascii=False) + "\n",
        status_code=status,
        media_type="application/json",
        headers={"cache-control": "no-store", **(headers or {})},
    )
