"""A call has ended, and the bot's own code is told, in a turn of its own.

In the transaction that ends this turn the end counts as told. So it is told at least once, whatever
dies in between, and what is said about it is said exactly once. Nobody is told what becomes of the
words that are said here: an error handler whose own message is refused would go round for ever.
A delivery hook that fails is not asked again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from telegram import Update

from bot.turns import reports
from bot.turns.committing import Done, Harvest, insist, leave
from bot.turns.entries import Conflict
from bot.turns.handling import Finish, Handling, Turned, Work
from bot.turns.reports import Delivery, Hook, Outcome
from bot.turns.running import Finished, Hung, Raised
from bot.turns.scopes import Scopes
from bot.turns.turn import Json, Phase, Turn, report_cause
from storage import told
from storage.database import Tx
from storage.errors import LeaseLost, StorageError
from storage.leases import Lease
from storage.lifecycle import OutboxId
from storage.telemetry import event
from storage.told import EndedCall

_NOTHING = Harvest(Done(), Phase.ERROR_HANDLERS)


@dataclass(frozen=True, slots=True)
class _Report:
    """An end in hand, with the update to which its call was due, as far as that can be read."""

    call: EndedCall
    raw: Json | None
    update: Update | None


class Reporter:
    """Tells the ends of one bot's calls."""

    def __init__(self, handling: Handling, lease: Lease) -> None:
        self._handling = handling
        self._application = handling.application
        self._lease = lease

    async def tell(self, row_id: OutboxId) -> Finish:
        """Tell how one call ended, if that is still to be told.

        Raises LeaseLost, with nothing of it kept, when another worker owns the bot.
        """
        call = await self._handling.db.read(partial(told.show, row_id=row_id))
        if call is None or not reports.is_due(call):
            return Finish(said=False)
        report = await self._report(call)
        listeners = await self._listeners(report)
        # When the hook fails, what the error handlers say stands by itself.
        for asked in (listeners, listeners[:-1]):
            if not asked:
                break
            turned = await self._run(report, asked)
            if isinstance(turned.outcome, Finished):
                return await self._keep(report, turned)
            self._untold(report, turned)
        return await self._settle(report, _NOTHING)

    async def _report(self, call: EndedCall) -> _Report:
        if call.body is None:
            return _Report(call, None, None)
        try:
            return _Report(call, *await self._handling.read(call.body))
        except StorageError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever the library's parser raises: then without the update
            event("delivery.no_update", bot=self._handling.bot, outbox_id=call.id, error=error)
            return _Report(call, None, None)

    async def _listeners(self, report: _Report) -> Sequence[Work]:
        """Who is told: the error handlers of a failure, and the hook."""
        call, update = report.call, report.update
        error = await reports.error_of(call)
        found: list[Work] = []
        if (
            error is not None
            and self._application.error_handlers
            and reports.concerns_error_handlers(call)
        ):
            found.append(partial(self._application.process_error, update, error))
        hook = self._application.delivery_hook
        if hook is not None and reports.concerns_hook(call):
            delivery = reports.delivery_of(call, error, update)
            found.append(partial(self._call_hook, hook, delivery))
        return found

    async def _call_hook(self, hook: Hook, delivery: Delivery) -> None:
        kind: Any = self._application.context_types.context
        if delivery.update is not None:
            context = kind.from_update(delivery.update, self._application)
        else:
            chat_id, user_id = _peers(delivery.chat_id)
            context = kind(self._application, chat_id=chat_id, user_id=user_id)
        await context.refresh_data()
        await hook(delivery, context)

    async def _run(self, report: _Report, listeners: Sequence[Work]) -> Turned:
        async def work() -> None:
            for listener in listeners:
                await listener()

        is_held = reports.outcome_of(report.call.state) is Outcome.UNCERTAIN
        turn = Turn(
            bot=self._handling.bot,
            cause=report_cause(report.call.id, report.call.inbox_id, held=is_held),
            phase=Phase.ERROR_HANDLERS,
            received_at_ms=self._handling.clock.now_ms(),
            raw=report.raw,
            outside=self._application.outside,
        )
        return await self._handling.stage(turn, self._scopes(report), work, _NOTHING)

    def _scopes(self, report: _Report) -> Scopes:
        if report.update is not None:
            return self._application.scopes_of(report.update)
        chat_id, user_id = _peers(report.call.chat_id)
        return Scopes(() if user_id is None else (user_id,), () if chat_id is None else (chat_id,))

    async def _keep(self, report: _Report, turned: Turned) -> Finish:
        try:
            finish = await self._settle(report, turned.harvest)
        except (LeaseLost, StorageError, Conflict):
            self._handling.roll_back(turned)
            raise
        except Exception as error:  # noqa: BLE001  # what was said or wished can't be written: a failed turn
            self._untold(report, replace(turned, outcome=Raised(error)))
            return await self._settle(report, _NOTHING)
        self._handling.let_go(turned)
        return finish

    async def _settle(self, report: _Report, harvest: Harvest) -> Finish:
        """Commit what was said, and with it that this end was told."""
        handling = self._handling

        def settle(tx: Tx) -> None:
            leave(tx, self._lease, handling.bot, harvest)
            told.settle(tx, report.call.id, told_as=report.call.state)

        await insist(handling.db, handling.clock, settle, point="worker.told")
        event("delivery.told", bot=handling.bot, outbox_id=report.call.id, rows=len(harvest.rows))
        return Finish(said=bool(harvest.rows))

    def _untold(self, report: _Report, turned: Turned) -> None:
        self._handling.roll_back(turned)
        error = turned.outcome.error if isinstance(turned.outcome, Raised) else None
        event(
            "delivery.untold",
            bot=self._handling.bot,
            outbox_id=report.call.id,
            reason="it took too long" if isinstance(turned.outcome, Hung) else "it raised",
            error=error,
        )


def _peers(chat_id: int | None) -> tuple[int | None, int | None]:
    """The chat and the user of a call without an update: who has a private chat has its number."""
    return chat_id, chat_id if chat_id is not None and chat_id > 0 else None
