"""Programs as the API sees them: posts with the token, and the corpus of their orders."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import httpx

from tests.integration.web.door import API_TOKEN, Door

PATH = "/api/messages"
BEARER = {"Authorization": f"Bearer {API_TOKEN}"}


@dataclass(frozen=True, slots=True)
class Case:
    """A body, and what it is to be answered with."""

    name: str
    body: bytes
    status: int
    error: str | None


def cases() -> Iterator[Case]:
    """Every case of the corpus, in its order."""
    text = (resources.files("tests") / "data" / "orders" / "manifest.json").read_text("utf-8")
    for case in json.loads(text):
        yield Case(case["id"], _body(case), case["status"], case.get("error"))


def _body(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    if "body" in case:
        return str(case["body"]).encode()
    recipe = case["generate"]
    text = recipe["prefix"] + recipe["repeat"] * recipe["count"] + recipe["suffix"]
    text += recipe.get("then", "") * recipe.get("then_count", 0) + recipe.get("end", "")
    return str(text).encode()


def message(text: str = "hello", chat_id: int | str = 5, **fields: object) -> dict[str, Any]:
    """An order of a text message; fields may replace or add to it."""
    params = {"chat_id": chat_id, "text": text}
    return {"bot": "main", "method": "sendMessage", "params": params, **fields}


async def order(door: Door, body: object, **headers: str) -> httpx.Response:
    """Post one order with the token."""
    return await door.http.post(PATH, json=body, headers={**BEARER, **headers})


async def asked(door: Door, number: int | str) -> httpx.Response:
    """Ask how a call stands, with the token."""
    return await door.http.get(f"{PATH}/{number}", headers=BEARER)
