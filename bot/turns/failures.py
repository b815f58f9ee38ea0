"""What becomes of an update whose handler raised.

Pure. A failure that passes (a read while Telegram can't be reached, or says to wait) costs nothing
but time; any other one is final unless the configuration grants retries. Who waits for the answer
to a call that still waits itself, in a flood for instance, is run again until that call has ended:
given up before, it would never learn of what was done in its name. Nobody waits for a person.
"""

import warnings
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import httpx
from telegram.error import NetworkError, RetryAfter, TimedOut

from bot.turns.awaiting import NotYet
from storage.errors import KeyTaken, StorageError

# Whatever keeps an update from its end, after this many claims it is poison.
CLAIMS_MAX: Final = 20
BACKOFF_MS_MIN: Final = 1_000
BACKOFF_MS_MAX: Final = 60_000


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The turn is run once more, after this wait; `counted`: as a try that brings it to its end."""

    wait_ms: int
    counted: bool = True


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The error handlers are run, and the update is buried."""


def decide(error: Exception, *, claims: int, retries: int) -> TryAgain | GiveUp:
    """Decide about an update that was claimed `claims` times, this time included.

    `retries` is how often a failed turn may be run again by configuration.
    """
    backoff_ms = min(BACKOFF_MS_MIN << min(claims - 1, 16), BACKOFF_MS_MAX)
    if isinstance(error, NotYet):
        return TryAgain(backoff_ms, counted=backoff_ms < BACKOFF_MS_MAX)
    if claims >= CLAIMS_MAX:
        return GiveUp()
    if isinstance(error, RetryAfter):
        return TryAgain(max(backoff_ms, _wait_ms(error)))
    if is_passing(error) or claims <= retries:
        return TryAgain(backoff_ms)
    return GiveUp()


def is_passing(error: Exception) -> bool:
    """Tell whether a read failed for Telegram, or the database, not being there.

    By exact type: to the library a BadRequest is a NetworkError too. And by cause: it dresses up
    whatever goes wrong inside a request, our own refusals included, as a NetworkError.
    """
    causes = (error, error.__cause__)
    if any(isinstance(each, StorageError) for each in causes):
        return True
    if any(isinstance(each, KeyTaken) and each.is_same for each in causes):
        # Another turn has left the very same call meanwhile: this one will find it there.
        return True
    if type(error) not in {NetworkError, TimedOut}:
        return False
    return error.__cause__ is None or isinstance(error.__cause__, httpx.HTTPError)


def _wait_ms(error: RetryAfter) -> int:
    with warnings.catch_warnings():
        # The library warns at each look that this will be a timedelta one day; both are read here.
        warnings.simplefilter("ignore")
        wait = error.retry_after
    if isinstance(wait, timedelta):
        return wait // timedelta(milliseconds=1)
    return wait * 1000
