"""Planned misbehaviour of Telegram: which call goes wrong, how, and how often.

A fault is a value; the plan decides which call it meets, by bot, method, chat and count, or by
seeded chance. Pure: chance comes in through the constructor.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Literal, TypeAlias

from tests.simulator.wire import JsonObject


class Acceptance(StrEnum):
    """On which side of Telegram's acceptance a call is lost."""

    BEFORE = "before"  # read whole, never carried out
    AFTER = "after"  # carried out, the answer is lost


@dataclass(frozen=True, slots=True)
class Flood:
    """A 429 that starts a real wait: whoever comes before it has ended prolongs it."""

    retry_after_s: int
    scope: Literal["chat", "bot"] = "chat"


@dataclass(frozen=True, slots=True)
class BareFlood:
    """A 429 without a usable wait."""

    form: Literal["absent", "zero", "negative", "bool", "string", "huge"]


@dataclass(frozen=True, slots=True)
class HiddenFlood:
    """A flood inside a 400, its wait in the text alone; as real as any other."""

    retry_after_s: int


@dataclass(frozen=True, slots=True)
class Hold:
    """Telegram absorbs a short flood itself: success, but late (up to 8 s in reality)."""

    ms: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection closes without an answer."""

    acceptance: Acceptance
    reset: bool = False


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer comes until the simulator's silences are released."""

    acceptance: Acceptance


@dataclass(frozen=True, slots=True)
class ServerError:
    """A 500 in JSON; `restart` is what pending sends get when a bot's session closes."""

    acceptance: Acceptance
    description: str = "Internal Server Error: restart"


@dataclass(frozen=True, slots=True)
class Gateway:
    """The front end's own HTML page instead of an answer."""

    acceptance: Acceptance
    status: int = 502


@dataclass(frozen=True, slots=True)
class Truncated:
    """Carried out, but the answer breaks off: in the JSON, or short of its announced length."""

    short_of_length: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Any other refusal, word for word; nothing is carried out."""

    code: int
    description: str
    parameters: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class SiblingFlood:
    """A flood of a chat whose queued sends fail with it: all that comes within so long a time.

    They are told the same wait and do not prolong it (telegram.md §2.3).
    """

    retry_after_s: int
    within_ms: int = 1_000


@dataclass(frozen=True, slots=True)
class Guard:
    """The Bot API server's own guard: 60 s, told after a pause; nothing went on to Telegram."""


@dataclass(frozen=True, slots=True)
class Exhausted:
    """The server tried by itself for seconds and gave up: 8 for a lost link, 1 for a busy worker.

    The wait begins when it is told, after `EXHAUSTED_MS`; nothing was carried out.
    """

    retry_after_s: Literal[1, 8] = 8


@dataclass(frozen=True, slots=True)
class HalfAlbum:
    """One message of several is not sent; the others are, and the answer is one error for all.

    `item` counts from 1; `inner` is Telegram's own text, which nobody rewrites inside the error.
    A call of a single message is refused with `inner` as it stands.
    """

    item: int = 1
    inner: str = "Message was not sent"
    code: int = 400


@dataclass(frozen=True, slots=True)
class Unnumbered:
    """Carried out, but its message has no number yet: a video that the server has scheduled."""


# Nothing is carried out, and the call is told so.
Refusing: TypeAlias = Flood | BareFlood | HiddenFlood | SiblingFlood | Guard | Exhausted | Refusal
# Something goes wrong on the way there, inside, or on the way back.
Losing: TypeAlias = Hold | Cut | Hang | ServerError | Gateway | Truncated | HalfAlbum | Unnumbered
Fault: TypeAlias = Refusing | Losing

_KINDS: dict[str, type[Fault]] = {
    kind.__name__: kind
    for kind in (
        Flood,
        BareFlood,
        HiddenFlood,
        Hold,
        Cut,
        Hang,
        ServerError,
        Gateway,
        Truncated,
        Refusal,
        SiblingFlood,
        Guard,
        Exhausted,
        HalfAlbum,
        Unnumbered,
    )
}
GUARD_S, GUARD_MS = 60, 3_000
EXHAUSTED_MS = {8: 7_000, 1: 8_000}
# What changes a chat: the calls whose faults matter, and which chance may meet.
CHANGING = frozenset(
    {
        *("sendMessage", "sendPhoto", "sendAudio", "sendDocument", "sendVideo", "sendAnimation"),
        *("sendVoice", "sendVideoNote", "sendSticker", "sendMediaGroup", "sendLocation"),
        *("sendVenue", "sendContact", "sendPoll", "sendDice", "copyMessage", "copyMessages"),
        *("forwardMessage", "forwardMessages", "editMessageText", "editMessageCaption"),
        *("editMessageMedia", "editMessageReplyMarkup", "deleteMessage", "deleteMessages"),
        *("pinChatMessage", "unpinChatMessage", "setMessageReaction", "stopPoll"),
    }
)


def to_json(fault: Fault) -> JsonObject:
    """Write a fault for the control interface."""
    return {"kind": type(fault).__name__, **asdict(fault)}


def from_json(written: Mapping[str, object]) -> Fault:
    """Read it back; raises KeyError, TypeError or ValueError when it is none."""
    kind = _KINDS[str(written["kind"])]
    values = {name: value for name, value in written.items() if name != "kind"}
    if unknown := set(values) - {each.name for each in fields(kind)}:
        raise ValueError(f"{kind.__name__} has no {', '.join(sorted(unknown))}")
    if "acceptance" in values:
        values["acceptance"] = Acceptance(str(values["acceptance"]))
    return kind(**values)  # type: ignore[arg-type]  # JSON carries no types to check against


@dataclass(slots=True, kw_only=True)
class Rule:
    """One line of the plan; None matches everything."""

    fault: Fault
    method: str | None = None
    bot_id: int | None = None
    chat_id: int | None = None
    # A part of the call's text, to hit one message among many.
    contains: str | None = None
    # Let this many matching calls pass first.
    skip: int = 0
    # Then hit this many; None: every one.
    times: int | None = 1

    def meets(self, call: "Target") -> bool:
        """Say whether this rule is about that call."""
        return (
            (self.method is None or self.method.lower() == call.method.lower())
            and self.bot_id in (None, call.bot_id)
            and self.chat_id in (None, call.chat_id)
            and (self.contains is None or self.contains in call.text)
        )


@dataclass(frozen=True, slots=True)
class Target:
    """What the plan may know of a call."""

    bot_id: int
    method: str
    chat_id: int | None
    text: str


@dataclass(frozen=True, slots=True)
class Chances:
    """Faults by seeded chance: each call draws once; the probabilities add up to at most 1."""

    draw: Callable[[], float]
    table: tuple[tuple[float, Fault], ...]
    # Everything else is spared unless it is named here.
    methods: frozenset[str] = CHANGING


class FaultPlan:
    """The plan in force."""

    def __init__(self, chances: Chances | None = None) -> None:
        self.chances = chances
        self._rules: list[Rule] = []

    def add(self, rule: Rule) -> None:
        """Put one more rule at the end; the first that meets a call decides."""
        self._rules.append(rule)

    def next(
        self, method: str | None, fault: Fault, *, chat_id: int | None = None, times: int = 1
    ) -> None:
        """Let the next call of `method` (in that chat) meet `fault`."""
        self.add(Rule(fault=fault, method=method, chat_id=chat_id, times=times))

    def clear(self) -> None:
        """Heal everything."""
        self._rules.clear()
        self.chances = None

    @property
    def pending(self) -> int:
        """How many rules have not been used up."""
        return len(self._rules)

    def take(self, call: Target) -> Fault | None:
        """The fault that this call meets, if any; uses it up."""
        for rule in self._rules:
            if not rule.meets(call):
                continue
            if rule.skip > 0:
                rule.skip -= 1
                continue
            if rule.times is not None:
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
            return rule.fault
        return self._by_chance(call)

    def _by_chance(self, call: Target) -> Fault | None:
        if self.chances is None or call.method not in self.chances.methods:
            return None
        drawn = self.chances.draw()
        for probability, fault in self.chances.table:
            if drawn < probability:
                return fault
            drawn -= probability
        return None
