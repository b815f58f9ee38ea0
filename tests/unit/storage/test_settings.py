"""The configuration: what is read from where, and how its faults are told."""

import os
from ipaddress import ip_network
from pathlib import Path

import pytest
from pydantic import ValidationError

from storage.lifecycle import OnUncertain
from storage.options import LimitsOverride
from storage.settings import (
    Limits,
    NoFile,
    Reading,
    Secret,
    has_config_variable,
    load,
    service_environment,
)
from tests.unit.storage.configured import SMALLEST, TOKEN, House, faults_of


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path)
    made.write()
    return made


def test_the_smallest_file_gives_the_documented_defaults(house: House) -> None:
    settings = house.load()
    assert settings.log_level == "INFO"
    assert (settings.web.host, settings.web.port) == ("127.0.0.1", 8080)
    assert settings.web.trusted_proxies == (ip_network("127.0.0.1"),)
    assert settings.web.allowed_networks == ()
    assert settings.telegram.base_url == "https://api.telegram.org"
    assert settings.limits == Limits(
        chat_per_second=1.0,
        chat_burst=1,
        group_per_minute=20,
        bot_per_second=30,
        bulk_per_second=25,
        flood_scope="adaptive",
    )
    assert settings.delivery.reply_ttl_s == 3600
    assert settings.delivery.broadcast_ttl_s == 86400
    assert settings.delivery.on_uncertain is OnUncertain.HOLD
    assert settings.delivery.attempts_max == 5
    assert settings.delivery.read_timeout_s == 30
    assert settings.worker.turn_timeout_s == 300
    assert settings.worker.retries == 0
    assert settings.retention.inbox_days == 7
    assert settings.retention.outbox_days == 30
    assert settings.retention.placeholders_days == 400
    assert settings.bots["main"].handlers == "bot.handlers:register"


def test_the_state_directory_stands_beside_the_file(house: House) -> None:
    """Wherever the command was typed."""
    directory = house.path.parent
    assert house.load().state_dir == directory / "state"
    assert house.load().database_path == directory / "state" / "ferryman.db"
    house.environ["FERRYMAN_STATE_DIR"] = "/var/lib/ferryman"
    assert house.load().state_dir == Path("/var/lib/ferryman")


def test_settings_are_frozen(house: House) -> None:
    with pytest.raises(ValidationError):
        house.load().log_level = "DEBUG"  # type: ignore[misc]  # what this test is about


def test_the_file_is_found_by_the_environment(house: House) -> None:
    assert load(None, {"FERRYMAN_CONFIG": str(house.path)}).bots


def test_the_process_environment_is_read_by_default(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("FERRYMAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FERRYMAN_CONFIG", str(house.path))
    monkeypatch.setenv("FERRYMAN_WEB__PORT", "9000")
    monkeypatch.setenv("NO_COLOR", "1")
    assert load().web.port == 9000
    assert service_environment().no_color == "1"


def test_without_a_file_the_fault_says_how_to_give_one() -> None:
    [fault] = faults_of(Reading(None, {}))
    assert fault.source == "missing"
    assert "--config" in fault.expected
    assert "FERRYMAN_CONFIG" in fault.expected
    assert "[bots.main]" in fault.expected


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    [fault] = faults_of(Reading(tmp_path / "none.toml", {}))
    assert fault.source == str(tmp_path / "none.toml")
    assert "No such file" in fault.expected


def test_broken_toml_is_told_with_its_line(house: House) -> None:
    house.write("[bots.main]\nhandlers 3\n")
    fault = house.only_fault()
    assert fault.source == str(house.path)
    assert "line 2" in fault.expected


def test_a_file_in_another_encoding_is_refused(house: House) -> None:
    house.path.write_bytes(b'log_level = "\xff"\n')
    assert "UTF-8" in house.only_fault().expected


def test_every_fault_is_told_with_key_source_and_expectation(house: House) -> None:
    house.write(
        'log_level = "LOUD"\n'
        "[web]\n"
        "port = 99999\n"
        'public_url = "http://bot.example.org"\n'
        "[limits]\n"
        "chat_burst = 0\n"
        "bot_per_second = inf\n"
        "[bots.main]\n"
        'handlers = "bot.handlers"\n'
        'admins = [1, "two"]\n'
    )
    found = {fault.key: fault for fault in house.faults()}
    assert set(found) == {
        "log_level",
        "web.port",
        "web.public_url",
        "limits.chat_burst",
        "limits.bot_per_second",
        "bots.main.handlers",
        "bots.main.admins.1",
    }
    assert found["web.port"].source == f"{house.path}:3"
    assert found["web.port"].expected == "expected a number less than or equal to 65535, not 99999"
    assert '"LOUD"' in found["log_level"].expected
    assert "https" in found["web.public_url"].expected
    assert "module:callable" in found["bots.main.handlers"].expected
    # The nearest place that is known.
    assert found["bots.main.admins.1"].source == f"{house.path}:10"
    assert all(fault.expected.startswith("expected") for fault in found.values())


def test_a_number_in_quotes_is_no_number(house: House) -> None:
    house.write(SMALLEST + '[web]\nport = "8080"\n')
    assert house.only_fault().key == "web.port"


def test_a_misspelt_key_is_refused_with_the_nearest_one(house: House) -> None:
    house.write(SMALLEST + "[delivery]\nattempt_max = 3\n")
    fault = house.only_fault()
    assert fault.key == "delivery.attempt_max"
    assert "did you mean attempts_max?" in fault.expected


def test_a_misspelt_table_is_refused_with_its_line(house: House) -> None:
    house.write(SMALLEST + "[limit]\nchat_burst = 3\n")
    fault = house.only_fault()
    assert (fault.key, fault.source) == ("limit", f"{house.path}:4")
    assert "did you mean limits?" in fault.expected


def test_a_key_like_no_other_is_answered_with_the_known_ones(house: House) -> None:
    house.write(SMALLEST + "[retention]\nzzz = 3\n")
    assert "inbox_days, outbox_days" in house.only_fault().expected


def test_what_should_be_a_table_is_told_as_such(house: House) -> None:
    house.write("web = 3\n" + SMALLEST)
    assert house.only_fault().expected == "expected a table"


def test_at_least_one_bot_is_expected(house: House) -> None:
    house.write("")
    assert house.only_fault().key == "bots"


@pytest.mark.parametrize("name", ["Main", "1st", "-x", '"a b"'])
def test_a_bot_needs_a_plain_name(house: House, name: str) -> None:
    house.write(f"[bots.{name}]\n")
    assert "beginning with a letter" in house.only_fault().expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("limits.chat_per_second", "0"),
        ("limits.chat_per_second", "-1.5"),
        ("limits.chat_per_second", "nan"),
        ("limits.group_per_minute", "0"),
        ("limits.flood_scope", '"all"'),
        ("limits.paid_per_second", "1001"),
        ("limits.paid_per_second", "-1"),
        ("limits.paid_per_second", "2.5"),
        ("limits.stars_budget", "-1"),
        ("delivery.on_uncertain", '"guess"'),
        ("delivery.on_bare_flood", '"retry"'),
        ("delivery.late_answers", '"later"'),
        ("delivery.read_timeout_s", "5"),
        ("delivery.reply_ttl_s", "0"),
        ("delivery.attempts_max", "true"),
        ("worker.retries", "-1"),
        ("worker.lanes_max", "0"),
        ("sender.in_flight_max", "1.5"),
        ("storage.accept_affected_sqlite", "1"),
        ("web.allowed_networks", '["10.0.0.1/8"]'),
        ("web.allowed_networks", '["Telegram"]'),
        ("web.allowed_networks", "3"),
        ("web.trusted_proxies", '["telegram"]'),
        ("web.trusted_proxies", '"127.0.0.1"'),
        ("web.public_url", '"bot.example.org"'),
        ("web.public_url", '"https://"'),
        ("web.public_url", '"https://user:word@example.org"'),
        ("web.public_url", '"https://example.org/?x=1"'),
        ("web.public_url", '"https://example.org:port"'),
        ("telegram.base_url", '""'),
        ("telegram.base_url", '"ftp://example.org"'),
        ("testing.failpoint", '"web.nowhere"'),
    ],
)
def test_a_value_out_of_bounds_is_refused(house: House, key: str, value: str) -> None:
    table, _, name = key.partition(".")
    house.write(f"{SMALLEST}[{table}]\n{name} = {value}\n")
    fault = house.only_fault()
    assert fault.key.startswith(key)
    assert fault.source == f"{house.path}:5"
    assert fault.expected.startswith("expected")


@pytest.mark.parametrize(
    ("value", "networks"),
    [
        ('"telegram"', ("149.154.160.0/20", "91.108.4.0/22")),
        ('["10.0.0.0/8", "telegram"]', ("10.0.0.0/8", "149.154.160.0/20", "91.108.4.0/22")),
        ('["::1", "127.0.0.1"]', ("::1/128", "127.0.0.1/32")),
        ("[]", ()),
    ],
)
def test_networks_are_read_with_their_preset(
    house: House, value: str, networks: tuple[str, ...]
) -> None:
    house.write(f"{SMALLEST}[web]\nallowed_networks = {value}\n")
    assert tuple(map(str, house.load().web.allowed_networks)) == networks


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://bot.example.org/", "https://bot.example.org"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("", ""),
    ],
)
def test_a_public_address_is_https_or_loopback(house: House, url: str, kept: str) -> None:
    house.write(f'{SMALLEST}[web]\npublic_url = "{url}"\n')
    assert house.load().web.public_url == kept


def test_a_bot_overrides_single_limits(house: House) -> None:
    house.write(
        "[limits]\nchat_burst = 2\nbot_per_second = 20\n"
        '[bots.main]\n[bots.main.limits]\nbot_per_second = 5\nflood_scope = "bot"\n[bots.other]\n'
    )
    settings = house.load()
    assert settings.limits_for("main").bot_per_second == 5
    assert settings.limits_for("main").flood_scope == "bot"
    assert settings.limits_for("main").chat_burst == 2
    assert settings.limits_for("other") == settings.limits


def test_who_may_pay_needs_a_budget(house: House) -> None:
    house.write(SMALLEST + "[bots.other]\n[bots.other.limits]\npaid_per_second = 10\n")
    fault = house.only_fault()
    assert fault.key == "bots.other.limits.stars_budget"
    assert fault.expected.startswith("expected a number of Stars")
    house.write(SMALLEST + "[limits]\npaid_per_second = 10\nstars_budget = 500\n")
    assert house.load().limits_for("main").stars_budget == 500


def test_every_limit_can_be_overridden() -> None:
    assert set(LimitsOverride.model_fields) == set(Limits.model_fields)


def test_a_pool_names_known_bots(house: House) -> None:
    house.write(SMALLEST + '[pools.uploads]\nbots = ["main", "mian"]\nchats = [-100]\n')
    assert house.only_fault().key == "pools.uploads.bots"
    house.write(SMALLEST + '[pools.uploads]\nbots = ["main"]\n')
    fault = house.only_fault()
    assert fault.key == "pools.uploads.chats"
    assert "no default" in fault.expected
    house.write(SMALLEST + "[pools.uploads]\nbots = []\nchats = [-100]\n")
    assert house.only_fault().expected == "expected at least one"


def test_the_environment_lies_over_the_file(house: House) -> None:
    house.write(SMALLEST + "[web]\nport = 1\n[limits]\nchat_burst = 1\n")
    house.environ |= {
        "FERRYMAN_LOG_LEVEL": "DEBUG",
        "FERRYMAN_WEB__PORT": "9000",
        "FERRYMAN_WEB__SOCKET_PATH": "8080",
        "FERRYMAN_WEB__TRUSTED_PROXIES": '["10.0.0.0/8"]',
        "FERRYMAN_WEB__ALLOWED_NETWORKS": "telegram",
        "FERRYMAN_LIMITS": '{"chat_burst": 3, "chat_per_second": 2}',
        "FERRYMAN_LIMITS__CHAT_PER_SECOND": "0.5",
        "FERRYMAN_DELIVERY__ON_UNCERTAIN": "drop",
        "FERRYMAN_STORAGE__ACCEPT_AFFECTED_SQLITE": "true",
        "FERRYMAN_BOTS__MAIN__LIMITS__FLOOD_SCOPE": "chat",
        "UNRELATED": "x",
    }
    settings = house.load()
    assert settings.log_level == "DEBUG"
    assert settings.web.port == 9000
    assert settings.web.socket_path == "8080"
    assert settings.web.trusted_proxies == (ip_network("10.0.0.0/8"),)
    assert len(settings.web.allowed_networks) == 2
    assert settings.limits.chat_burst == 3
    assert settings.limits.chat_per_second == 0.5
    assert settings.delivery.on_uncertain is OnUncertain.DROP
    assert settings.storage.accept_affected_sqlite
    assert settings.limits_for("main").flood_scope == "chat"


def test_a_fault_from_the_environment_names_its_variable(house: House) -> None:
    house.environ["FERRYMAN_WEB__PORT"] = "eighty"
    fault = house.only_fault()
    assert fault.key == "web.port"
    assert fault.source == "environment variable FERRYMAN_WEB__PORT"
    assert '"eighty"' in fault.expected


def test_an_unknown_variable_is_a_fault_too(house: House) -> None:
    house.environ["FERRYMAN_WEB__PROT"] = "1"
    house.environ["FERRYMAN_WEBB__PORT"] = "1"
    found = {fault.key: fault for fault in house.faults()}
    assert "did you mean port?" in found["web.prot"].expected
    assert found["webb"].source == "environment variable FERRYMAN_WEBB__PORT"


def test_a_table_from_the_environment_replaces_the_file_with_its_sources(house: House) -> None:
    house.write(SMALLEST + "[limits]\nchat_burst = 0\n")
    house.environ["FERRYMAN_LIMITS"] = '{"chat_burst": -1}'
    assert house.only_fault().source == "environment variable FERRYMAN_LIMITS"


def test_a_value_where_a_table_belongs_does_not_hide_behind_a_variable(house: House) -> None:
    house.write("web = 3\n" + SMALLEST)
    house.environ["FERRYMAN_WEB__PORT"] = "80"
    assert house.only_fault().key == "web"


def test_the_service_environment_is_read_or_empty() -> None:
    given = service_environment(
        {
            "NOTIFY_SOCKET": "@x",
            "WATCHDOG_USEC": "30000000",
            "WATCHDOG_PID": "7",
            "LISTEN_FDS": "1",
            "LISTEN_PID": "not a number",
            "CREDENTIALS_DIRECTORY": "/run/c",
        }
    )
    assert given.notify_socket == "@x"
    assert given.watchdog_usec == 30_000_000
    assert given.watchdog_pid == 7
    assert given.listen_fds == 1
    assert given.listen_pid == 0
    assert given.credentials_directory == "/run/c"
    assert service_environment({}).notify_socket == ""


def test_without_a_file_a_script_gives_its_token_and_where_telegram_is(tmp_path: Path) -> None:
    reading = Reading(NoFile(tmp_path, Secret(TOKEN), "http://127.0.0.1:1"), {})
    tokens = reading.tokens()
    settings = reading.finish()
    assert {name: token.reveal() for name, token in tokens.items()} == {"main": TOKEN}
    assert settings.telegram.base_url == "http://127.0.0.1:1"
    assert settings.state_dir == tmp_path / "state"


def test_what_the_environment_says_goes_before_what_a_script_says(tmp_path: Path) -> None:
    other = TOKEN.replace("1", "2")
    environ = {
        "FERRYMAN_BOTS__MAIN__TOKEN": other,
        "FERRYMAN_TELEGRAM__BASE_URL": "http://127.0.0.1:2",
        "FERRYMAN_STATE_DIR": "elsewhere",
    }
    reading = Reading(NoFile(tmp_path, Secret(TOKEN), "http://127.0.0.1:1"), environ)
    assert [token.reveal() for token in reading.tokens().values()] == [other]
    settings = reading.finish()
    assert settings.telegram.base_url == "http://127.0.0.1:2"
    assert settings.state_dir == tmp_path / "elsewhere"


def test_a_scripts_token_that_is_none_is_a_fault_that_does_not_show_it(tmp_path: Path) -> None:
    reading = Reading(NoFile(tmp_path, Secret("7:planted")), {})
    assert reading.tokens() == {}
    [fault] = faults_of(reading)
    assert fault.key == "bots.main.token"
    assert fault.source == "the script's own"
    assert "planted" not in str(fault)


def test_the_variable_that_names_a_file_is_seen() -> None:
    assert has_config_variable({"FERRYMAN_CONFIG": "ferryman.toml"})
    assert not has_config_variable({"FERRYMAN_CONFIG": ""})
    assert not has_config_variable({})
