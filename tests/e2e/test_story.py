"""The demo's story as a test, and what may not be found in anything it leaves behind."""

import asyncio
import io
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from storage.clock import SystemClock
from tests.demo.stage import Stage
from tests.demo.story import play, set_stage
from tests.demo.timeline import Timeline

# Words of the story's people and of the corpus; a log that holds one of them has leaked.
WORDS = (
    "When do you leave",
    "What does a ticket cost",
    "May my dog come along",
    "When is the last departure",
    "El Psy Kongroo",
)


@dataclass(frozen=True, slots=True)
class Played:
    """What is left after the story: what it printed, and everything that was written or shown."""

    failed: list[str]
    printed: str
    logs: dict[str, str]
    shown: dict[str, str]
    token: str
    secret: str


async def _shown(stage: Stage) -> dict[str, str]:
    async with httpx.AsyncClient(base_url=stage.house.url, trust_env=False) as http:
        pages = {path: (await http.get(path)).text for path in ("/", "/status.json", "/readyz")}
    for words in (
        ["status"],
        ["status", "--json"],
        ["queue"],
        ["review", "list"],
        ["dead", "list"],
    ):
        pages[" ".join(words)] = (await stage.house.command(*words))[1]
    return pages


async def _play(folder: Path) -> Played:
    out = io.StringIO()
    told = Timeline(SystemClock(), out)
    async with set_stage(folder, told) as (stage, _):
        await play(stage)
        shown = await _shown(stage)
        await stage.house.stop()
        logs = {role: stage.house.log_of(role).read_text() for role in ("web", "worker", "sender")}
        return Played(told.failed, out.getvalue(), logs, shown, stage.bot.token, stage.bot.secret)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """The whole story, once."""
    return asyncio.run(_play(tmp_path_factory.mktemp("story")))


@pytest.mark.timeout(180)
def test_every_check_of_the_story_holds(played: Played) -> None:
    assert played.failed == [], played.printed


def test_the_debug_logs_hold_no_token_no_secret_and_no_words_of_a_user(played: Played) -> None:
    for role, log in played.logs.items():
        assert '"' in log, role
        for forbidden in (played.token, played.token.split(":")[1], played.secret, *WORDS):
            assert forbidden not in log, f"{role}: {forbidden}"


def test_pages_and_commands_hold_no_token_no_secret_and_no_words_of_a_user(played: Played) -> None:
    for name, text in played.shown.items():
        assert text, name
        for forbidden in (played.token, played.token.split(":")[1], played.secret, *WORDS):
            assert forbidden not in text, f"{name}: {forbidden}"


def test_no_log_holds_a_traceback(played: Played) -> None:
    for role, log in played.logs.items():
        assert "Traceback" not in log, role
