"""The demo's voice: one readable line for each thing that happens, and when it did."""

import sys
from typing import TextIO

from storage.clock import Clock

_GREEN, _RED, _DIM, _BOLD, _PLAIN = "\x1b[32m", "\x1b[31m", "\x1b[2m", "\x1b[1m", "\x1b[0m"


class Timeline:
    """Prints the story, in colour when a person watches."""

    def __init__(self, clock: Clock, out: TextIO = sys.stdout) -> None:
        self._clock = clock
        self._out = out
        self._colour = out.isatty()
        self._began_ms = clock.monotonic_ms()
        self.failed: list[str] = []

    def act(self, title: str) -> None:
        """A new part of the story."""
        self._print("")
        self._print(self._paint(_BOLD, title))

    def tell(self, who: str, what: str) -> None:
        """Something happened."""
        self._print(f"{self._stamp()}  {who:<10} {what}")

    def check(self, claim: str, *, holds: bool, seen: str = "") -> None:
        """Something must be so; what is not makes the demo fail."""
        if not holds:
            self.failed.append(claim)
        mark = self._paint(_GREEN, "  ok  ") if holds else self._paint(_RED, " FAIL ")
        detail = f"  {self._paint(_DIM, seen)}" if seen else ""
        self._print(f"{self._stamp()} {mark} {claim}{detail}")

    def quote(self, text: str) -> None:
        """Another program's own words, set off."""
        for line in text.rstrip().splitlines():
            self._print(self._paint(_DIM, f"              | {line}"))

    def plain(self, text: str) -> None:
        """A line without a time."""
        self._print(text)

    def _stamp(self) -> str:
        passed_ms = self._clock.monotonic_ms() - self._began_ms
        return self._paint(_DIM, f"{passed_ms / 1000:7.2f} s")

    def _paint(self, how: str, text: str) -> str:
        return f"{how}{text}{_PLAIN}" if self._colour else text

    def _print(self, text: str) -> None:
        print(text, file=self._out, flush=True)
