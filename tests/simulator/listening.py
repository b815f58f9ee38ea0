"""A listening port on loopback that can be closed and opened again, and connections cut hard.

uvicorn speaks HTTP, but its own server class neither refuses connections on demand nor lends out a
connection's transport, and both are what a fault needs.
"""

import asyncio
import socket
import struct
from collections.abc import Coroutine
from typing import TypeVar

from starlette.requests import Request
from starlette.types import ASGIApp, Scope
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

ResultT = TypeVar("ResultT")
LOOPBACK = "127.0.0.1"
# Telegram keeps idle connections about that long.
KEEP_ALIVE_S = 75


class _LendingProtocol(HttpToolsProtocol):
    """Lends the connection's transport to the application."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["state"]["transport"] = self.transport


def transport_of(scope: Scope) -> asyncio.Transport:
    """The transport under a request."""
    transport: asyncio.Transport = scope["state"]["transport"]
    return transport


async def while_they_listen(
    request: Request, acting: Coroutine[None, None, ResultT]
) -> ResultT | None:
    """Wait for something that takes its time; None when the caller has hung up meanwhile."""
    wait = asyncio.ensure_future(acting)
    gone = asyncio.ensure_future(_hung_up(request))
    try:
        await asyncio.wait({wait, gone}, return_when=asyncio.FIRST_COMPLETED)
        return wait.result() if wait.done() else None
    finally:
        wait.cancel()
        gone.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def cut(transport: asyncio.Transport, *, reset: bool) -> None:
    """Close a connection at once, without another byte; `reset`: by RST instead of FIN."""
    if reset:
        lent = transport.get_extra_info("socket")
        lent.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


class Port:
    """One port and the application behind it."""

    def __init__(self, app: ASGIApp, port: int = 0) -> None:
        self._config = Config(
            app,
            http=_LendingProtocol,
            lifespan="off",
            access_log=False,
            log_config=None,
            timeout_keep_alive=KEEP_ALIVE_S,
            date_header=False,
            server_header=False,
        )
        self._config.load()
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self.number = port

    async def open(self) -> None:
        """Listen; on a port of the system's choice the first time, and then on that one."""
        if self._server is not None:
            return
        # With the protocol named, so that asyncio switches Nagle's delay off.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, self.number))
        self.number = listener.getsockname()[1]
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._protocol, sock=listener, backlog=512)

    async def close(self) -> None:
        """Refuse connections from now on, and cut those that stand."""
        if self._server is None:
            return
        server, self._server = self._server, None
        server.close()
        for protocol in list(self._state.connections):
            assert isinstance(protocol, _LendingProtocol)
            protocol.transport.abort()
        await server.wait_closed()
        await asyncio.gather(*self._state.tasks, return_exceptions=True)

    def _protocol(self) -> asyncio.Protocol:
        return _LendingProtocol(config=self._config, server_state=self._state, app_state={})
