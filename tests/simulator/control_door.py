"""The control port: `POST /_sim/<verb>`, live events for the chat page, and the page itself.

Only for loopback. With a control token, every verb and the event stream ask for it.
"""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from tests.simulator.acting import Ear
from tests.simulator.conditions import CONDITIONS
from tests.simulator.control_verbs import VERBS, World
from tests.simulator.listening import while_they_listen
from tests.simulator.people import Impossible
from tests.simulator.state import Told
from tests.simulator.wire import JsonObject

PAGE = Path(__file__).parent / "page"
PAGE_FILES = {
    "/": "index.html",
    "/page.css": "page.css",
    "/page.js": "page.js",
    "/message.js": "message.js",
    "/api.js": "api.js",
}
PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
# A comment line so often, so that a vanished browser is noticed.
HEARTBEAT_MS = 15_000
# News that a person at the page does not need.
_UNSEEN = frozenset({"arrival", "released", "poll", "update"})


class _Wait(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    condition: str
    timeout_ms: int
    terms: dict[str, object]


@dataclass(frozen=True, slots=True)
class ControlDoor:
    """Answers whoever holds the token; an outage concerns the Bot API's port alone."""

    world: World
    token: str
    go_down: Callable[[], Awaitable[None]]
    come_back: Callable[[], Awaitable[None]]

    def app(self) -> ASGIApp:
        """The application behind the control port."""
        page = [Route(path, self._page, methods=["GET"]) for path in PAGE_FILES]
        return Starlette(
            routes=[
                *page,
                Route("/_sim/events", self._events, methods=["GET"]),
                Route("/_sim/wait", self._wait, methods=["POST"]),
                Route("/_sim/goes_down", self._outage, methods=["POST"]),
                Route("/_sim/comes_back", self._outage, methods=["POST"]),
                Route("/_sim/{verb}", self._verb, methods=["POST"]),
            ]
        )

    async def _page(self, request: Request) -> Response:
        return FileResponse(PAGE / PAGE_FILES[request.url.path], headers=PAGE_HEADERS)

    async def _verb(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        verb = VERBS.get(request.path_params["verb"])
        if verb is None:
            return _trouble(404, "no such verb")
        try:
            return JSONResponse(verb(self.world, await request.body()))
        except (Impossible, ValidationError, ValueError, TypeError) as trouble:
            return _trouble(400, str(trouble))
        except KeyError as missing:
            return _trouble(400, f"there is no {missing}")

    async def _outage(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        goes_down = request.url.path.endswith("/goes_down")
        await (self.go_down() if goes_down else self.come_back())
        return JSONResponse({})

    async def _wait(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        try:
            wanted = _Wait.model_validate_json(await request.body())
            told = await while_they_listen(request, self._until(wanted))
        except (ValidationError, KeyError, TypeError) as trouble:
            return _trouble(400, str(trouble))
        met, seen = told or (False, {})
        return JSONResponse({"met": met, "seen": seen})

    async def _until(self, wanted: _Wait) -> tuple[bool, JsonObject]:
        telegram = self.world.telegram
        condition = CONDITIONS[wanted.condition]
        end_ms = telegram.clock.monotonic_ms() + wanted.timeout_ms
        with Ear(telegram) as ear:
            while True:
                met, seen = condition(telegram, wanted.terms)
                left_ms = end_ms - telegram.clock.monotonic_ms()
                if met or left_ms <= 0:
                    return met, seen
                await ear.hear(telegram.clock, left_ms)

    async def _events(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        return StreamingResponse(
            self._stream(), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _stream(self) -> AsyncIterator[str]:
        told: asyncio.Queue[Told] = asyncio.Queue()
        deaf = self.world.telegram.state.listen(told.put_nowait)
        try:
            yield "retry: 1000\n\n"
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT_MS / 1000):
                        news = await told.get()
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if news.kind not in _UNSEEN:
                    yield _event(news)
        finally:
            deaf()

    def _refused(self, request: Request) -> Response | None:
        """Refuse strangers; a browser page of another origin can send no such request unasked."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = given or request.query_params.get("token", "")
        if self.token and not hmac.compare_digest(given.encode(), self.token.encode()):
            return _trouble(401, "the control token is missing or wrong")
        if request.method == "POST" and not request.headers.get("Content-Type", "").startswith(
            "application/json"
        ):
            return _trouble(415, "JSON only")
        return None


def _event(news: Told) -> str:
    data = {"kind": news.kind, "bot": news.bot_id, "chat": news.chat_id, **news.data}
    return f"data: {json.dumps(data)}\n\n"


def _trouble(status: int, text: str) -> Response:
    return JSONResponse({"error": text}, status)
