"""The tree of errors: every one of them can be printed as it is."""

from collections.abc import Iterator

import pytest

from storage import errors
from storage.errors import ConfigurationError, DiskFull, Fault, FerrymanError, Usage


def _tree(root: type[FerrymanError]) -> Iterator[type[FerrymanError]]:
    yield root
    for child in root.__subclasses__():
        yield from _tree(child)


OWN = [kind for kind in _tree(FerrymanError) if kind.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", OWN)
def test_an_error_without_a_message_says_its_docstring(kind: type[FerrymanError]) -> None:
    assert str(kind()) == kind.__doc__
    assert str(kind()).endswith(".")


@pytest.mark.parametrize("kind", OWN)
def test_the_docstring_draws_every_error(kind: type[FerrymanError]) -> None:
    assert kind.__name__ in (errors.__doc__ or "").split()


def test_a_message_of_its_own_wins() -> None:
    assert str(DiskFull("no room in state/")) == "no room in state/"


def test_only_a_misunderstood_command_ends_with_two() -> None:
    assert {kind for kind in OWN if kind.exit_code != 1} == {Usage}
    assert Usage.exit_code == 2


def test_a_configuration_error_tells_each_fault_on_its_line() -> None:
    error = ConfigurationError(
        [
            Fault("web.port", "ferryman.toml:3", "expected a number"),
            Fault("bots", "missing", "expected at least one bot"),
        ]
    )
    assert str(error).splitlines() == [
        "web.port: expected a number (ferryman.toml:3)",
        "bots: expected at least one bot (missing)",
    ]
