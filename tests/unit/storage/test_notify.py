"""What the service manager is told, over real sockets."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.errors import ConfigurationError
from storage.notify import Notifier, inherited_sockets, watchdog_interval_ms
from storage.settings import ServiceEnvironment
from tests.simulator.clock import VirtualClock


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """A service manager's end of the notification socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.settimeout(0)
        yield listening


def _heard(manager: socket.socket) -> list[str]:
    heard: list[str] = []
    while True:
        try:
            heard.append(manager.recv(4096).decode())
        except BlockingIOError:
            return heard


def test_the_manager_hears_each_state(manager: socket.socket) -> None:
    notifier = Notifier(ServiceEnvironment(notify_socket=manager.getsockname()), VirtualClock())
    notifier.ready()
    notifier.status("3 in flight\nREADY=1")
    notifier.stopping()
    assert _heard(manager) == ["READY=1", "STATUS=3 in flight READY=1", "STOPPING=1"]


def test_an_abstract_address_is_reached() -> None:
    name = f"@ferryman-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind("\0" + name[1:])
        listening.settimeout(0)
        Notifier(ServiceEnvironment(notify_socket=name), VirtualClock()).ready()
        assert _heard(listening) == ["READY=1"]


def test_without_a_manager_nothing_happens() -> None:
    notifier = Notifier(ServiceEnvironment(watchdog_usec=3_000_000), VirtualClock())
    notifier.ready()
    notifier.progress()


def test_a_manager_that_is_gone_stops_nobody(tmp_path: Path) -> None:
    notifier = Notifier(ServiceEnvironment(notify_socket=str(tmp_path / "none")), VirtualClock())
    notifier.ready()


def test_life_signs_come_with_progress_and_thrice_in_an_interval(manager: socket.socket) -> None:
    clock = VirtualClock()
    environment = ServiceEnvironment(
        notify_socket=manager.getsockname(), watchdog_usec=30_000_000, watchdog_pid=os.getpid()
    )
    notifier = Notifier(environment, clock)
    notifier.progress()
    assert _heard(manager) == ["WATCHDOG=1"]
    for _ in range(30):
        clock.advance_ms(1_000)
        notifier.progress()
    assert _heard(manager) == ["WATCHDOG=1"] * 3
    # A stuck loop says nothing, and time alone says nothing for it.
    clock.advance_ms(60_000)
    assert _heard(manager) == []


def test_another_processs_watchdog_is_not_ours() -> None:
    assert watchdog_interval_ms(ServiceEnvironment(watchdog_usec=5_000_000)) == 5_000
    other = ServiceEnvironment(watchdog_usec=5_000_000, watchdog_pid=os.getpid() + 1)
    assert watchdog_interval_ms(other) == 0
    assert watchdog_interval_ms(ServiceEnvironment()) == 0


def test_without_a_watchdog_no_life_sign_is_sent(manager: socket.socket) -> None:
    Notifier(ServiceEnvironment(notify_socket=manager.getsockname()), VirtualClock()).progress()
    assert _heard(manager) == []


def test_sockets_meant_for_another_process_are_left_alone() -> None:
    assert inherited_sockets(ServiceEnvironment(listen_fds=1, listen_pid=os.getpid() + 1)) == []
    assert inherited_sockets(ServiceEnvironment()) == []


HEIR = (
    "import os, sys\n"
    "os.dup2(int(sys.argv[1]), 3)\n"
    "from storage.notify import inherited_sockets\n"
    "from storage.settings import service_environment\n"
    "environ = {'LISTEN_FDS': sys.argv[2], 'LISTEN_PID': str(os.getpid())}\n"
    "sockets = inherited_sockets(service_environment(environ))\n"
    "print([one.getsockname()[1] for one in sockets], os.get_inheritable(3))\n"
)


def test_a_listening_socket_is_inherited() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heir = subprocess.run(
            [sys.executable, "-c", HEIR, str(listening.fileno()), "1"],
            pass_fds=[listening.fileno()],
            capture_output=True,
            text=True,
            check=True,
        )
        assert heir.stdout.split("]")[0] == f"[{listening.getsockname()[1]}"
        assert "False" in heir.stdout


def test_what_is_no_socket_is_a_fault() -> None:
    with Path(os.devnull).open() as no_socket:
        heir = subprocess.run(
            [sys.executable, "-c", HEIR, str(no_socket.fileno()), "1"],
            pass_fds=[no_socket.fileno()],
            capture_output=True,
            text=True,
            check=False,
        )
    assert heir.returncode != 0
    assert ConfigurationError.__name__ in heir.stderr
    assert "descriptor 3" in heir.stderr
