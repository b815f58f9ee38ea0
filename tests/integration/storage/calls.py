"""Rows for tests of the outbox, with only what a test cares for to be said."""

from dataclasses import replace
from typing import Any

from storage.lifecycle import BotName
from storage.outgoing import Outgoing, chat_lane

BOT = BotName("main")


def call(key: str, *, chat_id: int = 7, text: str = "hello", **wishes: Any) -> Outgoing:  # noqa: ANN401 - fields of Outgoing
    """A sendMessage to a chat; `wishes` are fields of `Outgoing`."""
    plain = Outgoing(
        method="sendMessage",
        params={"chat_id": str(chat_id), "text": text},
        lane=chat_lane(chat_id),
        key=key,
        chat_id=chat_id,
    )
    return replace(plain, **wishes)
