"""Take over, once, what an application remembered in a persistence of its author's.

It is read through python-telegram-bot's own public methods, as the library would read it at its
start, and nothing is ever written to it: whoever goes back finds it as it was. It is taken only
where nothing of this bot is remembered here yet; a take-over that was cut off is done again from
the beginning, which it can be because no turn runs before it has ended.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final

from telegram import Bot
from telegram.ext import BasePersistence

from bot.turns.entries import Entries
from bot.turns.keyboards import keyboard_scope
from bot.turns.pickling import bytes_of
from bot.turns.scopes import Place, chat_scope, user_scope
from bot.turns.turn import Voice
from storage import turn_state
from storage.database import Database, Tx
from storage.lifecycle import BotName
from storage.telemetry import event

# A million users must not hold the database for as long as it takes to write them all.
ROWS_MAX: Final = 500
_SCOPE: Final = "import"
_BEGUN: Final = b"begun"
_DONE: Final = b"done"
_LOST: Final = "what can not be pickled"


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who takes it over: the library's bot, the class of its `bot_data`, its conversations' names.

    `outside` is the voice in which it is written: that of the worker that owns the bot.
    """

    db: Database
    name: BotName
    outside: Voice
    bot: Bot
    bot_data: type[Any]
    conversations: Iterable[str]


@dataclass(slots=True)
class _Found:
    """The rows of what was read, and how many of each kind there are."""

    rows: dict[str, bytes] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, kind: str, scope: str, data: bytes | None) -> None:
        if data is None:
            kind = _LOST
        else:
            self.rows[scope] = data
        self.counts[kind] = self.counts.get(kind, 0) + 1


async def import_from(persistence: BasePersistence[Any, Any, Any], to: Recipient) -> bool:
    """Take over what `persistence` has, unless something is remembered already; tell whether.

    Raises what the persistence raises when it can't read its contents, LeaseLost, and StorageError;
    what was written by then is overwritten the next time.
    """
    if not await to.db.read(partial(_is_free, bot=to.name)):
        return False
    persistence.set_bot(to.bot)
    found = await _read(persistence, to)
    await to.outside.write(partial(_save, rows={_SCOPE: _BEGUN}))
    rows = iter(found.rows.items())
    while batch := dict(islice(rows, ROWS_MAX)):
        await to.outside.write(partial(_save, rows=batch))
    await to.outside.write(partial(_save, rows={_SCOPE: _DONE}))
    event(
        "memory.imported",
        bot=to.name,
        users=found.counts.get("user", 0),
        chats=found.counts.get("chat", 0),
        keys=found.counts.get("bot", 0),
        conversations=found.counts.get("conversation", 0),
        keyboards=found.counts.get("keyboard", 0),
        left_out=found.counts.get(_LOST, 0),
    )
    return True


async def _read(persistence: BasePersistence[Any, Any, Any], to: Recipient) -> _Found:
    found = _Found()
    kinds = persistence.store_data
    if kinds.user_data:
        for user, value in _filled(await persistence.get_user_data()):
            found.add("user", user_scope(user), bytes_of(value, to.bot))
    if kinds.chat_data:
        for chat, value in _filled(await persistence.get_chat_data()):
            found.add("chat", chat_scope(chat), bytes_of(value, to.bot))
    if kinds.bot_data:
        for scope, data in _bot_rows(await persistence.get_bot_data(), to):
            found.add("bot", scope, data)
    if kinds.callback_data and (keyboards := await persistence.get_callback_data()) is not None:
        for keyboard, _, buttons in keyboards[0]:
            found.add("keyboard", keyboard_scope(keyboard), bytes_of(buttons, to.bot))
    for name in to.conversations:
        for key, state in (await persistence.get_conversations(name)).items():
            found.add("conversation", Place(name, tuple(key)).name, bytes_of(state, to.bot))
    return found


def _filled(data: Mapping[int, object]) -> Iterator[tuple[int, object]]:
    """Those that hold anything."""
    for owner, value in data.items():
        if not isinstance(value, dict) or value:
            yield owner, value


def _bot_rows(value: Any, to: Recipient) -> Iterator[tuple[str, bytes | None]]:  # noqa: ANN401  # of the class that the handlers' author has chosen
    entries = Entries(lambda: to.bot, to.bot_data)
    for key, each in entries.keys_of(value):
        yield entries.scope_of(key), entries.freeze(key, each)[0]


def _is_free(tx: Tx, bot: BotName) -> bool:
    begun = turn_state.load(tx, bot, [_SCOPE]).get(_SCOPE)
    return begun == _BEGUN or not turn_state.has_any(tx, bot)


def _save(tx: Tx, bot: BotName, *, rows: Mapping[str, bytes]) -> None:
    turn_state.save(tx, bot, rows)
