"""Channels beside Telegram: how they are configured, and how their lanes and scopes are named."""

from pathlib import Path

import pytest

from sender.settings import load_sender
from storage.cooldowns import bot_scope
from storage.errors import ConfigurationError
from storage.outgoing import TELEGRAM, channel_of, chat_lane, query_lane
from tests.unit.storage.configured import SMALLEST, TOKEN, House, faults_of

CHANNEL = '[channels.sms]\ncontract = "coded"\nbase_url = "https://sms.example.org/v1/"\n'
BEARER = "bearer-of-nobody"


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A directory with room for a configuration."""
    return House(tmp_path)


@pytest.fixture
def given(house: House) -> House:
    """A house with one channel and its token."""
    house.write(SMALLEST + CHANNEL + 'token_file = "sms.token"\n')
    house.keep("main.token", TOKEN)
    house.keep("sms.token", BEARER + "\n")
    return house


def test_a_channel_has_a_contract_an_address_and_a_token(given: House) -> None:
    sender = load_sender(given.path, {})
    [(name, options)] = sender.settings.channels.items()
    assert (name, options.contract, options.base_url) == (
        "sms",
        "coded",
        "https://sms.example.org/v1",
    )
    assert sender.channel_tokens["sms"].reveal() == BEARER
    assert BEARER in sender.secret_values()
    assert BEARER not in repr(sender)


def test_its_token_may_come_from_the_environment_and_never_from_the_file(house: House) -> None:
    house.write(SMALLEST + CHANNEL.replace("channels.sms", "channels.sms-two"))
    house.keep("main.token", TOKEN)
    sender = load_sender(house.path, {"FERRYMAN_CHANNELS__SMS_TWO__TOKEN": BEARER})
    assert sender.channel_tokens["sms-two"].reveal() == BEARER
    house.write(SMALLEST + CHANNEL + f'token = "{BEARER}"\n')
    fault = house.only_fault()
    assert fault.key == "channels.sms.token"
    assert "no secret belongs into this file" in fault.expected


def test_without_a_token_the_sender_does_not_start_and_others_do(given: House) -> None:
    given.write(SMALLEST + CHANNEL)
    with pytest.raises(ConfigurationError) as caught:
        load_sender(given.path, {})
    [fault] = caught.value.faults
    assert fault.key == "channels.sms.token"
    assert "FERRYMAN_CHANNELS__SMS__TOKEN" in fault.expected
    assert given.load().channels["sms"].token_file == ""


@pytest.mark.parametrize("token", ["short", "two words here", "crlf\r\nX-Header: injected"])
def test_a_token_that_no_header_can_carry_is_refused(given: House, token: str) -> None:
    given.keep("sms.token", token)
    reading = given.reading()
    assert not reading.channel_tokens()
    [fault] = faults_of(reading)
    assert fault.key == "channels.sms.token"
    assert token not in repr(fault)


@pytest.mark.parametrize(
    ("table", "key"),
    [
        (CHANNEL.replace('"coded"', '"guessed"'), "channels.sms.contract"),
        (CHANNEL.replace('contract = "coded"\n', ""), "channels.sms.contract"),
        ('[channels.sms]\ncontract = "coded"\n', "channels.sms.base_url"),
        (CHANNEL.replace("https://", "ftp://"), "channels.sms.base_url"),
        (CHANNEL.replace("https://", "http://"), "channels.sms.base_url"),
        (CHANNEL.replace("https://", "https://user:word@"), "channels.sms.base_url"),
        (CHANNEL + "retry_after = 5\n", "channels.sms.retry_after"),
        (CHANNEL.replace("channels.sms", "channels.telegram"), "channels.telegram"),
        (CHANNEL.replace("channels.sms", "channels.SMS"), "channels.SMS"),
    ],
)
def test_a_channel_is_explained_by_its_key(house: House, table: str, key: str) -> None:
    house.write(SMALLEST + table)
    assert house.only_fault().key == key


def test_a_token_may_stay_in_the_clear_on_this_machine(house: House) -> None:
    house.write(SMALLEST + CHANNEL.replace("https://sms.example.org", "http://127.0.0.1:9000"))
    assert house.load().channels["sms"].base_url == "http://127.0.0.1:9000/v1"


@pytest.mark.parametrize(
    ("lane", "channel", "scope"),
    [
        (chat_lane(7), TELEGRAM, "bot"),
        (chat_lane(7, "conn"), TELEGRAM, "bot"),
        (query_lane("x:8"), TELEGRAM, "bot"),
        (chat_lane("7", channel="sms"), "sms", "bot@sms"),
        (chat_lane("+49:7", channel="sms"), "sms", "bot@sms"),
    ],
)
def test_a_lane_tells_its_channel_and_the_scope_of_all_that_is_said_on_it(
    lane: str, channel: str, scope: str
) -> None:
    assert (channel_of(lane), bot_scope(lane)) == (channel, scope)
