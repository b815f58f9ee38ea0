"""Replays the hostile corpus: raw requests over a socket, as `tests/data/hostile/README.md` says.

A client library would mend what is broken, so each request is put together byte by byte.
"""

import gzip
import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from tests.integration.web.door import HEADER

DATA = resources.files("tests") / "data" / "hostile"
ANSWER_WITHIN_S = 12.0
_PIECE = 8192


@dataclass(frozen=True, slots=True)
class Posting:
    """One request, and what it may lead to. `ends` tells that the sender closes its side after."""

    name: str
    head: bytes
    body: Sequence[bytes]
    statuses: Sequence[int | str]
    stored: Sequence[str]
    ends: bool = False


def postings(path: str, secret: str) -> Iterator[Posting]:
    """Every request of the manifest, in its order."""
    for case in json.loads((DATA / "manifest.json").read_text("utf-8")):
        if "steps" in case:
            for number, step in enumerate(case["steps"], start=1):
                yield _posting({**case, **step, "id": f"{case['id']}#{number}"}, path, secret)
        elif "raw_request" in case:
            yield _raw(case, path, secret)
        else:
            yield _posting(case, path, secret)


def talk(port: int, posting: Posting) -> int | str:
    """Send one request; the status of the answer, or `closed`, or `open` when none comes."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_WITHIN_S) as connection:
        try:
            connection.sendall(posting.head)
            for piece in posting.body:
                connection.sendall(piece)
            if posting.ends:
                connection.shutdown(socket.SHUT_WR)
        except OSError:
            # The door may answer before it has read everything, and close.
            pass
        return _answer(connection)


def _answer(connection: socket.socket) -> int | str:
    data = b""
    try:
        while b"\r\n\r\n" not in data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n"):
            received = connection.recv(65536)
            if not received:
                break
            data += received
    except TimeoutError:
        return "open"
    except OSError:
        return "closed"
    data = data.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    return int(data.split()[1]) if data.startswith(b"HTTP/") else "closed"


def _posting(case: Mapping[str, Any], path: str, secret: str) -> Posting:
    body = _body(case)
    framing = case.get("framing", "content-length")
    return Posting(
        name=case["id"],
        head=_head(case, path, secret, framing, len(body)),
        body=list(_chunks(body, framing)),
        statuses=case["expect_status"],
        stored=case["expect_stored"].split("|"),
    )


def _head(case: Mapping[str, Any], path: str, secret: str, framing: str, length: int) -> bytes:
    headers = dict(case.get("headers") or {"content-type": "application/json"})
    name = headers.pop("_secret_header_name", HEADER)
    target = path + case.get("path", "webhook").removeprefix("webhook").replace(
        "{{SECRET}}", secret
    )
    lines = [f"{case.get('method', 'POST')} {target} HTTP/1.1", "Host: 127.0.0.1"]
    lines += [f"{name}: {told}" for told in _secrets(case.get("secret", "valid"), secret)]
    lines += [f"{key}: {value}" for key, value in headers.items() if value is not None]
    if framing == "content-length":
        lines.append(f"Content-Length: {length}")
    else:
        lines.append("Transfer-Encoding: chunked")
    return ("\r\n".join(lines) + "\r\nConnection: close\r\n\r\n").encode("latin-1")


def _secrets(told: str, secret: str) -> Sequence[str]:
    known = {
        "valid": [secret],
        "missing": [],
        "valid-prefix": [secret[:-1]],
        "valid-suffix": [secret + "x"],
        "wrong,valid": ["wrong", secret],
    }
    return known.get(told, [told])


def _chunks(body: bytes, framing: str) -> Iterator[bytes]:
    if framing == "content-length":
        for start in range(0, len(body), _PIECE):
            yield body[start : start + _PIECE]
        return
    size = 1 if framing == "chunked-1" else _PIECE
    for start in range(0, len(body), size):
        chunk = body[start : start + size]
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    yield b"0\r\n\r\n"


def _body(case: Mapping[str, Any]) -> bytes:
    if "file" in case:
        return (DATA / str(case["file"])).read_bytes()
    recipe = case["generate"]
    if "gzip_of_zeros" in recipe:
        zeros = b"0" * int(recipe["gzip_of_zeros"])
        return gzip.compress(zeros, 9, mtime=0)
    text = recipe["prefix"] + recipe["repeat"] * recipe["count"] + recipe.get("infix", "")
    text += recipe.get("then", "") * recipe.get("then_count", 0) + recipe.get("suffix", "")
    return str(text).encode()


def _raw(case: Mapping[str, Any], path: str, secret: str) -> Posting:
    raw = (DATA / case["raw_request"]).read_bytes()
    for mark, value in (("PATH", path), ("HOST", "127.0.0.1"), ("SECRET", secret)):
        raw = raw.replace(f"{{{{{mark}}}}}".encode(), value.encode())
    is_cut = case["expect_status"][0] == "closed" and b"close" not in raw.lower()
    return Posting(
        name=case["id"],
        head=raw,
        body=[],
        statuses=case["expect_status"],
        stored=case["expect_stored"].split("|"),
        ends=is_cut,
    )
