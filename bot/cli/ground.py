"""The ground under the commands: settings, the database for a short visit, faults put into words.

A command may run while the roles run, so it holds no lease and opens the database only for as long
as it looks. It never makes a database: where none is, that is what it says.
"""

import contextlib
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from bot.cli.parser import unknown
from storage import settings as configuration
from storage.clock import SystemClock
from storage.database import Database, opened, require_sound_sqlite
from storage.doorbell import Doorbell
from storage.errors import (
    Corrupt,
    DiskFull,
    NewerSchema,
    ReadOnly,
    StorageBusy,
    StorageError,
    Usage,
)
from storage.lifecycle import BotName
from storage.migrate import migrations
from storage.settings import Settings

_ADVICE: Final[Mapping[type[StorageError], str]] = {
    StorageBusy: "Another process has the database locked for long: look for an open SQLite shell, "
    "a backup that copies it, or a stopped Ferryman process, and end it.",
    DiskFull: "Make room on the disk of state_dir, or move state_dir to a larger one.",
    ReadOnly: "Give the user that runs Ferryman write access to state_dir and what is in it, or "
    "set state_dir (FERRYMAN_STATE_DIR) to a directory that has it.",
    Corrupt: "Keep the file for inspection and restore a backup, or set state_dir "
    "(FERRYMAN_STATE_DIR) to a new directory.",
}


def settings_of(given: Namespace) -> Settings:
    """The configuration that the command line names, without any secret."""
    return configuration.load(config_of(given))


def config_of(given: Namespace) -> Path | None:
    """The path given by `--config`."""
    path: Path | None = given.config
    return path


def bots_of(settings: Settings, wanted: Sequence[str]) -> Sequence[BotName]:
    """The bots named, or all of them.

    Raises Usage for a name that is not configured.
    """
    for name in wanted:
        if name not in settings.bots:
            raise Usage(unknown("bot", name, settings.bots))
    return [BotName(name) for name in settings.bots if not wanted or name in wanted]


def one_bot(settings: Settings, wanted: str | None) -> BotName:
    """The bot that is meant; it need not be named where there is only one.

    Raises Usage where it is unknown, or has to be named.
    """
    names = bots_of(settings, [wanted] if wanted else [])
    if len(names) == 1:
        return names[0]
    raise Usage(
        f"expected --bot NAME, one of: {', '.join(names)}" if names else "no bot is configured"
    )


@contextlib.contextmanager
def told_plainly(settings: Settings) -> Iterator[None]:
    """Give a fault of the database its key, its place and what to do about it."""
    try:
        yield
    except StorageError as error:
        raise put_plainly(settings, error) from error


def put_plainly(settings: Settings, error: StorageError) -> StorageError:
    """The same fault with its key, its place, and what to do about it."""
    told = str(error)
    if "state_dir" not in told:
        told = f"state_dir = {settings.state_dir}: {told}"
    advice = _ADVICE.get(type(error))
    return type(error)(told if advice is None else f"{told}\n{advice}")


@contextlib.asynccontextmanager
async def visit(settings: Settings) -> AsyncIterator[Database]:
    """Open the database that the roles use, for one command.

    Raises StorageError when there is none yet, or none that this version can read.
    """
    require_sound_sqlite(accept_affected=settings.storage.accept_affected_sqlite)
    found = await schema_of(settings)
    if found is None:
        raise StorageError(
            f"there is no database yet in state_dir = {settings.state_dir}: "
            "`ferryman run` makes one, and so does `ferryman migrate`",
        )
    if found < len(migrations()):
        raise StorageError(
            f"the database in state_dir = {settings.state_dir} has schema {found}, this version "
            f"of Ferryman needs {len(migrations())}: `ferryman migrate` brings it forward, as each "
            "role does at its start",
        )
    with told_plainly(settings):
        async with opened(settings.database_path, SystemClock()) as database:
            yield database


async def schema_of(settings: Settings) -> int | None:
    """The schema that the database has, or None where there is no database.

    Raises StorageError when it can't be read, or was made by a newer version.
    """
    with told_plainly(settings):
        if not _is_there(settings):
            return None
        async with opened(settings.database_path, SystemClock()) as database:
            found = await _schema_number(settings, database)
    known = len(migrations())
    if found > known:
        raise NewerSchema(
            f"state_dir = {settings.state_dir}: the database has schema {found}, this version of "
            f"Ferryman knows {known}: use the version that made it, or restore a backup made "
            "before the upgrade",
        )
    return found


def _is_there(settings: Settings) -> bool:
    try:
        settings.database_path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ReadOnly(f"the database cannot be reached ({error.strerror})") from error
    return True


async def _schema_number(settings: Settings, database: Database) -> int:
    try:
        rows = await database.fetch("reports.schema")
    except StorageError as error:
        if type(error) is not StorageError:
            raise
        raise Corrupt(f"{settings.database_path} is no database of Ferryman's") from error
    return int(rows[0]["number"] or 0)


def ring(settings: Settings, roles: Sequence[str]) -> None:
    """Ring the bells of these roles. One that can't be rung looks by itself a second later."""
    with contextlib.suppress(ReadOnly, OSError):
        bell = Doorbell(settings.state_dir, "cli")
        try:
            for role in roles:
                bell.ring(role)
        finally:
            bell.close()
