"""Make one call and write down what came of it.

From a stamped row to its settlement: call, verdict, policy, one transaction. A wait that Telegram
orders holds in memory from the moment its answer is read, so that nothing of its scope leaves while
it is being written down. An answer that can't be recorded would turn into a doubt at the next
start, so a failing database is tried again for a while before the sender gives up.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sender import policy
from sender.answer import Answer, Stage
from sender.calls import Call
from sender.claiming import Taken, facts_of
from sender.memory import BotMemory
from sender.settling import Settled, Settling, keep_evidence, settle_all
from sender.telling import Told, tell_call, tell_waits
from sender.transport import Address, Transport
from sender.verdict import Sent, Verdict, classify, name_of, told
from storage.clock import Clock, Dice
from storage.database import Database, Tx
from storage.errors import LeaseLost, StorageError
from storage.failpoint import Failpoints
from storage.lifecycle import AttemptStage, BotName
from storage.outbox import AttemptEnd
from storage.telemetry import event

Item = TypeVar("Item")
T = TypeVar("T")

WRITE_TRIES_MAX = 20
WRITE_RETRY_MS = 500
"""A database that fails for longer than these tries ends the process; its work is kept on disk."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What every drain works with, shared by all bots of the process."""

    db: Database
    clock: Clock
    dice: Dice
    transport: Transport
    failpoints: Failpoints

    async def write(self, operation: str, work: Callable[[Tx], T]) -> T:
        """Run a transaction, again and again for some seconds while the database fails.

        Raises LeaseLost at once, StorageError in the end.
        """
        return await self._persist(operation, partial(self.db.write, work))

    async def join(
        self, operation: str, work: Callable[[Tx, Sequence[Item]], Sequence[T]], item: Item
    ) -> T:
        """Join a transaction that does the same for others, and persist as `write` does.

        Raises LeaseLost at once, StorageError in the end.
        """
        return await self._persist(operation, partial(self.db.join, work, item))

    async def _persist(self, operation: str, tried: Callable[[], Awaitable[T]]) -> T:
        for _ in range(WRITE_TRIES_MAX):
            try:
                return await tried()
            except StorageError as error:
                event("storage.failed", operation=operation, reason=str(error), error=error)
            await self.clock.sleep_ms(WRITE_RETRY_MS)
        return await tried()


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose calls these are, and how often a failed one is repeated."""

    bot: BotName
    address: Address
    attempts_max: int


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of a call. `is_lost`: another sender had sorted the row out already."""

    fate: policy.Fate
    is_lost: bool


class Delivery:
    """The calls of one bot, for as long as this process owns it."""

    def __init__(
        self, tools: Tools, sender: Sender, memory: BotMemory, on_answered: Callable[[], None]
    ) -> None:
        """`on_answered` is called when a call is over, before its answer is written down."""
        self._tools = tools
        self._sender = sender
        self._memory = memory
        self._on_answered = on_answered

    async def deliver(self, taken: Taken, call: Call) -> Delivered:
        """Make the call of a stamped row and settle the row by its answer."""
        clock = self._tools.clock
        began_ms = clock.boot_ms()
        answer = await self._tools.transport.call(self._sender.address, call)
        self._tools.failpoints.reach("sender.answered")
        self._note(taken, answer)
        verdict = classify(answer, call.method)
        settling = self._decide(taken, answer, verdict, duration_ms=clock.boot_ms() - began_ms)
        tell_waits(settling)
        self._on_answered()
        settled = await self._record(settling)
        self._tools.failpoints.reach("sender.settled")
        is_refusal = not isinstance(verdict, Sent)
        tell_call(Told(taken, settling, settled, is_refusal, clock.now_ms()))
        return Delivered(settling.fate, is_lost=settled is None)

    def _note(self, taken: Taken, answer: Answer) -> None:
        """Let the gates and the breaker know that the call is over."""
        memory, now_ms = self._memory, self._tools.clock.boot_ms()
        if answer.stage is Stage.UNCONNECTED:
            memory.gates.withdrew(taken.paced)
        else:
            memory.gates.ended(taken.paced, now_ms)
        if memory.breaker.note(answer):
            wait_ms = memory.breaker.open(now_ms, self._tools.dice.random())
            event(
                "sender.breaker_opened",
                bot=self._sender.bot,
                reason=answer.fault or f"status {answer.status}",
                wait_ms=wait_ms,
                failures=memory.breaker.failures,
            )

    def _decide(
        self, taken: Taken, answer: Answer, verdict: Verdict, *, duration_ms: int
    ) -> Settling:
        memory, item = self._memory, taken.claim.item
        row = facts_of(
            item,
            attempts_max=self._sender.attempts_max,
            bare_floods=memory.bare_floods(item.lane),
        )
        is_sent = isinstance(verdict, Sent)
        now_ms, jitter = self._tools.clock.now_ms(), 0.0 if is_sent else self._tools.dice.random()
        settlement = policy.decide(verdict, row, now_ms=now_ms, jitter=jitter)
        wait, fate = settlement.wait, settlement.fate
        waits = () if wait is None else memory.flooded(wait, item.lane)
        if is_sent:
            memory.got_through(item.lane)
        is_plain = isinstance(verdict, Sent) and not verdict.note
        code, description = (None, None) if is_plain else told(answer)
        end = AttemptEnd(
            stage=AttemptStage(answer.stage),
            verdict=name_of(verdict),
            duration_ms=duration_ms,
            status=answer.status,
            code=code,
            description=description,
            wait_ms=None if wait is None else wait.wait_ms,
        )
        lane_due_ms = memory.chat_opens_wall_ms(taken.paced)
        if isinstance(fate, policy.Move):
            memory.moved(item.lane, fate.new_chat_id)
        return Settling(taken.claim, end, fate, waits, lane_due_ms)

    async def _record(self, settling: Settling) -> Settled | None:
        """Settle the row; None when it was no longer ours, and only the evidence could be kept."""
        try:
            return await self._tools.join("settle", settle_all, settling)
        except LeaseLost:
            await self._tools.write("keep evidence", lambda tx: keep_evidence(tx, settling))
            return None
