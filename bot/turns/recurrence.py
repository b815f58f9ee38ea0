"""When something that happens again and again happens next: by the hour on the wall, or by a span.

Pure: it is told the time and never asks for it. What a zone's clocks do comes from `zoneinfo`, on
the system's data or that of the package tzdata.

What is promised where a zone's clocks are set:

- a time that does not exist that day (a gap) happens at the first moment after the gap; if the
  whole day was left out, that is the beginning of the next one;
- a time that exists twice (an overlap) happens once, at the first of the two;
- a span counts what passes, whatever the clocks on the wall show.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import count
from typing import Any, Final, assert_never
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

EVERY_DAY: Final = (0, 1, 2, 3, 4, 5, 6)
SPAN_MIN: Final = timedelta(seconds=1)
"""The worker looks once a second: what is to happen more often can't be kept."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_SECOND: Final = timedelta(seconds=1)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Daily:
    """At a time of the day, as the clocks of `zone` show it, on these days of the week.

    `at`: a time without a zone of its own. `zone`: a name of the zone database, such as
    "Europe/Berlin". `days`: 0 is Monday, 6 is Sunday, as `datetime.date.weekday` counts.

    Raises ValueError for a zone, a day or a time that is none.
    """

    at: time
    zone: str
    days: Collection[int] = EVERY_DAY

    def __post_init__(self) -> None:
        """Refuse what could never happen."""
        if self.at.tzinfo is not None:
            raise ValueError("at: expected a time without a zone: the zone is named beside it")
        days = tuple(sorted(set(self.days)))
        if not days or not set(days) <= set(EVERY_DAY):
            raise ValueError("days: expected some of 0 (Monday) to 6 (Sunday)")
        object.__setattr__(self, "days", days)
        zone_named(self.zone)


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again, this far apart; the first time after as long.

    Raises ValueError for a span below a second.
    """

    span: timedelta

    def __post_init__(self) -> None:
        """Refuse what can't be kept."""
        if self.span < SPAN_MIN:
            raise ValueError(f"span: expected at least {SPAN_MIN.seconds} s")


Rule = Daily | Every


def zone_named(name: str) -> ZoneInfo:
    """The zone of this name. Raises ValueError when there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"zone: {name!r} is no zone such as 'Europe/Berlin'") from error


def next_ms(rule: Rule, *, due_ms: int, now_ms: int) -> int:
    """The next moment after now, when one was due at `due_ms`; those between count as one with it.

    UTC milliseconds.
    """
    match rule:
        case Daily():
            return _next_day_ms(rule, after_ms=max(due_ms, now_ms))
        case Every(span):
            span_ms = span // _MS
            return due_ms + (max(0, now_ms - due_ms) // span_ms + 1) * span_ms
        case _:
            assert_never(rule)


def first_ms(rule: Rule, *, now_ms: int) -> int:
    """The first moment of a rule that holds from now on. UTC milliseconds."""
    return next_ms(rule, due_ms=now_ms, now_ms=now_ms)


def packed(rule: Rule) -> str:
    """A rule as it is stored."""
    told: dict[str, Any]
    match rule:
        case Daily(at, zone, days):
            told = {"at": at.isoformat(), "zone": zone, "days": list(days)}
        case Every(span):
            told = {"every_ms": span // _MS}
        case _:
            assert_never(rule)
    return json.dumps(told, separators=(",", ":"))


def unpacked(text: str) -> Rule:
    """A stored rule. Raises ValueError for one whose zone is no longer known here."""
    told = json.loads(text)
    if "every_ms" in told:
        return Every(told["every_ms"] * _MS)
    return Daily(time.fromisoformat(told["at"]), told["zone"], told["days"])


def moment_ms(moment: datetime) -> int:
    """A moment in UTC milliseconds. Raises ValueError for one without a zone."""
    if moment.utcoffset() is None:
        raise ValueError("when: expected a datetime with a zone, as this one may mean many moments")
    return (moment - _EPOCH) // _MS


def _next_day_ms(rule: Daily, *, after_ms: int) -> int:
    zone = zone_named(rule.zone)
    after = _EPOCH + after_ms * _MS
    # What fell into a gap at the end of a day happens on the next one.
    yesterday = after.astimezone(zone).date() - _DAY
    for days in count():
        day = yesterday + days * _DAY
        if day.weekday() not in rule.days:
            continue
        moment = _moment(day, rule.at, zone)
        if moment > after:
            return (moment - _EPOCH) // _MS
    raise AssertionError("a week has each of its days")


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    """The moment, in UTC, at which the clocks of a zone show this; see the module."""
    shown = datetime.combine(day, at.replace(fold=0))
    moment = shown.replace(tzinfo=zone).astimezone(UTC)
    if moment.astimezone(zone).replace(tzinfo=None, fold=0) == shown:
        return moment
    # In a gap: read by the clocks as they are after it, it lies before it, and the other way round.
    return _end_of_gap(shown.replace(fold=1, tzinfo=zone).astimezone(UTC), moment, zone)


def _end_of_gap(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """The moment at which the clocks were set, to the second, between these two."""
    old = before.astimezone(zone).utcoffset()
    before = before.replace(microsecond=0)
    after = after.replace(microsecond=0) + _SECOND
    while after - before > _SECOND:
        middle = before + (after - before) // _SECOND // 2 * _SECOND
        if middle.astimezone(zone).utcoffset() == old:
            before = middle
        else:
            after = middle
    return after
