"""Reading the body of a call: JSON, urlencoded or multipart, and the query beside it. Pure.

Written out instead of taken from a library: a test server should refuse what it does not expect.
"""

import json
from email.message import Message
from urllib.parse import parse_qsl

from tests.simulator.broken_answers import as_form

Form = dict[str, str]
Files = dict[str, bytes]


class BadBody(Exception):
    """The body is not what its Content-Type says."""


def read_body(content_type: str, body: bytes, query: bytes) -> tuple[Form, Files]:
    """The parameters of a call and its uploads; raises BadBody."""
    form = dict(parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True))
    header = Message()
    header["Content-Type"] = content_type
    files: Files = {}
    match header.get_content_type() if content_type else "":
        case "application/json":
            form |= _json(body)
        case "application/x-www-form-urlencoded":
            form |= _urlencoded(body)
        case "multipart/form-data":
            fields, files = _multipart(body, str(header.get_param("boundary", "")))
            form |= fields
        case _:
            if body:
                raise BadBody(f"unexpected Content-Type {content_type!r}")
    return form, files


def _json(body: bytes) -> Form:
    try:
        told = json.loads(body) if body else {}
    except ValueError:
        raise BadBody("can't parse JSON") from None
    if not isinstance(told, dict):
        raise BadBody("JSON object expected")
    return as_form(told)


def _urlencoded(body: bytes) -> Form:
    try:
        return dict(
            parse_qsl(
                body.decode("ascii"), keep_blank_values=True, strict_parsing=True, errors="strict"
            )
            if body
            else []
        )
    except ValueError:
        raise BadBody("can't parse the urlencoded form") from None


def _multipart(body: bytes, boundary: str) -> tuple[Form, Files]:
    if not boundary:
        raise BadBody("multipart without a boundary")
    form: Form = {}
    files: Files = {}
    first, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary.encode())
    if first or not parts or not parts.pop().startswith(b"--"):
        raise BadBody("multipart does not begin and end with its boundary")
    for part in parts:
        head, blank, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        if not blank:
            raise BadBody("a part without headers")
        name, is_file = _disposition(head)
        if is_file:
            files[name] = content
        else:
            form[name] = content.decode()
    return form, files


def _disposition(head: bytes) -> tuple[str, bool]:
    for line in head.decode().split("\r\n"):
        title, _, value = line.partition(":")
        if title.strip().lower() == "content-disposition":
            header = Message()
            header["Content-Disposition"] = value.strip()
            name = header.get_param("name", None, "content-disposition")
            if isinstance(name, str):
                return name, header.get_filename() is not None
    raise BadBody("a part without a name")
