"""Telegram's refusal of a call, as an answer again: rebuilt from what was kept of it.

Pure. The library reads it like one that has just come, and raises what it always raises.
"""

import json
from typing import Any, Final

_FLOOD: Final = 429
_MS_PER_S: Final = 1_000


def body_of(
    code: int, description: str, *, wait_ms: int | None = None, moved_to: int | None = None
) -> bytes:
    """The body of a refusal (Bot API, ResponseParameters).

    `wait_ms`: what a flood has ordered; `moved_to`: the supergroup that the group has become.
    """
    told: dict[str, Any] = {"ok": False, "error_code": code, "description": description}
    if code == _FLOOD and wait_ms:
        told["parameters"] = {"retry_after": -(-wait_ms // _MS_PER_S)}
    elif moved_to is not None:
        told["parameters"] = {"migrate_to_chat_id": moved_to}
    return json.dumps(told).encode()
