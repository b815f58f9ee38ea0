"""The role as a real process, on the event loop and with the signals it has on a server."""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.integration.web.door import HEADER, SECRET, SETTINGS, update
from tests.live.process import LiveProcess, free_port, until

# Passes a listening socket on as systemd does, then becomes the role.
SOCKET_ACTIVATION = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(sys.argv[1])
listener.listen()
os.dup2(listener.fileno(), 3)
os.set_inheritable(3, True)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "bot", "web", "--config", sys.argv[2]])
"""


def configured(folder: Path, web: str = "") -> tuple[Path, int]:
    """A configuration file, and the port it names."""
    port = free_port()
    path = folder / "ferryman.toml"
    path.write_text(SETTINGS.format(port=port, web=web, disk=0), encoding="utf-8")
    return path, port


@asynccontextmanager
async def running(
    folder: Path, command: list[str], http: httpx.AsyncClient
) -> AsyncIterator[LiveProcess]:
    """A process of ours for a block, ready from its beginning, gone at its end."""
    environment = {
        "FERRYMAN_BOTS__MAIN__SECRET": SECRET,
        "FERRYMAN_BOTS__OTHER__SECRET": "the-secret-of-other",
    }
    log = folder / "web.log"
    process = await LiveProcess.start("web", command, log=log, environment=environment)

    async def is_ready() -> bool:
        try:
            return (await http.get("/readyz")).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    try:
        await process.ready(is_ready)
        yield process
    finally:
        await process.kill()


def over_unix_socket(path: Path) -> httpx.AsyncClient:
    """A client that comes in as a proxy does."""
    return httpx.AsyncClient(
        base_url="http://localhost",
        trust_env=False,
        transport=httpx.AsyncHTTPTransport(uds=str(path)),
        headers={HEADER: SECRET},
    )


async def test_it_serves_a_unix_socket_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "web.sock"
    config, _ = configured(tmp_path, f'socket_path = "{path}"')
    command = ["-m", "bot", "web", "--config", str(config)]
    async with over_unix_socket(path) as http, running(tmp_path, command, http) as process:
        assert (await http.post("/telegram/main", content=update(1))).status_code == 200
        assert await process.stop() == 0
    assert not path.exists()


async def test_it_serves_a_socket_that_the_service_manager_passed(tmp_path: Path) -> None:
    path = tmp_path / "passed.sock"
    config, _ = configured(tmp_path)
    command = ["-c", SOCKET_ACTIVATION, str(path), str(config)]
    async with over_unix_socket(path) as http, running(tmp_path, command, http) as process:
        assert (await http.post("/telegram/main", content=update(1))).status_code == 200
        assert await process.stop() == 0
    assert path.exists(), "it is the service manager's"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_told_to_stop_it_finishes_what_was_begun_and_lets_nobody_wait(
    tmp_path: Path, number: signal.Signals
) -> None:
    config, port = configured(tmp_path)
    command = ["-m", "bot", "web", "--config", str(config)]
    url = f"http://127.0.0.1:{port}"
    async with (
        httpx.AsyncClient(base_url=url, trust_env=False) as http,
        running(tmp_path, command, http) as process,
    ):
        body = update(1)
        head = f"POST /telegram/main HTTP/1.1\r\nHost: x\r\n{HEADER}: {SECRET}\r\n"
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        await http.get("/livez")
        process.send(number)
        assert await asyncio.wait_for(idle_reader.read(), 10) == b"", "an idle one is closed"
        writer.write(body[10:])
        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"HTTP/1.1 200")
        writer.close()
        idle_writer.close()
        assert await process.ended() == 0
    log = process.log.read_text("utf-8")
    assert '"event":"drain.report","finished":1' in log
    assert "Traceback" not in log


async def test_the_service_manager_hears_when_it_is_ready_that_it_lives_and_when_it_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, port = configured(tmp_path)
    heard: list[str] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.settimeout(0)
        manager.bind(str(tmp_path / "notify"))
        asyncio.get_running_loop().add_reader(
            manager, lambda: heard.append(manager.recv(4096).decode())
        )
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", "3000000")
        command = ["-m", "bot", "web", "--config", str(config)]
        url = f"http://127.0.0.1:{port}"

        async def has_lived() -> bool:
            return heard.count("WATCHDOG=1") > 1

        async with (
            httpx.AsyncClient(base_url=url, trust_env=False) as http,
            running(tmp_path, command, http) as process,
        ):
            await until(has_lived, within_ms=10_000, what="two life signs")
            assert await process.stop() == 0
        asyncio.get_running_loop().remove_reader(manager)
    assert heard[0] == "READY=1"
    assert f"STATUS=listens on {url}" in heard
    assert heard[-1] == "STOPPING=1"
