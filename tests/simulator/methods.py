"""What every method of the Bot API is made of: a call, its result, and what it counts against."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.simulator.faults import HalfAlbum
from tests.simulator.forms import Args
from tests.simulator.state import Bot, State
from tests.simulator.wire import Refused, Waiting


@dataclass(frozen=True, slots=True)
class Call:
    """One call whose form has been read."""

    state: State
    bot: Bot
    args: Args
    files: Mapping[str, bytes]
    # Planned for this call: one of its messages fails, or its message has no number yet.
    half: HalfAlbum | None = None
    unnumbered: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """What a method gives back when it was carried out."""

    value: object = True
    description: str | None = None
    message_id: int | None = None
    # How many messages it left, and the one error that hides them.
    left: int = 0
    hidden_by: Refused | None = None
    # A long poll found nothing and may go on waiting.
    waiting: Waiting | None = None


class Cost(Enum):
    """Which limits a method counts against (telegram.md §2.1, §6)."""

    READ = "read"  # nothing, and it leaves no effect that could be doubted
    FREE = "free"  # nothing, though it changes something: answers to queries, settings
    BOT = "bot"  # the bot's whole rate alone: chat actions
    CHAT = "chat"  # chat, group and bot: edits, deletes, marks
    SEND = "send"  # the same, and slow mode: new messages


Handler = Callable[[Call], Result]


def one(_: Args) -> int:
    """A call is one message."""
    return 1


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the Bot API."""

    name: str
    cost: Cost
    handle: Handler
    # How many messages a call stands for: an album is as many as its items (telegram.md §2.4).
    count: Callable[[Args], int] = one

    @property
    def is_multiple(self) -> bool:
        """Whether one call may leave several messages, so that its errors tell which."""
        return self.count is not one
