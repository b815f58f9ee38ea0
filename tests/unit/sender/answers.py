"""Answers as Telegram gives them, for tests of what they mean."""

import json

from sender.answer import Answer, Stage


def answered(status: int, body: object, *, header: str = "") -> Answer:
    """An answer with this body, bytes as they are and all else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(Stage.ANSWERED, status, header, raw)


def refused(code: int, description: str, parameters: object = None, *, header: str = "") -> Answer:
    """A refusal in the Bot API's frame."""
    body: dict[str, object] = {"ok": False, "error_code": code, "description": description}
    if parameters is not None:
        body["parameters"] = parameters
    return answered(code, body, header=header)


def accepted(result: object) -> Answer:
    """An acceptance in the Bot API's frame."""
    return answered(200, {"ok": True, "result": result})


def wrapped(number: int, inner: str) -> str:
    """What Telegram says of a call of several items: the item that failed, with its own text."""
    return f'Bad Request: failed to send message #{number} with the error message "{inner}"'
