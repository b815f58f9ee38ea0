"""Kinds of update: how long each lives, in which queue it waits, and whether a bot wants it.

Pure. Table: telegram.md §5.2 (lifetimes and queues), §1.9 (the default set).
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

DAY_S = 86_400


class KindFacts(NamedTuple):
    """Facts of one kind: family of its queues, whose id tells them apart, life in seconds."""

    family: str
    of: str
    life_s: int = DAY_S
    by_default: bool = True


KINDS: dict[str, KindFacts] = {
    "message": KindFacts("chat", "chat"),
    "edited_message": KindFacts("chat", "chat"),
    "channel_post": KindFacts("chat", "chat"),
    "edited_channel_post": KindFacts("chat", "chat"),
    "business_connection": KindFacts("connection", "user"),
    "business_message": KindFacts("business", "chat"),
    "edited_business_message": KindFacts("business", "chat"),
    "deleted_business_messages": KindFacts("business", "chat"),
    "guest_message": KindFacts("guest", "chat"),
    "message_reaction": KindFacts("reaction", "chat", by_default=False),
    "message_reaction_count": KindFacts("reaction_count", "chat", by_default=False),
    "inline_query": KindFacts("inline", "from", 30),
    "chosen_inline_result": KindFacts("chosen", "from", 600),
    "callback_query": KindFacts("callback", "from", 150),
    "shipping_query": KindFacts("payment", "from", 150),
    "pre_checkout_query": KindFacts("payment", "from", 150),
    "purchased_paid_media": KindFacts("paid_media", "from"),
    "poll": KindFacts("poll", "poll"),
    "poll_answer": KindFacts("poll", "poll"),
    "my_chat_member": KindFacts("my_chat_member", "chat"),
    "chat_member": KindFacts("member", "from", by_default=False),
    "chat_join_request": KindFacts("member", "from"),
    "chat_boost": KindFacts("boost", "chat"),
    "removed_chat_boost": KindFacts("boost", "chat"),
    "managed_bot": KindFacts("managed_bot", "user"),
    # Newer than the public source: queue and life are guessed.
    "stopped_message_generation": KindFacts("stopped", "chat"),
}
# Kinds newer than the public source: their queue and life are guessed.
_UNKNOWN_OF = ("chat", "from", "user")


def queue_of(kind: str, payload: Mapping[str, object]) -> str:
    """Name of the queue in which an update waits; within one queue order is strict."""
    facts = KINDS.get(kind)
    if facts is None:
        ids = (_id_in(payload, name) for name in _UNKNOWN_OF)
        return f"{kind}:{next((each for each in ids if each is not None), '')}"
    if facts.of == "poll":
        return f"poll:{payload.get('poll_id', payload.get('id'))}"
    return f"{facts.family}:{_id_in(payload, facts.of)}"


def expires_at_ms(kind: str, payload: Mapping[str, object], now_ms: int) -> int:
    """When Telegram gives up on an update; messages age from their own (edit) date."""
    facts = KINDS.get(kind)
    if facts is None:
        return now_ms + DAY_S * 1000
    if facts.family in ("chat", "business"):
        date_s = payload.get("edit_date", payload.get("date"))
        # A collected update is as old as its collection; what it stands for happens now.
        if isinstance(date_s, int) and now_ms - facts.life_s * 1000 < date_s * 1000 <= now_ms:
            return (date_s + facts.life_s) * 1000
    return now_ms + facts.life_s * 1000


def wanted(kind: str, allowed: Iterable[str] | None) -> bool:
    """Say whether an update of this kind is queued at all; None stands for the default set."""
    if allowed is not None:
        return kind in allowed
    return kind not in KINDS or KINDS[kind].by_default


def _id_in(payload: Mapping[str, object], name: str) -> object:
    inner = payload.get(name)
    return inner.get("id") if isinstance(inner, dict) else None


def kind_of(parts: Mapping[str, object]) -> tuple[str, Mapping[str, object]]:
    """Kind and payload of an update: its first object, as there should be only one."""
    return next(
        ((kind, payload) for kind, payload in parts.items() if isinstance(payload, dict)), ("", {})
    )
