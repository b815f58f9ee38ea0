"""Make one call and write down what came of it.

From a stamped row to its settlement: call, verdict, policy, one transaction. A wait that Telegram
orders holds in memory from the moment its answer is read, so that nothing of its scope leaves while
it is being written down. An answer that can't be recorded would turn into a doubt at the next
start, so a failing database is tried again for a while before the sender gives up.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TypeVar

from sender import policy
from sender.answer import Answer, Evidence, Stage
from sender.botapi import outdated
from sender.calls import Call
from sender.claiming import Taken, facts_of
from sender.contracts import Contract
from sender.guards import Guard
from sender.lessons import NO_LESSONS, Lessons
from sender.memory import BotMemory
from sender.reuse import Carried, learned
from sender.settling import Settled, Settling, settle_all, settle_late
from sender.telling import Told, tell_call, tell_lessons
from sender.transport import Address, Transport
from sender.verdict import Outdated, Partial, Sent, Verdict, Withheld, name_of
from storage.blobs import Blobs
from storage.claims import AttemptEnd, OutboxItem
from storage.clock import Clock, Dice
from storage.database import Database, Tx
from storage.errors import LeaseLost, StorageError
from storage.failpoint import Failpoints
from storage.lifecycle import AttemptStage, BotName
from storage.outgoing import TELEGRAM
from storage.telemetry import event

Item = TypeVar("Item")
T = TypeVar("T")

WRITE_TRIES_MAX = 20
WRITE_RETRY_MS = 500
"""A database that fails for longer than these tries ends the process; its work is kept on disk."""


def _nobody() -> None:
    """Where no worker listens."""


@dataclass(frozen=True, slots=True)
class Tools:
    """What every drain works with, shared by all bots of the process.

    `ring_worker` tells the bots' own code that something which it waits for may have ended.
    """

    db: Database
    clock: Clock
    dice: Dice
    transport: Transport
    failpoints: Failpoints
    blobs: Blobs
    guard: Guard | None = None
    ring_worker: Callable[[], None] = _nobody

    def let_hear(self, items: Iterable[OutboxItem]) -> None:
        """These rows have ended, or wait for a person: whoever waits for one of them looks now."""
        if any(item.is_heard for item in items):
            self.ring_worker()

    async def write(self, operation: str, work: Callable[[Tx], T]) -> T:
        """Run a transaction, again and again for some seconds while the database fails.

        Raises LeaseLost at once, StorageError in the end.
        """
        return await self._persist(
            operation, partial(self.db.write, work, point=point_of(operation))
        )

    async def join(
        self, operation: str, work: Callable[[Tx, Sequence[Item]], Sequence[T]], item: Item
    ) -> T:
        """Join a transaction that does the same for others, and persist as `write` does.

        Raises LeaseLost at once, StorageError in the end.
        """
        return await self._persist(
            operation, partial(self.db.join, work, item, point=point_of(operation))
        )

    async def _persist(self, operation: str, tried: Callable[[], Awaitable[T]]) -> T:
        for _ in range(WRITE_TRIES_MAX):
            try:
                return await tried()
            except StorageError as error:
                event("storage.failed", operation=operation, reason=str(error), error=error)
            await self.clock.sleep_ms(WRITE_RETRY_MS)
        return await tried()


@dataclass(frozen=True, slots=True)
class Channel:
    """Where the calls of a channel go, and by which contract."""

    contract: Contract
    address: Address


def point_of(operation: str) -> str:
    """The name under which a transaction of the sender is written (`storage.failpoint`)."""
    return f"sender.{operation.replace(' ', '_')}"


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose calls these are, where each channel's go, and how often a failed one is repeated."""

    bot: BotName
    channels: Mapping[str, Channel]
    attempts_max: int

    @property
    def address(self) -> Address:
        """Where this bot's calls to Telegram go."""
        return self.channels[TELEGRAM].address


@dataclass(frozen=True, slots=True)
class Heard:
    """An answer, what it means by its contract, and how long it took."""

    answer: Answer
    verdict: Verdict
    contract: Contract
    duration_ms: int

    @property
    def result(self) -> bytes | None:
        """The body of an accepting answer; None where the answer accepted nothing."""
        has_result = isinstance(self.verdict, Sent) and self.verdict.has_result
        return self.answer.body if has_result else None

    @property
    def evidence(self) -> Evidence:
        """What to keep of what was said: of a plain acceptance nothing but the call's name."""
        is_plain = isinstance(self.verdict, Sent) and not self.verdict.note
        if is_plain and not self.contract.names_calls:
            return Evidence(None, None)
        return self.contract.told(self.answer)


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of a call. `is_lost`: another sender had sorted the row out already."""

    fate: policy.Fate
    is_lost: bool


@dataclass(frozen=True, slots=True)
class Ties:
    """What a delivery asks and tells its drain."""

    is_held: Callable[[], bool]
    """Whether the bot is still this process's."""

    on_answered: Callable[[], None]
    """A call is over; its answer is not written down yet."""


class Delivery:
    """The calls of one bot, for as long as this process owns it."""

    def __init__(self, tools: Tools, sender: Sender, memory: BotMemory, ties: Ties) -> None:
        self._tools = tools
        self._sender = sender
        self._memory = memory
        self._ties = ties

    async def deliver(self, taken: Taken, call: Call) -> Delivered:
        """Make the call of a stamped row and settle the row by its answer."""
        clock = self._tools.clock
        began_ms = clock.boot_ms()
        may_leave = partial(self._may_leave, taken)
        channel = self._sender.channels[taken.claim.item.channel]
        answer = await self._tools.transport.call(channel.address, call, may_leave)
        self._tools.failpoints.reach("sender.answered")
        self._note(taken, answer)
        verdict = channel.contract.classify(answer, call.method, taken.claim.item.items)
        if taken.carried.named and not isinstance(verdict, Sent):
            verdict = outdated(answer, call.method) or verdict
        heard = Heard(answer, verdict, channel.contract, clock.boot_ms() - began_ms)
        settling = self._decide(taken, heard)
        tell_lessons(settling)
        self._ties.on_answered()
        settled = await self._record(settling)
        self._tools.let_hear((taken.claim.item,))
        if settling.waits:
            self._tools.failpoints.reach("sender.cooled")
        self._tools.failpoints.reach("sender.settled")
        is_refusal = not isinstance(verdict, Sent | Withheld)
        tell_call(Told(taken, settling, settled, is_refusal, clock.now_ms()))
        return Delivered(settling.fate, is_lost=settled is None)

    def _may_leave(self, taken: Taken) -> bool:
        """Whether a call that waited for its connection may still go."""
        self._tools.failpoints.reach("sender.half_written")
        return self._ties.is_held() and self._memory.cooling_ms(taken.paced) == 0

    def _note(self, taken: Taken, answer: Answer) -> None:
        """Let the gates and the breaker know that the call is over."""
        memory, now_ms = self._memory, self._tools.clock.boot_ms()
        if answer.stage.is_unsent:
            memory.withdrew(taken.paced)
        else:
            memory.ended(taken.paced)
        is_telegrams = taken.claim.item.channel == TELEGRAM
        if is_telegrams and memory.breaker.note(answer):
            wait_ms = memory.breaker.open(now_ms, self._tools.dice.random())
            event(
                "sender.breaker_opened",
                bot=self._sender.bot,
                reason=answer.fault or f"status {answer.status}",
                wait_ms=wait_ms,
                failures=memory.breaker.failures,
            )

    def _decide(self, taken: Taken, heard: Heard) -> Settling:
        memory, item, verdict = self._memory, taken.claim.item, heard.verdict
        row = facts_of(
            item,
            attempts_max=self._sender.attempts_max,
            bare_floods=memory.bare_floods(item.lane),
        )
        is_sent = isinstance(verdict, Sent)
        now_ms, jitter = self._tools.clock.now_ms(), 0.0 if is_sent else self._tools.dice.random()
        settlement = policy.decide(verdict, row, now_ms=now_ms, jitter=jitter)
        wait, fate = settlement.wait, settlement.fate
        lessons = NO_LESSONS
        if wait is not None:
            lessons = memory.flooded(wait, taken.paced, item.method)
        elif is_sent:
            lessons = memory.got_through(taken.paced)
        end = _end_of(heard, wait)
        lane_due_ms = memory.chat_opens_wall_ms(taken.paced)
        if isinstance(fate, policy.Move):
            memory.moved(item.lane, fate.new_chat_id)
        has_files = bool(taken.carried.parts)
        if has_files:
            lessons = _with_names(lessons, taken.carried, heard)
        return Settling(taken.claim, end, fate, lessons, lane_due_ms, heard.result, has_files)

    async def _record(self, settling: Settling) -> Settled | None:
        """Settle the row; None when it was no longer ours, and only the evidence could be kept."""
        try:
            return await self._tools.join("settle", settle_all, settling)
        except LeaseLost:
            if await self._tools.write("settle late", lambda tx: settle_late(tx, settling)):
                item = settling.claim.item
                event("outbox.accepted_late", bot=item.bot, outbox_id=item.id)
            return None


def _with_names(lessons: Lessons, carried: Carried, heard: Heard) -> Lessons:
    """The same with what this answer told of the names of files."""
    if isinstance(heard.verdict, Outdated):
        return replace(lessons, outdated=carried.named)
    named = {} if heard.result is None else learned(carried, heard.result)
    return replace(lessons, named=named) if named else lessons


def _end_of(heard: Heard, wait: policy.Wait | None) -> AttemptEnd:
    """The attempt's evidence. What was held back at the last moment has no verdict."""
    answer, verdict, evidence = heard.answer, heard.verdict, heard.evidence
    items = verdict.items if isinstance(verdict, Partial) else ()
    return AttemptEnd(
        stage=AttemptStage(answer.stage),
        verdict=None if answer.stage is Stage.HANDED_BACK else name_of(verdict),
        duration_ms=heard.duration_ms,
        status=answer.status,
        code=evidence.code,
        description=evidence.description,
        wait_ms=None if wait is None else wait.wait_ms,
        items_told=json.dumps([asdict(item) for item in items]) if items else None,
        request_id=evidence.request_id,
    )
