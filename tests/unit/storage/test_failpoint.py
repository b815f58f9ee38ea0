"""Failpoints kill, at the named point and pass, and are nothing else."""

import signal
import subprocess
import sys

import pytest

from storage.failpoint import POINTS, Failpoints


def _run(armed: str, reached: list[str]) -> subprocess.CompletedProcess[str]:
    program = (
        "import sys\n"
        "from storage.failpoint import Failpoints\n"
        "points = Failpoints(sys.argv[1])\n"
        "for name in sys.argv[2:]:\n"
        "    points.reach(name)\n"
        "    print(name, flush=True)\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program, armed, *reached],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_armed_point_ends_the_process_at_once() -> None:
    run = _run("sender.stamped", ["sender.claimed", "sender.stamped"])
    assert run.returncode == -signal.SIGKILL
    assert run.stdout.split() == ["sender.claimed"]


def test_a_number_says_which_pass() -> None:
    run = _run("sender.claimed:3", ["sender.claimed"] * 5)
    assert run.returncode == -signal.SIGKILL
    assert run.stdout.split() == ["sender.claimed"] * 2


def test_nothing_happens_where_nothing_is_armed() -> None:
    points = Failpoints()
    for name in POINTS:
        points.reach(name)


@pytest.mark.parametrize(
    "armed",
    ["sender", "web.handled", "sender.claimed:0", "sender.claimed:", "sender.claimed:x", ":1"],
)
def test_what_is_no_point_is_refused_at_once(armed: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        Failpoints(armed)


def test_an_unknown_point_in_the_code_is_our_own_mistake() -> None:
    with pytest.raises(AssertionError):
        Failpoints().reach("sender.clamed")
