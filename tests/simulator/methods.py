"""What every method of the Bot API is made of: a call, its result, and what it counts against."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tests.simulator.forms import Args
from tests.simulator.state import Bot, State
from tests.simulator.wire import Waiting


@dataclass(frozen=True, slots=True)
class Call:
    """One call whose form has been read."""

    state: State
    bot: Bot
    args: Args
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Result:
    """What a method gives back when it was carried out."""

    value: object = True
    description: str | None = None
    message_id: int | None = None
    # A long poll found nothing and may go on waiting.
    waiting: Waiting | None = None


class Cost(Enum):
    """Which limits a method counts against (telegram.md §2.1, §6)."""

    READ = "read"  # nothing, and it leaves no effect that could be doubted
    FREE = "free"  # nothing, though it changes something: answers to queries, settings
    BOT = "bot"  # the bot's whole rate alone: chat actions
    CHAT = "chat"  # chat, group and bot: sends, edits, deletes


Handler = Callable[[Call], Result]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the Bot API."""

    name: str
    cost: Cost
    handle: Handler
