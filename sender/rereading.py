"""Heed a changed configuration while the sender runs: the limits at once, all else by a restart.

A configuration with faults changes nothing and is told as it is at a start. What the windows
remember is kept, so that a change lets nobody send what was sent before once more. The change is
written down before it is heeded. It is a change of this process alone: a bot has one owner, and the
limits of whoever owns it hold, so that several senders never add up.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sender.delivery import Tools
from sender.drain import Drain
from sender.limits import changed, needing_restart, pace_of, values_of
from sender.settings import SenderSettings
from storage import lanes, rates
from storage.database import Tx
from storage.errors import ConfigurationError
from storage.lifecycle import BotName
from storage.rates import LimitValues
from storage.telemetry import event

SOURCE = "SIGHUP"


@dataclass(frozen=True, slots=True)
class Rereading:
    """How a configuration is read once more: when, from where, and whom its faults are told."""

    asked: asyncio.Event
    read: Callable[[], SenderSettings]
    say: Callable[[ConfigurationError], None]


@dataclass(frozen=True, slots=True)
class _Change:
    bot: BotName
    before: LimitValues
    after: LimitValues


class Rereader:
    """The limits of one process's bots, as they are now."""

    def __init__(self, given: SenderSettings, tools: Tools, drains: Sequence[Drain]) -> None:
        self._given = given
        self._tools = tools
        self._drains = {BotName(drain.bot): drain for drain in drains}
        self._limits: dict[BotName, LimitValues] = {
            name: values_of(given.settings, name) for name in self._drains
        }

    async def serve(self, rereading: Rereading) -> None:
        """Read the configuration again whenever it is asked for.

        Raises StorageError when a change can't be written down.
        """
        while True:
            await rereading.asked.wait()
            rereading.asked.clear()
            await self._reread(rereading)

    async def _reread(self, rereading: Rereading) -> None:
        try:
            found = rereading.read()
        except ConfigurationError as error:
            for fault in error.faults:
                event(
                    "settings.fault",
                    key=fault.key,
                    source=fault.source,
                    expected=fault.expected,
                )
            rereading.say(error)
            event("settings.kept", reason=f"faults: {len(error.faults)}")
            return
        for key in needing_restart(self._given, found):
            event("settings.restart_needed", key=key)
        changes = list(self._changes(found))
        if not changes:
            event("limits.unchanged", source=SOURCE)
            return
        await self._tools.write("record limits", lambda tx: _record(tx, changes))
        for change in changes:
            self._heed(found, change)

    def _changes(self, found: SenderSettings) -> Sequence[_Change]:
        known = [name for name in self._drains if name in found.settings.bots]
        changes = [
            _Change(name, self._limits[name], values_of(found.settings, name)) for name in known
        ]
        return [change for change in changes if change.before != change.after]

    def _heed(self, found: SenderSettings, change: _Change) -> None:
        self._limits[change.bot] = change.after
        in_flight_max = self._given.settings.sender.in_flight_max
        pace = pace_of(found.settings, change.bot)
        self._drains[change.bot].retune(replace(pace, in_flight_max=in_flight_max))
        before, after = changed(change.before, change.after)
        event(
            "limits.changed",
            bot=change.bot,
            source=SOURCE,
            before=_plain(before),
            after=_plain(after),
        )


def _record(tx: Tx, changes: Sequence[_Change]) -> None:
    for change in changes:
        rates.record_change(tx, change.bot, source=SOURCE, before=change.before, after=change.after)
        lanes.look_again(tx, change.bot)


def _plain(values: Mapping[str, float | int | str]) -> str:
    return json.dumps(dict(values), sort_keys=True)
