"""`ferryman check`: every fault with its key and remedy, or what would run."""

import sys
from pathlib import Path

import pytest

from storage.migrate import migrations
from tests.integration.cli.conftest import Typed
from tests.integration.cli.site import CONFIGURATION, Rows, Site


def test_all_is_well(ferryman: Typed, site: Site) -> None:
    printed = ferryman("check")
    assert (printed.code, printed.err) == (0, "")
    for fact in (
        "All is well.",
        f"state     {site.state} (no database yet; the first start makes it)",
        "web       listens on 127.0.0.1:8080",
        "web.public_url is not set",
        "telegram  https://api.telegram.org",
        "main  7000000001  bot.handlers:register",
        "chat 1/s (burst 1), group 20/min, bot 30/s, bulk 25/s",
    ):
        assert fact in printed.out
    assert not site.state.exists()


def test_a_program_gets_the_same(ferryman: Typed, rows: Rows) -> None:
    document = ferryman("check --json").document()
    assert document["ok"] is True
    assert document["schema"] == len(migrations())
    assert document["listens"] == "127.0.0.1:8080"
    (bot,) = document["bots"]
    assert (bot["name"], bot["bot_id"]) == ("main", 7_000_000_001)
    assert bot["limits"]["chat_per_second"] == 1.0


def test_the_summary_fits_a_hundred_columns(ferryman: Typed, rows: Rows) -> None:
    assert max(map(len, ferryman("check").out.splitlines())) <= 100


@pytest.mark.parametrize(
    ("added", "key"),
    [
        ("", "public_url is not set"),
        ('[web]\npublic_url = "https://b.example"\n', "https://b.example/telegram/<bot>"),
        ('[web]\nhost = "::1"\n', "listens on [::1]:8080"),
        ('[web]\nsocket_path = "/run/f.sock"\n', "listens on /run/f.sock"),
    ],
)
def test_the_addresses_are_told(added: str, key: str, ferryman: Typed, site: Site) -> None:
    site.config.write_text(CONFIGURATION + added, encoding="utf-8")
    assert key in ferryman("check").out


def test_every_fault_is_told_at_once(ferryman: Typed, site: Site) -> None:
    (site.folder / "main.token").write_text("no token\n", encoding="ascii")
    (site.folder / "main.secret").unlink()
    printed = ferryman("check")
    assert (printed.code, printed.err) == (1, "")
    title, secret, token = printed.out.splitlines()
    assert title == "2 faults:"
    assert secret.startswith("  bots.main.secret_file: expected the name of a file in")
    assert token.startswith("  bots.main.token: expected a bot's token")
    faults = ferryman("check --json").document()
    assert faults["ok"] is False
    assert [sorted(fault) for fault in faults["faults"]] == [["expected", "key", "source"]] * 2


def test_each_role_is_checked_for_what_it_reads(ferryman: Typed, site: Site) -> None:
    """A unit that has only its own secrets checks only those."""
    (site.folder / "main.token").unlink()
    assert ferryman("check web").code == 0
    assert ferryman("check worker").code == 1
    assert ferryman("check sender web").code == 1
    assert ferryman("check wob").err == "ferryman: unknown role 'wob'; did you mean web?\n"


def test_a_channel_is_told_and_its_token_is_asked_of_the_sender_alone(
    ferryman: Typed, site: Site
) -> None:
    channel = '[channels.sms]\ncontract = "coded"\nbase_url = "https://sms.example.org/v1"\n'
    site.config.write_text(CONFIGURATION + channel, encoding="utf-8")
    assert ferryman("check web worker").code == 0
    printed = ferryman("check sender")
    assert printed.code == 1
    assert "expected token_file in [channels.sms]" in printed.out
    (site.folder / "sms.token").write_text("bearer-of-nobody\n", encoding="ascii")
    site.config.write_text(CONFIGURATION + channel + 'token_file = "sms.token"\n', encoding="utf-8")
    printed = ferryman("check")
    assert "channel sms  https://sms.example.org/v1, contract coded" in printed.out
    assert "bearer" not in printed.out
    channels = ferryman("check --json").document()["channels"]
    assert channels == {"sms": {"contract": "coded", "base_url": "https://sms.example.org/v1"}}


def test_polling_needs_no_webhook_secret(ferryman: Typed, site: Site) -> None:
    (site.folder / "main.secret").unlink()
    assert ferryman("check").code == 1
    assert ferryman("check --polling").code == 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "expected a callable in planted_handlers"),
        ("register = 1\n", "expected a callable in planted_handlers"),
        ("import nowhere_at_all\n", "ModuleNotFoundError at planted_handlers.py:1"),
        ("raise ValueError('planted words of a user')\n", "ValueError at planted_handlers.py:1"),
        ("raise SystemExit(0)\n", "SystemExit at planted_handlers.py:1"),
        ("def register(:\n", "SyntaxError"),
    ],
)
def test_handlers_that_cannot_be_used_are_a_fault(
    source: str,
    said: str,
    ferryman: Typed,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (site.folder / "planted_handlers.py").write_text(source, encoding="utf-8")
    site.config.write_text(
        CONFIGURATION + 'handlers = "planted_handlers:register"\n', encoding="utf-8"
    )
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.delitem(sys.modules, "planted_handlers", raising=False)
    printed = ferryman("check")
    assert printed.code == 1
    assert "bots.main.handlers: " in printed.out
    assert said in printed.out


def test_handlers_that_are_not_installed_are_a_fault(ferryman: Typed, site: Site) -> None:
    site.config.write_text(CONFIGURATION + 'handlers = "nowhere.to_be:found"\n', encoding="utf-8")
    assert "bots.main.handlers: expected an importable module" in ferryman("check").out
    assert ferryman("check web").code == 0


@pytest.mark.parametrize("command", ["check", "status", "migrate", "queue"])
def test_a_configuration_with_faults_stops_every_command(
    command: str, ferryman: Typed, site: Site
) -> None:
    site.config.write_text(CONFIGURATION + "\n[limits]\nchat_burts = 1\n", encoding="utf-8")
    printed = ferryman(command)
    assert printed.code == 1
    assert "limits.chat_burts" in printed.out + printed.err
    assert "chat_burst" in printed.out + printed.err


def test_a_missing_configuration_is_named(ferryman: Typed, site: Site, tmp_path: Path) -> None:
    site.config.unlink()
    assert "config: expected a readable file" in ferryman("status").err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", "expected a callable in planted_guards"),
        ("raise ValueError('planted words of a user')\n", "ValueError at planted_guards.py:1"),
    ],
)
def test_a_guard_that_cannot_be_used_is_a_fault_of_the_sender(
    source: str,
    said: str,
    ferryman: Typed,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (site.folder / "planted_guards.py").write_text(source, encoding="utf-8")
    guard = '\n[delivery]\nguard = "planted_guards:guard"\n'
    site.config.write_text(CONFIGURATION + guard, encoding="utf-8")
    monkeypatch.syspath_prepend(site.folder)
    monkeypatch.delitem(sys.modules, "planted_guards", raising=False)
    assert ferryman("check worker").code == 0
    printed = ferryman("check sender")
    assert printed.code == 1
    assert "delivery.guard: " in printed.out
    assert said in printed.out
