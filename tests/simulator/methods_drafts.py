"""sendMessageDraft: a text that is being written before somebody's eyes.

Private chats only; it lasts 30 s or until a message is sent, and its person may stop it.
"""

from tests.simulator.access import place_to_write
from tests.simulator.forms import bug
from tests.simulator.message_parts import TEXT_MAX, formatted
from tests.simulator.methods import Call, Result
from tests.simulator.wire import bad_request


def send_message_draft(call: Call) -> Result:
    """Show what has been written so far."""
    args = call.args
    draft_id = args.integer("draft_id")
    if draft_id == 0:
        raise bug("draft_id must be non-zero")
    content = formatted(args.text("text"), args.text("parse_mode"), args.items("entities") or [])
    if len(content.text) > TEXT_MAX:
        raise bad_request("message is too long")
    place = place_to_write(call.state, call.bot, args)
    if place.is_group:
        raise bad_request("PEER_ID_INVALID")
    call.state.drafts[call.bot.id, place.chat_id, draft_id] = content.text
    call.state.tell("draft", call.bot.id, place.chat_id, draft_id=draft_id, text=content.text)
    return Result()
