"""python-telegram-bot's persistence, as far as a turn uses it: the states of conversations.

It stores nothing by itself. What the library hands over is staged, one entry for each
conversation's key, and each turn takes from it only what is its own: a run of the library's
`update_persistence` collects what *all* turns have touched, those that failed too.

Nothing else comes this way: `bot/turns/memory.py` reads and writes `user_data` and `chat_data` for
each turn, `bot/turns/bot_data.py` the keys of `bot_data` that a turn touches, and
`bot/turns/keyboards.py` what buttons stand for. The library would write all of `bot_data`, however
little of it has changed.
"""

from collections.abc import Iterable
from typing import Any, Final

from telegram.ext import BasePersistence, ConversationHandler, PersistenceInput

from bot.turns.scopes import ConversationKey, Place

# The turns collect; the library's own rounds find nothing to do.
_INTERVAL_S: Final = 86_400.0

Data = dict[Any, Any]


class TurnPersistence(BasePersistence[Data, Data, Data]):
    """Stages the states of conversations for the turns that changed them."""

    def __init__(self) -> None:
        super().__init__(
            store_data=PersistenceInput(
                bot_data=False, chat_data=False, user_data=False, callback_data=False
            ),
            update_interval=_INTERVAL_S,
        )
        self._staged: dict[Place, object | None] = {}

    def take(self, places: Iterable[Place]) -> dict[Place, object | None]:
        """What is staged for these places, each with its new state or None for the end."""
        return {place: self._staged.pop(place) for place in places if place in self._staged}

    async def update_conversation(
        self, name: str, key: ConversationKey, new_state: object | None
    ) -> None:
        """Stage a conversation's new state."""
        # A step that ended after its turn tells the end as a state like any other.
        is_over = new_state == ConversationHandler.END
        self._staged[Place(name, key)] = None if is_over else new_state

    async def get_conversations(
        self,
        name: str,  # noqa: ARG002  # the library's signature
    ) -> dict[ConversationKey, object]:
        """Nothing yet: a conversation's state is read when its turn begins."""
        return {}

    async def flush(self) -> None:
        """Nothing: what was committed is on disk."""

    async def get_user_data(self) -> dict[int, Data]:
        """Never asked for, see the module."""
        return {}

    async def get_chat_data(self) -> dict[int, Data]:
        """Never asked for, see the module."""
        return {}

    async def get_bot_data(self) -> Data:
        """Never asked for, see the module."""
        return {}

    async def get_callback_data(self) -> None:
        """Never asked for, see the module."""

    async def update_user_data(self, user_id: int, data: Data) -> None:
        """Never told, see the module."""

    async def update_chat_data(self, chat_id: int, data: Data) -> None:
        """Never told, see the module."""

    async def update_bot_data(self, data: Data) -> None:
        """Never told, see the module."""

    async def update_callback_data(self, data: Any) -> None:  # noqa: ANN401  # the library's own
        """Never told, see the module."""

    async def drop_user_data(self, user_id: int) -> None:
        """Never told, see the module."""

    async def drop_chat_data(self, chat_id: int) -> None:
        """Never told, see the module."""

    async def refresh_user_data(self, user_id: int, user_data: Data) -> None:
        """Never told, see the module."""

    async def refresh_chat_data(self, chat_id: int, chat_data: Data) -> None:
        """Never told, see the module."""

    async def refresh_bot_data(self, bot_data: Data) -> None:
        """Never told, see the module."""
