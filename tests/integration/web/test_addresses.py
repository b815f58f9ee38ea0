"""Where updates may come from: directly, and behind a proxy, over TCP or at a Unix socket."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import httpx
import pytest

from storage.errors import ConfigurationError
from storage.settings import ServiceEnvironment
from tests.integration.web.door import Door, open_door, update

FROM_TELEGRAM = 'allowed_networks = ["telegram"]'
THEIRS, STRANGERS = "149.154.167.220", "203.0.113.9"


async def _status(door: Door, number: int, **headers: str) -> int:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return (await door.post(update(number), headers=told)).status_code


async def test_the_address_that_a_trusted_proxy_tells_is_judged(tmp_path: Path) -> None:
    async with open_door(tmp_path, web=FROM_TELEGRAM) as door:
        assert await _status(door, 1, X_Forwarded_For=THEIRS) == 200
        assert await _status(door, 2, X_Forwarded_For=STRANGERS) == 403
        assert door.counts() == (1, 0)


async def test_what_the_visitor_wrote_before_the_proxy_is_not_believed(tmp_path: Path) -> None:
    """A proxy appends; the leftmost address is anybody's word."""
    async with open_door(tmp_path, web=FROM_TELEGRAM) as door:
        assert await _status(door, 1, X_Forwarded_For=f"{THEIRS}, {STRANGERS}") == 403
        assert await _status(door, 2, X_Forwarded_For=f"{STRANGERS}, {THEIRS}") == 200


async def test_a_proxy_that_is_not_trusted_speaks_for_nobody(tmp_path: Path) -> None:
    web = f'{FROM_TELEGRAM}\ntrusted_proxies = ["192.0.2.1"]'
    async with open_door(tmp_path, web=web) as door:
        assert await _status(door, 1, X_Forwarded_For=THEIRS) == 403
        assert await _status(door, 2, X_Real_IP=THEIRS) == 403


async def test_the_direct_peer_is_judged_where_nobody_forwards(tmp_path: Path) -> None:
    async with open_door(tmp_path, web='allowed_networks = ["127.0.0.0/8"]') as door:
        assert await _status(door, 1) == 200
    async with open_door(tmp_path, web=FROM_TELEGRAM) as door:
        assert await _status(door, 2) == 403


async def test_the_address_is_judged_before_the_secret(tmp_path: Path) -> None:
    async with open_door(tmp_path, web=FROM_TELEGRAM) as door:
        assert (await door.post(update(1), secret="wrong")).status_code == 403


@pytest.fixture
def short_path(tmp_path: Path) -> Path:
    """A path that fits into a socket's address."""
    return tmp_path / "web.sock"


async def test_over_a_unix_socket_only_the_overwritten_header_counts(
    tmp_path: Path, short_path: Path
) -> None:
    web = f'{FROM_TELEGRAM}\nsocket_path = "{short_path}"'
    transport = httpx.AsyncHTTPTransport(uds=str(short_path))
    async with open_door(tmp_path, web=web, transport=transport) as door:
        assert await _status(door, 1, X_Real_IP=THEIRS) == 200
        assert await _status(door, 2, X_Real_IP=STRANGERS, X_Forwarded_For=THEIRS) == 403
        assert await _status(door, 3, X_Forwarded_For=THEIRS) == 403
        assert await _status(door, 4) == 403
        assert door.counts() == (1, 0)
        mode = stat.S_IMODE(short_path.stat().st_mode)
        assert mode == 0o660, "the proxy's group and nobody else"
        page = await door.http.get("/", headers={"host": "localhost"})
        assert page.status_code == 403, "a socket is a proxy's way in"
    assert not short_path.exists(), "and nothing is left behind"


async def test_a_socket_that_a_killed_process_left_is_replaced(
    tmp_path: Path, short_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(short_path))
    transport = httpx.AsyncHTTPTransport(uds=str(short_path))
    web = f'socket_path = "{short_path}"'
    async with open_door(tmp_path, web=web, transport=transport) as door:
        assert await _status(door, 1) == 200


@pytest.mark.parametrize("kind", ["a socket that answers", "a file"])
async def test_what_is_in_the_way_is_not_removed(
    tmp_path: Path, short_path: Path, kind: str
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as busy:
        if kind == "a file":
            short_path.write_bytes(b"precious")
        else:
            busy.bind(str(short_path))
            busy.listen()
        with pytest.raises(ConfigurationError, match=r"web\.socket_path"):
            async with open_door(tmp_path, web=f'socket_path = "{short_path}"'):
                pass
    assert short_path.exists()


async def test_sockets_passed_by_the_service_manager_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as passed:
        port = passed.getsockname()[1]
        number = os.dup(passed.fileno())
    monkeypatch.setattr("storage.notify.LISTEN_FDS_START", number)
    service = ServiceEnvironment(listen_fds=1, listen_pid=os.getpid())
    monkeypatch.setattr("tests.integration.web.door.free_port", lambda: port)
    async with open_door(tmp_path, service=service) as door:
        assert await _status(door, 1) == 200


async def test_an_answer_with_a_body_does_not_wait_for_nagle(tmp_path: Path) -> None:
    """Without TCP_NODELAY such an answer took 44 ms."""
    async with open_door(tmp_path) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.port)
        loop = asyncio.get_running_loop()
        took = []
        for _ in range(5):
            began = loop.time()
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            await reader.readuntil(b"}")
            took.append(loop.time() - began)
        writer.close()
    assert min(took) < 0.03
