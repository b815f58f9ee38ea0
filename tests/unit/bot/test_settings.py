"""Each role is given its own secrets and no other's."""

from pathlib import Path

import pytest

from bot.settings import load_web, load_worker
from storage.errors import ConfigurationError

TOKEN = "123456789:AAF-made_up_for_these_tests_0123456789"
API_TOKEN = "an-api-token-of-some-length"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ferryman.toml"
    path.write_text(
        '[web]\napi_token_file = "api"\n[bots.main]\ntoken_file = "token"\nsecret_file = "secret"\n'
    )
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "secret").write_text("newer\nbygone\n")
    (tmp_path / "api").write_text(API_TOKEN)
    return path


def test_web_starts_without_a_readable_token(config: Path) -> None:
    (config.parent / "token").unlink()
    web = load_web(config, {})
    [secrets] = web.secrets.values()
    assert [secret.reveal() for secret in secrets] == ["newer", "bygone"]
    assert web.secret_values() == ["newer", "bygone", API_TOKEN]


def test_web_holds_no_token_even_if_the_environment_has_one(config: Path) -> None:
    web = load_web(config, {"FERRYMAN_BOTS__MAIN__TOKEN": TOKEN})
    assert TOKEN not in web.secret_values()
    assert TOKEN not in repr(web.settings.model_dump())


def test_web_without_a_webhook_needs_no_secret(config: Path) -> None:
    """As where updates are polled."""
    (config.parent / "secret").unlink()
    assert load_web(config, {}, webhook="unused").secrets == {}
    with pytest.raises(ConfigurationError) as caught:
        load_web(config, {})
    assert [fault.key for fault in caught.value.faults] == ["bots.main.secret_file"]


def test_the_worker_starts_without_readable_webhook_secrets(config: Path) -> None:
    (config.parent / "secret").unlink()
    (config.parent / "api").unlink()
    worker = load_worker(config, {})
    assert worker.secret_values() == [TOKEN]


def test_no_secret_is_seen_in_a_repr(config: Path) -> None:
    shown = repr(load_web(config, {})) + repr(load_worker(config, {}))
    for secret in (TOKEN, API_TOKEN, "newer", "bygone"):
        assert secret not in shown


def test_each_role_tells_all_of_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "ferryman.toml"
    path.write_text('[web]\nport = 99999\napi_token_file = "none"\n[bots.a]\n[bots.b]\n')
    with pytest.raises(ConfigurationError) as caught:
        load_web(path, {})
    assert {fault.key for fault in caught.value.faults} == {
        "web.port",
        "web.api_token_file",
        "bots.a.secret",
        "bots.b.secret",
    }
    with pytest.raises(ConfigurationError) as caught:
        load_worker(path, {})
    assert {fault.key for fault in caught.value.faults} == {
        "web.port",
        "bots.a.token",
        "bots.b.token",
    }


def test_the_service_managers_words_come_along(config: Path) -> None:
    environ = {"NOTIFY_SOCKET": "/run/n"}
    assert load_web(config, environ).service.notify_socket == "/run/n"
    assert load_worker(config, environ).service.notify_socket == "/run/n"
