"""What the door counts, and how it tells."""

from typing import Any

import pytest

from bot.web.meter import Meter


@pytest.fixture
def meter() -> Meter:
    return Meter()


def told(caplog: pytest.LogCaptureFixture, name: str) -> list[dict[str, Any]]:
    return [record.__dict__["fields"] for record in caplog.records if record.message == name]


def test_nothing_counted_is_nothing_told(meter: Meter, caplog: pytest.LogCaptureFixture) -> None:
    meter.report()
    assert meter.ack_times().count == 0
    assert meter.ack_times().p99_ms == 0
    assert caplog.records == []


def test_percentiles_are_upper_bounds_of_what_was_seen(meter: Meter) -> None:
    for _ in range(98):
        meter.acknowledged(2)
    meter.acknowledged(40)
    meter.acknowledged(99_000)
    times = meter.ack_times()
    assert (times.count, times.p50_ms, times.p99_ms, times.worst_ms) == (100, 2, 50, 99_000)


def test_a_percentile_is_never_more_than_the_worst(meter: Meter) -> None:
    meter.acknowledged(31)
    assert meter.ack_times().p50_ms == 31


def test_answers_over_budget_are_one_event(meter: Meter, caplog: pytest.LogCaptureFixture) -> None:
    for took_ms in (100, 101, 700, 5):
        meter.acknowledged(took_ms)
    meter.report()
    assert told(caplog, "web.slow") == [{"count": 2, "worst_ms": 700}]


def test_each_reason_is_told_once_with_its_count(
    meter: Meter, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        meter.refused("secret", 401)
        meter.unstored("DiskFull")
    meter.refused("address", 403)
    meter.report()
    assert told(caplog, "web.refused") == [
        {"reason": "secret", "status": 401, "count": 3},
        {"reason": "address", "status": 403, "count": 1},
    ]
    assert told(caplog, "web.unstored") == [{"reason": "DiskFull", "count": 3}]


def test_what_was_told_is_not_told_again(meter: Meter, caplog: pytest.LogCaptureFixture) -> None:
    meter.refused("secret", 401)
    meter.acknowledged(500)
    meter.report()
    caplog.clear()
    meter.report()
    assert caplog.records == []
    assert meter.ack_times().count == 1, "but times are of the whole life"
