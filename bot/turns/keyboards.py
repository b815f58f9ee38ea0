"""Arbitrary callback data: what the buttons of a keyboard stand for, one row for each keyboard.

The library names each keyboard and each button by chance and keeps what they stand for in memory.
Here their names come from the turn that shows them, so that a turn which runs again shows the same
keyboard, and what they stand for is committed with the turn. A secret of the bot's is in the names:
a client can press a button that it was never shown, and must not be able to guess one.

In memory the library's rules hold: the least recently used keyboards are let go. Those that are
pressed later come from the database, until nobody has pressed them for `KEYBOARD_DAYS`.
"""

import hmac
from collections.abc import Callable, Iterator
from copy import copy
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from telegram import (
    CallbackQuery,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    Message,
    Update,
)
from telegram.ext import CallbackDataCache, ExtBot, InvalidCallbackData

from bot.turns.pickling import bytes_of, loads
from bot.turns.turn import Effect, Turn, Voice, open_turn
from bot.turns.unkept import Unkept
from storage import turn_state
from storage.clock import Dice, SystemDice, hex_name
from storage.database import Database, Tx
from storage.lifecycle import BotName
from storage.turn_state import KEYBOARD_PREFIX

_SALT_SCOPE: Final = "salt:keyboards"
_NAME_LENGTH: Final = 32
# Telegram's limit of 64 bytes is just filled by a keyboard's name and a button's.
_DATA_LENGTH: Final = 2 * _NAME_LENGTH
# The library writes its own time where it is given none.
_NOW: Final = 0.0

WriteSoon = Callable[[Effect], None]


def keyboard_scope(keyboard: str) -> str:
    """The name of a keyboard's row."""
    return f"{KEYBOARD_PREFIX}{keyboard}"


class KeyboardCache(CallbackDataCache):
    """The library's cache, whose contents are also rows."""

    def __init__(self, bot: ExtBot[Any], maxsize: int, dice: Dice | None = None) -> None:
        super().__init__(bot, maxsize)
        self._dice = dice or SystemDice()
        self._pressed: dict[str, str] = {}
        self._salt = b""
        self._unkept = Unkept()
        self._db: Database
        self._name: BotName
        self._outside: Voice
        self._write_soon: WriteSoon

    def equip(self, db: Database, name: BotName, outside: Voice, write_soon: WriteSoon) -> None:
        """Tell whose keyboards these are and where they are stored.

        `write_soon` has an effect written in a transaction of its own.
        """
        self._db = db
        self._name = name
        self._outside = outside
        self._write_soon = write_soon

    async def load_salt(self) -> None:
        """Read the bot's secret, or make one up. Raises LeaseLost and StorageError."""
        stored = await self._db.read(partial(turn_state.load, bot=self._name, scopes=[_SALT_SCOPE]))
        self._salt = stored.get(_SALT_SCOPE) or self._chance()
        if not stored:
            await self._outside.write(partial(_save, scope=_SALT_SCOPE, data=self._salt))

    async def load(self, update: Update) -> None:
        """Bring back the keyboards that an update carries, before the library looks for them.

        Raises StorageError, and what pickle raises when one can't be read any more.
        """
        keyboards = {data[:_NAME_LENGTH] for data in _data_of(update) if len(data) == _DATA_LENGTH}
        if not keyboards:
            return
        rows = await self._db.read(
            partial(turn_state.load_aged, bot=self._name, scopes=map(keyboard_scope, keyboards))
        )
        for scope, (data, is_old) in rows.items():
            keyboard = scope.removeprefix(KEYBOARD_PREFIX)
            buttons = loads(data, self.bot)
            self.load_persistence_data(([(keyboard, _NOW, buttons)], {}))
            if is_old:
                # Who still presses its buttons keeps it.
                self._write_soon(partial(_save, scope=scope, data=data))

    def process_keyboard(self, reply_markup: InlineKeyboardMarkup) -> InlineKeyboardMarkup:
        """Put names in place of what the buttons stand for, and keep what that was."""
        buttons = [button for row in reply_markup.inline_keyboard for button in row]
        if all(button.callback_data is None for button in buttons):
            return reply_markup
        turn = open_turn()
        keyboard = self._digest(self._chance() if turn is None else _cause_of(turn))
        meant: dict[str, object] = {}

        def named(button: InlineKeyboardButton) -> InlineKeyboardButton:
            if button.callback_data is None:
                return button
            name = self._digest(f"{keyboard}:{len(meant)}".encode())
            meant[name] = button.callback_data
            # The author may use the same button elsewhere.
            shown = copy(button)
            shown.update_callback_data(keyboard + name)
            return shown

        shown = InlineKeyboardMarkup(
            [list(map(named, row)) for row in reply_markup.inline_keyboard]
        )
        self.load_persistence_data(([(keyboard, _NOW, meant)], {}))
        self._keep(turn, keyboard, bytes_of(meant, self.bot))
        return shown

    def process_callback_query(self, callback_query: CallbackQuery) -> None:
        """Put what was meant in place of the names, and note which keyboard was pressed."""
        data = callback_query.data
        super().process_callback_query(callback_query)
        if data and not isinstance(callback_query.data, InvalidCallbackData):
            self._pressed[callback_query.id] = data[:_NAME_LENGTH]
            if len(self._pressed) > self.maxsize:
                del self._pressed[next(iter(self._pressed))]

    def drop_data(self, callback_query: CallbackQuery) -> None:
        """Forget the keyboard that was pressed. Raises KeyError for an unknown query."""
        super().drop_data(callback_query)
        keyboard = self._pressed.pop(callback_query.id)
        self._write(partial(_save, scope=keyboard_scope(keyboard), data=None))

    def clear_callback_data(self, time_cutoff: float | datetime | None = None) -> None:
        """Forget all keyboards, or those that were shown before then."""
        super().clear_callback_data(time_cutoff)
        before_ms = None
        if isinstance(time_cutoff, datetime):
            # The library's rule: what names no zone is of the bot's own, which is UTC by default.
            zone = self.bot.defaults.tzinfo if self.bot.defaults else UTC
            aware = time_cutoff if time_cutoff.tzinfo else time_cutoff.replace(tzinfo=zone)
            before_ms = int(aware.timestamp() * 1000)
        elif time_cutoff:
            before_ms = int(time_cutoff * 1000)
        self._write(partial(_clear, before_ms=before_ms))

    def _keep(self, turn: Turn | None, keyboard: str, data: bytes | None) -> None:
        if data is None:
            self._unkept.tell(self._name, "callback_data", ["callback_data"])
            return
        keep = partial(_save, scope=keyboard_scope(keyboard), data=data)
        if turn is None:
            self._write_soon(keep)
        else:
            turn.keyboards.append(keep)

    def _write(self, effect: Effect) -> None:
        turn = open_turn()
        if turn is None:
            self._write_soon(effect)
        else:
            turn.effects.append(effect)

    def _chance(self) -> bytes:
        return "".join(hex_name(self._dice) for _ in range(8)).encode()

    def _digest(self, cause: bytes) -> str:
        return hmac.digest(self._salt, cause, "sha256").hex()[:_NAME_LENGTH]


def _cause_of(turn: Turn) -> bytes:
    return f"{turn.cause.key}:{len(turn.keyboards)}".encode()


def _data_of(update: Update) -> Iterator[str]:
    """The callback data of an update, wherever the library looks for it."""
    query = update.callback_query
    message: object = update.effective_message if query is None else query.message
    if query is not None and query.data:
        yield query.data
    if isinstance(message, Message):
        for each in (message, message.reply_to_message, message.pinned_message):
            yield from _data_in(each)
        if message.reply_to_message is not None:
            yield from _data_in(message.reply_to_message.pinned_message)


def _data_in(message: object) -> Iterator[str]:
    if isinstance(message, Message) and message.reply_markup is not None:
        for row in message.reply_markup.inline_keyboard:
            for button in row:
                if isinstance(button.callback_data, str):
                    yield button.callback_data


def _save(tx: Tx, bot: BotName, *, scope: str, data: bytes | None) -> None:
    turn_state.save(tx, bot, {scope: data})


def _clear(tx: Tx, bot: BotName, *, before_ms: int | None) -> None:
    turn_state.forget_keyboards(
        tx, bot, before_ms=tx.now_ms() + 1 if before_ms is None else before_ms
    )
