"""The seam: calls that handlers make through python-telegram-bot become rows, reads go through.

`OutboxRequest` stands where the library's HTTP client stands, `PassThrough` where its rate limiter
does; both are its public ways in. Nothing that changes a chat or a bot may leave the worker from
here: a call becomes a row, whose answer is made up or waited for; a read (`get...`, a download) is
passed on to Telegram; and what would take the bot's updates away is refused by name.
"""

import json
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Final

from telegram.error import BadRequest
from telegram.ext import BaseRateLimiter
from telegram.request import BaseRequest, RequestData

from bot.turns import messages
from bot.turns.answers import answer_of
from bot.turns.awaiting import Answers
from bot.turns.calls import Call, Name, Occasion, Rules, row_of
from bot.turns.checks import check
from bot.turns.classes import REASONS, CallClass, class_of, is_awaited, name_of
from bot.turns.groups import wish_of_group
from bot.turns.identity import Identity
from bot.turns.outside import Outside
from bot.turns.reads import Reads
from bot.turns.splitting import split
from bot.turns.turn import Voice, open_turn, turn_here, until_settled, voice
from bot.turns.uploads import Uploads
from bot.turns.wishes import Send
from storage.clock import Clock
from storage.errors import UnsupportedCall
from storage.outgoing import Outgoing, Tell

_NO_WISH: Final = Send()
_wish: ContextVar[Send] = ContextVar("wish", default=_NO_WISH)

Answer = bool | dict[str, Any] | list[dict[str, Any]]


class PassThrough(BaseRateLimiter[Send]):
    """Carries `rate_limit_args` to the row, and refuses what no handler may call.

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

        Raises UnsupportedCall for a call that can't be made from a handler, TypeError for a wish
        that is no `Send`, and ValueError for one that puts off a call whose answer is waited for.
        """
        refuse_unsupported(endpoint)
        wish = _wish_of(rate_limit_args)
        whole = wish.over(wish_of_group())
        if whole.not_before is not None and (whole.wait or is_awaited(endpoint)):
            raise ValueError(
                f"not_before: who calls {endpoint} is given Telegram's own answer, and nobody "
                "waits for that long; context.later() does it at another time"
            )
        token = _wish.set(wish)
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
    """Let pass what a handler may call. Raises UnsupportedCall for the rest, with the reason."""
    if class_of(method) is CallClass.REFUSED:
        name = name_of(method)
        raise UnsupportedCall(f"{name} can't be called from a handler: {REASONS[name]}")


def _nothing() -> Tell:
    return Tell.NOTHING


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the seam stands on.

    Who the bot is, what holds for its calls, where the late ones go and where answers come from,
    where files are kept. `tell`: of which ends of the call that is being made the bot is told.
    """

    identity: Identity
    rules: Rules
    outside: Outside
    answers: Answers
    uploads: Uploads
    clock: Clock
    tell: Callable[[], Tell] = field(default=_nothing)


@dataclass(frozen=True, slots=True)
class _Named:
    """The name of a call, and in whose name it was given."""

    speaker: Voice
    name: Name


class OutboxRequest(BaseRequest):
    """The library's way to Telegram, from which only reads ever arrive there."""

    def __init__(self, reads: Reads, surroundings: Surroundings) -> None:
        self._reads = reads
        self._here = surroundings

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
        """Answer one call of the library: status and body.

        Raises UnsupportedCall, TelegramError, LeaseLost, KeyTaken, and StorageError.
        """
        if method == "GET":
            return await self._reads.pass_on(url, method, request_data, timeouts)
        name = name_of(url.rsplit("/", 1)[-1])
        if name == "getMe":
            return _ok(self._here.identity.me)
        refuse_unsupported(name)
        data = request_data or RequestData()
        if class_of(name) is CallClass.READ:
            asked = await messages.for_reading(data)
            return await self._reads.pass_on(url, method, asked, timeouts)
        return await self._leave(name, data)

    async def _leave(self, method: str, data: RequestData) -> tuple[int, bytes]:
        """Turn the call into rows, and say what Telegram would have said, or has said."""
        await until_settled()
        whole = Call(method, data.json_parameters, _wish.get().over(wish_of_group()))
        parts = split(whole)
        for part in parts:
            check(part)
        # Named before anything is waited for: calls made side by side keep their places.
        named = [self._name(part) for part in parts]
        if data.contains_files:
            form = await self._here.uploads.form_of(method, data)
            parts = [replace(whole, params=form.params, files=form.files)]
        row = await self._say_all(parts, named)
        call = parts[-1]
        if call.is_awaited or (call.placeholders and row.placeholder is None):
            await (voice() or self._here.outside).flush()
            return await self._here.answers.of(row)
        me, placeholder = self._here.identity.me, row.placeholder
        return _ok(answer_of(call, me, self._occasion(), placeholder=placeholder))

    def _name(self, call: Call) -> _Named:
        speaker: Voice = voice() or self._here.outside
        key = speaker.next_key(once=call.is_once)
        count = call.placeholders
        placeholder = speaker.next_placeholder(count) if count else None
        return _Named(speaker, Name(key, placeholder))

    async def _say_all(self, parts: Sequence[Call], named: Sequence[_Named]) -> Outgoing:
        """Leave the parts of one call, each following the one before; give the last one's row.

        They are one transaction: the turn's, or one of their own. Under a key of the bot's own they
        are not, outside a turn; there the key sees to it that a second time leaves what is missing.
        """
        outside = self._here.outside
        if len(parts) > 1 and named[0].speaker is outside and parts[0].wish.key is None:
            rules, occasion = self._here.rules, self._occasion()
            pairs = zip(parts, named, strict=True)
            rows = [row_of(part, rules, occasion, each.name) for part, each in pairs]
            return replace(rows[-1], placeholder=await outside.say_together(rows))
        row = await self._say(parts[0], named[0], follows=None)
        for part, name in zip(parts[1:], named[1:], strict=True):
            row = await self._say(part, name, follows=row.placeholder)
        return row

    async def _say(self, call: Call, named: _Named, *, follows: int | None) -> Outgoing:
        """Leave the call, unless its key stands for it already; give its row."""
        name = named.name if follows is None else replace(named.name, follows=follows)
        row = row_of(call, self._here.rules, self._occasion(), name)
        if row.exclusive and (earlier := await self._earlier(row)) is not None:
            return earlier
        speaker: Voice = voice() or self._here.outside
        if speaker is not named.speaker:
            # Its turn ended while the call was being prepared: the name would be the turn's.
            name = replace(self._name(call).name, follows=follows)
            row = row_of(call, self._here.rules, self._occasion(), name)
        placeholder = await speaker.say(row)
        return row if placeholder == row.placeholder else replace(row, placeholder=placeholder)

    async def _earlier(self, row: Outgoing) -> Outgoing | None:
        """The same call, where it was left before under its key.

        Raises BadRequest when the key stands for another one.
        """
        turn = open_turn()
        for said in () if turn is None else turn.rows:
            if said.key == row.key:
                if (said.method, said.params, said.files) == (row.method, row.params, row.files):
                    return said
                raise _taken(row, said.method)
        for left in await self._here.outside.named(row):
            if left.is_same:
                return replace(row, placeholder=left.placeholder)
            raise _taken(row, left.method)
        return None

    def _occasion(self) -> Occasion:
        now_ms = self._here.clock.now_ms()
        turn = turn_here()
        tell = self._here.tell()
        if turn is None:
            return Occasion(now_ms, heard_at_ms=now_ms, tell=tell)
        if not turn.causes(now_ms):
            return Occasion(now_ms, heard_at_ms=now_ms, update=turn.raw, tell=tell)
        return Occasion(
            now_ms, turn.received_at_ms, turn.source, turn.raw, inbox_id=turn.inbox_id, tell=tell
        )


def _taken(row: Outgoing, method: str) -> BadRequest:
    return BadRequest(
        f"{row.key!r} stands for another {method} already: a call under one key is made once, and "
        f"this {row.method} says something else"
    )


def _ok(result: object) -> tuple[int, bytes]:
    return 200, json.dumps({"ok": True, "result": result}).encode()
