"""SIGHUP to real processes: limits change without a restart, and a bad file changes nothing."""

import asyncio
import signal
import sys
from pathlib import Path

import pytest

from storage import outbox, rates
from storage.clock import SystemClock
from storage.database import Tx
from storage.lifecycle import Priority
from storage.migrate import migrate
from storage.outgoing import Outgoing, chat_lane
from tests.integration.cli.process import Started, command, run, started
from tests.integration.cli.site import BOT, CONFIGURATION, PLANTED, Site, configured
from tests.integration.sender.stub import Stub, serving

SLOW, FAST = 2, 200


def configuration(base_url: str, limits: str) -> str:
    tables = f'[web]\nport = 0\n[telegram]\nbase_url = "{base_url}"\n[limits]\n{limits}\n'
    return CONFIGURATION.replace("[bots.main]", f"{tables}[bots.main]")


def leave(tx: Tx, count: int) -> None:
    """Leave a broadcast of so many messages."""
    for chat_id in range(1, count + 1):
        outbox.enqueue(
            tx,
            BOT,
            Outgoing(
                method="sendMessage",
                params={"chat_id": str(chat_id), "text": "hello"},
                lane=chat_lane(chat_id),
                key=f"broadcast:{chat_id}",
                chat_id=chat_id,
                priority=Priority.BULK,
            ),
        )


async def hung_up(process: Started, event: str) -> None:
    """Send SIGHUP and wait until that is told."""
    process.tell(signal.SIGHUP)
    await asyncio.to_thread(process.wait_for, event)


async def ended(process: Started) -> int:
    """End the process in order."""
    process.tell(signal.SIGTERM)
    return await asyncio.to_thread(process.ended)


def fullest(stub: Stub, since: int, span_ms: int = 1_000) -> int:
    """The most messages that any second holds."""
    moments = [each.at_ms for each in stub.arrivals[since:] if each.method == "sendMessage"]
    return max(sum(first <= each < first + span_ms for each in moments) for first in moments)


async def test_a_broadcast_that_runs_follows_the_new_pace(tmp_path: Path) -> None:
    async with serving(SystemClock()) as stub:
        site = configured(tmp_path, configuration(stub.url, f"bulk_per_second = {SLOW}"))
        migrate(site.database, SystemClock())
        await asyncio.to_thread(site.write, lambda tx: leave(tx, 60))
        with started(command(site, "sender")) as process:
            await stub.arrived(2 * SLOW + 1)
            assert fullest(stub, 0) <= SLOW
            new = f"bulk_per_second = {FAST}\nbot_per_second = {FAST}"
            site.config.write_text(configuration(stub.url, new), encoding="utf-8")
            await hung_up(process, "limits.changed")
            before = len(stub.arrivals)
            await stub.arrived(60)
            assert fullest(stub, before) > SLOW
            assert await ended(process) == 0, process.log()
        change = await asyncio.to_thread(site.write, lambda tx: rates.last_change(tx, BOT))
        assert change is not None
        assert change.source == "SIGHUP"
        assert change.before["bulk_per_second"] == SLOW
        assert change.after["bulk_per_second"] == FAST
        told = await asyncio.to_thread(run, command(site, "status"))
        assert "main: limits changed by SIGHUP" in told.stdout
        assert "bulk_per_second 2.0 → 200.0" in told.stdout


async def test_a_running_broadcast_is_slowed_down_too(tmp_path: Path) -> None:
    async with serving(SystemClock()) as stub:
        site = configured(tmp_path, configuration(stub.url, "bulk_per_second = 5"))
        migrate(site.database, SystemClock())
        await asyncio.to_thread(site.write, lambda tx: leave(tx, 40))
        with started(command(site, "sender")) as process:
            await stub.arrived(10)
            slow = configuration(stub.url, f"bulk_per_second = {SLOW}")
            site.config.write_text(slow, encoding="utf-8")
            await hung_up(process, "limits.changed")
            before = len(stub.arrivals)
            await stub.arrived(before + 2 * SLOW)
            assert fullest(stub, before) <= SLOW
            assert await ended(process) == 0, process.log()


@pytest.mark.parametrize("role", ["sender", "run", "python -m sender"])
async def test_a_bad_file_changes_nothing_and_is_told_as_at_a_start(
    role: str, tmp_path: Path
) -> None:
    async with serving(SystemClock()) as stub:
        site = configured(tmp_path, configuration(stub.url, "bulk_per_second = 5"))
        words = command(site, role)
        if role == "python -m sender":
            words = [sys.executable, "-m", "sender", "--config", str(site.config)]
        with started(words) as process:
            await asyncio.to_thread(process.wait_for, "lease.taken")
            await hung_up(process, "limits.unchanged")
            bad = configuration(stub.url, "bulk_per_second = -1")
            site.config.write_text(bad, encoding="utf-8")
            await hung_up(process, "settings.kept")
            await asyncio.to_thread(site.write, lambda tx: leave(tx, 1))
            await stub.arrived(1)
            assert await ended(process) == 0, process.log()
        assert "limits.bulk_per_second: expected a number greater than 0" in process.log()
        assert "Traceback" not in process.log()
        assert [each for each in PLANTED if each in process.log()] == []


async def test_what_takes_a_restart_is_named(tmp_path: Path) -> None:
    async with serving(SystemClock()) as stub:
        site: Site = configured(tmp_path, configuration(stub.url, ""))
        with started(command(site, "sender")) as process:
            await asyncio.to_thread(process.wait_for, "lease.taken")
            more = configuration(stub.url, "") + "[sender]\nin_flight_max = 3\n"
            site.config.write_text(more, encoding="utf-8")
            await hung_up(process, "settings.restart_needed")
            assert '"key":"sender.in_flight_max"' in process.log()
            assert await ended(process) == 0, process.log()
