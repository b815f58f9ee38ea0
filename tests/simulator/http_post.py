"""Posting updates over HTTP as Telegram does: no User-Agent, no redirects, no patience with 3xx."""

import http
from types import TracebackType
from typing import Self

import aiohttp

from tests.simulator.deliverer import Answered, Broken, Outcome, Unconnected
from tests.simulator.posting import Post

# Encodings of an answer that Telegram can read (telegram.md §1.3).
_READABLE = ("", "identity", "gzip", "deflate")
ANSWER_BYTES_MAX = 1 << 20


class HttpPoster:
    """One pool of connections for all webhooks."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60),
            timeout=aiohttp.ClientTimeout(total=None),
            skip_auto_headers=("User-Agent", "Accept"),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def post(self, post: Post) -> Outcome:
        """Make one request; every trouble of the network is an outcome."""
        assert self._session is not None
        try:
            async with self._session.post(
                post.url, data=post.body, headers=post.headers, allow_redirects=False
            ) as response:
                body = await response.content.read(ANSWER_BYTES_MAX + 1)
                return _outcome(response, body)
        except aiohttp.ClientConnectorError:
            return Unconnected("Connection refused")
        except aiohttp.ClientError:
            return Broken("Webhook connection closed")


def _outcome(response: aiohttp.ClientResponse, body: bytes) -> Outcome:
    if (
        response.headers.get("Content-Encoding", "").lower() not in _READABLE
        or len(body) > ANSWER_BYTES_MAX
    ):
        return Broken("Webhook connection closed")
    retry_after = response.headers.get("Retry-After", "")
    return Answered(
        status=response.status,
        reason=response.reason or http.HTTPStatus(response.status).phrase,
        # A date instead of a number is ignored.
        retry_after_s=int(retry_after) if retry_after.isascii() and retry_after.isdigit() else None,
        closes=response.headers.get("Connection", "").lower() == "close",
        body=body,
    )
