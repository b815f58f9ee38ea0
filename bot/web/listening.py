"""Open the one socket that the web role listens on: TCP, a Unix socket, or one passed by systemd.

The sockets are ours and not uvicorn's, for three reasons: a port in use is a fault with a key and
not a log line, a Unix socket is not open to everybody, and only a socket made with its protocol
named answers without Nagle's delay of 40 ms (asyncio looks at `socket.proto`).
"""

import contextlib
import errno
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from storage.errors import ConfigurationError, Fault
from storage.notify import inherited_sockets
from storage.options import WebOptions
from storage.settings import ServiceEnvironment

# The owner and its group, which the proxy is to be a member of; nobody else.
_SOCKET_MODE: Final = 0o660
_REASONS: Final = {
    errno.EADDRINUSE: "expected a free address, but another process listens there",
    errno.EADDRNOTAVAIL: "expected an address of this machine",
    errno.EACCES: "expected an address that this user may listen on",
}


@contextlib.contextmanager
def listening(web: WebOptions, service: ServiceEnvironment) -> Iterator[list[socket.socket]]:
    """Bind for a block, and leave no socket file behind.

    Raises ConfigurationError with the key, if the address can't be had.
    """
    inherited = inherited_sockets(service)
    if inherited:
        yield inherited
    elif web.socket_path:
        with _unix_socket(Path(web.socket_path)) as opened:
            yield [opened]
    else:
        with _tcp_socket(web.host, web.port) as opened:
            yield [opened]


def address_of(listener: socket.socket) -> str:
    """The address as a person would write it."""
    name = listener.getsockname()
    if not isinstance(name, tuple):
        return f"unix:{os.fsdecode(name)}"
    host, port = name[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _tcp_socket(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _fault("web.host", host, "expected a host name or an address") from error
    family, kind, _, _, address = found[0]
    opened = socket.socket(family, kind, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        # Two that bind one address are told apart only here, as neither listened before.
        opened.listen()
    except OSError as error:
        opened.close()
        key = "web.host" if error.errno == errno.EADDRNOTAVAIL else "web.port"
        raise _fault(key, f"{host}:{port}", _reason(error)) from error
    return opened


@contextlib.contextmanager
def _unix_socket(path: Path) -> Iterator[socket.socket]:
    _remove_stale(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        try:
            # Narrowed before anybody can listen at it, so that it is never open to everybody.
            opened.bind(str(path))
            path.chmod(_SOCKET_MODE)
            opened.listen()
        except OSError as error:
            raise _fault("web.socket_path", str(path), _reason(error)) from error
        bound = path.stat().st_ino
        try:
            yield opened
        finally:
            # One that started in our place may have put its own there.
            with contextlib.suppress(OSError):
                if path.stat().st_ino == bound:
                    path.unlink()


def _remove_stale(path: Path) -> None:
    """Remove what a killed process left; a socket that answers, or any other file, stays."""
    try:
        is_socket = stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return
    if not is_socket:
        raise _fault("web.socket_path", str(path), "expected a free path, but a file is there")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        if probe.connect_ex(str(path)) == errno.ECONNREFUSED:
            path.unlink()


def _reason(error: OSError) -> str:
    why = _REASONS.get(error.errno or 0)
    return why or f"expected an address to listen on, found: {error.strerror or error}"


def _fault(key: str, value: str, expected: str) -> ConfigurationError:
    return ConfigurationError([Fault(key, value, expected)])
