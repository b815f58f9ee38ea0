"""Find the handlers of a bot: the callable that its configuration names, or what a script gives.

A callable that takes the application registers handlers on it; one that takes nothing is a factory,
which returns an application or the builder of one. Modules are imported while applications that are
built are adopted, as many build theirs when they are imported.
"""

import importlib
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

from telegram.ext import ApplicationBuilder

from bot.turns.adopted import AdoptedApplication, Berth
from bot.turns.adoption import adopting
from bot.turns.application import TurnApplication
from storage.errors import ConfigurationError, Fault, NotAdopted
from storage.lifecycle import BotName

Register = Callable[[TurnApplication], object]


@dataclass(frozen=True, slots=True)
class Registrar:
    """Puts handlers on an application of ours, anew each time the bot is taken over."""

    register: Register


@dataclass(frozen=True, slots=True)
class Factory:
    """Gives an application, anew or the same, each time the bot is taken over."""

    named: str
    make: Callable[[], object]

    def application(self, berth: Berth) -> AdoptedApplication:
        """Have it make its application, for this bot.

        Raises NotAdopted for anything else that it gives.
        """
        with adopting(lambda _: berth):
            made = self.make()
            if isinstance(made, ApplicationBuilder):
                made = made.build()
        if not isinstance(made, AdoptedApplication):
            raise NotAdopted(
                f"bots.{berth.bot}.handlers: {self.named} takes no argument, so it was expected to "
                f"return an Application or an ApplicationBuilder; it returned a "
                f"{type(made).__name__}. To register handlers, take the application as argument"
            )
        if made.berth.bot != berth.bot:
            raise NotAdopted(
                f"bots.{berth.bot}.handlers: {self.named} returned the application of "
                f"bots.{made.berth.bot}; each bot needs one of its own"
            )
        return made


@dataclass(frozen=True, slots=True)
class Ready:
    """An application that its script has handed over; the same one each time."""

    application: AdoptedApplication


Source = Registrar | Factory | Ready


def load_handlers(bot: BotName, named: str, berth: Berth | None = None) -> Registrar | Factory:
    """What is behind "module:callable".

    `berth` is where an application comes to lie that is built when the module is imported; without
    it such a one is not adopted, and can only be looked at.
    Raises ConfigurationError when there is none. What goes wrong inside the module comes through as
    it is: it is the author's to see.
    """
    module_name, _, path = named.partition(":")
    try:
        with nullcontext() if berth is None else adopting(lambda _: berth):
            found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise _fault(bot, f"expected an importable module, found none named {error.name}") from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise _fault(bot, f"expected a callable in {module_name}, found none named {path}")
    if inspect.iscoroutinefunction(found):
        raise _fault(
            bot,
            f"expected a plain function, found {path} to be a coroutine function; what has to "
            "be awaited belongs into post_init",
        )
    return Factory(named, found) if _needs_nothing(found) else Registrar(found)


def _needs_nothing(found: Callable[..., object]) -> bool:
    try:
        inspect.signature(found).bind()
    except (TypeError, ValueError):
        # It wants an argument, or is written in C and does not tell.
        return False
    return True


def _fault(bot: BotName, expected: str) -> ConfigurationError:
    return ConfigurationError([Fault(f"bots.{bot}.handlers", "configuration", expected)])
