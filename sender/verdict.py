"""Say what an answer of Telegram means.

Pure: no clock, no dice, no I/O. Structured fields are believed first, then the code, then the text,
sought without regard to case anywhere in the description, as an answer to a call of several items
wraps the inner text. Telegram may change its texts at any time, so an unknown text never decides
more than its code does. No other module may know one of Telegram's error texts.
"""

import re
from dataclasses import dataclass
from enum import Enum, StrEnum, auto

from sender.answer import Answer, Envelope, Stage, envelope_of, message_id_of, moved_to
from sender.answer import retry_after_s as ordered_s
from storage.outgoing import METHODS, CallKind

WAIT_MS_MAX = 14 * 24 * 3600 * 1000
"""Telegram's own server clamps a flood wait at 14 days: a longer one is no wait that it ordered."""

EVIDENCE_CHARS_MAX = 300
"""How much of an unreadable answer is kept: enough to recognise a gateway's page."""

# Telegram quotes what it can't read, and those are a user's words; an error inside an error is not.
_QUOTED = re.compile(r"""(?<!error message )"[^"]*"|(?<!\w)'[^']*'""")
_WAIT_IN_TEXT = re.compile(r"retry after (\d{1,12})", re.IGNORECASE)
_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404
_REFUSALS_FROM, _MISDIRECTED, _TOO_MANY, _SERVER_ERRORS_FROM = 400, 421, 429, 500
# The HTTP request itself was refused, with an empty or HTML body: it never became a call.
_NEVER_A_CALL = frozenset({400, 413, 414, 415, 431})


class FloodHint(StrEnum):
    """What certainly has to wait: all of the chat, or only the edits in it."""

    CHAT = "chat"
    EDITS = "edits"


class WaitSource(StrEnum):
    """Where the wait was read."""

    PARAMETERS = "parameters"
    TEXT = "text"


class RefusedKind(StrEnum):
    """What stands against the call: our rights, what it points at, what it says, or its age."""

    PERMISSION = "permission"
    TARGET = "target"
    CONTENT = "content"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Sent:
    """Accepted. `note` tells when it was not plainly so, as when nothing was left to change."""

    message_id: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cooldown:
    """Telegram ordered a wait, counted from its answer; nothing was executed."""

    wait_ms: int
    scope_hint: FloodHint
    source: WaitSource


@dataclass(frozen=True, slots=True)
class Partial:
    """A call of several items failed, and some of them may have been delivered."""

    evidence: str
    wait_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A flood without a usable wait. What header and text say may only lengthen our own."""

    evidence: str
    wait_at_least_ms: int = 0


@dataclass(frozen=True, slots=True)
class Transient:
    """Certainly not executed, and another try may succeed. `outage`: nothing even connected."""

    reason: str
    outage: bool


@dataclass(frozen=True, slots=True)
class Uncertain:
    """It may have been executed, and nobody can tell."""

    reason: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The group became the supergroup with this id; nothing was executed."""

    new_chat_id: int


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The chat is closed to this bot until it shows itself again."""

    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Refused for good, for this call alone."""

    kind: RefusedKind
    code: int
    description: str


@dataclass(frozen=True, slots=True)
class Fatal:
    """This bot cannot call Telegram at all."""

    reason: str


Verdict = (
    Sent
    | Cooldown
    | Partial
    | Review
    | Transient
    | Uncertain
    | Moved
    | Unreachable
    | Refused
    | Fatal
)


class Meaning(Enum):
    """What one of Telegram's texts adds to its code."""

    DONE = auto()
    DELIVERED = auto()
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


PHRASES: tuple[tuple[Meaning, tuple[str, ...]], ...] = (
    # These quote the user's own words, which may say anything: they are sought first.
    (Meaning.CONTENT, ("can't parse", "wrong http url", 'bot "')),
    # The message was sent, then taken away by Telegram: to repeat it would double it.
    (Meaning.DELIVERED, ("sent message was immediately deleted",)),
    (Meaning.DONE, ("is not modified", "message to delete not found", "poll has already been c")),
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
            "wrong type of the web page content",
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
            "poll can't be stopped",
            "user not found",
            "member not found",
            "participant_id_invalid",
            "invalid user_id",
            "method is available only",
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
        ),
    ),
)
"""Every text of Telegram's that we know, lower-case; the first that is found decides."""


def meaning_of(description: str) -> Meaning | None:
    """Say what a description adds to its code; None for a text that is not in the table."""
    folded = description.lower()
    for meaning, texts in PHRASES:
        if any(text in folded for text in texts):
            return meaning
    return None


def name_of(verdict: Verdict) -> str:
    """The verdict in one word, as logs, attempts and pages call it."""
    return type(verdict).__name__.lower()


def told(answer: Answer) -> tuple[int | None, str | None]:
    """What Telegram said, as evidence: its code, and its description without a user's words."""
    envelope = envelope_of(answer.body) if answer.body else None
    if envelope is None:
        return None, _excerpt(answer) or answer.fault or None
    return envelope.error_code, unquoted(envelope.description or "") or None


def unquoted(description: str) -> str:
    """A description without what it quotes, fit for logs and pages."""
    return _QUOTED.sub("…", description)


def classify(answer: Answer, method: str, *, items: int = 1) -> Verdict:
    """Say what `answer`, to a call of `method` that carried `items` items, means."""
    match answer.stage:
        case Stage.UNCONNECTED:
            return Transient(reason=f"not connected: {answer.fault}", outage=True)
        case Stage.BODY_INCOMPLETE:
            return Transient(reason=f"request cut short: {answer.fault}", outage=False)
        case Stage.BODY_COMPLETE:
            return Uncertain(reason=f"no answer: {answer.fault}")
        case Stage.ANSWERED:
            return _classify_answered(answer, method, items)


@dataclass(frozen=True, slots=True)
class _Refusal:
    answer: Answer
    method: str
    items: int
    code: int
    description: str
    parameters: object

    @property
    def told(self) -> str:
        return unquoted(self.description)


def _classify_answered(answer: Answer, method: str, items: int) -> Verdict:
    status = answer.status or 0
    envelope = envelope_of(answer.body)
    if envelope is None or (envelope.ok and status != _OK):
        return _classify_unreadable(answer, status)
    if envelope.ok:
        return Sent(message_id=message_id_of(envelope.result))
    code = max(status, envelope.error_code or 0)
    description = envelope.description or ""
    if not _REFUSALS_FROM <= code < _SERVER_ERRORS_FROM:
        return _classify_server_error(code, description, envelope)
    refusal = _Refusal(answer, method, items, code, description, envelope.parameters)
    return _classify_refusal(refusal)


def _classify_unreadable(answer: Answer, status: int) -> Verdict:
    if status == _TOO_MANY:
        return _review(answer, _excerpt(answer))
    if status in _NEVER_A_CALL:
        told = f"the request itself was refused: {_excerpt(answer)}"
        return Refused(RefusedKind.CONTENT, status, told)
    return Uncertain(reason=f"{status} {_excerpt(answer)}".strip())


def _classify_server_error(code: int, description: str, envelope: Envelope) -> Verdict:
    if meaning_of(description) is Meaning.DELIVERED:
        return Sent(note=description)
    return Uncertain(reason=f"{envelope.error_code or code} {unquoted(description)}".strip())


def _classify_refusal(refusal: _Refusal) -> Verdict:
    new_chat_id = moved_to(refusal.parameters)
    if new_chat_id is not None:
        return Moved(new_chat_id)
    if refusal.code == _TOO_MANY:
        return _classify_flood(refusal, ordered_s(refusal.parameters), WaitSource.PARAMETERS)
    meaning = meaning_of(refusal.description)
    told = f"{refusal.code} {refusal.told}".strip()
    if _is_fatal(refusal.code, meaning):
        return Fatal(reason=told)
    wait_s = _wait_in_text_s(refusal.description) if meaning is Meaning.FLOOD else None
    if refusal.items > 1 or meaning is Meaning.PARTIAL:
        return Partial(evidence=told, wait_ms=None if wait_s is None else max(1, wait_s) * 1000)
    if wait_s is not None:
        return _classify_flood(refusal, wait_s, WaitSource.TEXT)
    return _classify_by_meaning(refusal, meaning)


def _classify_flood(refusal: _Refusal, wait_s: int | None, source: WaitSource) -> Verdict:
    if wait_s is None or wait_s < 0 or wait_s * 1000 > WAIT_MS_MAX:
        return _review(refusal.answer, refusal.description)
    facts = METHODS.get(refusal.method)
    is_edit = facts is not None and facts.kind is CallKind.EDIT
    hint = FloodHint.EDITS if is_edit else FloodHint.CHAT
    # Zero would mean "at once", which Telegram cannot mean in a refusal.
    return Cooldown(max(1, wait_s) * 1000, hint, source)


def _classify_by_meaning(refusal: _Refusal, meaning: Meaning | None) -> Verdict:
    match meaning:
        case None if refusal.code == _FORBIDDEN:
            return Unreachable(reason=refusal.told or "forbidden")
        case Meaning.DONE | Meaning.DELIVERED:
            return Sent(note=refusal.told)
        case Meaning.CLOSED:
            return Unreachable(reason=refusal.told)
        case Meaning.LATER:
            return Transient(reason=refusal.told, outage=False)
        case Meaning.LATE:
            kind = RefusedKind.LATE
        case Meaning.PERMISSION:
            kind = RefusedKind.PERMISSION
        case Meaning.TARGET:
            kind = RefusedKind.TARGET
        case _:
            kind = RefusedKind.CONTENT
    return Refused(kind, refusal.code, refusal.told)


def _is_fatal(code: int, meaning: Meaning | None) -> bool:
    if code == _NOT_FOUND:
        # A server older than the method answers 404 too; the token is sound then.
        return meaning is not Meaning.NO_METHOD
    return code in {_UNAUTHORIZED, _MISDIRECTED} or meaning is Meaning.FATAL


def _review(answer: Answer, description: str) -> Review:
    header = answer.retry_after_header[:20]
    header_s = int(header) if header.isascii() and header.isdigit() else 0
    longest_ms = max(header_s, _wait_in_text_s(description) or 0) * 1000
    told = f"{answer.status} {description}".strip()
    evidence = f"{told} (Retry-After: {header})" if header else told
    return Review(evidence=evidence, wait_at_least_ms=min(longest_ms, WAIT_MS_MAX))


def _wait_in_text_s(description: str) -> int | None:
    found = _WAIT_IN_TEXT.search(description)
    return int(found[1]) if found else None


def _excerpt(answer: Answer) -> str:
    return " ".join(answer.body[:EVIDENCE_CHARS_MAX].decode("utf-8", "replace").split())
