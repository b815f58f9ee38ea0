"""Decide how much of a bot a flood stops, since Telegram does not say which limit was hit.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. What is certain
is that the chat that was refused waits the whole time (after an edit: the edits in that chat; after
an answer to a query: the answers). What the rest of the bot does is our policy, `flood_scope`,
published in sender/README.md; what the other policies would have done is told along.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from sender.pacing import PacedCall
from sender.policy import Wait
from sender.verdict import FloodHint
from storage.cooldowns import ANSWERS_SCOPE, bot_scope, inferred_scope
from storage.methods import CallKind
from storage.outgoing import channel_of

FloodScope = Literal["adaptive", "bot", "chat"]

BREATH_MS_MAX = 5_000
"""What one chat's flood costs the whole bot, in the adaptive form: a breath."""

SECOND_FLOOD_MS = 10_000
"""Floods of two chats within this time are taken for a flood of the whole bot."""

ALIKE_MS = 2_000
"""Waits that are equal, or end together, within this much are taken for one."""

ALIKE_CHATS = 3
"""So many chats that wait alike at once are a flood of the whole bot, however far apart.

A bot with little to say meets a limit of its own one chat at a time, and each that asks too early
prolongs it for all: without this, a few chats could keep each other waiting for ever.
"""

_EDITS_PREFIX = "edits:"


@dataclass(frozen=True, slots=True)
class ScopedWait:
    """A wait, counted from now, for one scope; `reason` tells what it was inferred from.

    `inferred`: it is our conclusion, and not what Telegram has said.
    """

    scope: str
    wait_ms: int
    reason: str
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a flood means: who waits, and what each policy has or would have the whole bot wait.

    `involved` are the chats whose floods were looked at; `is_bot_wide` when they were taken for one
    of the whole bot.
    """

    waits: Sequence[ScopedWait]
    chosen: FloodScope
    adaptive_ms: int = 0
    bot_ms: int = 0
    chat_ms: int = 0
    involved: frozenset[str] = frozenset()
    is_bot_wide: bool = False


@dataclass(frozen=True, slots=True)
class _Flood:
    source: str
    at_ms: int
    until_ms: int

    def is_alike(self, other: "_Flood") -> bool:
        """Whether both may come from one limit: the same wait is named, or the same end."""
        own_ms, others_ms = self.until_ms - self.at_ms, other.until_ms - other.at_ms
        apart_ms = min(abs(own_ms - others_ms), abs(self.until_ms - other.until_ms))
        return apart_ms <= ALIKE_MS

    def is_lately(self, now_ms: int) -> bool:
        """Whether it was met so short a time ago that another chat's is no coincidence."""
        return self.at_ms > now_ms - SECOND_FLOOD_MS


@dataclass(frozen=True, slots=True)
class _Inferred:
    """What the adaptive policy makes of a flood."""

    wait_ms: int
    reason: str
    involved: frozenset[str] = frozenset()
    is_bot_wide: bool = False


_NOTHING = _Inferred(0, "")


def edits_scope(lane: str) -> str:
    """Name the scope of the edits in a chat."""
    return f"{_EDITS_PREFIX}{lane}"


def scopes_of(call: PacedCall) -> tuple[str, ...]:
    """The scopes whose waits a call has to keep.

    An answer to a query is counted against no chat, and a wait that was only inferred does not
    hold it; nor the canary, which is to find out about just that wait.
    """
    whole, lane = bot_scope(call.lane), call.lane
    if call.kind is CallKind.ANSWER:
        return (whole, ANSWERS_SCOPE)
    general = (whole,) if call.is_canary else (whole, inferred_scope(lane))
    if call.kind is CallKind.EDIT:
        return (*general, lane, edits_scope(lane))
    return (*general, lane)


def cooling_until_ms(cooling: Mapping[str, int], call: PacedCall) -> int:
    """Until when the waits of its scopes hold a call back; zero when none does."""
    return max(cooling.get(scope, 0) for scope in scopes_of(call))


class FloodBook:
    """The floods of one bot in the last seconds, and what a new one means."""

    def __init__(self, policy: FloodScope) -> None:
        self._policy = policy
        self._lately: deque[_Flood] = deque()

    def change(self, policy: FloodScope) -> None:
        """Follow another policy from now on."""
        self._policy = policy

    def remember(self, lane: str, *, at_ms: int, until_ms: int) -> None:
        """Note a flood that was met before this process began, oldest first."""
        self._lately.append(_Flood(lane, at_ms, until_ms))

    def judge(self, wait: Wait, call: PacedCall, now_ms: int) -> Judgement:
        """Say who has to wait, and how long, after `call` met a flood."""
        certain = _certain(wait, call)
        if wait.cause.is_chats_alone:
            return Judgement((certain,), self._policy)
        adaptive = self._inferred(wait, call, now_ms)
        return Judgement(
            waits=(certain, *self._whole(wait, call, adaptive)),
            chosen=self._policy,
            adaptive_ms=adaptive.wait_ms,
            bot_ms=wait.wait_ms,
            involved=adaptive.involved,
            is_bot_wide=adaptive.is_bot_wide,
        )

    def _whole(self, wait: Wait, call: PacedCall, adaptive: _Inferred) -> Sequence[ScopedWait]:
        """What the policy in force has the whole bot wait."""
        match self._policy:
            case "chat":
                return ()
            case "bot":
                reason = "every flood stops the bot"
                return (ScopedWait(bot_scope(call.lane), wait.wait_ms, reason),)
            case "adaptive":
                if adaptive.wait_ms == 0:
                    return ()
                scope = inferred_scope(call.lane)
                return (ScopedWait(scope, adaptive.wait_ms, adaptive.reason, inferred=True),)
            case _:
                assert_never(self._policy)

    def _inferred(self, wait: Wait, call: PacedCall, now_ms: int) -> _Inferred:
        if wait.hint is FloodHint.EDITS:
            return _NOTHING
        flood = _Flood(_source(call), now_ms, now_ms + wait.wait_ms)
        others = self._others(flood, channel_of(call.lane), now_ms)
        self._lately.append(flood)
        involved = frozenset({flood.source, *(each.source for each in others)})
        if others:
            longest_ms = max(flood.until_ms, *(each.until_ms for each in others)) - now_ms
            reason = f"floods of {len(involved)} chats"
            return _Inferred(longest_ms, reason, involved, is_bot_wide=True)
        if call.is_canary:
            reason = "the canary met a flood too"
            return _Inferred(wait.wait_ms, reason, involved, is_bot_wide=True)
        breath_ms = min(wait.wait_ms, BREATH_MS_MAX)
        return _Inferred(breath_ms, "a breath after a flood", involved)

    def _others(self, flood: _Flood, channel: str, now_ms: int) -> Sequence[_Flood]:
        """The floods of other chats which, with this one, tell of a limit of the whole bot."""
        known = [each for each in self._lately if each.is_lately(now_ms) or each.until_ms > now_ms]
        self._lately = deque(known)
        others = [
            each
            for each in known
            if each.source != flood.source and channel_of(each.source) == channel
        ]
        lately = [each for each in others if each.is_lately(now_ms)]
        if lately:
            return lately
        alike = {each.source: each for each in others if each.is_alike(flood)}
        return list(alike.values()) if len(alike) + 1 >= ALIKE_CHATS else []


def _certain(wait: Wait, call: PacedCall) -> ScopedWait:
    if call.kind is CallKind.ANSWER:
        return ScopedWait(ANSWERS_SCOPE, wait.wait_ms, f"{wait.cause} of an answer to a query")
    if wait.hint is FloodHint.EDITS:
        return ScopedWait(edits_scope(call.lane), wait.wait_ms, f"{wait.cause} of an edit")
    return ScopedWait(call.lane, wait.wait_ms, f"{wait.cause} of the chat")


def _source(call: PacedCall) -> str:
    """Who drew a flood: a chat, or the answers to queries all together."""
    return ANSWERS_SCOPE if call.kind is CallKind.ANSWER else call.lane
