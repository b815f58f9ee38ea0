"""The methods that the simulator knows, by their names in lower case: Telegram ignores case."""

from tests.simulator.media import get_file, upload_sticker_file
from tests.simulator.methods import Cost, Method
from tests.simulator.methods_answers import (
    answer_callback_query,
    answer_inline_query,
    answer_pre_checkout_query,
    answer_shipping_query,
)
from tests.simulator.methods_chats import get_chat, get_me, send_chat_action
from tests.simulator.methods_commands import (
    delete_my_commands,
    get_my_commands,
    set_my_commands,
)
from tests.simulator.methods_contents import (
    send_contact,
    send_dice,
    send_location,
    send_poll,
    send_venue,
    stop_poll,
)
from tests.simulator.methods_copies import (
    copy_message,
    copy_messages,
    forward_message,
    forward_messages,
    ids_count,
)
from tests.simulator.methods_drafts import send_message_draft
from tests.simulator.methods_marks import (
    pin_chat_message,
    set_message_reaction,
    unpin_all_chat_messages,
    unpin_chat_message,
)
from tests.simulator.methods_media import album_size, send_media_group, sender_of
from tests.simulator.methods_messages import (
    delete_message,
    delete_messages,
    edit_message_caption,
    edit_message_media,
    edit_message_reply_markup,
    edit_message_text,
    send_message,
)
from tests.simulator.methods_payments import create_invoice_link, send_invoice
from tests.simulator.methods_rooms import (
    create_chat_invite_link,
    create_forum_topic,
    export_chat_invite_link,
    revoke_chat_invite_link,
)
from tests.simulator.methods_updates import (
    delete_webhook,
    get_updates,
    get_webhook_info,
    set_webhook,
)

METHODS: dict[str, Method] = {
    method.name.lower(): method
    for method in (
        Method("getMe", Cost.READ, get_me),
        Method("getChat", Cost.READ, get_chat),
        Method("getFile", Cost.READ, get_file),
        Method("getUpdates", Cost.READ, get_updates),
        Method("getWebhookInfo", Cost.READ, get_webhook_info),
        Method("setWebhook", Cost.FREE, set_webhook),
        Method("deleteWebhook", Cost.FREE, delete_webhook),
        Method("setMyCommands", Cost.FREE, set_my_commands),
        Method("getMyCommands", Cost.READ, get_my_commands),
        Method("deleteMyCommands", Cost.FREE, delete_my_commands),
        Method("answerCallbackQuery", Cost.FREE, answer_callback_query),
        Method("answerInlineQuery", Cost.FREE, answer_inline_query),
        Method("answerPreCheckoutQuery", Cost.FREE, answer_pre_checkout_query),
        Method("answerShippingQuery", Cost.FREE, answer_shipping_query),
        Method("sendChatAction", Cost.BOT, send_chat_action),
        Method("sendMessageDraft", Cost.BOT, send_message_draft),
        Method("sendMessage", Cost.SEND, send_message),
        Method("sendPhoto", Cost.SEND, sender_of("photo")),
        Method("sendAudio", Cost.SEND, sender_of("audio")),
        Method("sendDocument", Cost.SEND, sender_of("document")),
        Method("sendVideo", Cost.SEND, sender_of("video")),
        Method("sendAnimation", Cost.SEND, sender_of("animation")),
        Method("sendVoice", Cost.SEND, sender_of("voice")),
        Method("sendVideoNote", Cost.SEND, sender_of("video_note")),
        Method("sendSticker", Cost.SEND, sender_of("sticker")),
        Method("sendMediaGroup", Cost.SEND, send_media_group, album_size),
        Method("sendLocation", Cost.SEND, send_location),
        Method("sendVenue", Cost.SEND, send_venue),
        Method("sendContact", Cost.SEND, send_contact),
        Method("sendInvoice", Cost.SEND, send_invoice),
        Method("sendPoll", Cost.SEND, send_poll),
        Method("sendDice", Cost.SEND, send_dice),
        Method("copyMessage", Cost.SEND, copy_message),
        Method("copyMessages", Cost.SEND, copy_messages, ids_count),
        Method("forwardMessage", Cost.SEND, forward_message),
        Method("forwardMessages", Cost.SEND, forward_messages, ids_count),
        Method("editMessageText", Cost.CHAT, edit_message_text),
        Method("editMessageCaption", Cost.CHAT, edit_message_caption),
        Method("editMessageMedia", Cost.CHAT, edit_message_media),
        Method("editMessageReplyMarkup", Cost.CHAT, edit_message_reply_markup),
        Method("deleteMessage", Cost.CHAT, delete_message),
        Method("deleteMessages", Cost.CHAT, delete_messages),
        Method("stopPoll", Cost.CHAT, stop_poll),
        Method("createInvoiceLink", Cost.FREE, create_invoice_link),
        Method("uploadStickerFile", Cost.FREE, upload_sticker_file),
        Method("createForumTopic", Cost.CHAT, create_forum_topic),
        Method("exportChatInviteLink", Cost.CHAT, export_chat_invite_link),
        Method("createChatInviteLink", Cost.CHAT, create_chat_invite_link),
        Method("revokeChatInviteLink", Cost.CHAT, revoke_chat_invite_link),
        Method("pinChatMessage", Cost.CHAT, pin_chat_message),
        Method("unpinChatMessage", Cost.CHAT, unpin_chat_message),
        Method("unpinAllChatMessages", Cost.CHAT, unpin_all_chat_messages),
        Method("setMessageReaction", Cost.CHAT, set_message_reaction),
    )
}
