"""Doorbells of a world: rung in the loop, answered in the process that hung them."""

from collections.abc import Callable
from contextvars import Context, copy_context
from pathlib import Path

from storage.clock import Dice
from storage.doorbell import Doorbell
from tests.simulation.loop import WorldLoop, process_here


class Belfry:
    """All bells that were ever hung. `loses` says of each ring whether it is lost."""

    def __init__(self, loop: WorldLoop, loses: Callable[[], bool]) -> None:
        self.loop = loop
        self.loses = loses
        self.bells: dict[str, WorldBell] = {}

    def of(self) -> type[Doorbell]:
        """The class of bells that hang here."""
        return type("HungHere", (WorldBell,), {"belfry": self})


class WorldBell(Doorbell):
    """A bell that is no socket."""

    belfry: Belfry

    def __init__(self, state_dir: Path, role: str, *, dice: Dice | None = None) -> None:
        del state_dir, dice
        self._process = process_here()
        self._name = f"{role}.{self._process.number}.{len(self.belfry.bells) + 1:08x}"
        self._callback: Callable[[], None] | None = None
        self._context: Context | None = None
        self._is_rung = False
        self._is_down = False
        self.belfry.bells[self._name] = self

    def ring(self, role: str) -> None:
        """Ring each bell of a role."""
        prefix = f"{role}."
        for name, bell in list(self.belfry.bells.items()):
            if not name.startswith(prefix):
                continue
            if bell.is_silent:
                del self.belfry.bells[name]
            elif not self.belfry.loses():
                bell.sound()

    def on_ring(self, callback: Callable[[], None]) -> None:
        """Have it called, once for all rings that came together."""
        self._callback = callback
        self._context = copy_context()

    def is_dead(self, name: str) -> bool:
        """Tell whether the process behind a bell's name is gone."""
        bell = self.belfry.bells.get(name)
        return bell is None or bell.is_silent

    def close(self) -> None:
        """Take the bell down."""
        self._is_down = True

    @property
    def is_silent(self) -> bool:
        """Whether nobody will ever answer it."""
        return self._is_down or self._process.is_dead

    def sound(self) -> None:
        """Be rung."""
        if self._callback is not None and not self._is_rung:
            self._is_rung = True
            self.belfry.loop.call_soon(self._answered, context=self._context)

    def _answered(self) -> None:
        self._is_rung = False
        if self._callback is not None and not self._is_down:
            self._callback()
