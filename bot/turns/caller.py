"""A reminder's moment has come, and its callback is called, in a turn of its own.

In the transaction that ends this turn the occurrence is over, and the next one of a rule is kept.
So it happens at least once, whatever dies in between, and what is said in it is said exactly once.

What was missed while nobody worked happens once, at once: the occurrences of a rule that were
missed are one. What comes later than its reminder allows is left out. A callback that fails is not
called again for the same occurrence: the error handlers hear of it, as of a job that failed; only
what fails in passing, as a read while Telegram can't be reached, is tried again. A reminder whose
callback or data another release has lost is kept, and looked at again by the next worker.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

from bot.turns import failures, recurrence
from bot.turns.committing import Done, Harvest, insist, leave
from bot.turns.entries import Conflict
from bot.turns.handling import Again, Finish, Handling, Turned, Work
from bot.turns.pickling import loads
from bot.turns.reminders import Reminded, callback_of
from bot.turns.running import Finished, Hung, Raised
from bot.turns.scopes import Scopes
from bot.turns.turn import Phase, Turn, reminder_cause
from storage import reminders
from storage.database import Tx
from storage.errors import LeaseLost, StorageError
from storage.leases import Lease
from storage.reminders import Reminder, ReminderId
from storage.telemetry import describe, event

_NOTHING = Harvest(Done())


class Forgotten(Exception):
    """A reminder was taken back while its turn ran: nothing of that turn is kept."""


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """A reminder in hand, and what its callback finds as its job."""

    reminder: Reminder
    job: Reminded
    late_ms: int


class Caller:
    """Calls the callbacks of one bot's reminders."""

    def __init__(self, handling: Handling, lease: Lease) -> None:
        self._handling = handling
        self._application = handling.application
        self._lease = lease
        self._tries: dict[ReminderId, int] = {}
        self.unreadable: set[ReminderId] = set()
        """Those whose callback or data this process does not know."""

    async def call(self, reminder_id: ReminderId) -> Finish | Again:
        """Let one reminder happen, if it still is to.

        Raises LeaseLost, with nothing of it kept, when another worker owns the bot.
        """
        handling = self._handling
        reminder = await handling.db.read(
            partial(reminders.show, bot=handling.bot, reminder=reminder_id)
        )
        now_ms = handling.clock.now_ms()
        if reminder is None or reminder.due_ms > now_ms:
            return Finish(said=False)
        late_ms = now_ms - reminder.due_ms
        late_ms_max = reminder.wanted.late_ms_max
        try:
            if late_ms_max is not None and late_ms > late_ms_max:
                self._event("reminder.skipped", reminder, late_ms=late_ms)
                return await self._finish(reminder, _NOTHING)
            job = self._job_of(reminder)
            if job is None:
                return Finish(said=False)
            after = await self._occur(_Occurrence(reminder, job, late_ms))
        except Forgotten:
            after = Finish(said=False)
        if isinstance(after, Finish):
            self._tries.pop(reminder.id, None)
        return after

    def _job_of(self, reminder: Reminder) -> Reminded | None:
        """What the callback finds; None where this process does not know what was meant."""
        wanted = reminder.wanted
        try:
            data = None if wanted.data is None else loads(wanted.data, self._application.bot)
            if wanted.rule is not None:
                recurrence.unpacked(wanted.rule)
            callback = callback_of(wanted.callback)
        except Exception as error:  # noqa: BLE001  # whatever another release has done to its code or data
            self.unreadable.add(reminder.id)
            self._event("reminder.unreadable", reminder, error=error)
            return None
        return Reminded(callback, data, wanted.name, wanted.chat_id, wanted.user_id)

    async def _occur(self, occurrence: _Occurrence) -> Finish | Again:
        async def work() -> None:
            kind: Any = self._application.context_types.context
            context = kind.from_job(occurrence.job, self._application)
            await context.refresh_data()
            await occurrence.job.callback(context)

        turned = await self._run(occurrence, Phase.HANDLERS, work)
        match turned.outcome:
            case Finished():
                return await self._keep(occurrence, turned)
            case Raised(error):
                self._handling.roll_back(turned)
                return await self._failed(occurrence, error)
            case Hung():
                self._handling.roll_back(turned)
                reason = f"it took longer than {self._handling.allowance.limit_s:g} s"
                return await self._give_up(occurrence, TimeoutError(reason))
            case _:
                assert_never(turned.outcome)

    async def _run(self, occurrence: _Occurrence, phase: Phase, work: Work) -> Turned:
        wanted = occurrence.reminder.wanted
        turn = Turn(
            bot=self._handling.bot,
            cause=reminder_cause(occurrence.reminder.id, phase),
            phase=phase,
            received_at_ms=self._handling.clock.now_ms(),
            raw=None,
            outside=self._application.outside,
        )
        scopes = Scopes(
            () if wanted.user_id is None else (wanted.user_id,),
            () if wanted.chat_id is None else (wanted.chat_id,),
        )
        return await self._handling.stage(turn, scopes, work, Harvest(Done(), phase))

    async def _keep(self, occurrence: _Occurrence, turned: Turned) -> Finish | Again:
        reminder = occurrence.reminder
        try:
            finish = await self._finish(reminder, turned.harvest)
        except (LeaseLost, StorageError, Forgotten, Conflict):
            self._handling.roll_back(turned)
            raise
        except Exception as error:  # noqa: BLE001  # what was said or wished can't be written: a failed turn
            self._handling.roll_back(turned)
            return await self._failed(occurrence, error)
        self._handling.let_go(turned)
        rows = len(turned.harvest.rows)
        self._event("reminder.fired", reminder, late_ms=occurrence.late_ms, rows=rows)
        return finish

    async def _failed(self, occurrence: _Occurrence, error: Exception) -> Finish | Again:
        """Try again what fails in passing; of all else the error handlers hear, once."""
        reminder = occurrence.reminder
        self._tries[reminder.id] = tries = self._tries.get(reminder.id, 0) + 1
        retries = self._handling.allowance.retries
        decision = failures.decide(error, claims=tries, retries=retries)
        match decision:
            case failures.TryAgain(wait_ms, _):
                self._event("reminder.retried", reminder, wait_ms=wait_ms, error=error)
                return Again(self._handling.clock.boot_ms() + wait_ms)
            case failures.GiveUp():
                return await self._give_up(occurrence, error)
            case _:
                assert_never(decision)

    async def _give_up(self, occurrence: _Occurrence, error: Exception) -> Finish:
        """Run the error handlers in a turn of their own, with which this occurrence is over."""
        reminder = occurrence.reminder
        self._event("reminder.failed", reminder, reason=describe(error), error=error)
        if not self._application.error_handlers:
            return await self._finish(reminder, _NOTHING)
        tell = partial(self._application.process_error, None, error, job=occurrence.job)
        turned = await self._run(occurrence, Phase.ERROR_HANDLERS, tell)
        try:
            if isinstance(turned.outcome, Finished):
                finish = await self._finish(reminder, turned.harvest)
                self._handling.let_go(turned)
                return finish
        except (LeaseLost, StorageError, Forgotten, Conflict):
            self._handling.roll_back(turned)
            raise
        except Exception as unwritten:  # noqa: BLE001  # even so it must be over, with nothing else
            self._event("reminder.failed", reminder, reason=describe(unwritten), error=unwritten)
        self._handling.roll_back(turned)
        return await self._finish(reminder, _NOTHING)

    async def _finish(self, reminder: Reminder, harvest: Harvest) -> Finish:
        """Commit what was said, and with it that this occurrence is over.

        Raises Forgotten, with nothing kept, when the reminder was taken back meanwhile.
        """
        handling = self._handling

        def finish(tx: Tx) -> None:
            if reminders.show(tx, handling.bot, reminder.id) is None:
                raise Forgotten
            leave(tx, self._lease, handling.bot, harvest)
            next_due_ms = _next_due_ms(reminder, tx.now_ms())
            reminders.end(tx, handling.bot, reminder, next_due_ms=next_due_ms)

        await insist(handling.db, handling.clock, finish, point="worker.reminded")
        return Finish(said=bool(harvest.rows))

    def _event(
        self, name: str, reminder: Reminder, **fields: str | float | BaseException | None
    ) -> None:
        event(name, bot=self._handling.bot, reminder_id=reminder.id, **fields)


def _next_due_ms(reminder: Reminder, now_ms: int) -> int | None:
    if reminder.wanted.rule is None:
        return None
    rule = recurrence.unpacked(reminder.wanted.rule)
    return recurrence.next_ms(rule, due_ms=reminder.due_ms, now_ms=now_ms)
