"""Bodies of calls, and the tables of parameters against the published description."""

import pytest

from tests.simulator.form_bodies import BadBody, read_body
from tests.simulator.forms import FIELDS, REQUIRED, Kind
from tests.simulator.method_table import METHODS


def test_the_tables_say_what_was_published() -> None:
    """Read by hand: one parameter of each kind."""
    assert FIELDS["sendMessage"]["chat_id"] is Kind.CHAT
    assert FIELDS["sendMessage"]["message_thread_id"] is Kind.INTEGER
    assert FIELDS["sendMessage"]["protect_content"] is Kind.FLAG
    assert FIELDS["sendMessage"]["entities"] is Kind.LIST
    assert FIELDS["sendMessage"]["reply_markup"] is Kind.OBJECT
    assert FIELDS["sendPhoto"]["photo"] is Kind.FILE
    assert FIELDS["sendLocation"]["latitude"] is Kind.NUMBER
    assert REQUIRED["sendMessage"] == {
        "chat_id": "chat_id is empty",
        "text": "message text is empty",
    }


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
