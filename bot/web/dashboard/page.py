"""The status page, the same for programs, and what they are made of.

Read only. It is shown to whoever sits at this machine, and to whoever bears the API's token; never
to a visitor whom a proxy brings from elsewhere. The template engine is loaded when the page is
first asked for: most web processes never show it, and are to stay small.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from bot.web.address import is_direct_from_loopback
from bot.web.bearer import ASK, bears
from bot.web.dashboard import wording
from bot.web.dashboard.look import (
    ROWS_MAX,
    Look,
    evidence,
    look,
    missing_roles,
    waiting_calls,
)
from bot.web.meter import AckTimes
from storage.clock import Clock
from storage.database import Database
from storage.errors import StorageError
from storage.lifecycle import BotName

if TYPE_CHECKING:
    from jinja2 import Template

HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
_FORBIDDEN = "Only from this machine itself, or with the API's bearer token.\n"
_ASSETS: Final = {"status.css": "text/css", "status.js": "text/javascript"}


class StatusPage:
    """Answers who may see it with what stands in the database now."""

    def __init__(
        self,
        database: Database,
        bots: Sequence[BotName],
        clock: Clock,
        *,
        token: bytes | None,
        ack_times: Callable[[], AckTimes],
    ) -> None:
        self._database = database
        self._bots = bots
        self._clock = clock
        self._token = token
        self._ack_times = ack_times

    def routes(self) -> list[Route]:
        """The page, its document for programs, and its two small files."""
        return [
            Route("/", self.page, methods=["GET"]),
            Route("/status.json", self.document, methods=["GET"]),
            *(
                Route(f"/{name}", partial(_asset, name=name), methods=["GET"], name=name)
                for name in _ASSETS
            ),
        ]

    async def page(self, request: Request) -> Response:
        """The page for a person."""
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            seen = await self._look()
        except StorageError as error:
            return _unavailable(error)
        html = _template().render(seen=seen, missing=missing_roles(seen.house))
        return Response(html, media_type="text/html", headers=HEADERS)

    async def document(self, request: Request) -> Response:
        """The same for a program."""
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        try:
            seen = await self._look()
        except StorageError as error:
            return _unavailable(error)
        return JSONResponse(seen.as_document(), headers=HEADERS)

    def _refusal(self, request: Request) -> Response | None:
        if is_direct_from_loopback(request) or bears(request, self._token):
            return None
        if self._token is None:
            return PlainTextResponse(_FORBIDDEN, status_code=403, headers=HEADERS)
        asked = {**HEADERS, **ASK}
        return PlainTextResponse(_FORBIDDEN, status_code=401, headers=asked)

    async def _look(self) -> Look:
        acks = self._ack_times()
        return await self._database.read(lambda tx: look(tx, self._bots, self._clock, acks))


async def _asset(_: Request, *, name: str) -> Response:
    file = resources.files("bot.web.dashboard") / "static" / name
    return Response(file.read_bytes(), media_type=_ASSETS[name], headers=HEADERS)


def _unavailable(error: StorageError) -> Response:
    text = f"The database can't be read just now ({type(error).__name__}).\n"
    return PlainTextResponse(text, status_code=503, headers=HEADERS)


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - see the module

    environment = Environment(
        loader=PackageLoader("bot.web.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        words=wording, waiting_calls=waiting_calls, evidence=evidence, rows_max=ROWS_MAX
    )
    return environment.get_template("status.html")
