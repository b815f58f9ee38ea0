"""A dialogue between a person and a bot as data, and what that person sees of a chat. Pure.

A step is something that the person does, or what they see after it. What they see is the bot's
messages as they stand, in order, one line each: `re hello: hello`, `Sure? [Yes] [No]`,
`photo 123: a caption`, `closed poll: Lunch? a | b`. A deleted message is not there.
"""

import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from tests.simulator.control import Button, MessageView
from tests.simulator.wire import JsonObject

_FILES: Final = ("photo", "document", "video", "audio", "voice", "animation")


@dataclass(frozen=True, slots=True)
class Says:
    """The person writes."""

    text: str


@dataclass(frozen=True, slots=True)
class Gives:
    """The person sends what is no text."""

    shows: JsonObject
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Presses:
    """The person presses the newest button with this label, and is told `toast`."""

    label: str
    toast: str = ""


@dataclass(frozen=True, slots=True)
class Votes:
    """Somebody answers the newest poll: the person themselves, or a friend of that name."""

    options: tuple[int, ...]
    friend: str = ""


@dataclass(frozen=True, slots=True)
class Ships:
    """The person tells where to; the bot takes the order, or says why not."""

    payload: str
    country: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ChecksOut:
    """The person is about to pay; the bot lets them, or says why not."""

    payload: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Sees:
    """New messages of the bot."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hears:
    """A new message that a job of the library's JobQueue says.

    Such a job lives in memory: who kills its process loses it, with the library alone as with us.
    """

    line: str


@dataclass(frozen=True, slots=True)
class Becomes:
    """A message is edited: the one that was pressed, or the newest that reads `was`."""

    line: str
    was: str = ""


Act = Says | Gives | Presses | Votes | Ships | ChecksOut
Step = Act | Sees | Hears | Becomes
Steps = tuple[Step, ...]


def sees(*lines: str) -> Sees:
    """New messages of the bot, in this order."""
    return Sees(lines)


def uploaded(content: bytes) -> str:
    """How the simulator names a file of this content."""
    return f"{zlib.crc32(content):010d}"


def line_of(message: MessageView, chat: Sequence[MessageView]) -> str:
    """What a person sees of one message."""
    quoted = [each.text for each in chat if each.message_id == message.reply_to]
    parts = [f"re {quoted[0]}" if quoted else "", _shown(message.shows), message.text]
    words = ": ".join(part for part in parts if part)
    return " ".join([words, *(f"[{button.text}]" for button in buttons_of(message))])


def buttons_of(message: MessageView) -> list[Button]:
    """The buttons of a message, row by row."""
    return [button for row in message.buttons for button in row]


def transcript(chat: Sequence[MessageView]) -> list[str]:
    """What a person sees of a bot in a chat."""
    return [line_of(each, chat) for each in chat if each.from_bot and not each.deleted]


def is_as_expected(
    found: Sequence[str], expected: Sequence[str], moved: Collection[str] = ()
) -> bool:
    """Whether all is there, once, and in order.

    `moved`: the words of messages that a person had sent again by hand, after a look into the chat
    had shown that they had never come. Where these stand is not asked; that they are there is.
    """
    if list(found) == list(expected):
        return True
    if Counter(found) != Counter(expected):
        return False

    def in_order(lines: Sequence[str]) -> list[str]:
        return [line for line in lines if not any(words and words in line for words in moved)]

    return in_order(found) == in_order(expected)


def _shown(shows: JsonObject) -> str:
    for kind in _FILES:
        if kind in shows:
            told = shows[kind]
            file = told[-1] if isinstance(told, list) else told
            assert isinstance(file, dict)
            album = "album " if "media_group_id" in shows else ""
            return f"{album}{kind} {file['file_unique_id']}"
    poll, invoice = shows.get("poll"), shows.get("invoice")
    if isinstance(poll, dict):
        options = " | ".join(str(each["text"]) for each in poll["options"])
        closed = "closed " if poll["is_closed"] else ""
        return f"{closed}poll: {poll['question']} {options}"
    if isinstance(invoice, dict):
        return f"invoice: {invoice['title']}, {invoice['total_amount']} {invoice['currency']}"
    return ""
