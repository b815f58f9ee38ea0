"""What handlers remember, as bytes and back.

Pickle, as python-telegram-bot's own persistence uses: handlers may keep any object of theirs. The
bytes are read from our own database only. The bot is not kept with what refers to it: it is put
back when the bytes are read, so that a remembered message can still be answered.
"""

import pickle
from io import BytesIO
from typing import Any, Final

from telegram import Bot, TelegramObject

_THIS_BOT: Final = "this bot"
_OTHER_BOT: Final = "another bot"


def dumps(value: object, bot: Bot) -> bytes:
    """The bytes of a value. Raises what pickle raises for what can't be kept."""
    out = BytesIO()
    _Pickler(out, bot).dump(value)
    return out.getvalue()


def loads(data: bytes, bot: Bot) -> Any:  # noqa: ANN401  # whatever the handlers had put in
    """The value behind bytes that `dumps` made. Raises what pickle raises when it can't be told."""
    return _Unpickler(BytesIO(data), bot).load()


class _Pickler(pickle.Pickler):
    def __init__(self, out: BytesIO, bot: Bot) -> None:
        super().__init__(out, protocol=pickle.HIGHEST_PROTOCOL)
        self._bot = bot

    def persistent_id(self, obj: object) -> str | None:
        if not isinstance(obj, Bot):
            return None
        return _THIS_BOT if obj is self._bot else _OTHER_BOT

    def reducer_override(self, obj: object) -> Any:  # noqa: ANN401  # pickle's own
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
