"""getMe, getChat, sendChatAction: who is who, and signs of life."""

from tests.simulator.access import place_to_read, place_to_write
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, bad_request

_ACTIONS = frozenset(
    {
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    }
)
# Fields that every `ChatFullInfo` has.
_FULL: JsonObject = {
    "accent_color_id": 0,
    "max_reaction_count": 11,
    "accepted_gift_types": {
        "unlimited_gifts": False,
        "limited_gifts": False,
        "unique_gifts": False,
        "premium_subscription": False,
        "gifts_from_channels": False,
    },
}


def get_me(call: Call) -> Result:
    """The bot about itself."""
    return Result(
        {
            **call.bot.to_json(),
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
            "can_connect_to_business": False,
            "has_main_web_app": False,
        }
    )


def get_chat(call: Call) -> Result:
    """A chat that the bot knows."""
    return Result({**place_to_read(call.state, call.bot, call.args).shown, **_FULL})


def send_chat_action(call: Call) -> Result:
    """`typing…`, for five seconds or until the next message."""
    action = call.args.text("action")
    if action not in _ACTIONS:
        raise bad_request("wrong parameter action in request")
    place = place_to_write(call.state, call.bot, call.args)
    call.state.tell("action", call.bot.id, place.chat_id, action=action)
    return Result()
