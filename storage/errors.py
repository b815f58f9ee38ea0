"""Every error that Ferryman raises by name, in one tree.

    FerrymanError
        Usage                   (exit 2)
        ConfigurationError
        IdentityChanged
        UnsupportedCall
        KeyTaken
        NotAdopted
        LeaseLost
        TelegramRefused
        TelegramUnreachable
        FileTooLarge
        UnsupportedLibrary
        StorageError
            StorageBusy
            DiskFull
            ReadOnly
            Corrupt
            NewerSchema
            AffectedSqlite

A class's docstring is its message when none was given, so that the tree reads as the list of what
may go wrong. A message never holds a secret or a user's words: it may be logged and printed as it
is. What Telegram answers to a message is no error but a verdict; to a command it may be one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


class FerrymanError(Exception):
    """Ferryman could not go on."""

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        """The message given, or else the class's docstring."""
        return super().__str__() or (type(self).__doc__ or type(self).__name__).strip()


class Usage(FerrymanError):
    """The command was not understood."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the configuration: which key, where it came from, what was expected."""

    key: str
    source: str
    expected: str

    def __str__(self) -> str:
        """One line, fit for a terminal."""
        return f"{self.key}: {self.expected} ({self.source})"


class ConfigurationError(FerrymanError):
    """The configuration has faults."""

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))


class IdentityChanged(FerrymanError):
    """A bot's token belongs to another bot than the one first used under its name."""


class UnsupportedCall(FerrymanError):
    """This Bot API call changes something at Telegram and is not supported yet."""


class FileTooLarge(FerrymanError):
    """A file is larger than what may go with a call."""


class KeyTaken(FerrymanError):
    """This key stands for another call already; nothing of this transaction was kept."""

    def __init__(self, message: str = "", *, is_same: bool = False) -> None:
        super().__init__(message)
        # The call is the same, only left meanwhile by another turn.
        self.is_same = is_same


class NotAdopted(FerrymanError):
    """A python-telegram-bot application can't run here as its author configured or calls it."""


class UnsupportedLibrary(FerrymanError):
    """A library is not as it is known to be where that matters."""


class LeaseLost(FerrymanError):
    """Another process has taken over this lease; nothing of this transaction was kept."""


class TelegramRefused(FerrymanError):
    """Telegram refused what a command asked of it."""


class TelegramUnreachable(FerrymanError):
    """Telegram gave no answer to what a command asked of it."""


class StorageError(FerrymanError):
    """The database failed."""


class StorageBusy(StorageError):
    """Another process holds the database's write lock."""


class DiskFull(StorageError):
    """The disk is full; nothing of this transaction was kept."""


class ReadOnly(StorageError):
    """The database or its directory cannot be written to."""


class Corrupt(StorageError):
    """The database file is damaged or is no database."""


class NewerSchema(StorageError):
    """The database was made by a newer version of Ferryman."""


class AffectedSqlite(StorageError):
    """This SQLite has the WAL-reset bug, which can lose committed transactions."""
