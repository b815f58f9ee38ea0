"""Leave a message in a chat: what every method that sends does in the end.

The message gets its number, stands in the chat and in the ledger, and whoever looks on is told.
"""

from dataclasses import dataclass, field

from tests.simulator.access import Place, place_to_write
from tests.simulator.chats import Message
from tests.simulator.entities import Formatted
from tests.simulator.keyboards import Keyboard, read_markup
from tests.simulator.ledger import Accepted
from tests.simulator.message_parts import Reply, fields_in, reply_in
from tests.simulator.methods import Call, Result
from tests.simulator.wire import JsonObject

_NOTHING = Formatted("")


@dataclass(frozen=True, slots=True)
class Draft:
    """A message before it is sent. `shows` is what it is besides words: a photo, a poll.

    `said` stands for it in the ledger when it has no words.
    """

    content: Formatted = _NOTHING
    is_caption: bool = False
    keyboard: Keyboard = ()
    reply: Reply = field(default_factory=Reply)
    shows: JsonObject = field(default_factory=dict)
    said: str = ""


def send(call: Call, shows: JsonObject, said: str, caption: Formatted | None = None) -> Result:
    """Send what is no plain text, with the keyboard and the reply in the parameters.

    `caption`: the words under it, for what may have some.
    """
    args = call.args
    keyboard = read_markup(args.mapping("reply_markup"), inline_only=False)
    place = place_to_write(call.state, call.bot, args)
    reply = reply_in(args, place)
    fields = {**fields_in(args), **shows}
    draft = Draft(caption or _NOTHING, caption is not None, keyboard, reply, fields, said)
    return told(call, leave(call, place, draft))


def leave(call: Call, place: Place, draft: Draft) -> Message:
    """Put the message into the chat."""
    state, bot = call.state, call.bot
    shows = dict(draft.shows)
    if draft.reply.quote is not None:
        shows["quote"] = draft.reply.quote
    message = place.conversation.keep(
        Message(
            message_id=state.next_message_id(None if place.is_group else bot, place.conversation),
            date_s=state.now_s(),
            chat=place.shown,
            sender=bot.to_json(),
            content=draft.content,
            is_caption=draft.is_caption,
            keyboard=draft.keyboard,
            reply_to=draft.reply.message,
            bot_id=bot.id,
            extra=shows,
        )
    )
    state.ledger.append(
        Accepted(
            at_ms=state.clock.now_ms(),
            bot_id=bot.id,
            chat_id=place.chat_id,
            message_id=number_told(call, message),
            text=draft.content.text or draft.said,
        )
    )
    for key in [key for key in state.drafts if key[:2] == (bot.id, place.chat_id)]:
        # What was being written is replaced by what was sent.
        del state.drafts[key]
    state.show("message", bot.id, place.chat_id, message)
    return message


def number_told(call: Call, message: Message) -> int:
    """The number that the bot is told; 0 for a message that the server has only scheduled."""
    return 0 if call.unnumbered else message.message_id


def told(call: Call, message: Message) -> Result:
    """The answer to a call that left one message."""
    number = number_told(call, message)
    return Result({**message.to_json(), "message_id": number}, message_id=number, left=1)
