"""Copies and forwards of messages, one or many.

Of many those that are gone, or can't be taken along, are passed over without a word; the answer is
then shorter than the question (telegram.md §4.4).
"""

from dataclasses import dataclass

from tests.simulator.access import Place, chat_id_in, place_to_read
from tests.simulator.chats import Message
from tests.simulator.forms import Args, bug
from tests.simulator.keyboards import read_markup
from tests.simulator.leaving import Draft, leave, number_told, told
from tests.simulator.media import KINDS
from tests.simulator.message_parts import caption_in, fields_in, message_id_in, reply_in
from tests.simulator.methods import Call, Result
from tests.simulator.methods_media import place_reached, told_all, whole_or_half
from tests.simulator.methods_messages import ids_in
from tests.simulator.wire import JsonObject, bad_request

_CONTENTS = frozenset({*KINDS, "poll", "dice", "location", "venue", "contact"})


@dataclass(frozen=True, slots=True)
class _Source:
    """Where messages are taken from, seen by the bot."""

    place: Place

    def message(self, message_id: int) -> Message | None:
        """A message that can be taken along; service messages can't."""
        found = self.place.conversation.find(message_id)
        if found is None or not (found.content.text or _CONTENTS & set(found.extra)):
            return None
        return found


def forward_message(call: Call) -> Result:
    """Pass a message on, with the name of whoever wrote it."""
    message_id = message_id_in(call.args)
    source = _source(call)
    place = place_reached(call)
    found = source.message(message_id)
    if found is None:
        raise bad_request("message to forward not found")
    if found.extra.get("has_protected_content"):
        raise bad_request("message has protected content and can't be forwarded")
    return told(call, leave(call, place, _forward(call, found)))


def copy_message(call: Call) -> Result:
    """Say the same again in the bot's own name; a caption may be another one."""
    args = call.args
    message_id = message_id_in(args)
    caption = caption_in(args) if args.has("caption") else None
    keyboard = read_markup(args.mapping("reply_markup"), inline_only=False)
    source = _source(call)
    place = place_reached(call)
    reply = reply_in(args, place)
    found = source.message(message_id)
    if found is None or found.extra.get("has_protected_content"):
        raise bad_request("message to copy not found")
    content = caption if found.is_caption and caption is not None else found.content
    shows = {**fields_in(args), **_contents(found)}
    draft = Draft(content, found.is_caption, keyboard, reply, shows, _said(found))
    number = number_told(call, leave(call, place, draft))
    return Result({"message_id": number}, message_id=number, left=1)


def forward_messages(call: Call) -> Result:
    """Pass several messages on."""
    return _many(call, is_forward=True)


def copy_messages(call: Call) -> Result:
    """Say several messages again."""
    return _many(call, is_forward=False)


def ids_count(args: Args) -> int:
    """How many messages a call of many stands for."""
    return max(1, len(args.items("message_ids") or []))


def _many(call: Call, *, is_forward: bool) -> Result:
    asked = ids_in(call)
    if asked != sorted(set(asked)):
        raise bug("message identifiers must be in a strictly increasing order")
    source = _source(call)
    place = place_reached(call)
    kept = [each for each in map(source.message, asked) if each is not None]
    found = [each for each in kept if not each.extra.get("has_protected_content")]
    if not found:
        raise bad_request(
            "messages to forward not found" if is_forward else "messages to copy not found"
        )
    made = [_forward(call, each) if is_forward else _copy(call, each) for each in found]
    left = [leave(call, place, draft) for draft in whole_or_half(call, made)]
    return told_all(call, left, [{} for _ in left])


def _source(call: Call) -> _Source:
    """The chat that messages are taken from; raises Refused when the bot can't see it."""
    args = call.args
    taken_from = Args({"chat_id": args.text("from_chat_id")}, {"chat_id": _id(call)})
    return _Source(place_to_read(call.state, call.bot, taken_from))


def _id(call: Call) -> object:
    written = call.args.text("from_chat_id")
    named = Args({"chat_id": written}, {})
    return chat_id_in(call.state, named) if written.startswith("@") else int(written)


def _forward(call: Call, found: Message) -> Draft:
    origin: JsonObject = {"type": "user", "date": found.date_s, "sender_user": found.sender}
    shows = {**fields_in(call.args), **_contents(found), "forward_origin": origin}
    return Draft(found.content, found.is_caption, shows=shows, said=_said(found))


def _copy(call: Call, found: Message) -> Draft:
    content = Draft().content if call.args.flag("remove_caption") else found.content
    content = content if found.is_caption else found.content
    shows = {**fields_in(call.args), **_contents(found)}
    return Draft(content, found.is_caption, shows=shows, said=_said(found))


def _contents(found: Message) -> JsonObject:
    return {name: value for name, value in found.extra.items() if name in _CONTENTS}


def _said(found: Message) -> str:
    """What stands for a message without words."""
    return next(iter(_contents(found)), "")
