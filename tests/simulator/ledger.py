"""The truth about what really happened, told by Telegram's side; append-only.

Every call that arrived, every message it left, every update made and each attempt to deliver it.
Checkers compare this with what the product's database believes. Pure; times are the model's.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar, assert_never

from tests.simulator.wire import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One call as it arrived, and what became of it."""

    at_ms: int
    bot_id: int | None
    method: str
    chat_id: int | None
    is_group: bool
    # The form as sent, each value as text; files as `name (n bytes)`.
    params: Mapping[str, str]
    # It counts against the limits and passed them.
    charged: bool
    # It changed something at Telegram.
    effect: bool
    # What was answered; None when the caller got no answer at all.
    code: int | None
    description: str
    message_id: int | None
    fault: str | None
    # How much of a running flood wait was left when it arrived, and when that wait was ordered.
    early_by_ms: int
    flood_ordered_at_ms: int | None
    client_bug: str | None
    # How many messages it counts for, and how many it really left.
    items: int = 1
    messages_left: int = 0
    # What it has cost, in tenths of a Star.
    paid_tenths: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A message that a bot left in a chat."""

    at_ms: int
    bot_id: int
    chat_id: int
    message_id: int
    # What it says: its text or caption, or else what it shows.
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMade:
    """An update that waits for its bot."""

    at_ms: int
    bot_id: int
    update_id: int
    kind: str
    queue: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One attempt to post an update to a webhook, or one handing-out by getUpdates."""

    at_ms: int
    ended_at_ms: int
    bot_id: int
    update_id: int
    attempt: int
    # None when no complete answer came.
    status: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateEnded:
    """An update left the queue: `acknowledged`, `confirmed`, `expired`, `dropped`, `overflowed`."""

    at_ms: int
    bot_id: int
    update_id: int
    end: str


Entry = Arrival | Accepted | UpdateMade | Delivery | UpdateEnded
EntryT = TypeVar("EntryT", Arrival, Accepted, UpdateMade, Delivery, UpdateEnded)

_KINDS: dict[str, type[Entry]] = {
    kind.__name__: kind for kind in (Arrival, Accepted, UpdateMade, Delivery, UpdateEnded)
}
_FIELDS = {kind: tuple(field.name for field in fields(kind)) for kind in _KINDS.values()}


class Excess(NamedTuple):
    """Most calls seen in any window of `width_ms`; `chat_id` None stands for the whole bot."""

    bot_id: int
    chat_id: int | None
    width_ms: int
    calls: int


class Ledger:
    """All entries in the order they happened, and the questions that checkers ask."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.entries: list[Entry] = []
        # Whoever waits for a condition asks at every event: these answer without a search.
        self._by_method: defaultdict[str, list[Arrival]] = defaultdict(list)
        self._by_chat: defaultdict[tuple[int, int], list[Accepted]] = defaultdict(list)
        self._by_update: defaultdict[tuple[int, int], list[Delivery]] = defaultdict(list)
        self._ends: defaultdict[int, dict[int, str]] = defaultdict(dict)
        for entry in entries:
            self.append(entry)

    def append(self, entry: Entry) -> None:
        """Write one more line."""
        self.entries.append(entry)
        match entry:
            case Arrival():
                self._by_method[entry.method].append(entry)
            case Accepted():
                self._by_chat[entry.bot_id, entry.chat_id].append(entry)
            case Delivery():
                self._by_update[entry.bot_id, entry.update_id].append(entry)
            case UpdateEnded():
                self._ends[entry.bot_id][entry.update_id] = entry.end
            case UpdateMade():
                pass
            case _:
                assert_never(entry)

    def of(self, kind: type[EntryT]) -> Iterator[EntryT]:
        """All entries of one kind, in order."""
        return (entry for entry in self.entries if isinstance(entry, kind))

    def arrivals(self, method: str | None = None, chat_id: int | None = None) -> list[Arrival]:
        """Calls that arrived, by method and chat when given."""
        found = self.of(Arrival) if method is None else self._by_method[method]
        return [entry for entry in found if chat_id in (None, entry.chat_id)]

    def messages(self, bot_id: int, chat_id: int) -> list[Accepted]:
        """What the bot left in one chat, in the order in which Telegram took it."""
        return list(self._by_chat[bot_id, chat_id])

    def doubled(self) -> dict[tuple[int, int, str], int]:
        """Texts that a bot left more than once in one chat, with how often."""
        counts = Counter((m.bot_id, m.chat_id, m.text) for m in self.of(Accepted))
        return {key: count for key, count in counts.items() if count > 1}

    def early(self, grace_ms: int = 0) -> list[Arrival]:
        """Calls that arrived while a flood wait held their scope back.

        `grace_ms` forgives calls that were already on their way when the wait was ordered.
        """
        return [
            a
            for a in self.of(Arrival)
            if a.flood_ordered_at_ms is not None and a.at_ms > a.flood_ordered_at_ms + grace_ms
        ]

    def client_bugs(self) -> list[Arrival]:
        """Calls that no correct client makes: unknown, missing or malformed parameters."""
        return [a for a in self.of(Arrival) if a.client_bug is not None]

    def deliveries(self, bot_id: int, update_id: int) -> list[Delivery]:
        """Every attempt to hand over one update."""
        return list(self._by_update[bot_id, update_id])

    def end_of(self, bot_id: int, update_id: int) -> str | None:
        """How one update left the queue; None while it waits."""
        return self._ends[bot_id].get(update_id)

    def ends(self, bot_id: int) -> dict[int, str]:
        """How each update of a bot left the queue."""
        return dict(self._ends[bot_id])

    def chat_maxima(self, width_ms: int) -> list[Excess]:
        """Most admitted messages and edits in any sliding window, for each chat."""
        return self._maxima(width_ms, lambda a: a.chat_id is not None, by_chat=True)

    def group_maxima(self, width_ms: int) -> list[Excess]:
        """Most admitted calls in any sliding window, for each group."""
        return self._maxima(width_ms, lambda a: a.is_group, by_chat=True)

    def bot_maxima(self, width_ms: int) -> list[Excess]:
        """Most admitted calls in any sliding window, for each bot; what was paid for is free."""
        return self._maxima(width_ms, lambda _: True, by_chat=False)

    def export(self) -> list[JsonObject]:
        """All entries as JSON objects; `entry` names the class."""
        # Field by field: `asdict` copies deeply, and whoever serves a big ledger is held up by it.
        return [
            {name: getattr(entry, name) for name in _FIELDS[type(entry)]}
            | {"entry": type(entry).__name__}
            for entry in self.entries
        ]

    @classmethod
    def revive(cls, exported: Iterable[Mapping[str, object]]) -> "Ledger":
        """Read an export back, so that a test can ask its questions on its own side."""
        return cls(_revive(line) for line in exported)

    def _maxima(
        self, width_ms: int, wanted: Callable[[Arrival], bool], *, by_chat: bool
    ) -> list[Excess]:
        moments: defaultdict[tuple[int, int | None], list[int]] = defaultdict(list)
        for a in self.of(Arrival):
            if a.charged and a.bot_id is not None and wanted(a):
                items = a.items if by_chat else a.items - a.paid_tenths
                moments[a.bot_id, a.chat_id if by_chat else None] += [a.at_ms] * items
        return [
            Excess(bot_id, chat_id, width_ms, most_within(times, width_ms))
            for (bot_id, chat_id), times in sorted(moments.items(), key=str)
        ]


def most_within(moments_ms: list[int], width_ms: int) -> int:
    """The largest number of moments in any half-open window of that width."""
    most = first = 0
    ordered = sorted(moments_ms)
    for last, moment_ms in enumerate(ordered):
        while ordered[first] <= moment_ms - width_ms:
            first += 1
        most = max(most, last - first + 1)
    return most


def _revive(line: Mapping[str, object]) -> Entry:
    kind = _KINDS[str(line["entry"])]
    # The exporter wrote these very fields; a missing one is a fault of ours and raises.
    values = {name: line[name] for name in _FIELDS[kind]}
    return kind(**values)  # type: ignore[arg-type]  # JSON carries no types to check against
