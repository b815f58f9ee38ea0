"""Doorbells between processes: never blocking, never failing, and telling who is alive."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.doorbell import Doorbell
from storage.errors import ReadOnly

RINGER = (
    "import sys\n"
    "from pathlib import Path\n"
    "from storage.doorbell import Doorbell\n"
    "bell = Doorbell(Path(sys.argv[1]), 'worker')\n"
    "bell.ring('sender')\n"
    "print(bell.name, flush=True)\n"
    "sys.stdin.read()\n"
)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Doorbell]:
    bell = Doorbell(tmp_path, "worker")
    yield bell
    bell.close()


@pytest.fixture
def sender(tmp_path: Path) -> Iterator[Doorbell]:
    bell = Doorbell(tmp_path, "sender")
    yield bell
    bell.close()


def _hung(state_dir: Path) -> list[str]:
    return sorted(bell.name for bell in (state_dir / "bells").iterdir())


async def _rung(bell: Doorbell) -> asyncio.Event:
    rung = asyncio.Event()
    bell.on_ring(rung.set)
    return rung


async def test_a_ring_is_heard(worker: Doorbell, sender: Doorbell) -> None:
    rung = await _rung(sender)
    worker.ring("sender")
    async with asyncio.timeout(5):
        await rung.wait()


async def test_a_ring_is_heard_from_another_process(tmp_path: Path, sender: Doorbell) -> None:
    rung = await _rung(sender)
    with subprocess.Popen(
        [sys.executable, "-c", RINGER, str(tmp_path)], stdin=subprocess.PIPE
    ) as other:
        async with asyncio.timeout(20):
            await rung.wait()
        other.kill()


async def test_each_bell_of_a_role_rings_and_no_other(
    tmp_path: Path, worker: Doorbell, sender: Doorbell
) -> None:
    second = Doorbell(tmp_path, "sender")
    rung = [await _rung(bell) for bell in (sender, second, worker)]
    worker.ring("sender")
    async with asyncio.timeout(5):
        await asyncio.gather(rung[0].wait(), rung[1].wait())
    assert not rung[2].is_set()
    second.close()


async def test_rings_that_come_together_call_once(worker: Doorbell, sender: Doorbell) -> None:
    calls: list[int] = []
    for _ in range(3):
        worker.ring("sender")
    sender.on_ring(lambda: calls.append(1))
    rung = await _rung(worker)
    worker.ring("worker")
    async with asyncio.timeout(5):
        await rung.wait()
    assert len(calls) == 1


def test_a_bell_that_nobody_answers_never_blocks_the_ringer(
    worker: Doorbell, sender: Doorbell
) -> None:
    """Its owner may be stopped, or busy for minutes."""
    for _ in range(2_000):
        worker.ring("sender")
    assert not worker.is_dead(sender.name)


def test_the_bell_of_a_killed_process_is_dead_and_is_swept(
    tmp_path: Path, sender: Doorbell
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RINGER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert name.split(".")[:2] == ["worker", str(other.pid)]
        assert not sender.is_dead(name)
        other.kill()
    assert sender.is_dead(name)
    assert name in _hung(tmp_path)
    sender.ring("worker")
    assert _hung(tmp_path) == [sender.name]
    assert sender.is_dead(name)


def test_a_closed_bell_leaves_nothing_and_rings_nothing(tmp_path: Path, sender: Doorbell) -> None:
    worker = Doorbell(tmp_path, "worker")
    worker.close()
    worker.close()
    assert _hung(tmp_path) == [sender.name]
    worker.ring("sender")
    assert sender.is_dead(worker.name)


async def test_closing_stops_the_answering(tmp_path: Path, worker: Doorbell) -> None:
    bell = Doorbell(tmp_path, "sender")
    await _rung(bell)
    bell.close()
    worker.ring("sender")


def test_a_bell_is_there_only_once_it_answers(tmp_path: Path, sender: Doorbell) -> None:
    """What is being hung is not rung, and so not taken for dead."""
    (tmp_path / "bells" / ".worker.1.00000000").touch()
    sender.ring("worker")
    assert ".worker.1.00000000" in _hung(tmp_path)


async def test_a_long_state_directory_is_no_obstacle(tmp_path: Path) -> None:
    """A socket's address is shorter than a path may be."""
    state_dir = tmp_path / ("long" * 30)
    worker, sender = Doorbell(state_dir, "worker"), Doorbell(state_dir, "sender")
    rung = await _rung(sender)
    worker.ring("sender")
    async with asyncio.timeout(5):
        await rung.wait()
    assert not worker.is_dead(sender.name)
    sender.close()
    assert worker.is_dead(sender.name)
    assert _hung(state_dir) == [worker.name]
    worker.close()


def test_a_state_directory_that_cannot_be_written_to_is_told_as_such() -> None:
    """The kernel's own is such a one, even for root."""
    with pytest.raises(ReadOnly, match="no doorbell"):
        Doorbell(Path("/sys"), "web")


def test_the_names_come_from_the_dice_given(tmp_path: Path) -> None:
    class Loaded:
        def random(self) -> float:
            return 0.5

    bell = Doorbell(tmp_path, "web", dice=Loaded())
    assert bell.name == f"web.{os.getpid()}.80000000"
    bell.close()
