"""Webhook redelivery as Telegram does it, as a table of times."""

import pytest

from tests.simulator.deliverer import (
    PENDING_MAX,
    Answered,
    Attempt,
    Broken,
    Deliverer,
    DeliveryRules,
    Fate,
    Outcome,
    Pending,
    Unconnected,
)

OK = Answered(200)
DOWN = Answered(503)
FAR_MS = 10**12
# Wide enough that a test about something else never falls into it.
PATIENT = DeliveryRules(single_after_ms=FAR_MS)


def pending(update_id: int, queue: str = "chat:1", expires_at_ms: int = FAR_MS) -> Pending:
    return Pending(
        update_id=update_id,
        kind="message",
        queue=queue,
        body=b"{}",
        expires_at_ms=expires_at_ms,
    )


def opened(*updates: Pending, connections: int = 40, rules: DeliveryRules = PATIENT) -> Deliverer:
    deliverer = Deliverer(lambda: 0.5, rules)
    for update in updates:
        assert deliverer.offer(update)
    deliverer.open(connections, now_ms=0)
    return deliverer


def begun(deliverer: Deliverer, now_ms: int = 0) -> Attempt:
    attempt = deliverer.begin(now_ms)
    assert attempt is not None
    return attempt


def begin_all(deliverer: Deliverer, now_ms: int = 0) -> list[int]:
    ids = []
    while (attempt := deliverer.begin(now_ms)) is not None:
        ids.append(attempt.update_id)
    return ids


def failing(deliverer: Deliverer, outcome: Outcome, times: int) -> list[int]:
    """Let every attempt end at once with `outcome`: the pauses between attempts, in ms."""
    now_ms, pauses = 0, []
    for _ in range(times):
        deliverer.finish(begun(deliverer, now_ms), outcome, now_ms)
        wake_ms = deliverer.wake_ms(now_ms)
        assert wake_ms is not None
        pauses.append(wake_ms)
        now_ms += wake_ms
    return pauses


def test_a_failure_is_retried_at_once_then_after_doubling_waits_then_after_one_to_two_minutes() -> (
    None
):
    pauses = failing(opened(pending(1)), DOWN, 10)
    assert pauses == [0, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 90_000, 90_000, 90_000]


def test_the_backoff_can_be_compressed() -> None:
    rules = DeliveryRules(delay_scale=0.01, single_after_ms=FAR_MS)
    assert failing(opened(pending(1), rules=rules), DOWN, 4) == [0, 20, 40, 80]


@pytest.mark.parametrize("status", [199, 300, 302, 400, 404, 500, 503])
def test_everything_but_2xx_is_a_failure(status: int) -> None:
    deliverer = opened(pending(1))
    assert deliverer.finish(begun(deliverer), Answered(status), 0) is Fate.RETRIED


@pytest.mark.parametrize("status", [200, 202, 299])
def test_any_2xx_ends_an_update(status: int) -> None:
    deliverer = opened(pending(1))
    assert deliverer.finish(begun(deliverer), Answered(status), 0) is Fate.ACKNOWLEDGED
    assert deliverer.pending == []


def test_a_retry_after_is_honoured_up_to_an_hour_and_does_not_advance_the_backoff() -> None:
    deliverer = opened(pending(1))
    assert failing(deliverer, Answered(503, retry_after_s=7), 2) == [7_000, 7_000]
    assert failing(opened(pending(1)), Answered(503, retry_after_s=9_999), 1) == [3_600_000]
    deliverer.finish(begun(deliverer, 14_000), DOWN, 14_000)
    # The first real failure is still retried at once.
    assert deliverer.wake_ms(14_000) == 0


def test_an_update_is_dropped_when_its_next_try_would_come_too_late() -> None:
    deliverer = opened(pending(1, "callback:5", expires_at_ms=150_000))
    retry_later = Answered(503, retry_after_s=151)
    assert deliverer.finish(begun(deliverer), retry_later, 0) is Fate.EXPIRED


def test_an_update_nobody_takes_outlives_itself() -> None:
    deliverer = Deliverer(lambda: 0.5)
    deliverer.offer(pending(1, expires_at_ms=1_000))
    deliverer.offer(pending(2, expires_at_ms=2_000))
    assert deliverer.expired(999) == []
    assert deliverer.expired(1_000) == [1]
    assert deliverer.expired(2_000) == [2]


def test_within_a_queue_one_is_under_way_and_the_next_waits_for_it() -> None:
    deliverer = opened(pending(1), pending(2), pending(3, "chat:2"))
    first = begun(deliverer)
    assert begin_all(deliverer) == [3]

    deliverer.finish(first, DOWN, 0)
    # A failing head blocks its queue.
    assert begin_all(deliverer) == [1]


def test_no_more_than_max_connections_are_under_way() -> None:
    deliverer = opened(*(pending(each, f"chat:{each}") for each in range(1, 9)), connections=3)
    assert begin_all(deliverer) == [1, 2, 3]


def test_twice_max_connections_poisoned_queues_stall_every_other_chat() -> None:
    poisoned = [pending(each, f"chat:{each}") for each in range(1, 5)]
    deliverer = opened(*poisoned, pending(9, "chat:9"), connections=2)
    for _ in range(4):
        attempt = begun(deliverer)
        deliverer.finish(attempt, Answered(503, retry_after_s=60), 0)
    assert deliverer.begin(0) is None
    assert deliverer.wake_ms(0) == 60_000

    # One of the four is taken, and the fifth queue is read.
    deliverer.finish(begun(deliverer, 60_000), OK, 60_000)
    assert 9 in begin_all(deliverer, 60_000)


def test_connections_are_opened_ten_in_half_a_second() -> None:
    deliverer = opened(*(pending(each, f"chat:{each}") for each in range(1, 21)))
    assert len(begin_all(deliverer, 0)) == 10
    assert deliverer.wake_ms(0) == 500
    assert len(begin_all(deliverer, 500)) == 10


def test_after_ten_seconds_without_success_one_connection_is_left() -> None:
    deliverer = opened(
        *(pending(each, f"chat:{each}") for each in range(1, 9)), rules=DeliveryRules()
    )
    assert len(begin_all(deliverer, 10_001)) == 1
    assert deliverer.wake_ms(10_001) is None


def test_the_lonely_connection_is_opened_every_two_seconds_and_a_success_brings_the_others() -> (
    None
):
    deliverer = opened(
        *(pending(each, f"chat:{each}") for each in range(1, 9)), rules=DeliveryRules()
    )
    deliverer.finish(begun(deliverer, 20_000), Unconnected("Connection refused"), 20_000)
    assert deliverer.begin(21_999) is None
    assert deliverer.wake_ms(20_000) == 2_000

    deliverer.finish(begun(deliverer, 22_000), OK, 22_000)
    assert len(begin_all(deliverer, 22_000)) == 7


def test_a_connection_that_never_came_about_is_no_attempt() -> None:
    deliverer = opened(pending(1))
    deliverer.finish(begun(deliverer), Unconnected("Connection refused"), 0)
    again = begun(deliverer)
    assert again.number == 1
    deliverer.finish(again, DOWN, 0)
    assert deliverer.wake_ms(0) == 0


def test_a_changed_webhook_gets_everything_again_even_what_is_under_way() -> None:
    deliverer = opened(pending(1), pending(2))
    old = begun(deliverer)
    deliverer.open(40, now_ms=5)

    assert begun(deliverer, 5).update_id == 1
    # The first delivery's 200 goes unheard.
    assert deliverer.finish(old, OK, 6) is Fate.IGNORED
    assert [each.update_id for each in deliverer.pending] == [1, 2]


def test_a_delivery_that_timed_out_leaves_room_for_a_concurrent_second_one() -> None:
    deliverer = opened(pending(1))
    deliverer.finish(begun(deliverer), Broken("Read timeout expired"), 60_000)
    assert begun(deliverer, 60_000).number == 2


def test_a_webhook_that_is_gone_for_a_day_is_given_up() -> None:
    hour_ms = 3_600_000
    deliverer = opened(pending(1))
    deliverer.finish(begun(deliverer), Answered(410), 0)
    deliverer.finish(begun(deliverer, 22 * hour_ms), Answered(410), 22 * hour_ms)
    assert not deliverer.gone_for_good
    deliverer.finish(begun(deliverer, 24 * hour_ms), Answered(410), 24 * hour_ms)
    assert deliverer.gone_for_good


def test_any_other_answer_between_two_410s_starts_that_day_anew() -> None:
    hour_ms = 3_600_000
    deliverer = opened(pending(1))
    for hour, status in ((0, 410), (20, 500), (21, 410), (43, 410)):
        deliverer.finish(begun(deliverer, hour * hour_ms), Answered(status), hour * hour_ms)
    assert not deliverer.gone_for_good


def test_room_for_pending_updates_ends_somewhere() -> None:
    deliverer = Deliverer(lambda: 0.5)
    for each in range(PENDING_MAX):
        deliverer.offer(pending(each))
    assert not deliverer.offer(pending(PENDING_MAX))


def test_a_closed_webhook_gets_nothing_and_loses_nothing() -> None:
    deliverer = opened(pending(1))
    deliverer.close()
    assert deliverer.begin(0) is None
    assert deliverer.wake_ms(0) is None
    assert len(deliverer.pending) == 1
