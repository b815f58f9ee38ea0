"""Secrets: where they are sought, what they must look like, and that they are never shown."""

import copy
import pickle
from pathlib import Path

import pytest

from storage.errors import ConfigurationError
from storage.settings import Secret, Token
from tests.unit.storage.configured import SMALLEST, TOKEN, House, faults_of


@pytest.fixture
def house(tmp_path: Path) -> House:
    made = House(tmp_path)
    made.write()
    return made


def test_a_token_comes_from_its_file_or_from_the_environment(house: House) -> None:
    house.keep("main.token", f"{TOKEN}\n")
    token = house.reading().tokens()
    assert {name: secret.reveal() for name, secret in token.items()} == {"main": TOKEN}
    other = TOKEN.replace("123456789", "987654321")
    house.environ["FERRYMAN_BOTS__MAIN__TOKEN"] = other
    assert [secret.bot_id for secret in house.reading().tokens().values()] == [987654321]


def test_a_bot_can_come_from_the_environment_alone(house: House) -> None:
    house.write("")
    house.environ["FERRYMAN_BOTS__MAIN__TOKEN"] = TOKEN
    reading = house.reading()
    assert list(reading.tokens()) == ["main"]
    assert list(reading.finish().bots) == ["main"]


def test_a_name_with_a_dash_is_written_with_an_underscore_in_the_environment(
    house: House,
) -> None:
    house.write("[bots.my-bot]\n")
    house.environ["FERRYMAN_BOTS__MY_BOT__TOKEN"] = TOKEN
    assert list(house.reading().tokens()) == ["my-bot"]


def test_credentials_are_sought_before_the_files_beside_the_configuration(
    house: House, tmp_path: Path
) -> None:
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    house.environ["CREDENTIALS_DIRECTORY"] = str(credentials)
    house.keep("main.secret", "beside")
    [secret] = house.reading().webhook_secrets().values()
    assert [one.reveal() for one in secret] == ["beside"]
    (credentials / "main.secret").write_text("credential")
    [secret] = house.reading().webhook_secrets().values()
    assert [one.reveal() for one in secret] == ["credential"]


def test_an_absolute_name_is_taken_as_it_is(house: House, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "s").write_text("far")
    house.write(f'[bots.main]\nsecret_file = "{tmp_path}/elsewhere/s"\n')
    assert house.reading().webhook_secrets()


def test_two_secrets_are_valid_while_they_are_being_changed(house: House) -> None:
    house.keep("main.secret", "newer_one\n\n  older-one  \n")
    [secrets] = house.reading().webhook_secrets().values()
    assert [one.reveal() for one in secrets] == ["newer_one", "older-one"]


@pytest.mark.parametrize("content", ["a b", "a\nb\nc", "ünsafe", "x" * 257, "a:b", " ", ""])
def test_a_webhook_secret_has_telegrams_alphabet(house: House, content: str) -> None:
    house.keep("main.secret", content)
    reading = house.reading()
    assert reading.webhook_secrets() == {}
    [fault] = faults_of(reading)
    assert fault.key.startswith("bots.main.secret")
    assert fault.source == f"{house.path}:3"


@pytest.mark.parametrize("content", ["123:short", "rubbish", f"{TOKEN} x", "abc:" + "x" * 35])
def test_a_malformed_token_is_told_without_showing_it(house: House, content: str) -> None:
    house.keep("main.token", content)
    reading = house.reading()
    assert reading.tokens() == {}
    [fault] = faults_of(reading)
    assert fault.source == f"{house.path}:2"
    assert content not in str(fault)


def test_a_missing_secret_names_both_ways_to_give_it(house: House) -> None:
    house.write("[bots.main]\n")
    reading = house.reading()
    reading.tokens()
    [fault] = faults_of(reading)
    assert (fault.key, fault.source) == ("bots.main.token", "missing")
    assert "token_file in [bots.main]" in fault.expected
    assert "FERRYMAN_BOTS__MAIN__TOKEN" in fault.expected


def test_faults_of_values_and_of_secrets_are_told_together(house: House) -> None:
    house.write(SMALLEST + "[web]\nport = -1\n")
    reading = house.reading()
    reading.tokens()
    reading.webhook_secrets()
    keys = {fault.key for fault in faults_of(reading)}
    assert keys == {"web.port", "bots.main.token_file", "bots.main.secret_file"}


def test_two_bots_may_not_share_a_token(house: House) -> None:
    """Nor may one bot have two names by a token that was changed."""
    house.write("[bots.a]\n[bots.b]\n")
    house.environ["FERRYMAN_BOTS__A__TOKEN"] = TOKEN
    house.environ["FERRYMAN_BOTS__B__TOKEN"] = TOKEN[:-1] + "x"
    reading = house.reading()
    reading.tokens()
    [fault] = faults_of(reading)
    assert fault.key == "bots.b.token"
    assert "bots.a" in fault.expected


@pytest.mark.parametrize("text", ["short", "with spaces in it here", "ü" * 20])
def test_a_weak_api_token_is_refused(house: House, text: str) -> None:
    house.environ["FERRYMAN_WEB__API_TOKEN"] = text
    reading = house.reading()
    assert reading.api_token() is None
    [fault] = faults_of(reading)
    assert fault.key == "web.api_token"
    assert text not in str(fault)


def test_without_an_api_token_the_api_is_off(house: House) -> None:
    reading = house.reading()
    assert reading.api_token() is None
    reading.finish()
    house.environ["FERRYMAN_WEB__API_TOKEN"] = "0123456789abcdef"
    assert house.reading().api_token() == Secret("0123456789abcdef")


def test_an_empty_variable_is_no_secret(house: House) -> None:
    house.environ["FERRYMAN_BOTS__MAIN__TOKEN"] = " "
    reading = house.reading()
    assert reading.tokens() == {}
    [fault] = faults_of(reading)
    assert fault.source == "environment variable FERRYMAN_BOTS__MAIN__TOKEN"


@pytest.mark.parametrize("key", ["token", "secret"])
def test_a_secret_in_the_configuration_file_is_refused_unseen(house: House, key: str) -> None:
    house.write(f'[bots.main]\n{key} = "{TOKEN}"\n')
    fault = house.only_fault()
    assert f"{key}_file" in fault.expected
    assert TOKEN not in str(fault)


@pytest.mark.parametrize(
    "line",
    [
        'token_file = "{token}"',
        'secret_file = "{token}"',
        'handlers = "{token}"',
        'tokn = "{token}"',
        '"{token}" = 1',
        'limits = "{token}"',
        'admins = ["{token}"]',
    ],
)
def test_a_token_in_the_wrong_place_is_never_shown(house: House, line: str) -> None:
    house.keep("main.token", TOKEN)
    house.write("[bots.main]\n" + line.format(token=TOKEN) + "\n")
    reading = house.reading()
    reading.tokens()
    reading.webhook_secrets()
    with pytest.raises(ConfigurationError) as caught:
        reading.finish()
    assert TOKEN not in str(caught.value)
    assert TOKEN[10:] not in repr(caught.value)


def test_a_secret_that_is_no_text_is_told_as_such(house: House) -> None:
    (house.path.parent / "main.token").write_bytes(b"\xff\xfe")
    reading = house.reading()
    reading.tokens()
    assert "UTF-8" in faults_of(reading)[0].expected


def test_a_directory_is_no_secret_and_a_huge_file_neither(house: House) -> None:
    (house.path.parent / "main.token").mkdir()
    house.keep("main.secret", "x" * 100_000)
    reading = house.reading()
    reading.tokens()
    reading.webhook_secrets()
    found = {fault.key: fault.expected for fault in faults_of(reading)}
    assert "directory" in found["bots.main.token_file"]
    assert "too large" in found["bots.main.secret_file"]


def test_a_file_name_that_is_no_text_is_a_fault_of_its_own(house: House) -> None:
    house.write("[bots.main]\ntoken_file = 3\n")
    reading = house.reading()
    reading.tokens()
    [fault] = faults_of(reading)
    assert fault.key == "bots.main.token_file"


def test_a_secret_shows_itself_only_when_asked() -> None:
    token = Token(TOKEN)
    assert TOKEN not in f"{token} {token!r} {[token]} {vars(type(token))}"
    assert token.reveal() == TOKEN
    assert token.bot_id == 123456789
    assert token == Secret(TOKEN)
    assert token != Secret("other")
    assert token != TOKEN
    assert len({token, Token(TOKEN)}) == 1
    with pytest.raises(TypeError):
        pickle.dumps(token)
    with pytest.raises(TypeError):
        copy.deepcopy(token)
