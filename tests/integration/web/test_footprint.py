"""What the process that the internet talks to has loaded: no framework, no way to Telegram."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys
import bot.web.app
print(json.dumps(sorted(sys.modules)))
"""
NEVER = {"aiohttp", "apscheduler", "httpx", "sender", "telegram", "tornado"}
# Loaded when the status page is first asked for.
LATER = {"jinja2"}


def test_the_role_loads_only_what_it_needs() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, check=True, text=True, timeout=60
    )
    loaded = set(json.loads(done.stdout))
    assert "bot.web.webhook" in loaded
    assert {name.split(".")[0] for name in loaded} & (NEVER | LATER) == set()
    assert not [name for name in loaded if name.startswith(("bot.turns", "bot.handlers"))]
