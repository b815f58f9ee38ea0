"""One text that is too long for a message becomes several calls, as one unit.

Pure. The text is read here, so the parts go out with entities and without a `parse_mode`; each
entity over a cut goes on in the next part (storage/markup/cutting.py). A text that fits goes as it
was given. Captions can't be split: a picture has one, and what follows it would be no caption.

The parts are calls of one lane, in order, to be left in one transaction, each following the one
before: when a part dies, the rest of the text is not said. What holds for the unit:

- the reply, the quote and the effect are the first part's, the keyboard is the last one's;
- the caller gets the last part's message: it ends the text and has the keyboard, so that is what
  will be edited, answered to or deleted; and who waits, waits for the last part;
- `supersede` and `cancel_on_edit` are the first part's alone: they decide whether a text is begun,
  and one that is half said is finished. An expiry is every part's, since a late end is no better
  than a late beginning;
- under a `key` each part after the first has the key with its number.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from bot.turns.calls import Call
from bot.turns.text_checks import MESSAGE_TEXT, parsed_of, refusal
from bot.turns.wishes import Send
from storage.markup.cutting import cut
from storage.markup.entities import Formatted
from storage.markup.measuring import MARKUP_BYTES_MAX, count

PARTS_MAX: Final = 100
"""Messages that one text may become: a chat takes one a second, so this is minutes of them."""

_SPLIT: Final = "sendMessage"
_LIMIT: Final = 4096
_TEXT: Final = ("text", "parse_mode", "entities")
_OF_THE_FIRST: Final = frozenset(
    {
        *("reply_parameters", "reply_to_message_id", "allow_sending_without_reply"),
        "message_effect_id",
    }
)
_OF_THE_LAST: Final = "reply_markup"


def split(call: Call) -> Sequence[Call]:
    """The calls to make instead of this one: itself, unless it wishes otherwise and is too long.

    Raises telegram.error.BadRequest for markup that Telegram would refuse, and for a text of more
    than `PARTS_MAX` parts.
    """
    text = call.params.get("text")
    if not call.wish.split or call.method != _SPLIT or not text:
        return (call,)
    if len(text) <= _LIMIT:
        return (call,)
    formatted = parsed_of(MESSAGE_TEXT, call.params, text, "text")
    if count(formatted.text) <= _LIMIT and len(text.encode()) <= MARKUP_BYTES_MAX:
        return (call,)
    parts = cut(formatted, _LIMIT)
    if not parts:
        return (call,)
    if len(parts) > PARTS_MAX:
        raise refusal(
            "Message is too long", f"text would be {len(parts)} messages, {PARTS_MAX} are allowed"
        )
    last = len(parts) - 1
    return tuple(
        replace(
            call,
            params=_params(call.params, part, is_first=at == 0, is_last=at == last),
            wish=_wish(call.wish, at, is_last=at == last),
        )
        for at, part in enumerate(parts)
    )


def _params(
    given: Mapping[str, str], part: Formatted, *, is_first: bool, is_last: bool
) -> Mapping[str, str]:
    """The form fields of one part, in the order of the whole."""
    told: dict[str, str] = {}
    for name, value in given.items():
        if name == "text":
            told[name] = part.text
            if part.entities:
                told["entities"] = json.dumps([each.to_json() for each in part.entities])
        elif name in _TEXT or (name in _OF_THE_FIRST and not is_first):
            continue
        elif name != _OF_THE_LAST or is_last:
            told[name] = value
    return told


def _wish(wish: Send, at: int, *, is_last: bool) -> Send:
    changed: dict[str, object] = {"split": False}
    if not is_last:
        changed["wait"] = False
    if at:
        changed["supersede"] = None
        changed["cancel_on_edit"] = False
        if wish.key is not None:
            changed["key"] = f"{wish.key}/{at + 1}"
    return wish.model_copy(update=changed)
