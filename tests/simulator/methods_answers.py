"""answerCallbackQuery: once for each press, while Telegram still waits for it."""

from tests.simulator.methods import Call, Result
from tests.simulator.wire import bad_request

TEXT_MAX = 200


def answer_callback_query(call: Call) -> Result:
    """Stop the button's spinner, with a word if there is one."""
    state, args = call.state, call.args
    query = state.queries.get(args.text("callback_query_id"))
    if query is None or query.bot_id != call.bot.id or not query.waits(state.clock.now_ms()):
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    if len(args.text("text")) > TEXT_MAX:
        raise bad_request("MESSAGE_TOO_LONG")
    query.answer = {"text": args.text("text"), "show_alert": args.flag("show_alert")}
    state.tell(
        "answered",
        call.bot.id,
        query.chat_id,
        callback_query_id=query.id,
        user_id=query.user_id,
        message_id=query.message_id,
        **query.answer,
    )
    return Result()
