"""What a test may wait for: each condition tells whether it is met, and what was seen. Pure."""

from collections.abc import Callable, Mapping

from tests.simulator.model import Telegram
from tests.simulator.wire import JsonObject

Seen = tuple[bool, JsonObject]
Terms = Mapping[str, object]


def _messages(telegram: Telegram, terms: Terms) -> Seen:
    bot_id, chat_id, count = (_number(terms, name) for name in ("bot", "chat", "count"))
    seen = len(telegram.ledger.messages(bot_id, chat_id))
    return seen >= count, {"messages": seen}


def _arrivals(telegram: Telegram, terms: Terms) -> Seen:
    chat = terms.get("chat")
    arrivals = telegram.ledger.arrivals(
        str(terms["method"]), chat if isinstance(chat, int) else None
    )
    return len(arrivals) >= _number(terms, "count"), {"arrivals": len(arrivals)}


def _end(telegram: Telegram, terms: Terms) -> Seen:
    end = telegram.ledger.end_of(_number(terms, "bot"), _number(terms, "update_id"))
    return end is not None, {"end": end}


def _deliveries(telegram: Telegram, terms: Terms) -> Seen:
    bot_id, update_id, count = (_number(terms, name) for name in ("bot", "update_id", "count"))
    seen = len(telegram.ledger.deliveries(bot_id, update_id))
    return seen >= count, {"deliveries": seen}


def _idle(telegram: Telegram, terms: Terms) -> Seen:
    bot = telegram.state.bots[_number(terms, "bot")]
    telegram.state.sweep(bot)
    pending = len(bot.deliverer.pending)
    return pending == 0, {"pending": pending}


def _answered(telegram: Telegram, terms: Terms) -> Seen:
    query = telegram.state.queries[str(terms["callback_query_id"])]
    return query.answer is not None, dict(query.answer or {})


def _number(terms: Terms, name: str) -> int:
    value = terms[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} is a number")
    return value


CONDITIONS: Mapping[str, Callable[[Telegram, Terms], Seen]] = {
    "messages": _messages,
    "arrivals": _arrivals,
    "end": _end,
    "deliveries": _deliveries,
    "idle": _idle,
    "answered": _answered,
}
