"""Answers as a strained Telegram gives them, and the reading of a webhook's own answer. Pure."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from tests.simulator.wire import HTML_HEADERS, JSON_HEADERS, JsonObject, Reply, encode, refuse

# Far above any wait that Telegram orders: it clamps at 14 days.
_HUGE_S = 10_000_000
_WAITS: Mapping[str, object] = {
    "zero": 0,
    "negative": -1,
    "bool": True,
    "string": "5",
    "huge": _HUGE_S,
}
# Calls that a webhook's answer cannot make; neither can any that begins with `get`.
_NOT_IN_ANSWERS = frozenset({"setwebhook", "deletewebhook", "close", "logout"})


def bare_flood(form: str) -> Reply:
    """A 429 without a usable wait: none at all, or one that no client should obey blindly."""
    body: JsonObject = {"ok": False, "error_code": 429, "description": "Too Many Requests"}
    if form != "absent":
        body["parameters"] = {"retry_after": _WAITS[form]}
    return Reply(429, encode(body), JSON_HEADERS)


def gateway_page(status: int) -> Reply:
    """What the front end says when nobody behind it answers: a page for people."""
    title = f"{status} {HTTPStatus(status).phrase}"
    page = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n"
        f"<center><h1>{title}</h1></center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    )
    return Reply(status, page.encode(), HTML_HEADERS)


def hidden_flood(wait_s: int, *, is_wrapped: bool = False) -> Reply:
    """A flood inside a 400, or inside an album's error; its text is the only source of the wait."""
    inner = f"Too Many Requests: retry after {wait_s}"
    if is_wrapped:
        return refuse(400, "Bad Request: " + item_failed(1, inner))
    return refuse(400, f"Bad Request: {inner[0].lower()}{inner[1:]}")


def item_failed(number: int, inner: str) -> str:
    """Tell of one message among several; what Telegram said of it is not rewritten inside."""
    return f'failed to send message #{number} with the error message "{inner}"'


def description_in(reply: Reply) -> str:
    """The description that a refusal carries, empty when it carries none."""
    try:
        told = json.loads(reply.body)
    except ValueError:
        return ""
    return str(told.get("description", "")) if isinstance(told, dict) else ""


def method_in_answer(body: bytes) -> tuple[str, dict[str, str]] | None:
    """The call that a webhook put into its answer, if Telegram would carry it out."""
    if b'"method"' not in body:
        return None
    try:
        told = json.loads(body)
    except ValueError:
        return None
    method = told.pop("method", None) if isinstance(told, dict) else None
    if not isinstance(method, str) or method.lower() in _NOT_IN_ANSWERS:
        return None
    return None if method.lower().startswith("get") else (method, as_form(told))


def as_form(values: Mapping[str, object]) -> dict[str, str]:
    """JSON parameters as a form holds them: texts as they are, everything else as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
        if value is not None
    }
