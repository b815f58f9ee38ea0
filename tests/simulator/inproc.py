"""The door in process: a call as a coroutine, for simulated worlds on virtual time.

What a network would do is raised: nobody listening, a cut connection, an answer that breaks off.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.simulator.acting import act_out
from tests.simulator.model import Telegram
from tests.simulator.wire import Ending, Reply


class ConnectionTrouble(Exception):
    """The network's part in a failure."""


class NobodyListens(ConnectionTrouble):
    """The connection was refused: nothing was sent."""


class ConnectionCut(ConnectionTrouble):
    """The request was sent whole and the connection closed without an answer."""


class AnswerBrokeOff(ConnectionTrouble):
    """The answer ended before its announced length."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class InProcess:
    """Calls the model as if over a network, and takes the time that the reply takes."""

    def __init__(self, telegram: Telegram) -> None:
        self._telegram = telegram

    async def call(
        self,
        token: str,
        method: str,
        form: Mapping[str, str],
        files: Mapping[str, bytes] | None = None,
    ) -> Response:
        """One call; raises ConnectionTrouble. Cancelling it undoes nothing, as at Telegram."""
        if not self._telegram.reachable:
            raise NobodyListens
        reply = await act_out(self._telegram, self._telegram.call(token, method, form, files))
        return _arrived(reply)


def _arrived(reply: Reply) -> Response:
    match reply.ending:
        case Ending.CUT | Ending.RESET:
            raise ConnectionCut
        case Ending.HALF:
            raise AnswerBrokeOff
        case Ending.WHOLE | Ending.SILENT:
            return Response(reply.status, reply.headers, reply.body)
