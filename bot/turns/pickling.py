"""What handlers remember, as bytes and back.

Pickle, as python-telegram-bot's own persistence uses: handlers may keep any object of theirs. The
bytes are read from our own database only. The bot is not kept with what refers to it: it is put
back when the bytes are read, so that a remembered message can still be answered.

What has no bytes (a job, a connection, a lock) is told apart from the rest, by its key or
attribute: it can live on in this process only.
"""

import asyncio
import pickle
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from io import BytesIO
from types import MappingProxyType
from typing import Any, Final

from telegram import Bot, TelegramObject

_THIS_BOT: Final = "this bot"
_OTHER_BOT: Final = "another bot"
# They have bytes, but who waits at the one would never hear of its copy.
_ONLY_SHARED: Final = (
    asyncio.Lock,
    asyncio.Event,
    asyncio.Condition,
    asyncio.Semaphore,
    asyncio.Queue,
)


class Whole:
    """Instead of the name of a part: the value as a whole."""


WHOLE: Final = Whole()
Live = Mapping[object, object]
"""What has no bytes, by the key or attribute that it lies under, or by `WHOLE`."""
NOTHING_LIVE: Final[Live] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Split:
    """A value in two: its bytes, None where it has none, and what of it has none."""

    data: bytes | None
    live: Live


def dumps(value: object, bot: Bot) -> bytes:
    """The bytes of a value. Raises what pickle raises for what can't be kept."""
    out = BytesIO()
    _Pickler(out, bot).dump(value)
    return out.getvalue()


def loads(data: bytes, bot: Bot) -> Any:  # noqa: ANN401  # whatever the handlers had put in
    """The value behind bytes that `dumps` made. Raises what pickle raises when it can't be told."""
    return _Unpickler(BytesIO(data), bot).load()


def says_the_same(data: bytes, before: bytes, bot: Bot) -> bool:
    """Tell whether these bytes are of the same value as those before.

    A value that was read from bytes need not give the same ones again: a set may have another
    order. One that was read from the same bytes and left alone gives what this one gives.
    """
    return data == before or data == dumps(loads(before, bot), bot)


def bytes_of(value: object, bot: Bot) -> bytes | None:
    """The bytes of a value, or None when it can't be kept."""
    try:
        return dumps(value, bot)
    except Exception:  # noqa: BLE001  # whatever an object's own way of being pickled raises
        return None


def split(value: object, bot: Bot) -> Split:
    """Tell what of a value has bytes from what has none, by the keys or attributes at its top."""
    data = bytes_of(value, bot)
    if data is not None:
        return Split(data, NOTHING_LIVE)
    parts = parts_of(value)
    live = {name: part for name, part in parts.items() if bytes_of(part, bot) is None}
    data = _bytes_without(value, live, bot) if live else None
    return Split(None, {WHOLE: value}) if data is None else Split(data, live)


def join(value: object, live: Live) -> object:
    """Put what has no bytes back into a value that was read from its bytes."""
    if WHOLE in live:
        return live[WHOLE]
    parts_of(value).update(live)
    return value


def missing_live(value: object, new: Callable[[], object], bot: Bot) -> Live:
    """What a value that was read from its bytes lacks, as a new one of its class has it.

    An object of a class may make itself a lock or a client that was never written with it.
    """
    if isinstance(value, dict):
        return NOTHING_LIVE
    parts = parts_of(value)
    fresh = split(new(), bot).live
    return {name: part for name, part in fresh.items() if name is not WHOLE and name not in parts}


def parts_of(value: object) -> dict[Any, Any]:
    """What a value is made of: the entries of a dictionary, the attributes of another object."""
    if isinstance(value, dict):
        return value
    found: dict[str, Any] = getattr(value, "__dict__", {})
    return found


def _bytes_without(value: object, live: Live, bot: Bot) -> bytes | None:
    try:
        rest = copy(value)
    except Exception:  # noqa: BLE001  # whatever an object's own way of being copied raises
        return None
    for name in live:
        del parts_of(rest)[name]
    return bytes_of(rest, bot)


class _Pickler(pickle.Pickler):
    def __init__(self, out: BytesIO, bot: Bot) -> None:
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self._bot = bot

    def persistent_id(self, obj: object) -> str | None:
        if not isinstance(obj, Bot):
            return None
        return _THIS_BOT if obj is self._bot else _OTHER_BOT

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401  # pickle's own
        if isinstance(obj, _ONLY_SHARED):
            raise pickle.PicklingError(f"a copy of {type(obj).__name__} means nothing")
        if not isinstance(obj, TelegramObject):
            return NotImplemented
        return _rebuild, (type(obj), obj.__getstate__(), _bot_of(obj))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: BytesIO, bot: Bot) -> None:
        super().__init__(data)
        self._bot = bot

    def persistent_load(self, pid: str) -> Bot | None:
        return self._bot if pid == _THIS_BOT else None


def _bot_of(value: TelegramObject) -> Bot | None:
    try:
        return value.get_bot()
    except RuntimeError:
        return None


def _rebuild(
    kind: type[TelegramObject], state: dict[str, object], bot: Bot | None
) -> TelegramObject:
    """Make a TelegramObject again. Named in stored bytes: it must stay where it is."""
    value = kind.__new__(kind)
    value.__setstate__(state)
    value.set_bot(bot)
    return value
