"""A client of Ferryman's HTTP API for Python programs: one file, the standard library alone.

Part of the distribution, and free to be copied beside a program on a machine without it. Each call
carries an idempotency key, made here if none is given, so that a request which got no answer is
simply sent again: the same key is never two calls. That a call was left says that it is on
Ferryman's disk; whether it was sent, `get` and `wait` tell.

    ferryman = Ferryman("http://127.0.0.1:8080", token)
    ferryman.send_message("main", 111111111, "Backup done", key="backup-2026-08-24")
"""

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from http.client import HTTPException
from typing import Any, Final, Literal
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

Json = Mapping[str, Any]

ENDED: Final = frozenset({"sent", "dead", "superseded", "expired", "cancelled"})
"""States that do not change any more."""

HELD: Final = frozenset({"uncertain", "review"})
"""States that wait for a person."""

_PASSING: Final = frozenset({408, 429})
_SERVER_ERRORS: Final = 500
_CONFLICT: Final = 409


class ApiError(Exception):
    """Ferryman could not be asked, or said no."""


class Unreachable(ApiError):
    """No usable answer came, after all tries. Whether a call was left is not known: send again."""


class Refused(ApiError):
    """Ferryman said no, and would say so again: `status` of HTTP, and the problems by field."""

    def __init__(self, status: int, told: str, problems: Mapping[str, str]) -> None:
        super().__init__(f"{status}: {told}")
        self.status = status
        self.problems = problems


class KeyTaken(Refused):
    """The key stands for another call already."""


@dataclass(frozen=True, slots=True)
class Left:
    """A call that is on Ferryman's disk, now or since an earlier request with the same key."""

    id: int
    state: str
    key: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to make a call, as evidence."""

    stage: str
    verdict: str | None
    status: int | None
    code: int | None
    description: str | None
    wait_ms: int | None
    left_ms: int | None
    ended_ms: int | None
    took_ms: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """How a call stands. Moments are milliseconds since 1970 in UTC."""

    id: int
    state: str
    reason: str | None
    bot: str
    method: str
    message_id: int | None
    next_ms: int | None
    expires_ms: int | None
    left_ms: int
    ended_ms: int | None
    attempts: Sequence[Attempt]

    @property
    def is_sent(self) -> bool:
        """Whether Telegram has accepted it."""
        return self.state == "sent"

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, or waits for a person."""
        return self.state in ENDED | HELD


@dataclass(frozen=True, slots=True)
class Wish:
    """How a call shall be delivered; what is left out is as Ferryman is configured.

    Moments are datetimes with a zone, or milliseconds since 1970 in UTC.
    """

    urgency: Literal["interactive", "bulk", "paid"] | None = None
    not_before: datetime | int | None = None
    expires_at: datetime | int | None = None
    ttl_s: float | None = None
    supersede: str | None = None
    on_uncertain: Literal["hold", "resend", "drop"] | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of the API's body."""
        told = {
            "class": self.urgency,
            "not_before": _moment(self.not_before),
            "expires_at": _moment(self.expires_at),
            "ttl_s": self.ttl_s,
            "supersede": self.supersede,
            "on_uncertain": self.on_uncertain,
        }
        return {name: value for name, value in told.items() if value is not None}


def _moment(at: datetime | int | None) -> str | int | None:
    return at.isoformat() if isinstance(at, datetime) else at


_NO_WISH: Final = Wish()


class Ferryman:
    """Ferryman's API at `url`. Without an answer a request is sent again, `tries` times in all.

    `timeout_s` is how long one answer is waited for; `pause` waits between tries, in seconds.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout_s: float = 10,
        tries: int = 4,
        pause: Callable[[float], object] | None = None,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError("expected an address such as http://127.0.0.1:8080")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"}
        self._timeout_s = timeout_s
        self._tries = max(1, tries)
        self._pause = threading.Event().wait if pause is None else pause
        # Neither a proxy nor whoever an answer points to is shown the token.
        self._open = build_opener(ProxyHandler({}), _NoRedirect()).open

    def send_message(
        self,
        bot: str,
        chat_id: int | str,
        text: str,
        *,
        key: str | None = None,
        wish: Wish = _NO_WISH,
        **params: Any,  # noqa: ANN401 - whatever else sendMessage takes
    ) -> Left:
        """Leave a text message; further parameters are sendMessage's.

        Raises Refused, or Unreachable.
        """
        call = {"chat_id": chat_id, "text": text, **params}
        return self.send(bot, "sendMessage", call, key=key, wish=wish)

    def send(
        self,
        bot: str,
        method: str,
        params: Json,
        *,
        key: str | None = None,
        wish: Wish = _NO_WISH,
    ) -> Left:
        """Leave a call of any method that Ferryman can make later.

        Raises Refused for what it can't or for a key that is taken, and Unreachable.
        """
        key = key or os.urandom(16).hex()
        body = {"bot": bot, "method": method, "params": params, "key": key, **wish.fields()}
        told = self._ask("POST", "/api/messages", body)
        return Left(int(told["id"]), str(told["state"]), key)

    def get(self, call_id: int) -> Call:
        """How a call stands.

        Raises Refused (404) for one that is not known, and Unreachable.
        """
        told = self._ask("GET", f"/api/messages/{call_id}")
        attempts = [Attempt(**_known(Attempt, each)) for each in told["attempts"]]
        return Call(**{**_known(Call, told), "attempts": attempts})

    def wait(self, call_id: int, *, timeout_s: float, every_s: float = 0.5) -> Call:
        """Ask again and again until a call has ended or is held, at most about `timeout_s`."""
        left_s = timeout_s
        while True:
            call = self.get(call_id)
            if call.is_settled or left_s <= 0:
                return call
            self._pause(min(every_s, left_s))
            left_s -= every_s

    def _ask(self, method: str, path: str, body: Json | None = None) -> dict[str, Any]:
        """Ask until there is an answer. Every request may be repeated: a call by its key."""
        failure = _NoAnswer("no try was made")
        for number in range(self._tries):
            if number:
                self._pause(max(failure.wait_s, 0.25 * 2**number))
            try:
                return self._once(method, path, body)
            except _NoAnswer as error:
                failure = error
        raise Unreachable(f"after {self._tries} tries: {failure}")

    def _once(self, method: str, path: str, body: Json | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Content-Type": "application/json"}
        request = Request(self._url + path, data, headers, method=method)  # noqa: S310 - the scheme was looked at
        try:
            with self._open(request, timeout=self._timeout_s) as answer:
                return _document(answer.read())
        except HTTPError as error:
            with error:
                raise _refusal(error) from None
        except (OSError, HTTPException, ValueError) as error:
            raise _NoAnswer(f"{type(error).__name__} instead of an answer") from None


class _NoAnswer(Exception):
    """Nothing came that could be the API's word on it; not to be asked again for `wait_s`."""

    def __init__(self, told: str, wait_s: float = 0) -> None:
        super().__init__(told)
        self.wait_s = wait_s


class _NoRedirect(HTTPRedirectHandler):
    """Follows nothing: whatever else answers there is not Ferryman."""

    def redirect_request(self, *_: object) -> None:
        """Make no request."""


def _refusal(error: HTTPError) -> Exception:
    if error.code >= _SERVER_ERRORS or error.code in _PASSING:
        wait = error.headers.get("Retry-After", "")
        return _NoAnswer(f"HTTP {error.code}", min(int(wait), 60) if wait.isdecimal() else 0)
    try:
        told = _document(error.read())
    except (OSError, HTTPException, ValueError):
        told = {}
    problems = {each["field"]: each["expected"] for each in told.get("problems", ())}
    kind = KeyTaken if error.code == _CONFLICT else Refused
    return kind(error.code, str(told.get("error", "refused")), problems)


def _document(body: bytes) -> dict[str, Any]:
    document = json.loads(body)
    if not isinstance(document, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - no answer, like no JSON
    return document


def _known(kind: type[Attempt] | type[Call], told: Json) -> dict[str, Any]:
    """Of an answer what is known here, so that a newer Ferryman may say more."""
    return {each.name: told[each.name] for each in fields(kind) if each.name in told}
