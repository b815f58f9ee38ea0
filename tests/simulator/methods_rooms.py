"""Topics of a forum and links into a chat. What a bot may do as an administrator is not asked.

Sources: Bot API 10.2; telegram.md §3.4 for what is refused.
"""

from tests.simulator.access import Place, place_to_write
from tests.simulator.chats import Message
from tests.simulator.forms import bug
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, bad_request

TOPIC_NAME_MAX = 128
LINK_NAME_MAX = 32
_BLUE = 0x6FB9F0
_COLOURS = frozenset({_BLUE, 0xFFD67E, 0xCB86DB, 0x8EEE98, 0xFF93B2, 0xFB6F5F})


def create_forum_topic(call: Call) -> Result:
    """Open a topic; it is called by the number of the message that tells of it."""
    args = call.args
    name, colour = args.text("name"), args.integer("icon_color", _BLUE)
    place = place_to_write(call.state, call.bot, args)
    if place.chat is None or not place.chat.is_forum:
        raise bad_request("the chat is not a forum")
    if not 0 < len(name) <= TOPIC_NAME_MAX:
        raise bad_request("TOPIC_TITLE_EMPTY" if not name else "TOPIC_TITLE_TOO_LONG")
    if colour not in _COLOURS:
        raise bug("icon_color is none of the six")
    topic: JsonObject = {"name": name, "icon_color": colour}
    message_id = call.state.next_message_id(None, place.conversation)
    opened: JsonObject = {"forum_topic_created": topic, "message_thread_id": message_id}
    place.conversation.keep(
        Message(
            message_id=message_id,
            date_s=call.state.now_s(),
            chat=place.shown,
            sender=call.bot.to_json(),
            bot_id=call.bot.id,
            extra=opened,
        )
    )
    return Result({"message_thread_id": message_id, **topic})


def export_chat_invite_link(call: Call) -> Result:
    """Make the bot's own link anew; the one before it lets nobody in any more."""
    place = _group(call)
    for link in _links(call, place).values():
        link["is_revoked"] = bool(link["is_revoked"]) or bool(link["is_primary"])
    return Result(_new_link(call, place, is_primary=True)["invite_link"])


def create_chat_invite_link(call: Call) -> Result:
    """Make one more link."""
    args = call.args
    if len(args.text("name")) > LINK_NAME_MAX:
        raise bug(f"a link's name has at most {LINK_NAME_MAX} characters")
    if args.has("member_limit") and args.flag("creates_join_request"):
        raise bad_request(
            "member limit can't be specified for links requiring administrator approval"
        )
    link = _new_link(call, _group(call), is_primary=False)
    link |= {
        name: value
        for name, value in (
            ("name", args.text("name")),
            ("expire_date", args.integer("expire_date")),
            ("member_limit", args.integer("member_limit")),
        )
        if value
    }
    link["creates_join_request"] = args.flag("creates_join_request")
    return Result(dict(link))


def revoke_chat_invite_link(call: Call) -> Result:
    """Let nobody in by this link any more."""
    link = _links(call, _group(call)).get(call.args.text("invite_link"))
    if link is None:
        raise bad_request("INVITE_HASH_EXPIRED")
    link["is_revoked"] = True
    return Result(dict(link))


def _group(call: Call) -> Place:
    place = place_to_write(call.state, call.bot, call.args)
    if place.chat is None:
        raise bad_request("can't access the chat")
    return place


def _links(call: Call, place: Place) -> dict[str, JsonObject]:
    """The bot's own links into a chat."""
    return call.state.links.setdefault((call.bot.id, place.chat_id), {})


def _new_link(call: Call, place: Place, *, is_primary: bool) -> JsonObject:
    address = f"https://t.me/+{call.state.dice.getrandbits(64):016x}"
    link: JsonObject = {
        "invite_link": address,
        "creator": call.bot.to_json(),
        "creates_join_request": False,
        "is_primary": is_primary,
        "is_revoked": False,
    }
    _links(call, place)[address] = link
    return link
