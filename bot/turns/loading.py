"""Find the handlers of a bot: the callable that its configuration names."""

import importlib
from collections.abc import Callable

from bot.turns.application import TurnApplication
from storage.errors import ConfigurationError, Fault
from storage.lifecycle import BotName

Register = Callable[[TurnApplication], object]


def load_handlers(bot: BotName, named: str) -> Register:
    """The callable behind "module:callable".

    Raises ConfigurationError when there is none. What goes wrong inside the module comes through as
    it is: it is the author's to see.
    """
    module_name, _, path = named.partition(":")
    try:
        found: object = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise _fault(bot, f"expected an importable module, found none named {error.name}") from None
    for part in path.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise _fault(bot, f"expected a callable in {module_name}, found none named {path}")
    return found


def _fault(bot: BotName, expected: str) -> ConfigurationError:
    return ConfigurationError([Fault(f"bots.{bot}.handlers", "configuration", expected)])
