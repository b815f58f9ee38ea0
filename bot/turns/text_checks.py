"""Whether Telegram would take a text: its markup, its entities, its length.

Pure. One rule for each parameter that holds a text; the words of a refusal are Telegram's, as
python-telegram-bot would hand them on, with what was counted behind them. They quote nothing of
the text.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from telegram.error import BadRequest

from storage.markup.entities import Entity, Formatted, MarkupError
from storage.markup.measuring import MARKUP_BYTES_MAX, count, misplaced, passes_at, shows
from storage.markup.reading import entities_of, read


@dataclass(frozen=True, slots=True)
class TextRule:
    """What holds for one text of a call.

    `name`, `mode` and `entities` name the parameters that hold it, say how it is marked up and
    hold its entities. `limit` is in code points, None for a limit that Telegram alone knows;
    `too_long` are Telegram's words for passing it. `empty` are its words for a text in which
    there is nothing to see, None where that is allowed; `missing` those for no text at all.
    """

    name: str
    mode: str
    entities: str
    limit: int | None = None
    too_long: str = ""
    empty: str | None = None
    missing: str | None = None


def message_rule(name: str, entities: str) -> TextRule:
    """What holds for the text of a message."""
    return TextRule(
        name,
        "parse_mode",
        entities,
        4096,
        "Message is too long",
        empty="Text must be non-empty",
        missing="Message text is empty",
    )


def caption_rule(limit: int, entities: str) -> TextRule:
    """What holds for a caption."""
    return TextRule("caption", "parse_mode", entities, limit, "Message caption is too long")


MESSAGE_TEXT: Final = message_rule("text", "entities")
"""The text of `sendMessage`."""


def refusal(words: str, why: str = "") -> BadRequest:
    """What python-telegram-bot raises when Telegram says these words; `why` is ours."""
    told = f"{words}: {why}" if why else words
    # The library sets the letters of Telegram's words so, and bots compare them.
    return BadRequest(told.capitalize())


def check_text(rule: TextRule, given: Mapping[str, object], place: str = "") -> None:
    """Let pass a text that Telegram may accept; `given` holds it, `place` names that within a call.

    Raises BadRequest for the rest.
    """
    text = given.get(rule.name)
    where = f"{place}.{rule.name}" if place else rule.name
    if not text or not isinstance(text, str):
        words = rule.missing if text is None else (rule.missing or rule.empty)
        if words:
            raise refusal(words, f"{where} has no characters")
        return
    formatted = formatted_of(rule, given, text, where)
    if rule.empty and not shows(formatted.text):
        raise refusal(rule.empty, f"{where} has no character that shows")
    if rule.limit is not None and len(formatted.text) > rule.limit:
        _check_length(rule.too_long, rule.limit, formatted.text, where)


def _check_length(too_long: str, limit: int, text: str, where: str) -> None:
    counted = count(text)
    if counted > limit:
        offset = passes_at(text, limit)
        raise refusal(
            too_long,
            f"{where} has {counted} characters after entities parsing, {limit} are allowed; "
            f"it passes that at byte offset {offset}",
        )


def formatted_of(rule: TextRule, given: Mapping[str, object], text: str, where: str) -> Formatted:
    """The text without its markup.

    Raises BadRequest for markup, or entities, that Telegram would refuse.
    """
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > MARKUP_BYTES_MAX:
        why = f"{where} has {size} bytes with its markup, {MARKUP_BYTES_MAX} are allowed"
        raise refusal("Text is too long", why)
    return parsed_of(rule, given, text, where)


def parsed_of(rule: TextRule, given: Mapping[str, object], text: str, where: str) -> Formatted:
    """The same, however long the text.

    Raises BadRequest.
    """
    mode = given.get(rule.mode)
    entities = () if mode else _entities(given.get(rule.entities))
    try:
        formatted = read(text, mode if isinstance(mode, str) else "", entities)
    except MarkupError as error:
        raise refusal(str(error), f"in {where}") from None
    told = misplaced(formatted) if entities else None
    if told is not None:
        raise refusal(told, f"in {where}")
    return formatted


def _entities(given: object) -> tuple[Entity, ...]:
    """The entities of a call; none where they can't be understood, of which Telegram will tell."""
    if not given:
        return ()
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        return ()
    return entities_of(found) or ()
