"""Whether Telegram would take an inline keyboard, as far as it shows without asking.

Pure. What makes a button is Telegram's to say: a kind that is newer than we are is let through.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from bot.turns.text_checks import refusal

CALLBACK_BYTES_MAX: Final = 64
# A button with no more than these and no address or data is one of text only.
_TEXT_ONLY: Final = frozenset({"text", "style", "icon_custom_emoji_id", "url", "callback_data"})
_CANT_PARSE: Final = "Can't parse inline keyboard button"


def check_keyboard(markup: object, place: str = "reply_markup") -> None:
    """Let pass a reply markup that Telegram may accept.

    Raises BadRequest, which names the button, for the rest.
    """
    # A reply keyboard goes before an inline one (telegram-bot-api, `get_reply_markup`).
    if not isinstance(markup, dict) or markup.get("keyboard"):
        return
    rows = markup.get("inline_keyboard")
    if not isinstance(rows, list):
        return
    for at, row in enumerate(rows):
        if not isinstance(row, list):
            words = 'Field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
            raise refusal(words, f"{place}.inline_keyboard[{at}]")
    for where, button in _buttons(rows, place):
        _check_button(button, where)


def _buttons(rows: list[list[object]], place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for down, row in enumerate(rows):
        for across, button in enumerate(row):
            where = f"{place}.inline_keyboard[{down}][{across}]"
            if not isinstance(button, dict):
                raise refusal(f"{_CANT_PARSE}: InlineKeyboardButton must be an Object", where)
            yield where, button


def _check_button(button: Mapping[str, Any], where: str) -> None:
    if button.get("text") == "":
        raise refusal("Inline keyboard button text must be non-empty", where)
    if button.get("url"):
        return
    data = button.get("callback_data")
    if not data:
        if button.keys() <= _TEXT_ONLY:
            words = f"{_CANT_PARSE}: Text buttons are unallowed in the inline keyboard"
            raise refusal(words, f"{where} has neither callback_data nor anything else to do")
    elif isinstance(data, str):
        size = len(data.encode("utf-8", "surrogatepass"))
        if size > CALLBACK_BYTES_MAX:
            why = f"callback_data has {size} bytes, {CALLBACK_BYTES_MAX} are allowed; {where}"
            raise refusal("BUTTON_DATA_INVALID", why)
