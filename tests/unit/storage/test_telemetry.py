"""The log: only registered events, no secret, no user's words, one readable line each."""

import asyncio
import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from storage import telemetry
from storage.errors import DiskFull, UnsupportedCall
from storage.telemetry import describe, event, redact, redact_traceback, setup

TOKEN = "123456789:AAF-made_up_for_these_tests_0123456789"
WORDS = "the user's own words"


class Log(io.StringIO):
    """Where the log goes, and what it says."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal

    def records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]

    def only(self) -> dict[str, Any]:
        [record] = self.records()
        return record


@pytest.fixture(autouse=True)
def _own_logging() -> Iterator[None]:
    """Give the test runner its logging back."""
    root = logging.getLogger()
    hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    kept = (root.handlers, root.level, logging.raiseExceptions)
    known = (*telemetry.LIBRARIES, *telemetry.SILENCED)
    levels = {name: logging.getLogger(name).level for name in known}
    yield
    root.handlers, level, logging.raiseExceptions = kept
    root.setLevel(level)
    sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


@pytest.fixture
def log() -> Log:
    made = Log()
    setup("sender", "DEBUG", secrets=["a hook's/secret"], stream=made)
    return made


def _raised(fails: Callable[[], object]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of any kind
        fails()
    return caught.value


def _fail() -> None:
    secret_local = WORDS
    raise ValueError(secret_local)


def _fail_further() -> None:
    try:
        int(WORDS)
    except ValueError as error:
        raise DiskFull from error


def test_an_event_is_one_line_of_json(log: Log) -> None:
    event("outbox.sent", bot="main", outbox_id=91, attempt=1, lag_ms=84)
    record = log.only()
    assert record.pop("ts").endswith("Z")
    assert record == {
        "level": "debug",
        "role": "sender",
        "event": "outbox.sent",
        "bot": "main",
        "outbox_id": 91,
        "attempt": 1,
        "lag_ms": 84,
    }


def test_time_is_told_in_utc_to_the_millisecond(log: Log) -> None:
    record = logging.LogRecord("ferryman", logging.INFO, "", 0, "role.ready", None, None)
    record.created, record.msecs = 1_800_000_000.0625, 62.5
    record.fields = {}
    logging.getLogger("ferryman").handle(record)
    assert log.only()["ts"] == "2027-01-15T08:00:00.062Z"


def test_an_unknown_event_or_field_is_our_own_mistake(log: Log) -> None:
    with pytest.raises(KeyError):
        event("outbox.snet", outbox_id=1)
    with pytest.raises(TypeError, match="text"):
        event("outbox.sent", outbox_id=1, text="hello")


def test_a_mistake_shows_even_where_the_level_hides_the_event() -> None:
    setup("web", "ERROR", stream=Log())
    with pytest.raises(TypeError):
        event("outbox.sent", nonsense=1)


def test_the_level_hides_what_is_quieter() -> None:
    out = Log()
    setup("web", "WARNING", stream=out)
    event("outbox.sent", outbox_id=1)
    event("role.ready")
    event("lease.lost", name="worker:main")
    assert [record["event"] for record in out.records()] == ["lease.lost"]


def test_tokens_are_masked_wherever_they_turn_up(log: Log) -> None:
    own = logging.getLogger("my_handlers")
    own.info("calling https://api.telegram.org/bot%s/sendMessage", TOKEN)
    own.info("calling " + TOKEN.replace(":", "%3A"))
    own.info("calling " + TOKEN.replace(":", "%3a"))
    event("webhook.set", url=f"https://x/{TOKEN}")
    event("sender.refusal", description=f"no such bot {TOKEN}")
    assert len(log.records()) == 5
    assert TOKEN[10:] not in log.getvalue()
    assert "sendMessage" in log.getvalue()


def test_this_processs_secrets_are_masked_in_every_spelling(log: Log) -> None:
    event("webhook.set", url="https://x/?s=a hook's/secret")
    event("webhook.set", url="https://x/?s=a%20hook%27s%2Fsecret")
    logging.getLogger("my_handlers").info("secret %s", "a hook's/secret")
    assert log.getvalue().count("***") == 3
    assert "hook" not in log.getvalue().replace("webhook", "")


def test_a_secret_within_a_longer_one_leaves_no_rest() -> None:
    setup("web", "INFO", secrets=["short", "short-and-long"], stream=Log())
    assert redact("x short-and-long short") == "x *** ***"


def test_an_empty_secret_masks_nothing() -> None:
    setup("web", "INFO", secrets=[""], stream=Log())
    assert redact("plain") == "plain"


def test_what_telegram_quotes_is_left_out(log: Log) -> None:
    """Its refusals may quote the message refused."""
    event("sender.refusal", description=f'can\'t parse entities: unsupported tag "{WORDS}" at 3')
    assert log.only()["description"] == 'can\'t parse entities: unsupported tag "…" at 3'


def test_an_endless_text_is_cut(log: Log) -> None:
    event("sender.refusal", description="x" * 10_000)
    assert len(log.only()["description"]) == telemetry.TEXT_CHARS_MAX + 1


def test_an_exception_is_told_as_type_and_place(log: Log) -> None:
    event("turn.failed", inbox_id=1, error=_raised(_fail))
    assert log.only()["error"].startswith("ValueError at tests/unit/storage/test_telemetry.py:")
    assert WORDS not in log.getvalue()


def test_the_place_is_the_innermost_of_ours_not_of_a_library() -> None:
    told = describe(_raised(lambda: json.loads("{")))
    assert told.startswith("JSONDecodeError at ")
    assert "test_telemetry.py:" in told
    assert "json/decoder" not in told


def test_a_cause_is_told_without_its_message() -> None:
    told = describe(_raised(_fail_further))
    assert told.startswith("DiskFull at ")
    assert ", from ValueError at " in told
    assert WORDS not in told


def test_each_exception_of_a_group_is_told() -> None:
    async def fail(kind: type[Exception]) -> None:
        raise kind(WORDS)

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(fail(KeyError))
            group.create_task(fail(LookupError))

    told = describe(_raised(lambda: asyncio.run(both())))
    assert "KeyError at " in told
    assert "; LookupError at " in told
    assert WORDS not in told


def test_an_exception_never_raised_has_no_place() -> None:
    assert describe(ValueError(WORDS)) == "ValueError at nowhere"


def test_a_stored_traceback_has_places_and_types_and_no_words() -> None:
    trace = redact_traceback(_raised(_fail_further))
    assert "ValueError\nwhich led to\n" in trace
    assert "test_telemetry.py:" in trace
    assert " _fail_further" in trace
    assert trace.endswith("DiskFull: " + str(DiskFull()))
    assert WORDS not in trace
    assert not any(line.startswith("  /") for line in trace.splitlines())


def test_a_stored_traceback_keeps_the_message_of_our_own_errors() -> None:
    def fail() -> None:
        raise UnsupportedCall(f"sendPoll is not supported {TOKEN}")

    trace = redact_traceback(_raised(fail))
    assert trace.endswith("UnsupportedCall: sendPoll is not supported ***")


def test_a_stored_traceback_of_a_group_holds_each_part() -> None:
    group = ExceptionGroup(WORDS, [_raised(_fail), KeyError(WORDS)])
    trace = redact_traceback(group)
    assert "of which 1:" in trace
    assert trace.endswith("of which 2:\nKeyError")
    assert WORDS not in trace


def test_libraries_keep_quiet_below_warning_even_at_debug(log: Log) -> None:
    for name in ("aiosqlite", "httpx", "telegram.ext.ExtBot", "hpack.hpack", "uvicorn.access"):
        logging.getLogger(name).debug("insert %s", WORDS)
        logging.getLogger(name).info("POST %s", WORDS)
    logging.getLogger("apscheduler.scheduler").warning("Run time of job %s was missed", "tick")
    assert log.getvalue() == ""


def test_a_librarys_warning_is_told_without_the_texts_put_into_it(log: Log) -> None:
    logging.getLogger("telegram.ext").warning("update %s took %d s", WORDS, 3)
    logging.getLogger("aiohttp.client").error("odd %d", WORDS)
    logging.getLogger("uvicorn.error").error(OSError(WORDS))
    as_asyncio_does = f"Task was never retrieved\nfuture: {WORDS}"
    logging.getLogger("asyncio").error(as_asyncio_does)
    messages = [record["message"] for record in log.records()]
    assert messages == ["update … took 3 s", "odd %d", "OSError", "Task was never retrieved"]
    assert log.records()[0]["event"] == "log"
    assert log.records()[0]["logger"] == "telegram.ext"


def test_a_forgotten_task_leaks_no_words(log: Log) -> None:
    """Python itself logs the exception's `repr`."""

    async def forget() -> None:
        async def fail() -> None:
            raise ValueError(WORDS)

        task = asyncio.get_running_loop().create_task(fail())
        await asyncio.wait([task])
        del task

    asyncio.run(forget())
    assert "never retrieved" in log.getvalue()
    assert WORDS not in log.getvalue()


def test_the_handlers_own_logs_come_through_as_they_are(log: Log) -> None:
    own = logging.getLogger("my_bot")
    own.info("order %s placed", 7)
    own.info("broken %d", "x")
    try:
        _fail()
    except ValueError:
        own.exception("failed")
    records = log.records()
    assert [record["message"] for record in records] == ["order 7 placed", "broken %d", "failed"]
    assert records[2]["error"].startswith("ValueError at ")
    assert WORDS not in log.getvalue()


def test_a_terminal_gets_one_coloured_line_without_control_characters() -> None:
    out = Log(is_terminal=True)
    setup("web", "INFO", stream=out)
    event("web.refused", reason="\x1b[2Jgone\n", count=3)
    [line] = out.getvalue().splitlines()
    assert "\x1b[33mwarning" in line
    assert '"\\u001b[2Jgone\\n"' in line
    assert "count=3" in line


def test_no_color_is_honoured() -> None:
    out = Log(is_terminal=True)
    setup("web", "INFO", no_color="1", stream=out)
    event("role.ready")
    assert "\x1b" not in out.getvalue()
    assert "role.ready" in out.getvalue()


@pytest.mark.parametrize(
    "program",
    [
        "raise ValueError(words)",
        (
            "import threading\n"
            "def fail(): raise ValueError(words)\n"
            "thread = threading.Thread(target=fail); thread.start(); thread.join()"
        ),
        "class Odd:\n    def __del__(self): raise ValueError(words)\nOdd()",
    ],
)
def test_what_nobody_caught_is_logged_without_its_message(program: str) -> None:
    opening = (
        "import sys\n"
        "from storage.telemetry import setup\n"
        "setup('worker', 'INFO')\n"
        "words = sys.stdin.read()\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", opening + program],
        input=WORDS,
        capture_output=True,
        text=True,
        check=False,
    )
    record = json.loads(run.stderr)
    assert record["level"] == "error"
    assert record["error"].startswith("ValueError at ")
    assert WORDS not in run.stderr
