"""Bodies of calls, and the tables of parameters against the published description."""

import json
from pathlib import Path

import pytest

from tests.simulator.form_bodies import BadBody, read_body
from tests.simulator.forms import FIELDS, REQUIRED, Kind
from tests.simulator.method_table import METHODS

EXCERPT = json.loads(
    (Path(__file__).parents[2] / "data" / "botapi" / "excerpt-10.2.json").read_text("utf-8")
)
KINDS = {
    "Integer": Kind.INTEGER,
    "String": Kind.TEXT,
    "Boolean": Kind.FLAG,
    "InputFile": Kind.FILE,
}


def kind_of(types: list[str]) -> Kind:
    if types == ["Integer", "String"]:
        return Kind.CHAT
    return Kind.LIST if types[0].startswith("Array of") else KINDS.get(types[0], Kind.OBJECT)


@pytest.mark.parametrize("method", sorted(EXCERPT["methods"]))
def test_parameters_are_those_of_the_published_description(method: str) -> None:
    published = EXCERPT["methods"][method]
    assert FIELDS[method] == {each["name"]: kind_of(each["types"]) for each in published}
    assert set(REQUIRED.get(method, {})) == {e["name"] for e in published if e["required"]}


def test_every_method_has_its_table() -> None:
    assert {method.name for method in METHODS.values()} == set(FIELDS)


def test_json_bodies_become_forms() -> None:
    body = (
        b'{"chat_id":5,"text":"5","protect_content":true,"reply_markup":{"a":[1]},"entities":null}'
    )
    assert read_body("application/json", body, b"") == (
        {"chat_id": "5", "text": "5", "protect_content": "true", "reply_markup": '{"a": [1]}'},
        {},
    )


def test_urlencoded_bodies_and_queries_become_forms() -> None:
    form, _ = read_body(
        "application/x-www-form-urlencoded", b"text=a+b%26%F0%9F%8C%8A&empty=", b"chat_id=5"
    )
    assert form == {"chat_id": "5", "text": "a b&🌊", "empty": ""}


def test_multipart_bodies_become_forms_and_files() -> None:
    body = (
        b'--edge\r\nContent-Disposition: form-data; name="text"\r\n\r\nhi\r\n'
        b'--edge\r\nContent-Disposition: form-data; name="certificate"; filename="c.pem"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n\x00\r\n\xff\r\n--edge--\r\n"
    )
    form, files = read_body("multipart/form-data; boundary=edge", body, b"")
    assert (form, files) == ({"text": "hi"}, {"certificate": b"\x00\r\n\xff"})


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/json", b"{"),
        ("application/json", b"[]"),
        ("text/plain", b"x"),
        ("application/x-www-form-urlencoded", b"no equals sign"),
        ("multipart/form-data", b""),
        ("multipart/form-data; boundary=edge", b"--edge\r\n\r\n--edge--\r\n"),
        ("multipart/form-data; boundary=edge", b"nothing"),
    ],
)
def test_a_body_that_is_not_what_it_says_is_refused(content_type: str, body: bytes) -> None:
    with pytest.raises(BadBody):
        read_body(content_type, body, b"")


def test_a_call_without_a_body_has_no_parameters() -> None:
    assert read_body("", b"", b"") == ({}, {})
