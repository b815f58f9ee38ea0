"""The grammar of the command line: what is understood, and what is said of what is not."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.cli.main import main, parser
from bot.cli.parser import parse
from storage.errors import Usage


def _refused(*words: str) -> str:
    with pytest.raises(Usage) as refused:
        parse(parser(), words)
    return str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ["--config", "a.toml", "status"],
        ["status", "--config", "a.toml"],
        ["--config", "b.toml", "status", "--config", "a.toml"],
        ["dead", "list", "--config", "a.toml"],
        ["--config", "a.toml", "dead", "list"],
    ],
)
def test_the_configuration_is_named_before_or_after_the_command(words: Sequence[str]) -> None:
    assert parse(parser(), words).config == Path("a.toml")


@pytest.mark.parametrize(
    "line",
    [
        "run",
        "run --polling",
        "web",
        "worker",
        "sender",
        "check",
        "check web --json",
        "check --polling",
        "migrate",
        "webhook set",
        "webhook set main --drop-pending",
        "webhook info --json",
        "webhook delete main",
        "status --json",
        "queue --bot main --limit 5 --json",
        "show 34",
        "show c34 --texts",
        "show u12 --json",
        "show --update 12",
        "review list --limit 3 --json",
        "review resolve c34 c35 36 resend",
        "review resolve 34 sent",
        "dead list --json",
        "dead show u12 --texts",
        "dead requeue u12 c34",
    ],
)
def test_every_command_is_understood(line: str) -> None:
    assert callable(parse(parser(), line.split()).run)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "COMMAND"),
        ("statsu", "unknown command 'statsu'; did you mean status?"),
        ("xyzzy", "expected one of: run, web, worker"),
        ("dead requeu u1", "unknown action 'requeu'; did you mean requeue?"),
        ("dead", "ACTION"),
        ("status --jsn", "unknown option '--jsn'; did you mean --json?"),
        ("status twice", "'twice' is one word too many; see ferryman status --help"),
        ("review resolve c3 snt", "unknown decision 'snt'; did you mean sent?"),
        ("review resolve sent", "such as c34"),
        ("review resolve u3 sent", "such as c34"),
        ("dead requeue 12", "u12 for an update or c34 for a call"),
        ("dead show 12", "u12 for an update or c34 for a call"),
        ("show twelve", "such as c34"),
        ("show -1", "ID"),
        ("show 99999999999999999999", "such as c34"),
        ("show ١٢", "such as c34"),
        ("queue --limit 0", "expected a number from 1 up"),
        ("queue --limit many", "expected a number from 1 up"),
    ],
)
def test_what_is_not_understood_is_answered_with_what_would_be(line: str, said: str) -> None:
    assert said in _refused(*line.split())


def test_a_secret_given_as_an_option_is_not_repeated() -> None:
    assert "hush" not in _refused("web", "--token=hush")


def test_misuse_exits_with_two_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statsu"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "ferryman: unknown command 'statsu'; did you mean status?\n"


def test_the_help_names_every_command_and_ends_with_examples(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    for name in (
        *("run", "web", "worker", "sender", "check", "migrate"),
        *("webhook", "status", "queue", "show", "review", "dead"),
    ):
        assert f"\n    {name} " in told
    assert "examples:\n  ferryman check" in told


@pytest.mark.parametrize("line", ["status", "dead requeue", "review resolve", "run", "webhook set"])
def test_each_command_has_help_that_fits_a_terminal(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*line.split(), "--help"])
    told = capsys.readouterr().out
    assert "--config PATH" in told
    assert max(map(len, told.splitlines())) <= 100


def test_the_version_is_the_distributions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith("ferryman ")
