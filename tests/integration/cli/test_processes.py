"""The roles as real processes: what they load, how they end, what they say when they can't begin.

Telegram is a port that nobody listens on.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from storage.clock import SystemClock
from storage.database import connect
from storage.migrate import migrate
from tests.integration.cli.process import command, environment, run, started
from tests.integration.cli.site import CONFIGURATION, PLANTED, Site, configured, filled

ROLES = ("web", "worker", "sender", "run")
# How often each command says that a role of it is ready.
READY = {"web": 1, "worker": 1, "sender": 1, "run": 3}


@pytest.fixture
def quiet(tmp_path: Path) -> Site:
    """A site whose web takes any free port and whose Telegram is not there."""
    return configured(tmp_path, _configuration(port=0))


def _configuration(port: int, more: str = "") -> str:
    tables = f'[web]\nport = {port}\n[telegram]\nbase_url = "http://127.0.0.1:9"\n'
    return CONFIGURATION.replace("[bots.main]", f"{tables}[bots.main]") + more


@pytest.fixture
def taken_port() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def _plainly_failed(done: "subprocess.CompletedProcess[str]", *said: str) -> None:
    """Exit code 1, the words expected, and nothing that nobody may see."""
    told = done.stderr + done.stdout
    assert done.returncode == 1, told
    assert [each for each in said if each not in told] == [], told
    assert [each for each in ("Traceback", *PLANTED) if each in told] == [], told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("role", ROLES)
def test_a_role_ends_in_order_on_a_signal(role: str, number: signal.Signals, quiet: Site) -> None:
    with started(command(quiet, role)) as process:
        process.wait_for("role.ready", count=READY[role])
        process.tell(number)
        assert process.ended() == 0, process.log()
        events = process.events()
    assert events[0] == "role.starting"
    assert events[-1] == "role.stopped"
    assert events.count("role.stopping") == 1
    assert events.count("drain.report") >= 1
    assert [each for each in PLANTED if each in process.log()] == []


def test_further_signals_do_no_harm(quiet: Site) -> None:
    with started(command(quiet, "run")) as process:
        process.wait_for("role.ready", count=3)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGINT, signal.SIGTERM):
            process.tell(number)
        assert process.ended() == 0, process.log()


def test_one_role_that_fails_takes_the_others_along_in_order(
    tmp_path: Path, taken_port: int
) -> None:
    site = configured(tmp_path, _configuration(taken_port))
    with started(command(site, "run")) as process:
        assert process.ended() == 1
        assert "ferryman: web.port: expected a free address" in process.log()
        assert "lease.released" in process.events() or "lease.taken" not in process.events()
        assert "role.failed" not in process.events()
        assert "Traceback" not in process.log()


_MODULES = """
import sys
from bot.cli.main import main
code = main(sys.argv[1:])
print(" ".join(sorted({name.partition(".")[0] for name in sys.modules})))
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("role", "never"),
    [
        ("web", {"telegram", "httpx", "apscheduler", "aiohttp", "sender"}),
        ("worker", {"starlette", "uvicorn", "jinja2", "aiohttp", "sender"}),
        ("sender", {"telegram", "httpx", "starlette", "uvicorn", "jinja2"}),
    ],
)
def test_a_role_loads_only_what_it_needs(role: str, never: set[str], quiet: Site) -> None:
    words = [sys.executable, "-c", _MODULES, role, "--config", str(quiet.config)]
    with (
        subprocess.Popen(
            words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        assert process.stderr is not None
        assert any('"role.ready"' in line for line in process.stderr)
        process.terminate()
        told, _ = process.communicate(timeout=60)
    loaded = set(told.split())
    assert "storage" in loaded
    assert loaded & never == set()


def test_web_needs_no_token(quiet: Site) -> None:
    """The process that the internet talks to never reads one."""
    (quiet.folder / "main.token").unlink()
    with started(command(quiet, "web")) as process:
        process.wait_for("role.ready")
        process.tell(signal.SIGTERM)
        assert process.ended() == 0


def test_a_port_in_use_is_named(tmp_path: Path, taken_port: int) -> None:
    site = configured(tmp_path, _configuration(taken_port))
    _plainly_failed(
        run(command(site, "web")), "web.port: expected a free address", f"127.0.0.1:{taken_port}"
    )


@pytest.mark.parametrize("role", ROLES)
def test_a_state_directory_that_cannot_be_had_is_named(role: str, quiet: Site) -> None:
    quiet.state.write_text("a file in its place", encoding="ascii")
    _plainly_failed(run(command(quiet, role)), f"state_dir {quiet.state}", "FERRYMAN_STATE_DIR")


@pytest.mark.parametrize("line", [*ROLES, "migrate", "check"])
def test_a_read_only_state_directory_is_named(line: str, quiet: Site) -> None:
    quiet.state.mkdir(mode=0o555)
    _plainly_failed(
        run(_without_privilege(command(quiet, line))), str(quiet.state), "FERRYMAN_STATE_DIR"
    )


def _without_privilege(words: list[str]) -> list[str]:
    """Root writes wherever it likes, unless it gives up the right to."""
    if os.geteuid() != 0:
        return words
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", "--", *words]


@pytest.mark.parametrize("line", [*ROLES, "migrate", "status", "check"])
def test_a_database_of_a_newer_version_is_refused(line: str, quiet: Site) -> None:
    migrate(quiet.database, SystemClock())
    raw = connect(quiet.database)
    raw.execute("insert into migrations values (999, 'later', 0)")
    raw.close()
    _plainly_failed(run(command(quiet, line)), "has schema 999", "state_dir", str(quiet.state))


@pytest.mark.parametrize("line", ["web", "migrate", "status", "check"])
def test_a_file_that_is_no_database_is_refused(line: str, quiet: Site) -> None:
    quiet.state.mkdir()
    quiet.database.write_bytes(b"this is no database, whatever its name says" * 100)
    _plainly_failed(run(command(quiet, line)), "restore a backup", "state_dir", str(quiet.state))


def test_a_locked_database_is_waited_for_and_then_named(quiet: Site) -> None:
    """Reading commands answer all the while. The waits are long, so both run at once."""
    filled(quiet)
    raw = connect(quiet.database)
    raw.execute("begin immediate")
    try:
        with started(command(quiet, "migrate")) as one, started(command(quiet, "worker")) as two:
            assert run(command(quiet, "status")).returncode == 0
            for process in (one, two):
                assert process.ended() == 1
                assert "Another process has the database locked" in process.log()
                assert "state_dir = " in process.log()
                assert "Traceback" not in process.log()
    finally:
        raw.close()


@pytest.mark.parametrize("role", ["worker", "sender", "run", "check"])
def test_a_token_of_no_shape_is_named_and_not_shown(role: str, quiet: Site) -> None:
    (quiet.folder / "main.token").write_text("not-a-token-but-still-secret", encoding="ascii")
    done = run(command(quiet, role))
    _plainly_failed(done, "bots.main.token: expected a bot's token")
    assert "still-secret" not in done.stderr + done.stdout
    assert (done.stderr + done.stdout).count("expected a bot's token") == 1


def test_all_faults_of_all_roles_are_told_at_once(quiet: Site) -> None:
    (quiet.folder / "main.token").unlink()
    (quiet.folder / "main.secret").unlink()
    done = run(command(quiet, "run"))
    _plainly_failed(done, "2 faults", "bots.main.token_file", "bots.main.secret_file")


def test_polling_needs_no_webhook_secret(quiet: Site) -> None:
    (quiet.folder / "main.secret").unlink()
    with started(command(quiet, "run", "--polling")) as process:
        process.wait_for("polling.failed")
        process.tell(signal.SIGTERM)
        assert process.ended() == 0, process.log()


def test_another_bots_token_under_the_same_name_is_refused(quiet: Site) -> None:
    filled(quiet)
    other = "7000000009:AAplanted-token-that-nobody-may-see_9"
    (quiet.folder / "main.token").write_text(other, encoding="ascii")
    for role in ("worker", "sender"):
        _plainly_failed(run(command(quiet, role)), "bots.main", "7000000009", "7000000001")


def test_handlers_that_are_not_there_are_named(tmp_path: Path) -> None:
    site = configured(tmp_path, _configuration(0, 'handlers = "nowhere.to_be:found"\n'))
    _plainly_failed(run(command(site, "worker")), "bots.main.handlers", "nowhere")


def test_what_somebodys_handlers_raise_is_told_by_place_only(tmp_path: Path) -> None:
    (tmp_path / "broken_handlers.py").write_text(
        f"def register(application):\n    raise ValueError({PLANTED[-1]!r})\n", encoding="utf-8"
    )
    site = configured(tmp_path, _configuration(0, 'handlers = "broken_handlers:register"\n'))
    path = f"{environment()['PYTHONPATH']}:{tmp_path}"
    done = run(command(site, "worker"), PYTHONPATH=path)
    _plainly_failed(done, "ValueError at broken_handlers.py:2")


def test_no_configuration_is_a_fault_with_its_remedy() -> None:
    done = run([sys.executable, "-m", "bot", "web"])
    _plainly_failed(done, "config: expected a configuration file, by --config PATH or FERRYMAN_")


def test_the_configuration_is_found_by_the_environment(quiet: Site) -> None:
    done = run([sys.executable, "-m", "bot", "migrate"], FERRYMAN_CONFIG=str(quiet.config))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_reader_that_goes_away_is_no_failure_of_ours(quiet: Site) -> None:
    filled(quiet)
    words = command(quiet, "status")
    with subprocess.Popen(
        words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 1


def test_a_terminal_without_unicode_is_served(quiet: Site) -> None:
    filled(quiet)
    done = run(command(quiet, "review", "list"), PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "\\u2026" in done.stdout
