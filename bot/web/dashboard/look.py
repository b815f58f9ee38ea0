"""One look at the house for the status page: everything of one moment, and no user's words.

Bounded: a page that grew with what goes wrong would be slowest when it is needed most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from bot.web.dashboard.wording import span, unquoted
from bot.web.meter import AckTimes
from storage import reports, review
from storage.clock import Clock
from storage.database import Tx
from storage.heartbeats import SILENT_AFTER_MS, Heartbeat
from storage.lifecycle import BotName
from storage.reports import BotReport, HouseReport, Refusal
from storage.review import Held

ROWS_MAX: Final = 50
"""What is shown of held calls, pauses and waits; the rest is counted."""

REFUSALS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class Look:
    """The house as it stands, the held rows with their evidence, and this door's figures."""

    house: HouseReport
    held: Sequence[Held]
    acks: AckTimes

    def is_silent(self, role: Heartbeat) -> bool:
        """Whether a process should have been heard of by now."""
        return self.house.at_ms - role.beat_at_ms > SILENT_AFTER_MS

    def held_of(self, bot: BotReport) -> Sequence[Held]:
        """The held rows of one bot."""
        return [row for row in self.held if row.bot == bot.name]

    def as_document(self) -> dict[str, Any]:
        """The same for a program."""
        roles = [
            {**asdict(role), "facts": dict(role.facts), "silent": self.is_silent(role)}
            for role in self.house.roles
        ]
        document = asdict(self.house) | {"roles": roles}
        return document | {"held": [asdict(row) for row in self.held], "acks": asdict(self.acks)}


def look(tx: Tx, bots: Sequence[BotName], clock: Clock, acks: AckTimes) -> Look:
    """Read all of it in one transaction."""
    house = reports.house(tx, bots, clock, refusals_max=REFUSALS_MAX)
    held = review.held(tx, limit=ROWS_MAX)
    return Look(
        house=replace(house, bots=[_without_quotes(bot) for bot in house.bots]),
        held=[_held_without_quotes(row) for row in held],
        acks=acks,
    )


def missing_roles(house: HouseReport) -> Sequence[str]:
    """The roles of which no process was heard lately."""
    heard = {role.role for role in house.roles}
    return [role for role in ("web", "worker", "sender") if role not in heard]


def waiting_calls(bot: BotReport) -> Mapping[str, int]:
    """How many calls of one bot wait, by what they wait for."""
    queued = sum(waiting.queued for waiting in bot.outbox.values())
    claimed = sum(waiting.claimed for waiting in bot.outbox.values())
    return {
        "queued": queued,
        "in hand": claimed,
        "scheduled": bot.scheduled,
        "outside": bot.outside,
    }


def evidence(attempt: Held | Refusal) -> str:
    """What is known of an attempt's end: how far it got, what came back, how long it took."""
    facts = [f"stage {attempt.stage}"] if attempt.stage else ["no attempt left"]
    if attempt.status is not None:
        facts.append(f"HTTP {attempt.status}")
    if attempt.code is not None and attempt.code != attempt.status:
        facts.append(f"code {attempt.code}")
    if attempt.description:
        facts.append(attempt.description)
    if attempt.wait_ms is not None:
        facts.append(f"wait {span(attempt.wait_ms)}")
    if attempt.duration_ms is not None:
        facts.append(f"took {span(attempt.duration_ms)}")
    return ", ".join(facts)


def _held_without_quotes(row: Held) -> Held:
    reason = unquoted(row.reason) or row.reason
    return replace(row, reason=reason, description=unquoted(row.description))


def _without_quotes(bot: BotReport) -> BotReport:
    return replace(
        bot,
        cooldowns=[
            replace(cooldown, reason=unquoted(cooldown.reason) or "") for cooldown in bot.cooldowns
        ],
        refusals=[
            replace(refusal, description=unquoted(refusal.description)) for refusal in bot.refusals
        ],
    )
