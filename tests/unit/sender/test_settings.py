"""The sender is given tokens; only setting a webhook needs its secret."""

from pathlib import Path

import pytest

from sender.settings import load_sender, load_webhook
from storage.errors import ConfigurationError

TOKEN = "123456789:AAF-made_up_for_these_tests_0123456789"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ferryman.toml"
    path.write_text('[bots.main]\ntoken_file = "token"\nsecret_file = "secret"\n')
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "secret").write_text("newer\nbygone\n")
    return path


def test_the_sender_starts_without_readable_webhook_secrets(config: Path) -> None:
    (config.parent / "secret").unlink()
    sender = load_sender(config, {"NOTIFY_SOCKET": "/run/n"})
    assert sender.secret_values() == [TOKEN]
    assert sender.service.notify_socket == "/run/n"
    with pytest.raises(ConfigurationError):
        load_webhook(config, {})


def test_setting_a_webhook_needs_token_and_secret(config: Path) -> None:
    webhook = load_webhook(config, {})
    assert webhook.secret_values() == [TOKEN, "newer", "bygone"]
    assert webhook.secrets["main"][0].reveal() == "newer"  # type: ignore[index]  # a plain name


def test_no_secret_is_seen_in_a_repr(config: Path) -> None:
    shown = repr(load_sender(config, {})) + repr(load_webhook(config, {}))
    for secret in (TOKEN, "newer", "bygone"):
        assert secret not in shown


def test_a_missing_token_stops_the_sender(config: Path) -> None:
    (config.parent / "token").unlink()
    with pytest.raises(ConfigurationError) as caught:
        load_sender(config, {})
    assert [fault.key for fault in caught.value.faults] == ["bots.main.token_file"]
