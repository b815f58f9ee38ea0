"""Answers to queries: once for each, while Telegram still waits for it (telegram.md §2.6)."""

from tests.simulator.forms import bug
from tests.simulator.methods import Call, Result
from tests.simulator.state import Query
from tests.simulator.wire import JsonObject, bad_request

TEXT_MAX = 200
RESULTS_MAX = 50
OFFSET_BYTES_MAX = 64


def answer_callback_query(call: Call) -> Result:
    """Stop the button's spinner, with a word if there is one."""
    args = call.args
    query = _waiting(call, "callback_query")
    if len(args.text("text")) > TEXT_MAX:
        raise bad_request("MESSAGE_TOO_LONG")
    return _answer(call, query, {"text": args.text("text"), "show_alert": args.flag("show_alert")})


def answer_inline_query(call: Call) -> Result:
    """Offer results to whoever writes in the bot's name."""
    args = call.args
    query = _waiting(call, "inline_query")
    results = args.items("results") or []
    if len(results) > RESULTS_MAX:
        raise bad_request("RESULTS_TOO_MUCH")
    if len(args.text("next_offset").encode()) > OFFSET_BYTES_MAX:
        raise bad_request("NEXT_OFFSET_INVALID")
    ids = [each.get("id") for each in results if isinstance(each, dict)]
    if len(ids) != len(results) or not all(isinstance(each, str) for each in ids):
        raise bug("can't parse InlineQueryResult: expected an Object with an id")
    if len(set(ids)) != len(ids):
        raise bad_request("RESULT_ID_DUPLICATE")
    return _answer(call, query, {"results": ids})


def answer_pre_checkout_query(call: Call) -> Result:
    """Say whether an order can be paid."""
    return _confirm(call, "pre_checkout_query")


def answer_shipping_query(call: Call) -> Result:
    """Say whether an order can be shipped."""
    return _confirm(call, "shipping_query")


def _confirm(call: Call, kind: str) -> Result:
    args = call.args
    query = _waiting(call, kind)
    if not args.flag("ok") and not args.text("error_message"):
        raise bug('parameter "error_message" is required when ok is false')
    return _answer(call, query, {"ok": args.flag("ok"), "text": args.text("error_message")})


def _waiting(call: Call, kind: str) -> Query:
    query = call.state.queries.get(call.args.text(f"{kind}_id"))
    is_theirs = query is not None and (query.bot_id, query.kind) == (call.bot.id, kind)
    if query is None or not is_theirs or not query.waits(call.state.clock.now_ms()):
        raise bad_request("query is too old and response timeout expired or query ID is invalid")
    return query


def _answer(call: Call, query: Query, answer: JsonObject) -> Result:
    query.answer = answer
    call.state.tell(
        "answered",
        call.bot.id,
        query.chat_id,
        callback_query_id=query.id,
        user_id=query.user_id,
        message_id=query.message_id,
        **answer,
    )
    return Result()
