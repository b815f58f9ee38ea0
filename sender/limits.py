"""What a configuration says about limits, and what of a changed one is heeded without a restart.

Pure.
"""

from collections.abc import Iterator, Mapping, Sequence

from sender.memory import Pace
from sender.pacing import Rates
from sender.settings import SenderSettings
from storage.lifecycle import BotName
from storage.rates import LimitValues
from storage.settings import Settings

_LIMITS = "limits"


def pace_of(settings: Settings, name: BotName) -> Pace:
    """How fast this bot may be, by its own limits where it has them."""
    limits = settings.limits_for(name)
    rates = Rates(
        chat_per_second=limits.chat_per_second,
        chat_burst=limits.chat_burst,
        group_per_minute=limits.group_per_minute,
        bot_per_second=limits.bot_per_second,
        bulk_per_second=limits.bulk_per_second,
        paid_per_second=limits.paid_per_second,
    )
    return Pace(rates, limits.flood_scope, settings.sender.in_flight_max, limits.stars_budget)


def values_of(settings: Settings, name: BotName) -> LimitValues:
    """The limits of a bot by their names in the configuration."""
    values: LimitValues = settings.limits_for(name).model_dump()
    return values


def changed(before: LimitValues, after: LimitValues) -> tuple[LimitValues, LimitValues]:
    """Of two sets of limits, what differs: as it was, and as it is."""
    names = [name for name, value in after.items() if before.get(name) != value]
    return {name: before[name] for name in names if name in before}, {
        name: after[name] for name in names
    }


def needing_restart(before: SenderSettings, after: SenderSettings) -> Sequence[str]:
    """The keys of all that differs and is no limit; nobody changes these under a running role."""
    keys = list(_differing(before.settings.model_dump(), after.settings.model_dump()))
    for name, token in before.tokens.items():
        other = after.tokens.get(name)
        if other is not None and other.reveal() != token.reveal():
            keys.append(f"bots.{name}.token")
    return keys


def _differing(
    before: Mapping[str, object], after: Mapping[str, object], above: str = ""
) -> Iterator[str]:
    for name in dict.fromkeys((*before, *after)):
        was, now = before.get(name), after.get(name)
        if was == now or name == _LIMITS:
            continue
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            yield from _differing(was, now, f"{above}{name}.")
        else:
            yield f"{above}{name}"
