"""uvicorn, as one task among others.

Served by `uvicorn.run` it would take the process's signals and raise them again at its end, which
ends whatever else runs in the loop. Here it starts, tells when it is reachable, and stops when it
is told to.
"""

import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from storage.options import Network

# Telegram keeps an idle connection for 60 s, and a close while it sends is a failed delivery.
KEEP_ALIVE_S: Final = 75
# Of the 20 s in which a role has to end.
GRACEFUL_S: Final = 15
# Telegram opens up to 100 connections at once, a proxy more.
BACKLOG: Final = 2048


class _Protocol(HttpToolsProtocol):
    """uvicorn's HTTP, with broken requests refused whole."""

    def send_400_response(self, msg: str) -> None:
        """Answer 400 and give up what came of the request.

        A body that is whole but followed by garbage would still be handed on, and stored behind
        the sender's back, who has been told 400 and brings it again.
        """
        # None before the first request, which uvicorn's own types leave out.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        super().send_400_response(msg)


class Server(uvicorn.Server):
    """A server that leaves the process's signals alone.

    `trusted_proxies`: who may say from which address a request came; None where nobody asks for it.
    """

    def __init__(
        self,
        app: Starlette,
        *,
        trusted_proxies: Sequence[Network] | None,
        on_started: Callable[[], Awaitable[None]],
    ) -> None:
        config = uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=trusted_proxies is not None,
            forwarded_allow_ips=[str(network) for network in trusted_proxies or ()],
            # Open connections count, idle ones too, and its refusal names no Retry-After.
            limit_concurrency=None,
            backlog=BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACEFUL_S,
        )
        super().__init__(config)
        self._on_started = on_started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none: they are the front door's."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections, and tell."""
        await super().startup(sockets)
        await self._on_started()

    def stop(self) -> None:
        """Accept no more, finish what is under way, return from `serve`."""
        self.should_exit = True
