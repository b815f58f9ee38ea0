"""Methods that send files: sendPhoto and its like, and sendMediaGroup.

An album is one call and one message for each item. When Telegram drops one of them the others stay,
and the bot is told of the one alone: which messages there are it never learns (telegram.md §4.4).
"""

from typing import TypeVar

from tests.simulator.access import Place, place_to_write
from tests.simulator.broken_answers import item_failed
from tests.simulator.chats import Message
from tests.simulator.forms import Args, bug
from tests.simulator.leaving import Draft, leave, number_told, send
from tests.simulator.media import check_album, file_in, media_in
from tests.simulator.message_parts import caption_in, fields_in, reply_in
from tests.simulator.methods import Call, Handler, Result
from tests.simulator.wire import JsonObject, Refused, bad_request

T = TypeVar("T")

ALBUM_MIN, ALBUM_MAX = 2, 10
_WORDLESS = frozenset({"sticker", "video_note"})


def sender_of(kind: str) -> Handler:
    """The method that sends one file of this kind."""

    def send_file(call: Call) -> Result:
        caption = None if kind in _WORDLESS else caption_in(call.args)
        shows, said = file_in(kind, call)
        return send(call, shows, said, caption)

    return send_file


def album_size(args: Args) -> int:
    """How many messages an album is."""
    return max(1, len(args.items("media") or []))


def send_media_group(call: Call) -> Result:
    """Send an album."""
    given = call.args.items("media") or []
    if len(given) < ALBUM_MIN:
        raise bug("an album has at least two items")
    if len(given) > ALBUM_MAX:
        raise bad_request("too many messages to send as an album")
    media = [media_in(each, call) for each in given]
    check_album(media)
    place = place_reached(call)
    reply = reply_in(call.args, place)
    group = str(call.state.dice.randint(10**16, 10**17))
    shows = {**fields_in(call.args), "media_group_id": group}
    drafts = [
        Draft(
            each.caption,
            is_caption=True,
            reply=reply,
            shows={**shows, **each.shows},
            said=each.said,
        )
        for each in media
    ]
    left = [leave(call, place, draft) for draft in whole_or_half(call, drafts)]
    return told_all(call, left, [message.to_json() for message in left])


def place_reached(call: Call) -> Place:
    """The chat of a call of many; what only Telegram knows of it is told inside the error."""
    try:
        return place_to_write(call.state, call.bot, call.args)
    except Refused as refused:
        if refused.inner:
            raise Refused(refused.code, item_failed(1, refused.inner)) from None
        raise


def whole_or_half(call: Call, drafts: list[T]) -> list[T]:
    """What of several messages is really sent."""
    if call.half is None:
        return drafts
    return [draft for number, draft in enumerate(drafts, start=1) if number != call.half.item]


def told_all(call: Call, left: list[Message], shown: list[JsonObject]) -> Result:
    """The answer to a call that left several messages, or the one error that hides them."""
    numbers = [number_told(call, message) for message in left]
    hidden_by = None
    if call.half is not None:
        hidden_by = Refused(call.half.code, item_failed(call.half.item, call.half.inner))
    return Result(
        [{**each, "message_id": number} for each, number in zip(shown, numbers, strict=True)],
        message_id=numbers[0] if numbers else None,
        left=len(left),
        hidden_by=hidden_by,
    )
