"""The methods that the simulator knows, by their names in lower case: Telegram ignores case."""

from tests.simulator.methods import Cost, Method
from tests.simulator.methods_answers import answer_callback_query
from tests.simulator.methods_chats import get_chat, get_me, send_chat_action
from tests.simulator.methods_messages import (
    delete_message,
    edit_message_reply_markup,
    edit_message_text,
    send_message,
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
        Method("getUpdates", Cost.READ, get_updates),
        Method("getWebhookInfo", Cost.READ, get_webhook_info),
        Method("setWebhook", Cost.FREE, set_webhook),
        Method("deleteWebhook", Cost.FREE, delete_webhook),
        Method("answerCallbackQuery", Cost.FREE, answer_callback_query),
        Method("sendChatAction", Cost.BOT, send_chat_action),
        Method("sendMessage", Cost.CHAT, send_message),
        Method("editMessageText", Cost.CHAT, edit_message_text),
        Method("editMessageReplyMarkup", Cost.CHAT, edit_message_reply_markup),
        Method("deleteMessage", Cost.CHAT, delete_message),
    )
}
