"""What becomes of an update whose handler raised."""

import httpx
import pytest
from telegram.error import BadRequest, Forbidden, NetworkError, RetryAfter, TimedOut

from bot.turns.failures import BACKOFF_MS_MAX, CLAIMS_MAX, GiveUp, TryAgain, decide
from storage.errors import LeaseLost, StorageBusy


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


PASSING = [
    NetworkError("Bad Gateway"),
    caused(NetworkError("httpx.ConnectError"), httpx.ConnectError("refused")),
    caused(TimedOut(), httpx.ReadTimeout("slow")),
    StorageBusy(),
]
FINAL = [
    ValueError("a bug"),
    BadRequest("Chat not found"),
    Forbidden("bot was kicked"),
    caused(NetworkError("Unknown error in HTTP implementation"), LeaseLost()),
    caused(NetworkError("Unknown error in HTTP implementation"), KeyError("a bug of ours")),
]


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_a_read_that_found_nobody_there_is_taken_again(error: Exception) -> None:
    assert decide(error, claims=1, retries=0) == TryAgain(1_000)


@pytest.mark.parametrize("error", FINAL, ids=repr)
def test_every_other_failure_is_final(error: Exception) -> None:
    """To the library a BadRequest is a NetworkError too, and so is whatever breaks inside it."""
    assert decide(error, claims=1, retries=0) == GiveUp()


def test_the_wait_grows_and_has_an_end() -> None:
    waits = [decide(PASSING[0], claims=claims, retries=0) for claims in range(1, 10)]
    assert waits[:3] == [TryAgain(1_000), TryAgain(2_000), TryAgain(4_000)]
    assert waits[-1] == TryAgain(BACKOFF_MS_MAX)


def test_even_a_passing_failure_ends_as_poison() -> None:
    assert decide(PASSING[0], claims=CLAIMS_MAX, retries=100) == GiveUp()


# The library warns of its own future whenever it makes one of these.
@pytest.mark.filterwarnings("ignore::telegram.warnings.PTBDeprecationWarning")
def test_a_flood_on_a_read_is_waited_out() -> None:
    assert decide(RetryAfter(97), claims=1, retries=0) == TryAgain(97_000)


def test_configured_retries_are_given() -> None:
    outcomes = [decide(ValueError(), claims=claims, retries=2) for claims in (1, 2, 3)]
    assert outcomes == [TryAgain(1_000), TryAgain(2_000), GiveUp()]
