"""The Bot API's contract: what Telegram's answer to a call means.

Pure: no clock, no dice, no I/O. Structured fields are believed first, then the code, then the text
(`sender/phrases.py`), so that an unknown text never decides more than its code does.
"""

from dataclasses import dataclass

from sender.answer import (
    NEVER_A_CALL,
    Answer,
    Envelope,
    Evidence,
    envelope_of,
    excerpt,
    message_ids_of,
    moved_to,
)
from sender.answer import retry_after_s as ordered_s
from sender.phrases import (
    FailedItem,
    Meaning,
    failed_item,
    meaning_of,
    tells_of_unknown_file,
    unquoted,
    wait_in_text_s,
)
from sender.verdict import (
    WAIT_MS_MAX,
    Cooldown,
    Fatal,
    FloodHint,
    ItemFate,
    Moved,
    Outdated,
    Partial,
    Refused,
    RefusedKind,
    Review,
    Sent,
    Transient,
    Uncertain,
    Unreachable,
    Verdict,
    WaitSource,
    unanswered,
)
from storage.methods import CallKind, method_facts

_OK, _UNAUTHORIZED, _FORBIDDEN, _NOT_FOUND = 200, 401, 403, 404
_REFUSALS_FROM, _MISDIRECTED, _TOO_MANY, _SERVER_ERRORS_FROM = 400, 421, 429, 500
_ALBUM, _STOP_POLL = "sendMediaGroup", "stopPoll"


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

    @property
    def is_of_several(self) -> bool:
        """Whether some of what was asked for may have been done.

        An album has two items at least, whatever the row says. Where doing it twice changes
        nothing, as in deletes, it does not matter.
        """
        facts = method_facts(self.method)
        is_idempotent = facts is not None and facts.idempotent
        return self.method == _ALBUM or (self.items > 1 and not is_idempotent)


def told(answer: Answer) -> Evidence:
    """What Telegram said, as evidence: its code, and its description without a user's words."""
    envelope = envelope_of(answer.body) if answer.body else None
    if envelope is None:
        return Evidence(None, excerpt(answer) or answer.fault or None)
    return Evidence(envelope.error_code, unquoted(envelope.description or "") or None)


def classify(answer: Answer, method: str, *, items: int = 1) -> Verdict:
    """Say what `answer`, to a call of `method` that carried `items` items, means."""
    return unanswered(answer) or _classify_answered(answer, method, items)


def outdated(answer: Answer, method: str) -> Outdated | None:
    """What a refusal means for a call that named files instead of bringing them along.

    None where those are not the reason, or where some of an album may have been sent.
    """
    envelope = envelope_of(answer.body)
    if envelope is None or envelope.ok or not envelope.description:
        return None
    is_known = not tells_of_unknown_file(envelope.description, of_several=method == _ALBUM)
    if is_known or max(answer.status or 0, envelope.error_code or 0) >= _SERVER_ERRORS_FROM:
        return None
    return Outdated(f"it goes again with its file: {unquoted(envelope.description)}")


def _classify_answered(answer: Answer, method: str, items: int) -> Verdict:
    status = answer.status or 0
    envelope = envelope_of(answer.body)
    if envelope is None or (envelope.ok and status != _OK):
        return _classify_unreadable(answer, status)
    if envelope.ok:
        return _classify_acceptance(envelope.result, items)
    code = max(status, envelope.error_code or 0)
    description = envelope.description or ""
    if not _REFUSALS_FROM <= code < _SERVER_ERRORS_FROM:
        return _classify_server_error(code, description, envelope)
    refusal = _Refusal(answer, method, items, code, description, envelope.parameters)
    return _classify_refusal(refusal)


def _classify_unreadable(answer: Answer, status: int) -> Verdict:
    if status == _TOO_MANY:
        return _review(answer, excerpt(answer))
    if status in NEVER_A_CALL:
        described = f"the request itself was refused: {excerpt(answer)}"
        return Refused(RefusedKind.CONTENT, status, described)
    return Uncertain(reason=f"{status} {excerpt(answer)}".strip())


def _classify_acceptance(result: object, items: int) -> Sent:
    """Fewer messages than asked for are an acceptance: copies leave out what is not there."""
    ids = message_ids_of(result)
    first = next((message_id for message_id in ids if message_id), None)
    if isinstance(result, list) and len(result) < items:
        return Sent(first, f"{len(result)} of {items} were made, the others left out", ids)
    if 0 in ids:
        return Sent(first, "put off by Telegram: what has no id can't be referred to", ids)
    return Sent(first, message_ids=ids)


def _classify_server_error(code: int, description: str, envelope: Envelope) -> Verdict:
    if meaning_of(description) is Meaning.DELIVERED:
        return Sent(note=unquoted(description), has_result=False)
    return Uncertain(reason=f"{envelope.error_code or code} {unquoted(description)}".strip())


def _classify_refusal(refusal: _Refusal) -> Verdict:
    new_chat_id = moved_to(refusal.parameters)
    if new_chat_id is not None:
        return Moved(new_chat_id)
    wait_s = ordered_s(refusal.parameters)
    if refusal.code == _TOO_MANY:
        return _classify_flood(refusal, wait_s, WaitSource.PARAMETERS)
    meaning = meaning_of(refusal.description) if wait_s is None else Meaning.FLOOD
    if _is_fatal(refusal.code, meaning):
        return Fatal(reason=f"{refusal.code} {refusal.told}".strip())
    source = WaitSource.PARAMETERS
    if wait_s is None and meaning is Meaning.FLOOD:
        wait_s, source = wait_in_text_s(refusal.description), WaitSource.TEXT
    if refusal.is_of_several or meaning is Meaning.PARTIAL:
        return _partial(refusal, wait_s)
    if meaning is Meaning.FLOOD:
        return _classify_flood(refusal, wait_s, source)
    return _classify_by_meaning(refusal, meaning)


def _classify_flood(refusal: _Refusal, wait_s: int | None, source: WaitSource) -> Verdict:
    wait_ms = _usable_ms(wait_s)
    if wait_ms is None:
        return _review(refusal.answer, refusal.told)
    facts = method_facts(refusal.method)
    is_edit = facts is not None and facts.kind is CallKind.EDIT
    return Cooldown(wait_ms, FloodHint.EDITS if is_edit else FloodHint.CHAT, source)


def _usable_ms(wait_s: int | None) -> int | None:
    """The wait in milliseconds; None for one that Telegram can't have ordered."""
    if wait_s is None or wait_s < 0 or wait_s * 1000 > WAIT_MS_MAX:
        return None
    # Zero would mean "at once", which Telegram cannot mean in a refusal.
    return max(1, wait_s) * 1000


def _partial(refusal: _Refusal, wait_s: int | None) -> Partial:
    failed = failed_item(refusal.description)
    items = tuple(_item_fate(number, failed) for number in range(1, refusal.items + 1))
    return Partial(f"{refusal.code} {refusal.told}".strip(), _usable_ms(wait_s), items)


def _item_fate(number: int, failed: FailedItem | None) -> ItemFate:
    if failed is None or failed.number != number:
        return ItemFate(number, "unknown", "Telegram says nothing of it")
    meaning = meaning_of(failed.description)
    reason = unquoted(failed.description)
    return ItemFate(
        number, "failed", reason if meaning is None else f"{meaning.name.lower()}: {reason}"
    )


def _classify_by_meaning(refusal: _Refusal, meaning: Meaning | None) -> Verdict:
    match meaning:
        case None if refusal.code == _FORBIDDEN:
            return Unreachable(reason=refusal.told or "forbidden")
        case Meaning.DONE | Meaning.DELIVERED:
            return Sent(note=refusal.told, has_result=False)
        case Meaning.STOPPED if refusal.method == _STOP_POLL:
            return Sent(note=refusal.told, has_result=False)
        case Meaning.CLOSED:
            return Unreachable(reason=refusal.told)
        case Meaning.LATER:
            return Transient(reason=refusal.told, outage=False)
        case Meaning.LATE:
            kind = RefusedKind.LATE
        case Meaning.PERMISSION:
            kind = RefusedKind.PERMISSION
        case Meaning.TARGET | Meaning.STOPPED:
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
    longest_ms = max(header_s, wait_in_text_s(description) or 0) * 1000
    said = f"{answer.status} {description}".strip()
    evidence = f"{said} (Retry-After: {header})" if header else said
    return Review(evidence=evidence, wait_at_least_ms=min(longest_ms, WAIT_MS_MAX))
