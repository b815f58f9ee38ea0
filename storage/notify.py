"""What a role and its service manager tell each other: readiness, life signs, sockets.

The protocol is systemd's (sd_notify(3), sd_listen_fds(3)): a datagram each. Where there is no
service manager all of it does nothing. The life sign may be given only by a work loop that has made
progress, never by a timer: a loop that is stuck must be restarted, not vouched for.
"""

import os
import socket
from typing import Final

from storage.clock import Clock
from storage.errors import ConfigurationError, Fault
from storage.settings import ServiceEnvironment
from storage.telemetry import event

LISTEN_FDS_START: Final = 3
# Waiting longer for a service manager would stop the work for its sake.
SEND_TIMEOUT_S: Final = 1.0
# Three chances for each life sign.
PINGS_PER_WATCHDOG: Final = 3


class Notifier:
    """The way to the service manager."""

    def __init__(self, environment: ServiceEnvironment, clock: Clock) -> None:
        self._address = environment.notify_socket
        self._clock = clock
        self._ping_ms = watchdog_interval_ms(environment) // PINGS_PER_WATCHDOG
        self._pinged_at_ms: int | None = None

    def ready(self) -> None:
        """The role does its work from now on."""
        self._send("READY=1")

    def stopping(self) -> None:
        """The role has begun to end."""
        self._send("STOPPING=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`; never a user's words."""
        self._send("STATUS=" + " ".join(text.split()))

    def progress(self) -> None:
        """The work loop has done something, or found nothing to do; to be said at every round.

        Sends a life sign, at most three in each interval of the watchdog.
        """
        if not self._ping_ms:
            return
        now_ms = self._clock.monotonic_ms()
        if self._pinged_at_ms is None or now_ms - self._pinged_at_ms >= self._ping_ms:
            self._pinged_at_ms = now_ms
            self._send("WATCHDOG=1")

    def _send(self, state: str) -> None:
        if not self._address:
            return
        # An address in the abstract namespace is written with @ for its leading zero byte.
        address = "\0" + self._address[1:] if self._address[0] == "@" else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
                connection.settimeout(SEND_TIMEOUT_S)
                connection.sendto(state.encode(), address)
        except OSError as error:
            event("notify.failed", state=state.partition("=")[0], errno=error.errno)


def watchdog_interval_ms(environment: ServiceEnvironment) -> int:
    """How often the service manager wants a life sign of this process; 0 = not at all."""
    if environment.watchdog_pid not in {0, os.getpid()}:
        return 0
    return environment.watchdog_usec // 1000


def inherited_sockets(environment: ServiceEnvironment) -> list[socket.socket]:
    """The listening sockets that the service manager opened for this process, in its order.

    Raises ConfigurationError if what was passed is no socket.
    """
    if environment.listen_pid != os.getpid():
        return []
    sockets: list[socket.socket] = []
    for number in range(LISTEN_FDS_START, LISTEN_FDS_START + environment.listen_fds):
        try:
            inherited = socket.socket(fileno=number)
        except OSError as error:
            fault = Fault("LISTEN_FDS", "environment", f"expected descriptor {number} as a socket")
            raise ConfigurationError([fault]) from error
        inherited.set_inheritable(False)
        sockets.append(inherited)
    return sockets
