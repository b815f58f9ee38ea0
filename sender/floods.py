"""Decide how much of a bot a flood stops, since Telegram does not say which limit was hit.

Pure: time comes in as an argument, milliseconds of any clock that never steps back. What is certain
is that the chat that was refused waits the whole time (after an edit: the edits in that chat). What
the rest of the bot does is our policy, `flood_scope`, published in sender/README.md.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from sender.policy import Wait
from sender.verdict import FloodHint
from storage.cooldowns import BOT_SCOPE
from storage.outgoing import CallKind

FloodScope = Literal["adaptive", "bot", "chat"]

BREATH_MS_MAX = 5_000
"""What one chat's flood costs the whole bot, in the adaptive form: a breath."""

SECOND_FLOOD_MS = 10_000
"""Floods of two chats within this time are taken for a flood of the whole bot."""

_EDITS_PREFIX = "edits:"


@dataclass(frozen=True, slots=True)
class ScopedWait:
    """A wait, counted from now, for one scope; `reason` tells what it was inferred from."""

    scope: str
    wait_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class _Flood:
    lane: str
    at_ms: int
    until_ms: int


def edits_scope(lane: str) -> str:
    """Name the scope of the edits in a chat."""
    return f"{_EDITS_PREFIX}{lane}"


def scopes_of(lane: str, kind: CallKind) -> tuple[str, ...]:
    """The scopes whose waits a call has to keep."""
    if kind is CallKind.EDIT:
        return (BOT_SCOPE, lane, edits_scope(lane))
    return (BOT_SCOPE, lane)


def cooling_until_ms(cooling: Mapping[str, int], lane: str, kind: CallKind) -> int:
    """Until when the waits of its scopes hold a call back; zero when none does."""
    return max(cooling.get(scope, 0) for scope in scopes_of(lane, kind))


class FloodBook:
    """The floods of one bot in the last seconds, and what a new one means."""

    def __init__(self, policy: FloodScope) -> None:
        self._policy = policy
        self._lately: deque[_Flood] = deque()

    def remember(self, lane: str, *, at_ms: int, until_ms: int) -> None:
        """Note a flood that was met before this process began, oldest first."""
        self._lately.append(_Flood(lane, at_ms, until_ms))

    def judge(self, wait: Wait, lane: str, now_ms: int) -> Sequence[ScopedWait]:
        """Say who has to wait, and how long, after `lane` met a flood."""
        if wait.hint is FloodHint.EDITS:
            certain = ScopedWait(edits_scope(lane), wait.wait_ms, f"{wait.cause} of an edit")
        else:
            certain = ScopedWait(lane, wait.wait_ms, f"{wait.cause} of the chat")
        match self._policy:
            case "chat":
                return (certain,)
            case "bot":
                whole = ScopedWait(BOT_SCOPE, wait.wait_ms, "every flood stops the bot")
                return (certain, whole)
            case "adaptive":
                if wait.hint is FloodHint.EDITS:
                    return (certain,)
                return (certain, self._inferred(wait, lane, now_ms))
            case _:
                assert_never(self._policy)

    def _inferred(self, wait: Wait, lane: str, now_ms: int) -> ScopedWait:
        while self._lately and self._lately[0].at_ms <= now_ms - SECOND_FLOOD_MS:
            self._lately.popleft()
        until_ms = now_ms + wait.wait_ms
        others = [flood.until_ms for flood in self._lately if flood.lane != lane]
        self._lately.append(_Flood(lane, now_ms, until_ms))
        if others:
            longest_ms = max(until_ms, *others) - now_ms
            return ScopedWait(BOT_SCOPE, longest_ms, "floods of two chats")
        return ScopedWait(BOT_SCOPE, min(wait.wait_ms, BREATH_MS_MAX), "a breath after a flood")
