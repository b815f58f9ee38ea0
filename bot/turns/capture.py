"""The seam: calls that handlers make through python-telegram-bot become rows, reads go through.

`OutboxRequest` stands where the library's HTTP client stands, `PassThrough` where its rate limiter
does; both are its public ways in. Nothing that changes a chat or a bot may leave the worker from
here: a deferrable call becomes a row, a read (`get...`, a download) is passed on to Telegram, and
every other call is refused by name.
"""

import json
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from telegram.ext import BaseRateLimiter
from telegram.request import BaseRequest, RequestData

from bot.turns.calls import CAPTURED, Call, Occasion, Rules, answer_of, row_of
from bot.turns.identity import Identity
from bot.turns.reads import Reads
from bot.turns.turn import Voice, turn_here, voice
from bot.turns.wishes import Send
from storage.clock import Clock
from storage.errors import UnsupportedCall

_NO_WISH: Final = Send()
_wish: ContextVar[Send] = ContextVar("wish", default=_NO_WISH)

Answer = bool | dict[str, Any] | list[dict[str, Any]]


class PassThrough(BaseRateLimiter[Send]):
    """Carries `rate_limit_args` to the row, and refuses what is neither deferrable nor a read.

    It limits nothing: pace is the sender's, which alone knows what leaves.
    """

    async def initialize(self) -> None:
        """Nothing to prepare."""

    async def shutdown(self) -> None:
        """Nothing to give back."""

    async def process_request(
        self,
        callback: Callable[..., Coroutine[Any, Any, Answer]],
        args: Any,  # noqa: ANN401  # passed on unseen
        kwargs: dict[str, Any],
        endpoint: str,
        data: dict[str, Any],  # noqa: ARG002  # the library's signature
        rate_limit_args: Send | None,
    ) -> Answer:
        """Make the call under this wish.

        Raises UnsupportedCall for a call that can't be made from a handler, and TypeError for a
        wish that is no `Send`.
        """
        refuse_unsupported(endpoint)
        token = _wish.set(_wish_of(rate_limit_args))
        try:
            return await callback(*args, **kwargs)
        finally:
            _wish.reset(token)


def _wish_of(given: object) -> Send:
    match given:
        case Send():
            return given
        case None | int():
            # A number is what the library's own limiter takes: retries, which are ours here.
            return _NO_WISH
        case _:
            raise TypeError(f"rate_limit_args takes a Send, not {type(given).__name__}")


def refuse_unsupported(method: str) -> None:
    """Let pass what is deferrable or a read.

    Raises UnsupportedCall for every other method.
    """
    if method in CAPTURED or is_read(method):
        return
    raise UnsupportedCall(
        f"{method} is not supported in a handler yet. Supported are {', '.join(CAPTURED)}, and "
        "reads: methods whose names begin with get, and downloads"
    )


def is_read(method: str) -> bool:
    """Tell whether a method only asks. `getUpdates` does not: it confirms what it has given."""
    return method.startswith("get") and method != "getUpdates"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the seam stands on: who the bot is, what holds for its calls, where the late ones go."""

    identity: Identity
    rules: Rules
    outside: Voice
    clock: Clock


class OutboxRequest(BaseRequest):
    """The library's way to Telegram, from which only reads ever arrive there."""

    def __init__(self, reads: Reads, surroundings: Surroundings) -> None:
        self._reads = reads
        self._identity = surroundings.identity
        self._rules = surroundings.rules
        self._outside = surroundings.outside
        self._clock = surroundings.clock

    @property
    def read_timeout(self) -> float | None:
        """How long a read waits for its answer, in seconds."""
        return self._reads.read_timeout

    async def initialize(self) -> None:
        """Open the way for reads."""
        await self._reads.initialize()

    async def shutdown(self) -> None:
        """Close the way for reads."""
        await self._reads.shutdown()

    async def do_request(  # type: ignore[override]  # time-outs are passed on as they come
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        **timeouts: Any,  # noqa: ANN401  # and may be the library's own default marks
    ) -> tuple[int, bytes]:
        """Answer one call of the library: status and body."""
        if method == "GET":
            return await self._reads.pass_on(url, method, request_data, timeouts)
        name = url.rsplit("/", 1)[-1]
        if name == "getMe":
            return _ok(self._identity.me)
        if name in CAPTURED:
            assert request_data is not None, name
            return _ok(await self._defer(name, request_data))
        refuse_unsupported(name)
        return await self._reads.pass_on(url, method, request_data, timeouts)

    async def _defer(self, method: str, data: RequestData) -> object:
        """Turn the call into a row, and say what Telegram would have said."""
        assert not data.contains_files, "no deferrable method takes a file"
        call = Call(method, data.json_parameters, _wish.get())
        speaker: Voice = voice() or self._outside
        occasion = self._occasion()
        row = row_of(
            call,
            self._rules,
            occasion,
            key=speaker.next_key(),
            placeholder=speaker.next_placeholder() if call.facts.returns_message else None,
        )
        placeholder = await speaker.say(row)
        return answer_of(call, self._identity.me, occasion, placeholder=placeholder)

    def _occasion(self) -> Occasion:
        now_ms = self._clock.now_ms()
        turn = turn_here()
        if turn is None:
            return Occasion(now_ms, heard_at_ms=now_ms)
        if not turn.causes(now_ms):
            return Occasion(now_ms, heard_at_ms=now_ms, update=turn.raw)
        return Occasion(now_ms, turn.received_at_ms, turn.source, turn.raw)


def _ok(result: object) -> tuple[int, bytes]:
    return 200, json.dumps({"ok": True, "result": result}).encode()
