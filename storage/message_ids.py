"""Which message of Telegram's a placeholder stands for, while its row is there and after.

Plain functions of a transaction. A row that makes several messages owns as many placeholders, its
own number and those just below. What a row has made is read from Telegram's answer; before the row
is forgotten it is written down here, as what handlers remember may name it for much longer.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from storage.carriers import Row
from storage.database import Tx
from storage.lifecycle import BotName, OutboxId, OutboxState
from storage.methods import METHODS

_LISTED: Final = "message_ids"


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of the message behind a placeholder.

    `doubt`: the row about which has to be decided first, itself or what it waits for: a held one
    by a person, one that waits for its turn elsewhere by its answer. `chat_id`: the chat in which
    the message is, or will be; None where that is known by name only.
    """

    state: OutboxState
    message_id: int | None
    doubt: OutboxId | None = None
    chat_id: int | None = None


def resolve(tx: Tx, bot: BotName, placeholder: int) -> Resolution | None:
    """What became of the message behind a placeholder; None when nothing is known of it."""
    key = {"bot": bot, "placeholder": placeholder}
    row = tx.row("message_ids.owner", key)
    if row is None or row["placeholder"] - row["items"] >= placeholder:
        kept = tx.row("message_ids.kept", key)
        if kept is None:
            return None
        return Resolution(OutboxState.SENT, kept["message_id"], chat_id=kept["chat_id"])
    state = OutboxState(row["state"])
    message_id = row["message_id"]
    if row["items"] > 1:
        place = row["placeholder"] - placeholder
        message_id = _made(tx, row)[place] if state is OutboxState.SENT else None
    return Resolution(state, message_id, row["doubt"], row["chat_id"])


def keep(tx: Tx, rows: Sequence[OutboxId]) -> None:
    """Remember what these rows have made: they are about to be forgotten."""
    found = tx.rows("message_ids.to_keep", {"ids": json.dumps(list(rows))})
    now_ms = tx.now_ms()
    tx.many(
        "message_ids.keep",
        [
            {
                "bot": row["bot"],
                "placeholder": row["placeholder"] - place,
                "message_id": message_id,
                "chat_id": row["chat_id"],
                "now_ms": now_ms,
            }
            for row in found
            for place, message_id in enumerate(_made(tx, row))
            if message_id is not None
        ],
    )


def prune(tx: Tx, *, before_ms: int, limit: int) -> int:
    """Forget up to `limit` placeholders that have been kept since before `before_ms`."""
    return tx.run("message_ids.prune", {"before_ms": before_ms, "limit": limit})


def _made(tx: Tx, row: Row) -> Sequence[int | None]:
    """The messages that a sent row has made, one for each of its placeholders; None: no such."""
    items = int(row["items"])
    if items == 1:
        return [row["message_id"]]
    made = _in_answer(row["result"])
    if len(made) == items:
        return made
    # A person who has settled the row may know the first one. Copies leave out what is not there:
    # which one is known only where it is one of ours.
    if row["result"] is None:
        return [row["message_id"], *[None] * (items - 1)]
    there = _listed_that_are_there(tx, row)
    placed: list[int | None] = [None] * items
    if len(made) == len(there):
        for place, message_id in zip(there, made, strict=True):
            placed[place] = message_id
    return placed


def _in_answer(body: bytes | None) -> list[int | None]:
    """The ids in an accepting answer that tells of several messages, in its order.

    A 0 is the id of a message put off by Telegram (Bot API, Message.message_id): it has none.
    """
    result = json.loads(body)["result"] if body else None
    if not isinstance(result, list):
        return []
    return [each.get("message_id") or None for each in result if isinstance(each, dict)]


def _listed_that_are_there(tx: Tx, row: Row) -> Sequence[int]:
    """The places in a row's list of messages that did not fall out of it before it was sent."""
    facts = METHODS.get(row["method"])
    if facts is None or facts.items != _LISTED:
        return []
    listed = json.loads(json.loads(row["params"])[_LISTED])
    bot = BotName(row["bot"])
    return [place for place, each in enumerate(listed) if _is_there(tx, bot, int(each))]


def _is_there(tx: Tx, bot: BotName, named: int) -> bool:
    found = None if named > 0 else resolve(tx, bot, named)
    return named > 0 or (found is not None and bool(found.message_id))
