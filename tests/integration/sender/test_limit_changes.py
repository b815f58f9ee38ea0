"""Limits that change while the sender runs, and a rate that floods have taught."""

import asyncio

import pytest

from sender.rereading import Rereading
from sender.settings import SenderSettings
from storage import floods, rates
from storage.errors import ConfigurationError, Fault
from storage.lifecycle import Priority
from storage.options import Limits
from tests.integration.sender.house import BOT, House, looks
from tests.integration.sender.stub import flood
from tests.integration.storage.calls import call


def asking(house: House) -> asyncio.Event:
    """Let the senders of a house read its limits again when the event is set."""
    asked = asyncio.Event()
    house.rereading = Rereading(asked, house.settings, _not_expected)
    return asked


def _not_expected(error: ConfigurationError) -> None:
    raise AssertionError(str(error))


def moments(house: House) -> list[int]:
    """When calls arrived, since the first one."""
    return [each.at_ms - house.stub.arrivals[0].at_ms for each in house.stub.arrivals]


HEEDED = {"limits.changed", "limits.unchanged", "settings.kept"}


async def until_heeded(
    house: House, asked: asyncio.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """Have the limits read again, and wait until that has been told."""
    caplog.set_level("INFO")
    caplog.clear()
    asked.set()
    for _ in looks():
        if HEEDED & set(caplog.messages):
            break
        await house.breathes()
    await house.passes(1)


async def test_a_lower_rate_holds_at_once_and_what_has_left_counts(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(bulk_per_second=4.0)
    asked = asking(house)
    await house.start()
    await house.says(*[call(f"k{n}", chat_id=n, priority=Priority.BULK) for n in range(1, 9)])
    await house.passes(100)
    house.limits = Limits(bulk_per_second=2.0)
    await until_heeded(house, asked, caplog)
    await house.passes(2_500)
    assert moments(house) == [0, 0, 0, 0, 1_001, 1_001, 2_002, 2_002]


async def test_a_higher_rate_holds_at_once_and_what_has_left_counts(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(bulk_per_second=1.0)
    asked = asking(house)
    await house.start()
    await house.says(*[call(f"k{n}", chat_id=n, priority=Priority.BULK) for n in range(1, 9)])
    await house.passes(99)
    house.limits = Limits(bulk_per_second=4.0)
    await until_heeded(house, asked, caplog)
    await house.passes(1_500)
    assert moments(house) == [0, 99, 99, 99, 1_001, 1_100, 1_100, 1_100]


async def test_a_change_is_recorded_with_what_was_and_what_is(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asking(house)
    await house.start()
    await house.passes(1_000)
    house.limits = Limits(chat_per_second=0.5, flood_scope="bot")
    await until_heeded(house, asked, caplog)
    change = await house.db.read(lambda tx: rates.last_change(tx, BOT))
    assert change is not None
    assert (change.at_ms, change.source) == (house.clock.now_ms() - 1, "SIGHUP")
    names = {name for name, value in change.after.items() if change.before[name] != value}
    assert names == {"chat_per_second", "flood_scope"}
    assert "limits.changed" in caplog.messages


async def test_nothing_is_recorded_when_limits_say_the_same(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asking(house)
    await house.start()
    await until_heeded(house, asked, caplog)
    assert await house.db.read(lambda tx: rates.last_change(tx, BOT)) is None
    assert "limits.unchanged" in caplog.messages


async def test_what_takes_a_restart_is_told_and_not_heeded(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    asked = asking(house)
    house.in_flight_max = 1
    await house.start()
    house.in_flight_max = 8
    await until_heeded(house, asked, caplog)
    told = [each for each in caplog.records if each.message == "settings.restart_needed"]
    assert len(told) == 1
    await house.says(call("a", chat_id=1), call("b", chat_id=2))
    await house.passes(1_000)
    assert house.stub.most_under_way == 1


async def test_a_configuration_with_faults_changes_nothing(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[ConfigurationError] = []
    fault = Fault("limits.bulk_per_second", "ferryman.toml:9", "expected a number")

    def read() -> SenderSettings:
        raise ConfigurationError([fault])

    asked = asyncio.Event()
    house.rereading = Rereading(asked, read, said.append)
    await house.start()
    await until_heeded(house, asked, caplog)
    assert [error.faults for error in said] == [(fault,)]
    assert {"settings.fault", "settings.kept"} <= set(caplog.messages)
    assert await house.db.read(lambda tx: rates.last_change(tx, BOT)) is None
    await house.says(call("a"))
    await house.passes(100)
    assert len(house.stub.arrivals) == 1, "it goes on as before"


async def test_a_standbys_limits_add_nothing_to_the_owners(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(bulk_per_second=2.0)
    await house.start()
    await house.passes(100)
    asked = asking(house)
    await house.start()
    house.limits = Limits(bulk_per_second=20.0)
    await until_heeded(house, asked, caplog)
    await house.says(*[call(f"k{n}", chat_id=n, priority=Priority.BULK) for n in range(1, 7)])
    await house.passes(2_500)
    assert moments(house) == [0, 0, 1_001, 1_001, 2_002, 2_002]


async def test_two_processes_record_one_change_once(house: House) -> None:
    before, after = {"chat_burst": 1}, {"chat_burst": 2}

    told = [
        await house.db.write(
            lambda tx: rates.record_change(tx, BOT, source="SIGHUP", before=before, after=after)
        )
        for _ in range(2)
    ]
    assert told == [True, False]


async def test_a_flood_slows_bulk_down_and_the_next_owner_knows(house: House) -> None:
    house.limits = Limits(bulk_per_second=10.0, flood_scope="chat")
    house.stub.will("sendMessage", flood(600))
    await house.start()
    await house.says(call("a", chat_id=1, priority=Priority.BULK))
    await house.passes(2_000)
    learned = await house.db.read(lambda tx: rates.learned(tx, BOT))
    assert learned is not None
    assert (learned.bulk_per_second, learned.reason) == (8, "a flood of a bulk call")
    await house.stop()
    await house.start()
    await house.says(*[call(f"k{n}", chat_id=n, priority=Priority.BULK) for n in range(2, 22)])
    await house.passes(900)
    assert len(house.stub.arrivals) == 9


async def test_what_was_learned_is_forgotten_when_it_is_quiet_for_long(house: House) -> None:
    house.limits = Limits(bulk_per_second=10.0, flood_scope="chat")
    house.stub.will("sendMessage", flood(1))
    await house.start()
    await house.says(call("a", chat_id=1, priority=Priority.BULK))
    await house.passes(61_000)
    await house.says(call("b", chat_id=2, priority=Priority.BULK))
    await house.passes(61_000)
    learned = await house.db.read(lambda tx: rates.learned(tx, BOT))
    assert learned is not None
    assert learned.bulk_per_second == 9
    await house.says(call("c", chat_id=3, priority=Priority.BULK))
    await house.passes(1_000)
    assert await house.db.read(lambda tx: rates.learned(tx, BOT)) is None


async def test_a_flood_is_recorded_with_what_became_of_other_chats(house: House) -> None:
    house.limits = Limits(flood_scope="chat")
    house.stub.will("sendMessage", flood(60))
    await house.start()
    await house.says(call("a", chat_id=1))
    await house.passes(1_000)
    house.stub.will("sendMessage", flood(30))
    await house.says(call("b", chat_id=2))
    await house.passes(1_000)
    await house.says(call("c", chat_id=3), call("d", chat_id=4))
    await house.passes(100_000)
    await house.says(call("e", chat_id=5))
    await house.passes(1_000)
    second, first = await house.db.read(lambda tx: floods.latest(tx, BOT, limit=10))
    assert (first.lane, first.wait_ms, first.chosen) == ("c:1", 60_000, "chat")
    assert (first.chat_ms, first.adaptive_ms, first.bot_ms) == (0, 5_000, 60_000)
    assert (first.others_sent, first.others_flooded) == (3, 1)
    assert (second.lane, second.adaptive_ms) == ("c:2", 59_000)
    assert (second.others_sent, second.others_flooded) == (2, 0)


async def test_a_chat_put_off_by_a_limit_need_not_wait_for_it_any_more_when_it_is_raised(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    house.limits = Limits(chat_per_second=0.001)
    asked = asking(house)
    await house.start()
    await house.says(call("a"), call("b"))
    await house.passes(10_000)
    assert moments(house) == [0]
    house.limits = Limits(chat_per_second=1.0)
    await until_heeded(house, asked, caplog)
    await house.passes(1_000)
    assert len(moments(house)) == 2
