"""The breaker: an outage stops the bot, a canary finds its end."""

import pytest

from sender.answer import Answer, Stage
from sender.breaker import (
    JITTER,
    OPEN_MS_BASE,
    OPEN_MS_MAX,
    SILENT_ANSWERS_MAX,
    Breaker,
    BreakerState,
)

GONE = Answer(Stage.UNCONNECTED, fault="ClientConnectorError")
SILENT = Answer(Stage.BODY_COMPLETE, fault="SocketTimeoutError")
BROKEN = Answer(Stage.ANSWERED, 502)
REFUSED = Answer(Stage.ANSWERED, 400)
FINE = Answer(Stage.ANSWERED, 200)


def opened() -> Breaker:
    breaker = Breaker()
    assert breaker.note(GONE)
    breaker.open(1_000, jitter=0.0)
    return breaker


def test_a_connection_that_does_not_come_about_opens_it() -> None:
    breaker = opened()
    assert breaker.state is BreakerState.OPEN
    assert breaker.probe_at() == 1_500


@pytest.mark.parametrize("answer", [SILENT, BROKEN])
def test_silence_opens_it_only_when_it_lasts(answer: Answer) -> None:
    breaker = Breaker()
    noted = [breaker.note(answer) for _ in range(SILENT_ANSWERS_MAX)]
    assert noted == [False] * (SILENT_ANSWERS_MAX - 1) + [True]


@pytest.mark.parametrize("answer", [FINE, REFUSED])
def test_any_answer_of_telegrams_ends_the_silence(answer: Answer) -> None:
    breaker = Breaker()
    for _ in range(3):
        assert not any(breaker.note(SILENT) for _ in range(SILENT_ANSWERS_MAX - 1))
        assert not breaker.note(answer)


def test_what_was_under_way_when_it_opened_does_not_open_it_further() -> None:
    breaker = opened()
    assert not breaker.note(GONE)
    assert breaker.failures == 1


def test_a_canary_that_is_answered_closes_it() -> None:
    breaker = opened()
    breaker.probe()
    assert breaker.probed(FINE, 1_600, jitter=0.0) == 600
    assert breaker.state is BreakerState.CLOSED
    assert breaker.failures == 0


def test_each_canary_that_fails_doubles_the_wait_up_to_a_bound() -> None:
    breaker = opened()
    waits = []
    now_ms = breaker.probe_at()
    for _ in range(10):
        breaker.probe()
        assert breaker.probed(GONE, now_ms, jitter=0.0) is None
        waits.append(breaker.probe_at() - now_ms)
        now_ms = breaker.probe_at()
    assert waits[:4] == [1_000, 2_000, 4_000, 8_000]
    assert waits[-1] == OPEN_MS_MAX


def test_jitter_only_adds() -> None:
    breaker = Breaker()
    breaker.note(GONE)
    assert 500 <= breaker.open(0, jitter=0.999) < 750


def test_one_canary_at_a_time() -> None:
    breaker = opened()
    breaker.probe()
    assert breaker.state is BreakerState.PROBING
    with pytest.raises(AssertionError):
        breaker.probe()


def test_answers_of_calls_that_left_before_do_not_touch_a_breaker_that_waits() -> None:
    breaker = opened()
    breaker.probe()
    for answer in (FINE, GONE, SILENT):
        assert not breaker.note(answer)
    assert breaker.state is BreakerState.PROBING


def test_after_an_outage_it_takes_as_much_silence_as_ever_to_open_again() -> None:
    breaker = opened()
    breaker.probe()
    breaker.probed(REFUSED, 2_000, jitter=0.0)
    noted = [breaker.note(SILENT) for _ in range(SILENT_ANSWERS_MAX)]
    assert noted == [False] * (SILENT_ANSWERS_MAX - 1) + [True]
    assert breaker.open(3_000, jitter=0.0) == OPEN_MS_BASE


@pytest.mark.parametrize("jitter", [0.0, 0.3, 0.999])
def test_every_wait_lies_between_the_plain_one_and_half_as_much_again(jitter: float) -> None:
    breaker, now_ms = Breaker(), 0
    breaker.note(GONE)
    breaker.open(now_ms, jitter)
    for failures in range(10):
        plain_ms = min(OPEN_MS_BASE << failures, OPEN_MS_MAX)
        assert plain_ms <= breaker.probe_at() - now_ms <= plain_ms * (1 + JITTER)
        now_ms = breaker.probe_at()
        breaker.probe()
        breaker.probed(GONE, now_ms, jitter)
