"""A configured place with a filled database, and a way to type commands there."""

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.cli.main import main
from tests.integration.cli.site import PLANTED, Rows, Site, configured, filled


@dataclass(frozen=True, slots=True)
class Printed:
    """What a command left: its exit code and its words."""

    code: int
    out: str
    err: str

    def document(self) -> Any:  # noqa: ANN401 - whatever the command's document is
        """What `--json` printed."""
        return json.loads(self.out)


Typed = Callable[..., Printed]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A configuration and its secrets, without a database."""
    return configured(tmp_path)


@pytest.fixture
def rows(site: Site) -> Rows:
    """A filled database at the site."""
    return filled(site)


@pytest.fixture(autouse=True)
def log_put_back() -> Iterator[None]:
    """A command opens the log of its process, which here is the tests' own."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.raiseExceptions)
    hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    yield
    root.handlers, level, logging.raiseExceptions = before
    root.setLevel(level)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks


@pytest.fixture
def ferryman(site: Site, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type a command at the site; nothing planted may be printed unless `--texts` asks for it."""

    def typed(line: str) -> Printed:
        capsys.readouterr()
        code = main([*line.split(), "--config", str(site.config)])
        printed = Printed(code, *capsys.readouterr())
        hidden = PLANTED[:-1] if "--texts" in line else PLANTED
        leaked = [each for each in hidden if each in printed.out + printed.err]
        assert leaked == [], f"{line!r} printed what nobody may see"
        return printed

    return typed
