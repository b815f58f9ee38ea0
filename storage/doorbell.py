"""Doorbells: how the roles tell each other, after a commit, that there may be work.

Each process hangs one datagram socket per role under `bells/` in the state directory, named after
the role, the process and eight random digits. A ring carries no data and promises nothing: one that
is lost costs the listener a second, until its next tick, never a message. Ringing may therefore
never block and never fail because of the one who is rung. A socket that refuses belongs to a dead
process and is swept.

The name is also what a lease's owner is called by, as the socket tells whether the owner lives.
Give back what is leased before closing the bell.
"""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

from storage.clock import Dice, SystemDice, hex_name
from storage.errors import ReadOnly
from storage.telemetry import event

BELLS: Final = "bells"
# A socket's address has 108 bytes, the last one zero.
ADDRESS_BYTES_MAX: Final = 107
_DATAGRAM: Final = b"!"
_DEAD: Final = frozenset({errno.ECONNREFUSED, errno.ENOENT})


class Doorbell:
    """The bell of one role in this process, and the way to ring the others'."""

    def __init__(self, state_dir: Path, role: str, *, dice: Dice | None = None) -> None:
        """Hang the bell. Raises ReadOnly if the state directory can't be written to."""
        self._bells = state_dir / BELLS
        self._name = f"{role}.{os.getpid()}.{hex_name(dice or SystemDice())}"
        self._loop: asyncio.AbstractEventLoop | None = None
        self._directory = -1
        try:
            self._bells.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._directory = os.open(self._bells, os.O_RDONLY | os.O_DIRECTORY)
            self._socket = _datagram_socket()
            self._ringer = _datagram_socket()
            self._hang()
        except OSError as error:
            if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
                raise ReadOnly(f"no doorbell can be hung in {self._bells}") from error
            raise

    @property
    def name(self) -> str:
        """This bell's name, unlike any other: what leases call their owner."""
        return self._name

    def ring(self, role: str) -> None:
        """Ring each bell of a role; the dead ones are swept."""
        prefix = f"{role}."
        with os.scandir(self._directory) as bells:
            for bell in bells:
                if bell.name.startswith(prefix) and self._knock(bell.name) in _DEAD:
                    self._unlink(bell.name)
                    event("doorbell.swept", name=bell.name)

    def on_ring(self, callback: Callable[[], None]) -> None:
        """Have the running event loop call back, once for all rings that came together."""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._answer, callback)

    def is_dead(self, name: str) -> bool:
        """Tell whether the process behind a bell's name is surely gone.

        False where it can't be known: a lease then runs out by its own time.
        """
        with _datagram_socket() as probe:
            return probe.connect_ex(self._address(name)) in _DEAD

    def close(self) -> None:
        """Take the bell down. Leases that bear its name count as given up from now on."""
        if self._directory < 0:
            return
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._socket)
        self._unlink(self._name)
        self._socket.close()
        self._ringer.close()
        os.close(self._directory)
        self._directory = -1

    def _hang(self) -> None:
        """Bind under a name that nobody rings, then give it the one it goes by.

        A socket's file is there a moment before it answers; who rang in that moment would take it
        for dead and sweep it.
        """
        unheard = f".{self._name}"
        self._socket.bind(self._address(unheard))
        os.rename(unheard, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def _knock(self, name: str) -> int:
        """Ring one bell; the error number, or 0. A full one has been rung and not answered yet."""
        try:
            self._ringer.sendto(_DATAGRAM, self._address(name))
        except OSError as error:
            return error.errno or 0
        return 0

    def _unlink(self, name: str) -> None:
        # Another process may have swept it, and a directory that can't be written to is not worth
        # failing for: the socket is dead either way.
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=self._directory)

    def _answer(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                self._socket.recv(1)
        callback()

    def _address(self, name: str) -> str:
        assert "/" not in name, name
        path = str(self._bells / name)
        if len(os.fsencode(path)) <= ADDRESS_BYTES_MAX:
            return path
        return f"/proc/self/fd/{self._directory}/{name}"


def _datagram_socket() -> socket.socket:
    created = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    created.settimeout(0)
    return created
