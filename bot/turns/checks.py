"""Refuse a call before it becomes a row, if Telegram would certainly refuse it.

A row is sent when the handler is long over; what is wrong with it would then be seen by nobody but
the error handlers. So what needs no asking is said at once, as python-telegram-bot's own exception
and in Telegram's own words, to which the limit and the place are added. Nothing that might be
accepted is refused here: not what depends on a chat, on rights or on money, nor what is newer than
we are. Pure; a plain reply costs microseconds.

Lengths are in code points of the parsed text, as Telegram's server counts them
(storage/markup/measuring.py), and `callback_data` is in bytes of UTF-8. The limits are those of the
Bot API's prose (10.2) that its server's source, or TDLib's, enforces too. An album of one item is
let through: the documentation asks for two, the server sends it as a message.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from bot.turns.calls import Call
from bot.turns.keyboard_checks import check_keyboard
from bot.turns.text_checks import (
    MESSAGE_TEXT,
    TextRule,
    caption_rule,
    check_text,
    message_rule,
    refusal,
)

_ALBUM_ITEMS_MAX: Final = 10
_IDS_MAX: Final = 100
_POLL_OPTIONS_MAX: Final = 12
_RESULTS_MAX: Final = 50
_CAPTION: Final = caption_rule(1024, "caption_entities")
_STORY_CAPTION: Final = caption_rule(2048, "caption_entities")
# What may stand there instead grows with the Bot API: a rich message since 10.1.
_EDITED_TEXT: Final = replace(MESSAGE_TEXT, missing=None)
_INLINE_TEXT: Final = message_rule("message_text", "entities")
_OPTION: Final = TextRule(
    "text",
    "text_parse_mode",
    "text_entities",
    100,
    "Poll options length must not exceed 100",
    empty="Text must be non-empty",
)
_QUOTE: Final = TextRule("quote", "quote_parse_mode", "quote_entities", 1024, "Quote is too long")

_TEXTS: Final[Mapping[str, tuple[TextRule, ...]]] = MappingProxyType(
    {
        "sendMessage": (MESSAGE_TEXT,),
        "editMessageText": (_EDITED_TEXT,),
        "editEphemeralMessageText": (_EDITED_TEXT,),
        "sendMessageDraft": (
            TextRule("text", "parse_mode", "entities", 4096, "Message is too long"),
        ),
        **dict.fromkeys(
            (
                *("sendPhoto", "sendLivePhoto", "sendAudio", "sendDocument", "sendVideo"),
                *("sendAnimation", "sendVoice", "sendPaidMedia", "copyMessage"),
                *("editMessageCaption", "editEphemeralMessageCaption"),
            ),
            (_CAPTION,),
        ),
        "postStory": (_STORY_CAPTION,),
        "editStory": (_STORY_CAPTION,),
        "sendGift": (TextRule("text", "text_parse_mode", "text_entities"),),
        "giftPremiumSubscription": (TextRule("text", "text_parse_mode", "text_entities"),),
        "answerCallbackQuery": (TextRule("text", "", "", 200, "MESSAGE_TOO_LONG"),),
        "sendPoll": (
            TextRule(
                "question",
                "question_parse_mode",
                "question_entities",
                300,
                "Poll question length must not exceed 300",
                empty="Text must be non-empty",
            ),
            TextRule("explanation", "explanation_parse_mode", "explanation_entities"),
            TextRule("description", "description_parse_mode", "description_entities"),
        ),
    }
)


def check(call: Call) -> None:
    """Let pass what Telegram may accept.

    Raises telegram.error.BadRequest, which names the limit and where it is passed, for the rest.
    """
    params = call.params
    for rule in _TEXTS.get(call.method, ()):
        check_text(rule, params)
    if "reply_markup" in params:
        check_keyboard(_json(params["reply_markup"]))
    if "quote" in params.get("reply_parameters", ""):
        match _json(params["reply_parameters"]):
            case dict(reply):
                check_text(_QUOTE, reply, "reply_parameters")
            case _:
                pass
    inner = _INNER.get(call.method)
    if inner is not None:
        name, look = inner
        if name in params:
            look(_json(params[name]))


def _json(text: str) -> object:
    """What a form field holds; None for what is no JSON, of which Telegram will tell."""
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    return found


def _check_album(media: object) -> None:
    if not isinstance(media, list):
        return
    if not media:
        raise refusal("There are no messages to send", "an album takes 2 to 10 items")
    if len(media) > _ALBUM_ITEMS_MAX:
        why = f"{len(media)} items, {_ALBUM_ITEMS_MAX} are allowed"
        raise refusal("Too many messages to send as an album", why)
    kinds = [item.get("type") for item in media if isinstance(item, dict)]
    for kind in ("audio", "document"):
        if kind in kinds and set(kinds) != {kind}:
            odd = next(at for at, other in enumerate(kinds) if other != kinds[0])
            place = f"media[{odd}] is of another type than those before it"
            raise refusal(f"{kind.capitalize()} can't be mixed with other media types", place)
    if "animation" in kinds:
        place = f"media[{kinds.index('animation')}]"
        raise refusal(
            "Can't parse InputMedia: type \"animation\" can't be used in sendMediaGroup", place
        )
    _check_captions(media)


def _check_captions(media: Sequence[object]) -> None:
    for place, item in _objects(media, "media"):
        check_text(_CAPTION, item, place)


def _check_media(media: object) -> None:
    if isinstance(media, dict):
        check_text(_CAPTION, media, "media")


def _check_paid_media(media: object) -> None:
    if isinstance(media, list) and not 1 <= len(media) <= _ALBUM_ITEMS_MAX:
        why = f"{len(media)} items, 1 to {_ALBUM_ITEMS_MAX} are allowed"
        raise refusal("Invalid number of paid media specified", why)


def _check_options(options: object) -> None:
    if not isinstance(options, list):
        return
    if not options:
        raise refusal("Poll must have at least one answer option", "options is empty")
    if len(options) > _POLL_OPTIONS_MAX:
        why = f"{len(options)} are given"
        raise refusal(f"Poll can't have more than {_POLL_OPTIONS_MAX} options", why)
    for at, option in enumerate(options):
        given = {"text": option} if isinstance(option, str) else option
        if isinstance(given, dict):
            check_text(_OPTION, given, f"options[{at}]")


def _check_results(results: object) -> None:
    if not isinstance(results, list):
        return
    if len(results) > _RESULTS_MAX:
        why = f"{len(results)} are given, {_RESULTS_MAX} are allowed"
        raise refusal("Too many inline query results specified", why)
    for place, result in _objects(results, "results"):
        _check_result(result, place)


def _check_result(result: object, place: str = "result") -> None:
    if not isinstance(result, dict):
        return
    if "caption" in result:
        check_text(_CAPTION, result, place)
    content = result.get("input_message_content")
    if isinstance(content, dict) and "message_text" in content:
        check_text(_INLINE_TEXT, content, f"{place}.input_message_content")
    if "reply_markup" in result:
        check_keyboard(result["reply_markup"], f"{place}.reply_markup")


def _check_ids(ids: object) -> None:
    if not isinstance(ids, list):
        return
    if not ids:
        raise refusal("Message identifiers are not specified", f"1 to {_IDS_MAX} are allowed")
    if len(ids) > _IDS_MAX:
        why = f"{len(ids)} are given, {_IDS_MAX} are allowed"
        raise refusal("Too many message identifiers specified", why)


def _objects(given: Sequence[object], name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for at, item in enumerate(given):
        if isinstance(item, dict):
            yield f"{name}[{at}]", item


_INNER: Final[Mapping[str, tuple[str, Callable[[object], None]]]] = MappingProxyType(
    {
        "sendMediaGroup": ("media", _check_album),
        "editMessageMedia": ("media", _check_media),
        "editEphemeralMessageMedia": ("media", _check_media),
        "sendPaidMedia": ("media", _check_paid_media),
        "sendPoll": ("options", _check_options),
        "answerInlineQuery": ("results", _check_results),
        "savePreparedInlineMessage": ("result", _check_result),
        "answerWebAppQuery": ("result", _check_result),
        "answerGuestQuery": ("result", _check_result),
        **dict.fromkeys(
            ("copyMessages", "forwardMessages", "deleteMessages", "deleteBusinessMessages"),
            ("message_ids", _check_ids),
        ),
    }
)
