"""Make of an order the row that the sender carries out, and leave it: once for each key.

What was asked for, the configuration's terms and the moment go in; an `Outgoing` comes out, or
every problem at once with its field. Nothing here sends.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never

from bot.orders import Order, Unacceptable, unknown
from bot.parameters import Json, Problem, form_of, is_id, problems_of
from storage import outbox, reports
from storage.database import Tx
from storage.errors import FerrymanError
from storage.lifecycle import BotName, OnUncertain, OutboxId, OutboxState, Priority
from storage.methods import METHODS, NOT_DEFERRABLE, CallKind, MethodFacts, Returns, items_of
from storage.outgoing import (
    SETTINGS_LANE,
    TELEGRAM,
    Outgoing,
    channel_of,
    chat_lane,
    coalesce_key,
    digest,
    priority_for,
    query_lane,
)
from storage.reports import RowReport
from storage.settings import Settings

_PAYS: Final = "allow_paid_broadcast"
# What a service beside Telegram has for methods: `send`, `chat.postMessage`.
_METHOD_ELSEWHERE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")
# Nothing is known of another service's methods, so none may be made twice.
_ELSEWHERE: Final = MethodFacts(CallKind.SEND, idempotent=False, returns=Returns.OTHER)


def key_of(asked: str) -> str:
    """The key of the row that an order with this key has left: a producer's names its own cause."""
    return f"api:{asked}"


class KeyTaken(FerrymanError):
    """The idempotency key stands for another call already."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What the configuration says about calls that programs ask for.

    `paying` are the bots that may pay for broadcasts.
    """

    bots: Collection[str]
    paying: Collection[str]
    channels: Collection[str]
    reply_ttl_ms: int
    bulk_ttl_ms: int
    on_uncertain: OnUncertain


@dataclass(frozen=True, slots=True)
class Left:
    """The row of an order: left now, or (`fresh` is false) there already under the same key."""

    id: OutboxId
    state: OutboxState
    fresh: bool
    superseded: Sequence[OutboxId] = ()


@dataclass(frozen=True, slots=True)
class _Said:
    """What an order says on its channel: the form, whom it reaches, and what follows from both."""

    facts: MethodFacts
    form: Mapping[str, str]
    lane: str
    chat_id: int | None
    priority: Priority
    items: int = 1
    coalesce_key: str | None = None


def terms_of(settings: Settings) -> Terms:
    """The terms of this configuration."""
    delivery = settings.delivery
    return Terms(
        bots=tuple(settings.bots),
        paying=[name for name in settings.bots if settings.limits_for(name).paid_per_second],
        channels=(TELEGRAM, *settings.channels),
        reply_ttl_ms=delivery.reply_ttl_s * 1000,
        bulk_ttl_ms=delivery.broadcast_ttl_s * 1000,
        on_uncertain=delivery.on_uncertain,
    )


def outgoing_of(order: Order, terms: Terms, *, now_ms: int, key: str) -> Outgoing:
    """The row that was asked for; `key` names its cause where the order brings none.

    Raises Unacceptable with every problem.
    """
    params: dict[str, Json] = order.params  # type: ignore[assignment]  # the values came from JSON
    is_telegrams = order.channel == TELEGRAM
    said = _to_telegram(order, params, terms) if is_telegrams else _elsewhere(order, params)
    outside = [*_problems_outside(order, terms, now_ms)]
    if outside or not isinstance(said, _Said):
        raise Unacceptable([*outside, *(() if isinstance(said, _Said) else said)])
    return Outgoing(
        method=order.method,
        params=said.form,
        lane=said.lane,
        key=key if order.key is None else key_of(order.key),
        chat_id=said.chat_id,
        priority=said.priority,
        on_uncertain=_on_uncertain(order, said.facts, terms),
        expires_at_ms=_expires_at_ms(order, said, terms, now_ms),
        not_before_ms=order.not_before or 0,
        # Named within its chat, as a handler's is.
        supersede_key=None if order.supersede is None else f"{said.lane}/{order.supersede}",
        attempts_max=1 if said.facts.kind is CallKind.ACTION else None,
        channel=order.channel,
        items=said.items,
        coalesce_key=said.coalesce_key,
    )


def _problems_outside(order: Order, terms: Terms, now_ms: int) -> Iterator[Problem]:
    """What is wrong with the order, its method and parameters aside."""
    if order.bot not in terms.bots:
        yield Problem("bot", unknown("bot", order.bot, terms.bots))
    if order.channel not in terms.channels:
        yield Problem("channel", unknown("channel", order.channel, terms.channels))
    if order.expires_at is None:
        return
    if order.ttl_s is not None:
        yield Problem("ttl_s", "expected either ttl_s or expires_at, not both")
    if order.expires_at <= now_ms:
        yield Problem("expires_at", "expected a moment to come, found one that is over")
    elif order.not_before is not None and order.expires_at <= order.not_before:
        yield Problem("expires_at", "expected a moment after not_before")


def _to_telegram(
    order: Order, params: Mapping[str, Json], terms: Terms
) -> _Said | Sequence[Problem]:
    facts = METHODS.get(order.method)
    if facts is None:
        return [Problem("method", _no_method(order.method))]
    paid = {_PAYS: True} if order.priority == "paid" else {}
    form = form_of({**paid, **params})
    priority = priority_for(form, Priority(order.priority))
    problems = [*problems_of(order.method, facts, params)]
    if priority is Priority.PAID:
        is_off = order.bot in terms.bots and order.bot not in terms.paying
        problems += _paid_problems(order, facts, is_off=is_off)
    elif order.priority == "paid":
        told = "expected true, or nothing, in a call of class paid"
        problems.append(Problem(f"params.{_PAYS}", told))
    if problems:
        return problems
    lane = _lane(facts, form)
    return _Said(
        facts=facts,
        form=form,
        lane=lane,
        chat_id=_number(form.get("chat_id")),
        priority=priority,
        items=items_of(order.method, form),
        coalesce_key=coalesce_key(order.method, form, lane),
    )


def _no_method(method: str) -> str:
    reason = NOT_DEFERRABLE.get(method)
    if reason is not None:
        return f"{method} can't be left for later: {reason}"
    told = unknown("method", method, METHODS)
    return told if "did you mean" in told else f"{told}; expected one of the Bot API's"


def _paid_problems(order: Order, facts: MethodFacts, *, is_off: bool) -> Iterator[Problem]:
    """A call is paid for only where its method can be, and where anything is."""
    if not facts.may_be_paid:
        why = f"{order.method} can't be paid for"
    elif is_off:
        why = "paid broadcasts of this bot are off (limits.paid_per_second is 0)"
    else:
        return
    if order.priority == "paid":
        yield Problem("class", f"expected interactive or bulk: {why}")
    else:
        yield Problem(f"params.{_PAYS}", f"expected none: {why}")


def _lane(facts: MethodFacts, form: Mapping[str, str]) -> str:
    if facts.query is not None:
        return query_lane(form[facts.query])
    chat = form.get("chat_id")
    if chat is not None:
        return chat_lane(chat, form.get("business_connection_id"))
    inline = form.get("inline_message_id")
    return SETTINGS_LANE if inline is None else f"i:{inline}"


def _elsewhere(order: Order, params: Mapping[str, Json]) -> _Said | Sequence[Problem]:
    """A call of a service beside Telegram: every parameter is JSON, `chat_id` names its lane."""
    chat = params.get("chat_id")
    problems = []
    if not _METHOD_ELSEWHERE.fullmatch(order.method):
        problems.append(Problem("method", "expected a name such as send or chat.postMessage"))
    if isinstance(chat, bool) or not isinstance(chat, str | int) or not is_id(str(chat)):
        problems.append(Problem("params.chat_id", "expected the chat: a string or an integer"))
    if order.priority == "paid":
        problems.append(Problem("class", "expected interactive or bulk: only Telegram is paid"))
    if problems:
        return problems
    return _Said(
        facts=_ELSEWHERE,
        form={name: json.dumps(value) for name, value in sorted(params.items())},
        lane=chat_lane(str(chat), channel=order.channel),
        chat_id=None,
        priority=Priority(order.priority),
    )


def _on_uncertain(order: Order, facts: MethodFacts, terms: Terms) -> OnUncertain:
    if order.on_uncertain is not None:
        return OnUncertain(order.on_uncertain)
    if facts.kind is CallKind.ACTION:
        return OnUncertain.DROP
    return OnUncertain.RESEND if facts.idempotent else terms.on_uncertain


def _expires_at_ms(order: Order, said: _Said, terms: Terms, now_ms: int) -> int | None:
    """When it is not worth making any more, counted from when it may first be made."""
    if order.expires_at is not None:
        return order.expires_at
    from_ms = max(now_ms, order.not_before or 0)
    if order.ttl_s is not None:
        return from_ms + int(order.ttl_s * 1000)
    if said.facts.window_ms is not None:
        return from_ms + said.facts.window_ms
    match said.facts.kind:
        case CallKind.SEND | CallKind.EDIT | CallKind.MARK | CallKind.ANSWER | CallKind.ACTION:
            is_reply = said.priority is Priority.INTERACTIVE
            return from_ms + (terms.reply_ttl_ms if is_reply else terms.bulk_ttl_ms)
        case CallKind.DELETE | CallKind.MANAGE:
            # Not to be seen now is not to be seen later either; a setting holds until changed.
            return None
        case _:
            assert_never(said.facts.kind)


def _number(text: str | None) -> int | None:
    return None if text is None or text.startswith("@") else int(text)


def leave(tx: Tx, order: Order, outgoing: Outgoing) -> Left:
    """Put the row into the outbox; under a key that stands for the same call already, find it.

    Raises KeyTaken when the key stands for another call.
    """
    bot = BotName(order.bot)
    known = tx.row("outbox.by_key", {"bot": bot, "key": outgoing.key})
    if known is not None:
        row = reports.show(tx, OutboxId(known["id"]))
        assert row is not None, "it was found in this transaction"
        if differing := [*_differences(row, order, outgoing)]:
            raise KeyTaken(
                f"this key stands for call {row.id} already, and that one differs in "
                f"{', '.join(differing)}: send the same call again, or take another key"
            )
        return Left(row.id, row.state, fresh=False)
    left = outbox.enqueue(tx, bot, outgoing)
    return Left(left.id, OutboxState.QUEUED, fresh=True, superseded=left.superseded)


def _differences(row: RowReport, order: Order, outgoing: Outgoing) -> Iterator[str]:
    """In what an order differs from the row under its key, as far as the order itself says."""
    if row.method != outgoing.method:
        yield "method"
    elif row.digest != digest(outgoing.method, outgoing.params):
        yield "params"
    if channel_of(row.lane) != outgoing.channel:
        yield "channel"
    if row.priority != outgoing.priority:
        yield "class"
    if row.supersede_key != outgoing.supersede_key:
        yield "supersede"
    if order.on_uncertain is not None and row.on_uncertain != order.on_uncertain:
        yield "on_uncertain"
    if order.not_before is not None and row.not_before_ms != order.not_before:
        yield "not_before"
    if order.expires_at is not None and row.expires_at_ms != order.expires_at:
        yield "expires_at"
