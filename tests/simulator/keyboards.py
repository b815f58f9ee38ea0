"""Reply markup: what Telegram accepts as a keyboard, and what it says to the rest. Pure."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from tests.simulator.forms import bug
from tests.simulator.wire import JsonObject, bad_request

CALLBACK_DATA_BYTES_MAX = 64

# What makes a button do something; each button has exactly one of them.
_ACTIONS = frozenset(
    {
        "url",
        "callback_data",
        "web_app",
        "login_url",
        "switch_inline_query",
        "switch_inline_query_current_chat",
        "switch_inline_query_chosen_chat",
        "copy_text",
        "callback_game",
        "pay",
    }
)
_LOOKS = frozenset({"text", "icon_custom_emoji_id", "style"})
_OTHER_MARKUP = ("keyboard", "remove_keyboard", "force_reply")

Keyboard = tuple[tuple[JsonObject, ...], ...]


def read_markup(markup: JsonObject | None, *, inline_only: bool) -> Keyboard:
    """The inline keyboard of a `reply_markup`, empty when it holds none; raises Refused."""
    if markup is None:
        return ()
    if "inline_keyboard" not in markup:
        if inline_only or not any(name in markup for name in _OTHER_MARKUP):
            raise bug("object expected as reply markup")
        return ()
    rows = markup["inline_keyboard"]
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise bug('field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays')
    return tuple(tuple(_button(button) for button in row) for row in rows if row)


def _button(button: object) -> JsonObject:
    if not isinstance(button, dict):
        raise bug("can't parse inline keyboard button: expected an Object")
    # Where a string is asked for, Telegram's server takes a number too (td:JsonBuilder.cpp,
    # `get_json_object_string_field`).
    button = {name: str(value) if type(value) is int else value for name, value in button.items()}
    if not isinstance(button.get("text"), str) or not button["text"]:
        raise bug("can't parse inline keyboard button: Can't find field \"text\"")
    if unknown := set(button) - _ACTIONS - _LOOKS:
        raise bug(f"can't parse inline keyboard button: unknown field {min(unknown)}")
    actions = set(button) & _ACTIONS
    if len(actions) != 1:
        raise bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    _check_action(button)
    return button


def _check_action(button: Mapping[str, object]) -> None:
    data = button.get("callback_data")
    if "callback_data" in button and not (
        isinstance(data, str) and 1 <= len(data.encode()) <= CALLBACK_DATA_BYTES_MAX
    ):
        raise bad_request("BUTTON_DATA_INVALID")
    url = button.get("url")
    if "url" in button and not (
        isinstance(url, str) and urlsplit(url).scheme in ("http", "https", "tg", "tel", "ton")
    ):
        raise bad_request("BUTTON_URL_INVALID")
