"""What commands print: lines for a person, or one JSON document for a program.

Every text passes the redaction of the log, so that a token that got into a reason or a description
gets no further.
"""

import dataclasses
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from bot.cli.parser import EXIT_FAILED
from bot.cli.text import counted
from storage.errors import ConfigurationError, FerrymanError
from storage.telemetry import redact


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one of several things that a command was asked to do."""

    told: str
    is_done: bool


def say(lines: Iterable[str]) -> None:
    """Print lines for a person."""
    for line in lines:
        print(redact(line))


def say_json(document: object) -> None:
    """Print one document; dataclasses become objects with their fields' names, units included."""
    print(redact(json.dumps(document, default=_plain, ensure_ascii=False, indent=2)))


def say_outcomes(outcomes: Sequence[Outcome]) -> int:
    """Print what was done, and on stderr what could not be; give the exit code."""
    for outcome in outcomes:
        print(redact(outcome.told), file=sys.stdout if outcome.is_done else sys.stderr)
    return 0 if all(outcome.is_done for outcome in outcomes) else EXIT_FAILED


def _plain(value: object) -> dict[str, Any]:
    """Turn what JSON has no form for into what it has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fields_of(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fields_of(value: Any) -> dict[str, Any]:  # noqa: ANN401 - any dataclass
    """The fields of a dataclass by their names, what is inside left as it is."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def say_failure(error: FerrymanError) -> None:
    """Print what went wrong on stderr: each fault of a configuration on a line of its own."""
    told = str(error)
    if isinstance(error, ConfigurationError) and len(error.faults) > 1:
        lines = (f"  {fault}" for fault in error.faults)
        told = "\n".join([f"the configuration has {counted(len(error.faults), 'fault')}:", *lines])
    print(redact(f"ferryman: {told}"), file=sys.stderr)


def version() -> str:
    """The version of Ferryman that is installed; a bare source tree has none."""
    try:
        return metadata.version("ferryman")
    except metadata.PackageNotFoundError:
        return "0 (not installed)"
