"""What a handler may ask of its turn beyond python-telegram-bot's own calls.

`Send` goes with any call, as `rate_limit_args=Send(...)`, and says how it shall be delivered.
The functions write something in the turn's own transaction: it is kept if, and only if, what the
handler said is kept. Called after the turn, or from a job, they write at once.

This is the one part of `bot.turns` that handlers import.
"""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from bot.turns.messages import real_id, same_message
from bot.turns.turn import Effect, Json, Turn, turn_here, until_settled, voice
from storage import chats, withdrawals
from storage.database import Tx
from storage.lifecycle import BotName, Withdrawal
from storage.outgoing import chat_lane

__all__ = [
    "Send",
    "answered",
    "flush",
    "opt_in",
    "opt_out",
    "raw_update",
    "real_id",
    "same_message",
    "write",
]

_Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_MS: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime.fromtimestamp(0, UTC)
_Name = Annotated[str, Field(min_length=1, max_length=128)]


class Send(BaseModel):
    """How one call shall be delivered; what is left out is as configured.

    `urgency`: "bulk" waits for everything that is "interactive".
    `expires_in`: seconds, or a timedelta, after which it is not worth sending any more.
    `supersede`: a name; in one chat a newer call makes an older one of this name, if it still
    waits, pointless.
    `on_uncertain`: what to do when nobody can tell whether Telegram has already carried it out:
    "hold" it for a person, "resend" or "drop" it.
    `cancel_on_edit`: when the message that is answered is edited while this waits, it is not said;
    when that message is deleted it never is.
    `generation`: the id of the draft that this belongs to or completes; when the user stops the
    draft, it is not said. A draft's own id needs no wish.
    `key`: names this call for ever: the bot makes it once, however often it is asked for, in this
    turn or another. Another call under the same key is an error, telegram.error.BadRequest.
    `not_before`: a moment (with a zone), or a span from now, before which it is not made.
    `wait`: the caller gets Telegram's own answer, or its own error, once the call was made; what
    the turn has said so far is committed first. After 30 seconds it is telegram.error.TimedOut.
    `split`: a text that is too long for one message becomes several, cut where it hurts least; the
    caller gets the last one's message. A caption can't be split.
    `late_as_message`: whether the text of an answer to a pressed button is said in the chat when it
    comes too late; without a wish as configured, and in private chats only.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    urgency: Literal["interactive", "bulk"] = "interactive"
    expires_in: _Seconds | timedelta | None = None
    supersede: _Name | None = None
    on_uncertain: Literal["hold", "resend", "drop"] | None = None
    cancel_on_edit: bool | None = None
    key: _Name | None = None
    not_before: AwareDatetime | timedelta | _Seconds | None = None
    wait: bool = False
    split: bool = False
    generation: int | _Name | None = None
    late_as_message: bool | None = None

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.wait and self.not_before is not None:
            raise ValueError("wait and not_before exclude each other: nobody waits for that long")
        return self

    @property
    def expires_in_ms(self) -> int | None:
        """`expires_in` in whole milliseconds."""
        return None if self.expires_in is None else _span_ms(self.expires_in)

    def not_before_ms(self, now_ms: int) -> int | None:
        """The moment (UTC) of `not_before`; spans are counted from `now_ms`."""
        match self.not_before:
            case None:
                return None
            case datetime():
                return (self.not_before - _EPOCH) // _MS
            case span:
                return now_ms + _span_ms(span)

    def over(self, default: "Send") -> "Send":
        """This wish, and what `default` says where this one says nothing."""
        said = {name: getattr(self, name) for name in self.model_fields_set}
        return default.model_copy(update=said) if said else default


def _span_ms(span: float | timedelta) -> int:
    if isinstance(span, timedelta):
        return max(0, span // _MS)
    return int(span * 1000)


async def flush() -> None:
    """Commit what the turn has said so far, so that it goes out while the handler goes on.

    It is not taken back if the handler fails then; a handler that is run again must begin with the
    same calls, which are found again and not made twice. What handlers remember is committed with
    the end of the turn only. Raises LeaseLost, KeyTaken, StorageError, and RuntimeError where no
    bot's code runs.
    """
    speaker = voice()
    if speaker is None:
        raise RuntimeError("there is no turn here: call this from a handler, a job or a task")
    await speaker.flush()


async def opt_out(chat_id: int) -> None:
    """Stop broadcasts to this chat; replies still go."""
    await write(partial(_opt_out, chat_id=chat_id))


async def opt_in(chat_id: int) -> None:
    """Allow broadcasts to this chat again."""
    await write(partial(_opt_in, chat_id=chat_id))


async def answered(chat_id: int, business_connection_id: str | None = None) -> None:
    """A person has answered in this chat: what the bot still wanted to say to it is not said.

    That is what waits there and was caused before the update that is being handled; outside any
    turn, before now. What the same turn says stays.
    """
    turn = turn_here()
    lane = chat_lane(chat_id, business_connection_id)
    await write(partial(_answered, lane=lane, turn=turn))


async def write(effect: Effect) -> None:
    """Have `effect(tx, bot)` run in the turn's transaction; it must neither wait nor call out.

    Raises RuntimeError where no bot's code runs.
    """
    await until_settled()
    speaker = voice()
    if speaker is None:
        raise RuntimeError("there is no turn here: call this from a handler, a job or a task")
    await speaker.write(effect)


def raw_update() -> Json | None:
    """The update as Telegram sent it, with what this python-telegram-bot does not know yet."""
    turn = turn_here()
    return None if turn is None else turn.raw


def _answered(tx: Tx, bot: BotName, *, lane: str, turn: Turn | None) -> None:
    at_ms = tx.now_ms()
    if turn is not None and turn.causes(at_ms):
        at_ms = turn.received_at_ms
    withdrawals.note(tx, bot, lane, Withdrawal.PERSON_ANSWERED, at_ms=at_ms)


def _opt_out(tx: Tx, bot: BotName, *, chat_id: int) -> None:
    chats.opt_out(tx, bot, chat_id)


def _opt_in(tx: Tx, bot: BotName, *, chat_id: int) -> None:
    chats.opt_in(tx, bot, chat_id)
