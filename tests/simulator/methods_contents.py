"""Messages that are no text and no file: polls, dice, places, contacts.

Sources: telegram.md §3.3 ff. for what is refused; Bot API 10.2 for the rest.
"""

from tests.simulator.access import place_to_read
from tests.simulator.forms import bug
from tests.simulator.leaving import send
from tests.simulator.message_parts import message_id_in
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject, bad_request

QUESTION_MAX, OPTION_MAX = 300, 100
OPTIONS_MAX = 12
_DICE = {"🎲": 6, "🎯": 6, "🎳": 6, "🏀": 5, "⚽": 5, "🎰": 64}


def send_poll(call: Call) -> Result:
    """Ask everybody in the chat."""
    args = call.args
    question = args.text("question")
    if not 0 < len(question) <= QUESTION_MAX:
        raise bad_request("poll question must be non-empty" if not question else "poll is too long")
    options = [_option(each) for each in args.items("options") or []]
    if not 0 < len(options) <= OPTIONS_MAX:
        raise bad_request("poll must have at least 1 option" if not options else "too many options")
    poll: JsonObject = {
        "id": str(call.state.dice.randint(10**17, 10**18)),
        "question": question,
        "options": options,
        "total_voter_count": 0,
        "is_closed": args.flag("is_closed"),
        "is_anonymous": not args.has("is_anonymous") or args.flag("is_anonymous"),
        "type": args.text("type", "regular"),
        "allows_revoting": not args.has("allows_revoting") or args.flag("allows_revoting"),
        "members_only": args.flag("members_only"),
        "allows_multiple_answers": args.flag("allows_multiple_answers"),
    }
    return send(call, {"poll": poll}, question)


def _option(given: object) -> JsonObject:
    text = given.get("text") if isinstance(given, dict) else None
    if not isinstance(text, str) or not 0 < len(text) <= OPTION_MAX:
        raise bug("can't parse InputPollOption: expected an Object with a text")
    return {"text": text, "voter_count": 0, "persistent_id": text}


def stop_poll(call: Call) -> Result:
    """Close a poll of the bot's own."""
    place = place_to_read(call.state, call.bot, call.args)
    message = place.conversation.find(message_id_in(call.args))
    poll = None if message is None else message.extra.get("poll")
    if message is None or not isinstance(poll, dict):
        raise bad_request("message with poll to stop not found")
    if message.bot_id != call.bot.id or poll["is_closed"]:
        raise bad_request("poll can't be stopped")
    message.extra["poll"] = {**poll, "is_closed": True}
    return Result(message.extra["poll"], message_id=message.message_id)


def send_dice(call: Call) -> Result:
    """Throw something."""
    emoji = call.args.text("emoji", "🎲")
    if emoji not in _DICE:
        raise bad_request("EMOTICON_INVALID")
    value = call.state.dice.randint(1, _DICE[emoji])
    return send(call, {"dice": {"emoji": emoji, "value": value}}, emoji)


def send_location(call: Call) -> Result:
    """Point at a place."""
    return send(call, {"location": _location(call)}, "location")


def send_venue(call: Call) -> Result:
    """Point at a place that has a name."""
    title, address = call.args.text("title"), call.args.text("address")
    venue: JsonObject = {"location": _location(call), "title": title, "address": address}
    return send(call, {"venue": venue}, title)


def _location(call: Call) -> JsonObject:
    latitude, longitude = call.args.number("latitude"), call.args.number("longitude")
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise bad_request("wrong location specified")
    return {"latitude": latitude, "longitude": longitude}


def send_contact(call: Call) -> Result:
    """Hand on somebody's number."""
    phone, name = call.args.text("phone_number"), call.args.text("first_name")
    contact: JsonObject = {"phone_number": phone, "first_name": name}
    return send(call, {"contact": contact}, phone)
