"""`ferryman migrate`: bring the database to this version's schema, as each role does at its start.

For deploys that change the schema in a step of its own, before any role is started.
"""

from argparse import Namespace
from collections.abc import Sequence

from bot.cli.ground import settings_of, told_plainly
from bot.cli.output import say
from bot.cli.parser import Commands
from storage.clock import SystemClock
from storage.database import require_sound_sqlite
from storage.migrate import Migration, migrate, migrations
from storage.settings import Settings


def add(commands: Commands) -> None:
    """Add the command."""
    commands.add(
        "migrate", _migrate, purpose="Bring the database to this version's schema, or make it."
    )


def _migrate(given: Namespace) -> int:
    settings = settings_of(given)
    applied = bring_forward(settings)
    say(f"applied {step.number:04d} {step.name}" for step in applied)
    if not applied:
        say(["nothing to apply"])
    say([f"{settings.database_path} has schema {len(migrations())}"])
    return 0


def bring_forward(settings: Settings) -> Sequence[Migration]:
    """Apply what is missing and return it.

    Raises StorageError, put plainly, when the database can't be brought forward.
    """
    require_sound_sqlite(accept_affected=settings.storage.accept_affected_sqlite)
    with told_plainly(settings):
        return migrate(settings.database_path, SystemClock())
