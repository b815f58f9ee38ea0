"""One update, from its raw bytes to the transaction that ends it.

An update has at most two turns: that of its handlers, and, when these failed for good, one of the
error handlers. What the first said and changed is then lost, whatever it was; what the error
handlers say goes out with the burial.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, assert_never

from telegram import Update

from bot.turns import failures
from bot.turns.application import TurnApplication
from bot.turns.committing import Buried, Done, Harvest, commit, insist
from bot.turns.entries import Conflict
from bot.turns.facts import fact_of, source_of
from bot.turns.memory import Recalled
from bot.turns.running import Finished, Hung, Outcome, Raised, run
from bot.turns.scopes import Scopes
from bot.turns.turn import Json, Phase, Turn, update_cause
from storage import inbox, leases
from storage.clock import Clock
from storage.database import Database, Tx
from storage.errors import LeaseLost, StorageError
from storage.failpoint import Failpoints
from storage.inbox import InboxItem
from storage.leases import Lease
from storage.lifecycle import BotName
from storage.telemetry import describe, event, redact_traceback

Work = Callable[[], Coroutine[Any, Any, object]]


@dataclass(frozen=True, slots=True)
class Finish:
    """The update has ended: its lanes go on. `said`: calls were left for the sender."""

    said: bool


@dataclass(frozen=True, slots=True)
class Again:
    """The update waits at its place until then, on the clock that counts from boot."""

    not_before_boot_ms: int


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a turn may take: time, in seconds, and retries of a failed one."""

    limit_s: float
    retries: int


@dataclass(frozen=True, slots=True)
class _Case:
    """An update in hand, as it came and as the library reads it."""

    item: InboxItem
    lease: Lease
    raw: Json
    update: Update


@dataclass(frozen=True, slots=True)
class Turned:
    """How a turn ended, what it leaves if it ended well, and what it still has in hand."""

    turn: Turn
    outcome: Outcome
    harvest: Harvest
    recalled: Recalled | None


@dataclass(slots=True)
class Handling:
    """Handles the updates of one bot, each in its turn."""

    bot: BotName
    db: Database
    clock: Clock
    application: TurnApplication
    failpoints: Failpoints
    allowance: Allowance
    followers: "set[asyncio.Task[None]]" = field(default_factory=set)
    """They wait for tasks that outlived their turns."""

    async def handle(self, item: InboxItem, lease: Lease) -> Finish | Again:
        """Handle one claimed update to its end.

        Raises LeaseLost, with nothing of it kept, when another worker owns the bot.
        """
        shared = self.application.shared
        return await shared.until_settled(
            partial(self._handle, item, lease), partial(_conflicted, item)
        )

    async def _handle(self, item: InboxItem, lease: Lease) -> Finish | Again:
        self.failpoints.reach("worker.claimed")
        if item.claims > failures.CLAIMS_MAX:
            reason = f"its worker ended {failures.CLAIMS_MAX} times while it had it in hand"
            return await self._end(item, lease, Harvest(Buried(reason, None)))
        try:
            raw, update = await self.read(item.body)
        except StorageError:
            raise
        except Exception as unread:  # noqa: BLE001  # whatever the library's parser raises is the reason
            _event("turn.unparsed", item, error=unread)
            reason = f"python-telegram-bot can't read it: {describe(unread)}"
            buried = Buried(reason, redact_traceback(unread))
            return await self._end(item, lease, Harvest(buried))
        case = _Case(item, lease, raw, update)
        turned = await self._turn(
            case, Phase.HANDLERS, partial(self.application.process_update, update)
        )
        match turned.outcome:
            case Finished():
                return await self._keep(case, turned)
            case Raised(error):
                self.roll_back(turned)
                return await self._failed(case, error)
            case Hung(where):
                self.roll_back(turned)
                return await self._hung(case, where)
            case _:
                assert_never(turned.outcome)

    async def read(self, body: bytes) -> tuple[Json, Update]:
        """An update as Telegram sent it, and as the library reads it; raises what that raises.

        Raises StorageError when what its buttons stand for can't be looked up.
        """
        raw = json.loads(body)
        update = Update.de_json(raw, self.application.bot)
        if self.application.keyboards is not None:
            await self.application.keyboards.load(update)
            # The library does this where it receives updates itself; here nobody else would.
            self.application.bot.insert_callback_data(update)
        return raw, update

    async def _turn(self, case: _Case, phase: Phase, work: Work) -> Turned:
        """Run handlers with their memories laid out, and gather what they leave."""
        turn = Turn(
            bot=case.item.bot,
            cause=update_cause(case.item.id, phase),
            phase=phase,
            received_at_ms=case.item.meant_at_ms,
            raw=case.raw,
            outside=self.application.outside,
            source=source_of(case.update),
        )
        nothing = Harvest(Done(), phase, fact=fact_of(case.update))
        return await self.stage(turn, self.application.scopes_of(case.update), work, nothing)

    async def stage(self, turn: Turn, scopes: Scopes, work: Work, nothing: Harvest) -> Turned:
        """Run a turn with these memories laid out; `nothing` is what one leaves that says nothing.

        What it leaves is to be committed, and its memories given back by `let_go` or `roll_back`.
        Raises Conflict, with nothing to give back, when another turn was faster.
        """
        memory = self.application.memory
        try:
            recalled = await memory.recall(self.application, scopes)
        except Exception as error:  # noqa: BLE001  # what handlers kept can't be read any more: a failed turn
            return Turned(turn, Raised(error), nothing, None)
        if recalled.share is not None:
            turn.guard = partial(self.application.shared.secure, recalled.share)
        try:
            outcome = await run(turn, work(), limit_s=self.allowance.limit_s)
            if not isinstance(outcome, Finished):
                return self._unfinished(Turned(turn, outcome, nothing, recalled))
            turn.end()
            changes = await memory.changes(self.application, recalled)
        except Conflict:
            raise
        except Exception as error:  # noqa: BLE001  # what handlers keep can't be kept: a failed turn
            turn.condemn()
            return Turned(turn, Raised(error), nothing, recalled)
        except BaseException:
            turn.condemn()
            memory.roll_back(self.application, recalled)
            raise
        rows = turn.rows[turn.committed :]
        effects = (*turn.keyboards, *turn.effects, *recalled.effects)
        harvest = replace(nothing, rows=rows, effects=effects, changes=changes)
        return Turned(turn, outcome, harvest, recalled)

    def _unfinished(self, turned: Turned) -> Turned:
        """A turn that did not end well. Raises Conflict when that is since another was faster."""
        outcome = turned.outcome
        if isinstance(outcome, Raised) and isinstance(outcome.error, Conflict):
            self.roll_back(turned)
            raise outcome.error
        return turned

    async def _keep(self, case: _Case, turned: Turned) -> Finish | Again:
        """Commit a turn that ended well; its memories stay laid out until then."""
        try:
            finish = await self._end(case.item, case.lease, turned.harvest)
        except (LeaseLost, StorageError, Conflict):
            self.roll_back(turned)
            raise
        except Exception as error:  # noqa: BLE001  # what was said or wished can't be written: a failed turn
            self.roll_back(turned)
            return await self._failed(case, error)
        self.let_go(turned)
        return finish

    async def _end(self, item: InboxItem, lease: Lease, harvest: Harvest) -> Finish:
        self.failpoints.reach("worker.handled")
        await commit(self.db, self.clock, lease, item, harvest)
        self.failpoints.reach("worker.committed")
        return Finish(said=bool(harvest.rows))

    async def _failed(self, case: _Case, error: Exception) -> Finish | Again:
        item = case.item
        decision = failures.decide(error, claims=item.claims, retries=self.allowance.retries)
        match decision:
            case failures.TryAgain(wait_ms, counted):
                _event("turn.retried", item, claims=item.claims, wait_ms=wait_ms, error=error)
                return await self._again(case, wait_ms, counted=counted)
            case failures.GiveUp():
                _event("turn.failed", item, phase=int(Phase.HANDLERS), error=error)
                buried = Buried(describe(error), redact_traceback(error))
                return await self._give_up(case, error, buried)
            case _:
                assert_never(decision)

    async def _hung(self, case: _Case, where: str) -> Finish:
        limit_s = self.allowance.limit_s
        _event("turn.timed_out", case.item, timeout_s=limit_s)
        reason = f"its handler took longer than {limit_s:g} s"
        buried = Buried(reason, f"it hung at\n{where}")
        return await self._give_up(case, TimeoutError(reason), buried)

    async def _again(self, case: _Case, wait_ms: int, *, counted: bool) -> Again:
        not_before_ms = self.clock.now_ms() + wait_ms
        not_before_boot_ms = self.clock.boot_ms() + wait_ms

        def put_back(tx: Tx) -> None:
            leases.require(tx, case.lease)
            put = inbox.retry if counted else inbox.release
            put(tx, case.item.id, case.lease.epoch, not_before_ms=not_before_ms)

        await insist(self.db, self.clock, put_back, point="worker.retry")
        return Again(not_before_boot_ms)

    async def _give_up(self, case: _Case, error: Exception, buried: Buried) -> Finish:
        """Run the error handlers in a turn of their own, which ends with the burial."""
        work = partial(self.application.process_error, case.update, error)
        turned = None
        harvest = Harvest(buried, fact=fact_of(case.update))
        if self.application.error_handlers:
            turned = await self._turn(case, Phase.ERROR_HANDLERS, work)
            harvest = replace(turned.harvest, ending=buried)
            if not isinstance(turned.outcome, Finished):
                told = turned.outcome.error if isinstance(turned.outcome, Raised) else None
                _event("turn.failed", case.item, phase=int(Phase.ERROR_HANDLERS), error=told)
        try:
            finish = await self._end(case.item, case.lease, harvest)
        except (LeaseLost, StorageError, Conflict):
            if turned is not None:
                self.roll_back(turned)
            raise
        except Exception as unwritten:  # noqa: BLE001  # even so the update must be buried, with nothing else
            if turned is not None:
                self.roll_back(turned)
            _event("turn.failed", case.item, phase=int(Phase.ERROR_HANDLERS), error=unwritten)
            return await self._end(case.item, case.lease, Harvest(buried))
        if turned is not None:
            self.let_go(turned)
        return finish

    def let_go(self, turned: Turned) -> None:
        """Give back the memories of a turn that is committed; who still speaks may go on."""
        turned.turn.settle()
        pending = [task for task in turned.turn.tasks if not task.done()]
        if turned.recalled is None:
            return
        if not isinstance(turned.outcome, Finished):
            self.roll_back(turned)
        elif pending:
            self._follow(turned.recalled, pending)
        else:
            self.application.memory.let_go(self.application, turned.recalled)

    def roll_back(self, turned: Turned) -> None:
        """Give a turn up of which nothing is kept, and its memories back.

        It may be run again: what still runs of it must not speak beside that.
        """
        turned.turn.condemn()
        for task in turned.turn.tasks:
            task.cancel()
        if turned.recalled is not None:
            self.application.memory.roll_back(self.application, turned.recalled)

    def _follow(self, recalled: Recalled, pending: "list[asyncio.Task[Any]]") -> None:
        application = self.application
        follower = asyncio.get_running_loop().create_task(
            application.memory.follow(application, recalled, pending, application.outside),
            name="turn-follower",
        )
        self.followers.add(follower)
        follower.add_done_callback(self._followed)

    def _followed(self, follower: "asyncio.Task[None]") -> None:
        self.followers.discard(follower)
        if not follower.cancelled() and (error := follower.exception()) is not None:
            event("task.failed", task="late task's memory", error=error)


def _event(name: str, item: InboxItem, **fields: str | float | BaseException | None) -> None:
    event(
        name,
        bot=item.bot,
        inbox_id=item.id,
        update_id=item.update_id,
        **{"kind": item.kind} if name != "turn.retried" else {},
        **fields,
    )


def _conflicted(item: InboxItem, losses: int) -> None:
    _event("turn.conflicted", item, count=losses)
