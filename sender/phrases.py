"""Every text of Telegram's that we know, and what each one adds to its code.

Pure. Telegram may change its texts at any time, so a text refines what the structured fields and
the code have said, and an unknown one adds nothing. It is sought anywhere in the description and
without regard to case: a call of several items wraps the inner text, and libraries recapitalise.
No other module may know one of Telegram's error texts. The catalogue they are taken from, row by
row, is tests/data/botapi-catalogue.json.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

# Telegram quotes what it can't read, and those are a user's words; an error inside an error is not.
_QUOTED = re.compile(r"""(?<!error message )"[^"]*"|(?<!\w)'[^']*'""", re.IGNORECASE)
# Whole seconds only: of 8.5 neither 8 nor 5 was ordered.
_WAIT = re.compile(r"retry after ([0-9]{1,12})(?!\.?[0-9])", re.IGNORECASE)
_FAILED_ITEM = re.compile(
    r"failed to send message #([0-9]{1,4}) with the error message \"(.*)\"",
    re.IGNORECASE | re.DOTALL,
)


class Meaning(Enum):
    """What one of Telegram's texts adds to its code.

    done        what was asked for is so already
    delivered   the message was sent, then taken away by Telegram: to repeat it would double it
    stopped     the poll runs no more: done, if that was asked for
    late        a query that can't be answered any more
    flood       too much, wherever the code says otherwise
    partial     a call of several items failed, and nothing is said of each
    later       not executed, and the same call may succeed
    closed      the chat is gone for this bot
    permission  our rights stand against it
    target      what it points at does
    content     what it says does
    no_method   the server is older than the method; the token is sound
    fatal       this bot can't call at all
    """

    DONE = auto()
    DELIVERED = auto()
    STOPPED = auto()
    LATE = auto()
    FLOOD = auto()
    PARTIAL = auto()
    LATER = auto()
    CLOSED = auto()
    PERMISSION = auto()
    TARGET = auto()
    CONTENT = auto()
    NO_METHOD = auto()
    FATAL = auto()


USERS_WORDS_FOLLOW = ("can't parse", 'bot "')
"""Texts that go on in a user's own words, which may say anything: they are sought first."""

PHRASES: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    (Meaning.DELIVERED, ("sent message was immediately deleted",)),
    (
        Meaning.DONE,
        ("is not modified", "message to delete not found", "poll has already been closed"),
    ),
    (Meaning.STOPPED, ("poll can't be stopped",)),
    (Meaning.LATE, ("query is too old", "query id is invalid", "query_id_invalid")),
    (Meaning.FLOOD, ("too many requests", "retry after")),
    (Meaning.PARTIAL, ("group send failed", "message was not sent")),
    (Meaning.NO_METHOD, ("method not found",)),
    (Meaning.FATAL, ("logged out", "frozen_method_invalid")),
    (
        Meaning.LATER,
        (
            "file is temporarily unavailable",
            "failed to get http url content",
            "webpage_curl_failed",
            "wrong type of the web page content",
            "webpage_media_empty",
            "wrong http url specified",
            "can't upload file by url",
            "failed to upload file",
            "photo_save_file_invalid",
            "file_part",
            "md5_checksum_invalid",
            "file_reference_",
            "terminated by other setwebhook",
        ),
    ),
    (
        Meaning.CLOSED,
        (
            "bot was blocked",
            "user_is_blocked",
            "user is deactivated",
            "user_deactivated",
            "can't initiate conversation",
            "can't send messages to bots",
            "can't send messages to the bot",
            "bot was kicked",
            "bot is not a member",
            "group chat was deleted",
            "group is deactivated",
            "chat not found",
            "peer_id_invalid",
            "channel_private",
        ),
    ),
    (
        Meaning.PERMISSION,
        (
            "not enough rights",
            "have no rights",
            "have no write access",
            "need administrator rights",
            "chat_admin_required",
            "chat_restricted",
            "user_banned_in_channel",
            "you_blocked_user",
            "privacy_premium_required",
            "allow_payment_required",
            "user restricted receiving",
            "business_peer_",
            "topic_closed",
            "message_author_required",
            "has protected content",
            "balance_too_low",
            "_forbidden",
        ),
    ),
    (
        Meaning.TARGET,
        (
            "topic_deleted",
            "message thread not found",
            "wrong direct messages topic",
            "business connection not found",
            "business_connection_invalid",
            "group chat was upgraded",
            "message to edit not found",
            "message to be replied not found",
            "message to copy not found",
            "message to forward not found",
            "message to react not found",
            "message to pin not found",
            "message can't be edited",
            "message can't be deleted",
            "in the message to edit",
            "message_id_invalid",
            "message_edit_time_expired",
            "message is not a poll",
            "user not found",
            "member not found",
            "participant_id_invalid",
            "invalid user_id",
            "method is available",
        ),
    ),
    (
        Meaning.CONTENT,
        (
            "text is empty",
            "must be non-empty",
            "is too long",
            "message_too_long",
            "entities_too_long",
            "entity_bounds_invalid",
            "quote_text_invalid",
            "button_",
            "reply_markup_invalid",
            "wrong http url",
            "wrong file identifier",
            "wrong remote file identifier",
            "invalid file_id",
            "is too big",
            "photo_invalid_dimensions",
            "image_process_failed",
            "unsupported extension",
            "as an album",
            "in the album",
            "can't be mixed",
            "wrong parameter",
            "is required",
            "chat_id is empty",
            "bad webhook",
            "webhook is active",
            "terminated by other getupdates",
            "by setwebhook request",
        ),
    ),
)
"""What each text means, lower-case; the first that is found decides."""


# A file that is named by its file_id is looked up before anything is sent; only what is said of a
# reference comes from Telegram's depths, where items of an album may have been sent already.
_UNKNOWN_FILE = (
    "wrong file identifier",
    "wrong remote file identifier",
    "wrong file_id",
    "invalid file_id",
    "can't use file of type",
)
_LAPSED_FILE = ("file_reference_", "file reference expired")


@dataclass(frozen=True, slots=True)
class FailedItem:
    """The item of a call of several that failed, counted from 1, and Telegram's text about it."""

    number: int
    description: str


def meaning_of(description: str) -> Meaning | None:
    """Say what a description adds to its code; None for a text that is not in the table."""
    folded = description.lower()
    if any(text in folded for text in USERS_WORDS_FOLLOW):
        return Meaning.CONTENT
    plain = unquoted(folded)
    for meaning, texts in PHRASES:
        if any(text in plain for text in texts):
            return meaning
    return None


def tells_of_unknown_file(description: str, *, of_several: bool) -> bool:
    """Whether a call was refused, with nothing executed, for a file that it named by a `file_id`.

    `of_several`: some of what was asked for may have been done, unless the refusal came before it.
    """
    if of_several and failed_item(description) is not None:
        return False
    plain = unquoted(description.lower())
    texts = _UNKNOWN_FILE if of_several else (*_UNKNOWN_FILE, *_LAPSED_FILE)
    return any(text in plain for text in texts)


def unquoted(description: str) -> str:
    """A description without what it quotes of a user's words, fit for logs and pages."""
    return _QUOTED.sub("…", description)


def wait_in_text_s(description: str) -> int | None:
    """Seconds to wait that a description names; None where it names no whole number of them."""
    found = _WAIT.search(unquoted(description))
    return int(found[1]) if found else None


def failed_item(description: str) -> FailedItem | None:
    """The item that an error of several names; None where it names none.

    Telegram's server wraps the inner text of albums, forwards and copies so, without rewriting it.
    """
    found = _FAILED_ITEM.search(description)
    return FailedItem(int(found[1]), found[2]) if found else None
