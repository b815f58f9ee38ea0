"""The clocks of a world: Telegram's, which is right, and the house's machine's, which may be set.

Both read the loop's virtual time. The machine's wall clock may step and drift; its boot clock does
not, and begins anew under another name when the machine is started again.
"""

from typing import Final

from tests.simulation.loop import START_S, WorldLoop, passing
from tests.simulator.clock import START_MS

# Who looks again each millisecond while the database is busy would be most of a world's work.
BUSY_WAKES_MS: Final = 25


class TrueClock:
    """Telegram's own watch, by which the judge measures."""

    boot_id = "telegram"

    def __init__(self, loop: WorldLoop) -> None:
        self._loop = loop
        self._began_ms = loop.now_ms()

    def now_ms(self) -> int:
        """True time, UTC."""
        return START_MS + self._loop.now_ms() - self._began_ms

    def monotonic_ms(self) -> int:
        """Milliseconds of virtual time."""
        return self._loop.now_ms()

    boot_ms = monotonic_ms

    async def sleep_ms(self, ms: int) -> None:
        """Wait so long in virtual time."""
        await passing(max(0, ms) / 1000)


class MachineClock:
    """What the house's computer believes."""

    def __init__(self, loop: WorldLoop) -> None:
        self._loop = loop
        self._boots = 1
        self._booted_ms = loop.now_ms() - 3_600_000
        self._set_at_ms = loop.now_ms()
        self._set_to_ms = START_MS
        self._rate = 1.0

    def now_ms(self) -> int:
        """Wall time as the machine has it."""
        elapsed_ms = self._loop.now_ms() - self._set_at_ms
        return self._set_to_ms + (elapsed_ms if self._rate == 1.0 else int(elapsed_ms * self._rate))

    def monotonic_ms(self) -> int:
        """Milliseconds of virtual time."""
        return self._loop.now_ms()

    def boot_ms(self) -> int:
        """Milliseconds since the machine was started."""
        return self._loop.now_ms() - self._booted_ms

    @property
    def boot_id(self) -> str:
        """Name of this start of the machine."""
        return f"boot-{self._boots}"

    async def sleep_ms(self, ms: int) -> None:
        """Wait so long in virtual time; a busy machine wakes nobody to the millisecond."""
        await passing(max(ms, BUSY_WAKES_MS) / 1000 if ms > 0 else 0)

    @property
    def drifts(self) -> bool:
        """Whether the wall clock runs at a rate of its own."""
        return self._rate != 1.0

    # What happens to it

    def step(self, ms: int) -> None:
        """Set the wall clock forward or back."""
        self._anchor(self.now_ms() + ms)

    def drift(self, rate: float) -> None:
        """Let the wall clock run faster or slower from now on."""
        self._anchor(self.now_ms())
        self._rate = rate

    def heal(self) -> None:
        """Let it be right again."""
        true_ms = self._loop.now_ms() - int(START_S * 1000)
        self._rate = 1.0
        self._anchor(START_MS + true_ms)

    def reboot(self) -> None:
        """Start the machine anew."""
        self._boots += 1
        self._booted_ms = self._loop.now_ms()

    def true_of_boot_ms(self, boot_ms: int) -> int:
        """The virtual moment at which the boot clock of this start shows that."""
        return boot_ms + self._booted_ms

    def _anchor(self, wall_ms: int) -> None:
        self._set_at_ms = self._loop.now_ms()
        self._set_to_ms = wall_ms
