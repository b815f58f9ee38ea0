"""The command as a real process: started, read line by line, signalled, and never left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.integration.cli.site import Site

ROOT = Path(__file__).parents[3]
ENDS_WITHIN_S = 60


def environment(**more: str) -> Mapping[str, str]:
    """This process's environment without any setting of Ferryman's, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FERRYMAN_")}
    return {**kept, "PYTHONPATH": str(ROOT), **more}


def command(site: Site, *words: str) -> list[str]:
    """The words that start a command at a site."""
    return [sys.executable, "-m", "bot", *words, "--config", str(site.config)]


def run(words: Sequence[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        words,
        env=environment(**variables),
        capture_output=True,
        encoding="utf-8",
        timeout=ENDS_WITHIN_S,
        check=False,
    )


class Started:
    """A process that runs until it is told to end. Its log is on stderr, a JSON object a line."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.lines: list[str] = []

    def wait_for(self, event: str, *, count: int = 1) -> None:
        """Read the log until it has that many of an event; fails if the process ends first."""
        assert self._process.stderr is not None
        seen = 0
        for line in self._process.stderr:
            self.lines.append(line)
            seen += line.startswith("{") and json.loads(line)["event"] == event
            if seen == count:
                return
        raise AssertionError(f"ended without {event}:\n{self.log()}")

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end; its exit code."""
        _, rest = self._process.communicate(timeout=ENDS_WITHIN_S)
        self.lines += rest.splitlines(keepends=True)
        return self._process.returncode

    def log(self) -> str:
        """All that it has logged, as far as it was read."""
        return "".join(self.lines)

    def events(self) -> list[str]:
        """The names of the events that it has logged."""
        return [json.loads(line)["event"] for line in self.lines if line.startswith("{")]


@contextlib.contextmanager
def started(words: Sequence[str], **variables: str) -> Iterator[Started]:
    """Start a process for a block; it is killed if it still runs then."""
    with subprocess.Popen(
        words,
        env=environment(**variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        try:
            yield Started(process)
        finally:
            process.kill()
