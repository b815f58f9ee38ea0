"""What of a changed configuration is a limit, and what takes a restart."""

from pathlib import Path

from sender.limits import changed, needing_restart, pace_of, values_of
from sender.settings import SenderSettings
from storage.lifecycle import BotName
from storage.options import BotOptions, Limits, LimitsOverride, SenderOptions, Settings
from storage.secret import Token
from storage.settings import ServiceEnvironment

MAIN = BotName("main")
TOKEN = "7000000001:AAaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"


def settings_of(limits: Limits | None = None, *, in_flight_max: int = 32) -> Settings:
    return Settings(
        state_dir=Path("state"),
        bots={"main": BotOptions()},
        limits=limits or Limits(),
        sender=SenderOptions(in_flight_max=in_flight_max),
    )


def given_of(settings: Settings, token: str = TOKEN) -> SenderSettings:
    return SenderSettings(settings, {MAIN: Token(token)}, ServiceEnvironment())


def test_a_bots_own_limits_come_before_the_houses() -> None:
    own = BotOptions(limits=LimitsOverride(bulk_per_second=5.0, stars_budget=12))
    settings = settings_of(Limits(paid_per_second=40, stars_budget=3)).model_copy(
        update={"bots": {"main": own}}
    )
    pace = pace_of(settings, MAIN)
    assert (pace.rates.bulk_per_second, pace.rates.paid_per_second) == (5.0, 40)
    assert (pace.stars_budget, pace.flood_scope, pace.in_flight_max) == (12, "adaptive", 32)


def test_only_what_differs_is_told() -> None:
    before = values_of(settings_of(), MAIN)
    after = values_of(settings_of(Limits(bulk_per_second=10.0)), MAIN)
    assert changed(before, after) == ({"bulk_per_second": 25.0}, {"bulk_per_second": 10.0})


def test_limits_need_no_restart_and_all_else_does() -> None:
    before = given_of(settings_of())
    assert needing_restart(before, given_of(settings_of(Limits(chat_burst=3)))) == []
    other = given_of(settings_of(in_flight_max=8))
    assert needing_restart(before, other) == ["sender.in_flight_max"]


def test_a_bots_own_limits_need_no_restart_either() -> None:
    own = BotOptions(limits=LimitsOverride(chat_burst=3))
    after = settings_of().model_copy(update={"bots": {"main": own}})
    assert needing_restart(given_of(settings_of()), given_of(after)) == []


def test_a_new_bot_and_a_new_token_need_a_restart() -> None:
    before = given_of(settings_of())
    more = settings_of().model_copy(update={"bots": {"main": BotOptions(), "two": BotOptions()}})
    assert needing_restart(before, given_of(more)) == ["bots.two"]
    assert needing_restart(before, given_of(settings_of(), TOKEN[:-1] + "b")) == ["bots.main.token"]
