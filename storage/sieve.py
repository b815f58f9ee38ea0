"""Which of what was given up is meant: by its bot, its kind, its reason, and when it ended.

Pure data, the same for updates and for calls.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sieve:
    """What passes; None lets everything pass. Times are UTC milliseconds.

    `kind`: of an update as Telegram names it, of a call its method. `reason`: what stands in it, in
    whatever case. `since_ms` counts in, `before_ms` does not.
    """

    bot: str | None = None
    kind: str | None = None
    reason: str | None = None
    since_ms: int | None = None
    before_ms: int | None = None

    def params(self) -> dict[str, str | int | None]:
        """As the statements take it."""
        return {
            "bot": self.bot,
            "kind": self.kind,
            "reason": None if self.reason is None else self.reason.lower(),
            "since_ms": self.since_ms,
            "before_ms": self.before_ms,
        }


ALL = Sieve()
"""Everything passes."""
