"""Guards: an application's own word on whether a row may still go, asked at its claim.

A guard is a callable that the configuration names (`delivery.guard`). It runs inside the claim's
transaction on the database's thread, so it must be quick and may not wait for anything; how long it
takes is measured. One that raises, or answers what it may not, lets nothing go and loses nothing:
the row is put off.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from storage.claims import OutboxItem
from storage.clock import Clock
from storage.errors import ConfigurationError, Fault
from storage.lifecycle import BotName, OutboxId, Priority

PUT_OFF_MS = 30_000
"""How long a row waits after its guard has failed."""

SLOW_MS = 20
"""A guard that takes longer holds up every other writer: it is told of."""

KEY = "delivery.guard"


@dataclass(frozen=True, slots=True)
class Intent:
    """What a guard is told of a row. `params` hold users' words; never log them.

    Times are UTC milliseconds. `attempts` were spent before.
    """

    bot: BotName
    outbox_id: OutboxId
    chat_id: int | None
    lane: str
    method: str
    params: Mapping[str, str] = field(hash=False)
    key: str
    priority: Priority
    created_at_ms: int
    caused_at_ms: int | None
    attempts: int


Guard = Callable[[Intent], str | None]
"""Gives None to let a row go, or the reason why it is cancelled.

The reason is logged and shown: it must hold nobody's words.
"""


@dataclass(frozen=True, slots=True)
class Word:
    """What a guard has said. `objection`: why the row is cancelled; `failure`: why nobody knows."""

    objection: str = ""
    failure: str = ""
    took_ms: int = 0


def ask(guard: Guard, item: OutboxItem, clock: Clock) -> Word:
    """Ask a guard about a row."""
    began_ms = clock.monotonic_ms()
    intent = Intent(
        bot=item.bot,
        outbox_id=item.id,
        chat_id=item.chat_id,
        lane=item.lane,
        method=item.method,
        params=item.params,
        key=item.key,
        priority=item.priority,
        created_at_ms=item.created_at_ms,
        caused_at_ms=item.caused_at_ms,
        attempts=item.attempts,
    )
    objection = failure = ""
    said: object = None
    try:
        said = guard(intent)
    except Exception as error:  # noqa: BLE001 - whatever a guard raises, its row waits, unsent
        failure = f"the guard raised {type(error).__name__}"
    if isinstance(said, str) and said:
        objection = said
    elif said is not None:
        # A coroutine, say, of a guard that was written to be awaited.
        failure = f"the guard gave {type(said).__name__}, not a reason or None"
    return Word(objection, failure, clock.monotonic_ms() - began_ms)


def load_guard(named: str) -> Guard | None:
    """The callable behind "module:callable"; None when no guard is configured.

    Raises ConfigurationError when there is none. What goes wrong inside the module comes through as
    it is: it is the author's to see.
    """
    if not named:
        return None
    module_name, _, path = named.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise _fault(f"expected an importable module, found none named {error.name}") from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise _fault(f"expected a callable in {module_name}, found none named {path}")
    return found


def _fault(expected: str) -> ConfigurationError:
    return ConfigurationError([Fault(KEY, "configuration", expected)])
