"""The limits, held against the moments at which calls arrived at Telegram.

One pass over the arrivals of each window, in the judge's own time. An album counts its items. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storage.methods import METHODS
from storage.options import Limits
from tests.simulation.history import Call, Row

SECOND_MS, MINUTE_MS = 1_000, 60_000
_CHAT_KINDS = frozenset({"send", "edit", "delete"})


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came in at a moment, and how many messages it carried."""

    at_ms: int
    items: int
    call: Call


def beyond_window(arrived: Sequence[Arrived], most: int, width_ms: int) -> Iterator[Arrived]:
    """Each arrival with which a half-open window of this width holds more than it may."""
    first = held = 0
    for one in arrived:
        held += one.items
        while arrived[first].at_ms <= one.at_ms - width_ms:
            held -= arrived[first].items
            first += 1
        if held > max(most, one.items):
            yield one


def beyond_rate(arrived: Sequence[Arrived], limits: Limits) -> Iterator[Arrived]:
    """Each arrival before which a chat was given more than `burst + rate x T` in some T."""
    interval_ms = SECOND_MS / limits.chat_per_second
    spread_ms = float("-inf")
    for one in arrived:
        if one.at_ms < spread_ms - (limits.chat_burst - 1) * interval_ms:
            yield one
        spread_ms = max(spread_ms, one.at_ms) + interval_ms * one.items


def kind_of(row: Row) -> str:
    """What a row's call does to its chat."""
    facts = METHODS.get(row.method)
    return "send" if facts is None else str(facts.kind)


def excesses(calls: Sequence[Call], limits: Limits) -> Iterator[str]:
    """Every breach of a limit by what one bot's calls have done."""
    came = sorted(
        (
            Arrived(call.arrived_ms, call.row.items, call)
            for call in calls
            if call.arrived_ms is not None and call.row is not None
        ),
        key=lambda one: one.at_ms,
    )
    chats: dict[str, list[Arrived]] = {}
    for one in came:
        row = one.call.row
        assert row is not None
        if kind_of(row) in _CHAT_KINDS:
            chats.setdefault(one.call.lane, []).append(one)
    for one in beyond_window(came, int(limits.bot_per_second), SECOND_MS):
        yield f"call {one.call.number} is one too many in a second of {one.call.bot}"
    bulk = [one for one in came if one.call.row is not None and one.call.row.priority == "bulk"]
    for one in beyond_window(bulk, int(limits.bulk_per_second), SECOND_MS):
        yield f"call {one.call.number} is one bulk message too many in a second"
    for lane, there in chats.items():
        for one in beyond_rate(there, limits):
            yield f"call {one.call.number} came too soon for the chat {lane}"
        if there[0].call.row is not None and (there[0].call.row.chat_id or 0) < 0:
            for one in beyond_window(there, limits.group_per_minute, MINUTE_MS):
                yield f"call {one.call.number} is one too many in a minute of {lane}"
