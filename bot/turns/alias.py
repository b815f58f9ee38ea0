"""Keeps the bot's token out of python-telegram-bot, and so out of every log, repr and traceback.

The library puts the token into URLs, reprs, exceptions and stored file paths, and httpx logs URLs.
So both get an alias, and the token takes its place below httpx's logging, in the transport, on the
way to the socket (reference: the library's `Bot.__repr__`, `File.file_path`; httpx's INFO lines).
"""

from typing import Final

import httpx
from telegram.request import HTTPXRequest

from storage.settings import Token

# Telegram absorbs floods by holding a call for up to 8 s: who gives up early learns nothing.
READ_TIMEOUT_S: Final = 35.0
CONNECT_TIMEOUT_S: Final = 10.0
_CONNECTIONS_MAX: Final = 32
# Telegram keeps idle connections for about a minute.
_KEEPALIVE_S: Final = 60.0


def alias_of(token: Token) -> str:
    """What the library is told instead of the token. It has no colon, which would be quoted."""
    return f"TOKEN-OF-{token.bot_id}"


class AliasTransport(httpx.AsyncBaseTransport):
    """Replaces the alias by the token, in the request's path, and sends it on."""

    def __init__(self, token: Token, inner: httpx.AsyncBaseTransport | None = None) -> None:
        self._alias = alias_of(token).encode()
        self._token = token
        self._inner = inner or httpx.AsyncHTTPTransport(
            limits=httpx.Limits(max_connections=_CONNECTIONS_MAX, keepalive_expiry=_KEEPALIVE_S)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request with the token in place of its alias."""
        path = request.url.raw_path.replace(self._alias, self._token.reveal().encode(), 1)
        revealed = httpx.Request(
            request.method,
            request.url.copy_with(raw_path=path),
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        return await self._inner.handle_async_request(revealed)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


def reading_request(token: Token) -> HTTPXRequest:
    """The library's own way to Telegram, for reads, without the token."""
    return HTTPXRequest(
        read_timeout=READ_TIMEOUT_S,
        connect_timeout=CONNECT_TIMEOUT_S,
        pool_timeout=CONNECT_TIMEOUT_S,
        httpx_kwargs={"transport": AliasTransport(token)},
    )
