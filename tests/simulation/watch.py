"""The invariants that are judged while a world runs: at each commit, departure, arrival, return.

What a breach is named after is reliability.md 2.4: I3 nothing from nowhere, I4 no more effects than
the policy allows, I5 true records, I6 never early, I7 order, I9 nothing cancelled or expired, I13
only its owner sends. May change nothing in the world that it watches.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sender.answer import Answer, Stage
from storage.carriers import RawConnection
from storage.cooldowns import BOT_SCOPE, INFERRED_SCOPE
from storage.methods import METHODS, CallKind
from tests.simulation.clocks import MachineClock
from tests.simulation.history import Attempt, Call, History, Row, label_of
from tests.simulation.journal import Journal, Line
from tests.simulation.loop import Process, WorldLoop
from tests.simulator.ledger import Arrival, Ledger
from tests.simulator.wire import Ending, Reply

OPERATOR: Final = "operator"
"""The process through which a person decides."""

_TERMINAL: Final = frozenset({"sent", "dead", "superseded", "expired", "cancelled"})
_ALREADY_SO: Final = ("not modified", "message to delete not found")
_REFUSALS: Final = {
    "chat not found": "chat not found",
    "blocked by the user": "blocked",
    "upgraded to a supergroup": "migrated",
    "not modified": "not modified",
    "too long": "too long",
}
# How long the whole bot waits at least before one call tries (sender/README.md): a minute from when
# the flood was read, which is a little before it committed.
CANARY_MS: Final = 59_000
# Both ends of a wait are cut to whole milliseconds.
_GRAIN_MS: Final = 1


@dataclass(slots=True)
class Wait:
    """A deadline that committed: in the loop's own time."""

    until_ms: int
    moves: int
    """How often the wall clock had been set by then."""

    since_ms: int = 0
    is_foreign: bool = False
    """The machine has been started again since: only the wall clock tells now."""


class Trace:
    """Everything that happened, a line each, and the hash of it all."""

    def __init__(self, now_ms: Callable[[], int], digest: Callable[[bytes], None]) -> None:
        self._now_ms = now_ms
        self._digest = digest
        self.lines: list[str] | None = None

    def tell(self, what: str, about: object = "") -> None:
        """One more line."""
        line = f"{self._now_ms():>10} {what:<10} {about}"
        self._digest(line.encode())
        if self.lines is not None:
            self.lines.append(line)

    def remark(self, about: str) -> None:
        """A line for readers alone: what the house says of itself."""
        if self.lines is not None:
            self.lines.append(f"{self._now_ms():>10} says       {about}")


class Watch:
    """Judges one world."""

    def __init__(self, loop: WorldLoop, clock: MachineClock, ledger: Ledger, trace: Trace) -> None:
        self.history = History()
        self.breaches: list[str] = []
        self.changes = 0
        self.clock_moves = 0
        self.is_whole = False
        """Every flood stops the whole bot, as configured."""

        self.on_claim: Callable[[Row], None] = _nothing
        self.on_leave: Callable[[Process], None] = _nothing
        self.sightings: Counter[str] = Counter()
        self._loop = loop
        self._clock = clock
        self._ledger = ledger
        self._journal = Journal()
        self._trace = trace
        self._certain: dict[tuple[str, str], Wait] = {}
        self._stored: dict[tuple[str, str], Wait] = {}
        self.paused: dict[tuple[str, str], int | None] = {}
        self._canaries: dict[str, int] = {}
        self._in_hand: dict[int, Row] = {}
        self._latest: dict[tuple[str, str, str], Row] = {}
        self._bots: dict[str, str] = {}
        self._person_speaks = False

    def know(self, token: str, bot: str) -> None:
        """A bot of the house."""
        self._bots[token] = bot

    def breach(self, invariant: str, told: str) -> None:
        """Note a breach."""
        self.breaches.append(f"{invariant} at {self._loop.now_ms()}: {told}")
        self._trace.tell("BREACH", f"{invariant} {told}")

    def is_cooling(self) -> bool:
        """Whether any wait that Telegram ordered is in force."""
        now_ms = self._loop.now_ms()
        return any(wait.until_ms > now_ms for wait in self._certain.values())

    # What the clock does

    def clock_moves_soon(self) -> None:
        """What was due by the wall clock as it is stays due, whatever it shows next."""
        wall_ms = self._clock.now_ms()
        for row in self.history.rows.values():
            # Also of one that has ended: a person may let it go again.
            row.has_begun |= row.not_before_ms <= wall_ms
            if row.state in ("queued", "claimed"):
                row.is_due |= row.due_ms <= wall_ms

    def clock_moved(self) -> None:
        """The wall clock was set, or runs at another rate: only this boot's waits are known."""
        self.clock_moves += 1
        self.changes += 1
        for waits in (self._certain, self._stored):
            for key in [key for key, wait in waits.items() if wait.is_foreign]:
                del waits[key]

    def rebooted(self) -> None:
        """The boot clock began anew: waits are told by the wall clock now."""
        self.changes += 1
        for waits in (self._certain, self._stored):
            for key, wait in list(waits.items()):
                if wait.moves != self.clock_moves or self._clock.drifts:
                    del waits[key]
                wait.is_foreign = True

    # What commits

    def committed(self, raw: RawConnection, role: str) -> None:
        """Read and judge what a process of that role has just committed."""
        self._person_speaks = role == OPERATOR
        for line in self._journal.news(raw):
            self.changes += 1
            self._trace.tell(line.what, f"{line.id} {line.bot} {line.facts}")
            match line.what:
                case "row+":
                    self._row_came(raw, line)
                case "row":
                    self._row_changed(raw, line)
                case "try+":
                    self._attempt_began(line)
                case "try":
                    self._attempt_changed(line)
                case "wait" | "wait-":
                    self._wait_changed(line)
                case "lease":
                    self.history.leases[str(line.id)] = (line.facts[0], line.facts[1])  # type: ignore[assignment]  # as the trigger writes them
                case "in":
                    _, update_id = line.id, line.facts[0]
                    self.history.inbox[int(line.id)] = (
                        str(line.bot),
                        None if update_id is None else int(str(update_id)),
                        str(line.facts[1]),
                    )
                case "pause":
                    until_ms = line.facts[0]
                    self.paused[str(line.bot), str(line.id)] = (
                        None if until_ms is None else int(str(until_ms))
                    )
                case "pause-":
                    self.paused.pop((str(line.bot), str(line.id)), None)
                case _:
                    pass

    def cancelled(self, row_id: int, told: str) -> None:
        """Somebody was told what became of their wish to cancel a row."""
        row = self.history.rows.get(row_id)
        if row is None:
            return
        self._trace.tell("cancels", f"{row_id} {told}")
        if told == "cancelled":
            row.told_cancelled = True
            if any(attempt.stage == "stamped" for attempt in row.attempts):
                self.breach("I9", f"row {row_id} was told cancelled, and is on its way")

    def _row_came(self, raw: RawConnection, line: Line) -> None:
        row = self.history.add_row(raw, int(line.id), str(line.bot), str(line.facts[0]))
        if row is None:
            return
        alike = self.history.labelled[row.bot, row.label]
        if " to " not in row.label and len(alike) > 1:
            self.breach("I2", f"rows {[each.id for each in alike]} say the same")

    def _row_changed(self, raw: RawConnection, line: Line) -> None:
        row = self.history.rows.get(int(line.id))
        if row is None:
            return
        _, state, epoch, due_ms, cancel_asked, waits_for = line.facts
        before, row.state = row.state, str(state)
        row.is_due &= row.due_ms == due_ms
        row.due_ms = int(str(due_ms))
        row.is_out = waits_for is not None
        row.was_out |= row.is_out
        row.cancel_asked = None if cancel_asked is None else str(cancel_asked)
        if before != row.state:
            self._in_hand.pop(row.id, None)
            if row.state == "claimed":
                self._check_claim(row, int(str(epoch)))
                self._in_hand[row.id] = row
                self.on_claim(row)
            if row.state == "sent":
                self._check_sent(row)
            if row.state == "queued" and before in _TERMINAL | {"uncertain", "review"}:
                row.revivals += 1
                row.told_cancelled = False
        self.history.refresh_lane(raw, row)

    def _check_claim(self, row: Row, epoch: int) -> None:
        wall_ms = self._clock.now_ms()
        is_early = row.not_before_ms > wall_ms and not row.has_begun
        if is_early or (row.due_ms > wall_ms and not row.is_due):
            self.breach("I6", f"row {row.id} was claimed before it was due")
        if row.expires_at_ms is not None and row.expires_at_ms <= wall_ms and not row.revivals:
            self.breach("I9", f"row {row.id} was claimed {wall_ms - row.expires_at_ms} ms late")
        held = self.history.leases.get(f"sender:{row.bot}")
        if held is None or held[0] != epoch:
            self.breach("I13", f"row {row.id} was claimed under epoch {epoch}, not {held}")
        for scope in ("bot", "" if row.priority == "interactive" else "bulk", row.lane):
            if (row.bot, scope) in self.paused:
                until_ms = self.paused[row.bot, scope]
                if until_ms is None or until_ms > wall_ms:
                    self.breach("I6", f"row {row.id} was claimed while {scope} was paused")
        for other in self._in_hand.values():
            if other is not row and (other.bot, other.lane) == (row.bot, row.lane):
                self.breach("I7", f"rows {other.id} and {row.id} are under way in one chat")

    def _check_sent(self, row: Row) -> None:
        if self._person_speaks:
            row.said_sent = True
            return
        if row.effects == 0 and not any(map(_is_so_already, row.calls)):
            self.breach("I5", f"row {row.id} is marked sent, and was not")

    def _attempt_began(self, line: Line) -> None:
        row_id, epoch, stage = line.facts[:3]
        row = self.history.rows.get(int(str(row_id)))
        if row is None:
            return
        attempt = Attempt(int(line.id), row, int(str(epoch)), str(stage))
        self.history.attempts[attempt.id] = attempt
        row.attempts.append(attempt)

    def _attempt_changed(self, line: Line) -> None:
        attempt = self.history.attempts.get(int(line.id))
        if attempt is None:
            return
        _, _, stage, verdict, wait_ms, _ = line.facts
        attempt.becomes(str(stage), None if verdict is None else str(verdict))
        row = attempt.row
        if attempt.stage == "stamped":
            held = self.history.leases.get(f"sender:{row.bot}")
            if held is None or held[0] != attempt.epoch:
                self.breach("I13", f"row {row.id} was stamped under epoch {attempt.epoch}")
            if row.cancel_asked is not None:
                self.breach("I9", f"row {row.id} was stamped though its cancel was asked")
        is_flood = attempt.call is not None and attempt.call.code == 429
        if is_flood and attempt.stage == "answered" and not int(str(wait_ms or 0)):
            self.breach("I6", f"row {row.id} met a flood and waits for nothing")
        if wait_ms is not None and attempt.call is not None:
            self._flood_recorded(row, attempt.call, int(str(wait_ms)))

    def _flood_recorded(self, row: Row, call: Call, wait_ms: int) -> None:
        """Telegram's own order is on disk: from now on nothing of its scope may come too soon."""
        if call.wait_s is not None and wait_ms < call.wait_s * 1_000:
            self.breach("I6", f"row {row.id} was told {call.wait_s} s and noted {wait_ms} ms")
        if call.returned_ms is None:
            return
        until_ms = call.returned_ms + wait_ms - _GRAIN_MS
        for scope in (row.scopes[-1], BOT_SCOPE) if self.is_whole else (row.scopes[-1],):
            known = self._certain.get((row.bot, scope))
            if known is None or known.until_ms < until_ms:
                self._certain[row.bot, scope] = Wait(until_ms, self.clock_moves)

    def _wait_changed(self, line: Line) -> None:
        key = (str(line.bot), str(line.id))
        until_boot_ms, boot_id = line.facts[:2]
        if line.what == "wait-" or boot_id != self._clock.boot_id:
            self._stored.pop(key, None)
            return
        until_ms = self._clock.true_of_boot_ms(int(str(until_boot_ms))) - _GRAIN_MS
        self._stored[key] = Wait(until_ms, self.clock_moves, self._loop.now_ms())

    # What travels

    def leaves(self, process: Process, token: str, method: str, form: dict[str, str]) -> int:
        """A call leaves now, whole; its number in the world."""
        bot, label = self._bots[token], label_of(method, form)
        now_ms = self._loop.now_ms()
        call = Call(len(self.history.calls), bot, method, label, now_ms)
        self.history.calls.append(call)
        self._trace.tell("leaves", f"{call.number} {process!r} {label}")
        if method == "getMe":
            return call.number
        attempt = self.history.claimed(bot, label)
        if attempt is None:
            self.breach("I3", f"nobody had stamped {label!r}, which {process!r} sends")
            return call.number
        row = attempt.row
        call.row, call.attempt, attempt.call = row, attempt, call
        call.lane = row.lane
        row.calls.append(call)
        epoch, owner = self.history.leases.get(f"sender:{bot}", (0, None))
        if epoch != attempt.epoch or owner is None or owner.split(".")[1] != str(process.number):
            self.breach("I13", f"row {row.id} leaves {process!r}, while {owner} owns {bot}")
        self._check_waits(row, now_ms)
        self._check_canary(row, now_ms)
        self.on_leave(process)
        return call.number

    def _check_waits(self, row: Row, now_ms: int) -> None:
        for scope in (BOT_SCOPE, *row.scopes):
            for waits, whose in ((self._certain, "ordered"), (self._stored, "stored")):
                wait = waits.get((row.bot, scope))
                if wait is not None and wait.until_ms > now_ms:
                    early_ms = wait.until_ms - now_ms
                    self.breach("I6", f"row {row.id} is {early_ms} ms early: {whose} for {scope}")

    def _check_canary(self, row: Row, now_ms: int) -> None:
        """While the whole bot waits for what is only concluded, one call a minute may try."""
        wait = self._stored.get((row.bot, INFERRED_SCOPE))
        facts = METHODS.get(row.method)
        is_answer = facts is not None and facts.kind is CallKind.ANSWER
        if wait is None or wait.until_ms <= now_ms or is_answer:
            return
        since_ms = max(self._canaries.get(row.bot, 0), wait.since_ms)
        if now_ms - since_ms < CANARY_MS:
            self.breach("I6", f"row {row.id} leaves while the whole bot waits")
        self._canaries[row.bot] = now_ms

    def arrives(self, number: int, reply: Reply) -> None:
        """It was read and judged by Telegram."""
        call, entry = self.history.calls[number], self._ledger.entries[-1]
        call.arrived_ms = self._loop.now_ms()
        call.code = reply.status
        self._trace.tell("arrives", f"{number} {reply.status}")
        if isinstance(entry, Arrival):
            call.effect, call.description = entry.effect, entry.description
            if entry.client_bug is not None:
                self.breach("I3", f"a call that no client makes: {entry.client_bug}")
        call.wait_s = _ordered_s(reply)
        self._count(call, reply)
        row = call.row
        if row is None or not call.effect:
            return
        row.effects += 1
        if row.told_cancelled:
            self.breach("I9", f"row {row.id} arrived after it was told cancelled")
        if row.effects > row.effects_allowed:
            self.breach("I4", f"row {row.id} was carried out {row.effects} times: {row.label!r}")
        if row.effects == 1 and row.items > 0:
            self._check_order(row)

    def _count(self, call: Call, reply: Reply) -> None:
        """Count what was met, by what was answered."""
        told = call.description.lower()
        if reply.status == 429 or "retry after" in told:
            self.sightings["flood" if "retry after" in told else "bare flood"] += 1
        elif reply.status >= 500:
            self.sightings["server error"] += 1
        elif reply.ending in (Ending.CUT, Ending.RESET, Ending.HALF):
            self.sightings["reset after"] += 1
        elif reply.hold_ms:
            self.sightings["slow answer"] += 1
        elif reply.status in (401, 404, 409, 413):
            self.sightings["fatal answer"] += 1
        for words, name in _REFUSALS.items():
            if words in told:
                self.sightings[f"refused: {name}"] += 1

    def _check_order(self, row: Row) -> None:
        """Rows of one lane come in their order; those that had left it are excepted."""
        lane = (row.bot, row.lane, row.priority)
        before = self._latest.get(lane)
        if before is not None and before.id > row.id and not _had_left(row):
            self.breach("I7", f"in {lane} row {row.id} came after row {before.id}")
        if before is None or before.id < row.id:
            self._latest[lane] = row

    def returns(self, number: int, process: Process, answer: Answer) -> None:
        """This is what its sender is told."""
        call = self.history.calls[number]
        call.returned_ms = self._loop.now_ms()
        call.returned_to = process.number
        call.status = answer.status if answer.stage is Stage.ANSWERED else None
        self._trace.tell("returns", f"{number} {answer.stage} {answer.status}")


def _nothing(_: object) -> None:
    """Nobody listens."""


def _had_left(row: Row) -> bool:
    return row.revivals > 0 or row.not_before_ms > 0 or row.has_moved or row.was_out


def _ordered_s(reply: Reply) -> int | None:
    """The wait that a flood names as it should: a whole number of seconds from 0 to 14 days."""
    if reply.status != 429:
        return None
    try:
        told = json.loads(reply.body)["parameters"]["retry_after"]
    except (ValueError, KeyError, TypeError):
        return None
    is_wait = isinstance(told, int) and not isinstance(told, bool) and 0 <= told <= 14 * 86_400
    return max(1, told) if is_wait else None


def _is_so_already(call: Call) -> bool:
    """Whether Telegram said that what was asked for is so already."""
    return any(words in call.description for words in _ALREADY_SO)
