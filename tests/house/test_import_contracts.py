"""The import contracts of pyproject.toml hold, and each is seen to fail.

A contract with a wrong name in it holds for ever. So every one is run over a copy of the tree in
which one import breaks it, and must be among exactly those that the import is meant to break.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from tests.house.sources import OWN, ROOT

LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
_VERDICT = re.compile(r"^(?P<name>.*\S) (?P<verdict>KEPT|BROKEN)\b", re.MULTILINE)


def contracts() -> Mapping[str, str]:
    """Read the name of every contract, and the id it goes by."""
    config: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found = config["tool"]["importlinter"]["contracts"]
    return MappingProxyType({contract["name"]: contract["id"] for contract in found})


@dataclass(frozen=True, slots=True)
class Planted:
    """One line added to one file, and all contracts that it breaks, the one in question first."""

    line: str
    path: str
    breaks: tuple[str, ...]

    def __str__(self) -> str:
        """Name the case."""
        return f"{self.breaks[0]}: {self.line} in {self.path}"


PLANTED = (
    Planted("import tests.house.sources", "bot/cli/__init__.py", ("floors",)),
    Planted("import bot.texts", "storage/retention.py", ("floors",)),
    Planted("import sender.answer", "storage/retention.py", ("floors", "front-door")),
    Planted("import bot.web", "sender/verdict.py", ("floors",)),
    Planted("import sender.verdict", "bot/turns/__init__.py", ("front-door",)),
    Planted("import bot.turns", "bot/web/__init__.py", ("bot",)),
    Planted("import bot.cli", "bot/turns/__init__.py", ("bot",)),
    Planted("", "bot/stray.py", ("bot",)),
    Planted("import sender.drain", "sender/verdict.py", ("sender",)),
    Planted("import sender.pacing", "sender/verdict.py", ("sender",)),
    Planted("", "sender/stray.py", ("sender",)),
    Planted("import storage.inbox", "storage/cooldowns.py", ("storage",)),
    Planted("import storage.database", "storage/lifecycle.py", ("storage",)),
    Planted("", "storage/stray.py", ("storage",)),
    Planted("import jinja2", "storage/chats.py", ("ground", "door-web")),
    Planted("import telegram", "bot/web/__init__.py", ("web", "door-framework")),
    Planted("import aiohttp", "bot/web/__init__.py", ("web", "door-telegram")),
    Planted("import apscheduler", "bot/web/__init__.py", ("web", "door-timetable")),
    Planted("import storage.outbox", "bot/handlers/__init__.py", ("handlers",)),
    Planted("import bot.turns", "bot/handlers/__init__.py", ("handlers",)),
    Planted("import aiosqlite", "storage/chats.py", ("door-disk",)),
    Planted("import pysqlite3", "sender/drain.py", ("door-disk",)),
    Planted("import sqlite3", "bot/web/__init__.py", ("door-disk",)),
    Planted("import aiohttp.web", "sender/drain.py", ("door-telegram",)),
    Planted("import aiohttp", "bot/turns/__init__.py", ("door-telegram",)),
    Planted("import telegram.ext", "sender/drain.py", ("door-framework",)),
    Planted("import httpx", "sender/drain.py", ("door-framework",)),
    Planted("import starlette.routing", "sender/drain.py", ("door-web",)),
    Planted("import uvicorn", "bot/turns/__init__.py", ("door-web",)),
    Planted("import apscheduler.triggers", "sender/drain.py", ("door-timetable",)),
    Planted("import sender.verdict", "tests/simulator/clock.py", ("referee",)),
    Planted("import bot.texts", "tests/simulator/clock.py", ("referee",)),
    Planted("import tests.house.test_tidy", "tests/house/sources.py", ("acyclic",)),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of our code that may be broken."""
    copy = tmp_path_factory.mktemp("planted")
    for package in OWN:
        ignored = shutil.ignore_patterns("__pycache__", "data")
        shutil.copytree(ROOT / package, copy / package, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def broken(tree: Path) -> set[str]:
    """Return the ids of the contracts that do not hold in a tree."""
    done = subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--cache-dir", tree / "cache"],
        cwd=tree,
        env={**os.environ, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    ids = contracts()
    verdicts = {ids[found["name"]]: found["verdict"] for found in _VERDICT.finditer(done.stdout)}
    assert set(verdicts) == set(ids.values()), done.stdout + done.stderr
    failed = {contract for contract, verdict in verdicts.items() if verdict == "BROKEN"}
    assert bool(failed) == (done.returncode != 0), done.stdout
    return failed


@pytest.fixture(scope="module")
def broken_before(tree: Path) -> set[str]:
    """What is broken without any plant; it is reported once, and not again for each plant."""
    return broken(tree)


def test_the_contracts_hold(broken_before: set[str]) -> None:
    assert broken_before == set()


def test_every_contract_has_a_planted_violation() -> None:
    assert {planted.breaks[0] for planted in PLANTED} >= set(contracts().values())


@pytest.mark.parametrize("planted", PLANTED, ids=str)
def test_a_planted_import_breaks_what_it_should(
    tree: Path, broken_before: set[str], planted: Planted
) -> None:
    file = tree / planted.path
    before = file.read_text(encoding="utf-8") if file.exists() else None
    file.write_text(f"{before or ''}\n{planted.line}\n", encoding="utf-8")
    try:
        # An arrow back up always closes a circle with those that lead down.
        found = broken(tree) - broken_before - ({"acyclic"} - set(planted.breaks))
        assert found == set(planted.breaks) - broken_before
    finally:
        file.unlink()
        if before is not None:
            file.write_text(before, encoding="utf-8")
