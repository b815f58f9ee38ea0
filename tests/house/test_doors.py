"""The single doors that import contracts cannot see, each a rule over the code.

A door is one module through which a thing is reached, so that there is one place to read, to
replace in a test, and to put right: the environment, time and chance, SQL, and the words that
Telegram uses for its errors. The contracts over imports are in pyproject.toml.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.sources import Rule, Source, dotted, imports, texts

ENVIRONMENT = {"os.environ", "os.environb", "os.getenv", "os.getenvb", "os.putenv", "os.unsetenv"}
CLOCKS = {"time", "random", "secrets", "sched"}
# What a loop and a datetime offer behind the clock's back.
CLOCK_CALLS = re.compile(
    r"(^|\.)(asyncio\.sleep|call_later|call_at|loop\.time|get_running_loop\(\)\.time"
    r"|datetime\.now|datetime\.utcnow|datetime\.today|date\.today|uuid[14])$"
)
# Tests of real processes poll a condition, with a deadline; all others bring a clock of their own.
# The simulator has its own clocks, since it shares no code with those it judges.
WAITING_TESTS = (
    *("tests/bench/", "tests/crash/", "tests/demo/", "tests/e2e/", "tests/house/"),
    "tests/simulator/clock.py",
    # Worlds have a loop of their own, in which a sleep takes no time.
    "tests/simulation/loop.py",
)

SQL_DOORS = ("storage/carriers.py", "storage/database.py", "storage/migrate.py")
SQL = re.compile(
    r"\s*(select\s.*\bfrom\s|select\s+[\w(*]+\s*$|insert\s+(or\s+\w+\s+)?into\s|replace\s+into\s"
    r"|update\s+(or\s+\w+\s+)?\w+\s+set\s|delete\s+from\s|pragma\s+\w|vacuum\b|attach\s+database\b"
    r"|(create|alter|drop)\s+((unique|temp|temporary|virtual)\s+)?(table|index|view|trigger)\b"
    r"|begin\s+(immediate|deferred|exclusive|transaction)\b|(release\s+)?savepoint\s+\w"
    r"|with\s+(recursive\s+)?\w+\s*(\([^)]*\)\s*)?as\s*\()",
    re.IGNORECASE | re.DOTALL,
)

TELEGRAM_ERRORS_DOOR = "sender/phrases.py"
TELEGRAM_ERRORS = re.compile(
    r"retry after|too many requests|bad request:|forbidden:|unauthorized$|conflict: terminated"
    r"|bot was (blocked|kicked)|user is deactivated|chat not found|upgraded to a supergroup"
    r"|message is not modified|message to \w+ not found|message can't be \w+"
    r"|not enough rights|query is too old",
    re.IGNORECASE,
)


def environment(source: Source) -> Iterator[str]:
    """A look at the environment outside the settings; a test may hand one to a child."""
    if not source.is_product or source.path.endswith("/settings.py"):
        return
    for line, name in imports(source):
        if name in ENVIRONMENT:
            yield f"{line}: {name} belongs to the settings"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and dotted(node) in ENVIRONMENT:
            yield f"{node.lineno}: {dotted(node)} belongs to the settings"


def clock(source: Source) -> Iterator[str]:
    """A look at a clock, or a throw of dice, that no test could replace."""
    if not source.is_product or source.path == "storage/clock.py":
        return
    for line, name in imports(source):
        if name.split(".")[0] in CLOCKS or CLOCK_CALLS.search(name):
            yield f"{line}: {name}: take a Clock or a Dice"
    for call in _calls(source):
        if CLOCK_CALLS.search(_spelt(call.func)) and not _only_yields(call):
            yield f"{call.lineno}: {_spelt(call.func)}: take a Clock"


def sleeping_test(source: Source) -> Iterator[str]:
    """A test that waits for time to pass."""
    if source.is_product or source.path.startswith(WAITING_TESTS):
        return
    for call in _calls(source):
        sleeps = _spelt(call.func) in ("time.sleep", "asyncio.sleep", "sleep")
        if sleeps and not _only_yields(call):
            yield f"{call.lineno}: a test brings its own clock"


def sql(source: Source) -> Iterator[str]:
    """A statement that is not in storage/sql under a name of its own."""
    if not source.is_product or source.path in SQL_DOORS:
        return
    for text in texts(source):
        if SQL.match(str(text.value)):
            yield f"{text.lineno}: a statement belongs to storage/sql: {text.value!r}"


def telegram_error(source: Source) -> Iterator[str]:
    """A reading of Telegram's prose outside the verdicts."""
    if not source.is_product or source.path == TELEGRAM_ERRORS_DOOR:
        return
    for text in texts(source):
        if TELEGRAM_ERRORS.search(str(text.value)):
            yield f"{text.lineno}: only {TELEGRAM_ERRORS_DOOR} knows {text.value!r}"


def _only_yields(call: ast.Call) -> bool:
    """Whether a sleep of nothing lets others run, which takes no time."""
    match call.args:
        case [ast.Constant(value=0)]:
            return True
        case _:
            return False


def _calls(source: Source) -> Iterator[ast.Call]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            yield node


def _spelt(node: ast.expr) -> str:
    """Spell what is called, a call in its middle too: `asyncio.get_running_loop().time`."""
    match node:
        case ast.Attribute(value=ast.Call(func=func), attr=attr):
            return f"{dotted(func)}().{attr}"
        case _:
            return dotted(node)


RULES = (
    Rule(
        "only settings read the environment",
        environment,
        breach=("bot/web/app.py", "import os\nport = os.environ['PORT']\n"),
        twin=("bot/settings.py", "import os\nport = os.environ['PORT']\n"),
    ),
    Rule(
        "the environment is not imported by another name",
        environment,
        breach=("bot/web/app.py", "from os import getenv as get\n"),
        twin=("tests/e2e/roles.py", "from os import getenv as get\n"),
    ),
    Rule(
        "only the clock's module reads clocks and throws dice",
        clock,
        breach=("sender/drain.py", "from time import monotonic\n"),
        twin=("storage/clock.py", "from time import monotonic\n"),
    ),
    Rule(
        "nothing sleeps or wakes behind the clock's back",
        clock,
        breach=(
            "sender/drain.py",
            "import asyncio\nasyncio.get_running_loop().call_later(1, ring)\n",
        ),
        twin=("sender/drain.py", "import asyncio\nasyncio.timeout(1)\nasyncio.sleep(0)\n"),
    ),
    Rule(
        "nothing asks a datetime what time it is",
        clock,
        breach=("sender/drain.py", "import datetime\nat = datetime.datetime.now(datetime.UTC)\n"),
        twin=("sender/drain.py", "import datetime\nat = datetime.datetime.fromtimestamp(0)\n"),
    ),
    Rule(
        "no test sleeps",
        sleeping_test,
        breach=("tests/unit/test_drain.py", "import asyncio\nasyncio.sleep(0.1)\n"),
        twin=("tests/unit/test_drain.py", "import asyncio\nasyncio.sleep(0)\n"),
    ),
    Rule(
        "statements live in storage/sql",
        sql,
        breach=("storage/chats.py", 'tx.run(f"update {table} set x = 1")\n"delete from chats"\n'),
        twin=("storage/chats.py", '"""Select a chat from the table."""\nsay("update the set")\n'),
    ),
    Rule(
        "only the verdicts know Telegram's prose",
        telegram_error,
        breach=("sender/drain.py", 'flood = "Retry After 3" in answer\n'),
        twin=("bot/web/app.py", '"""Too Many Requests."""\nheader = "Retry-After"\n'),
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_file_of_ours_keeps_the_rule(rule: Rule) -> None:
    rule.holds()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_rule_is_seen_to_fail(rule: Rule) -> None:
    rule.is_seen_to_fail()
