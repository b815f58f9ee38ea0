"""Whose request it is, and who counts as sitting at this machine."""

from ipaddress import ip_network

import pytest

from bot.web.address import client_address, is_allowed, is_direct_from_loopback
from storage.options import TELEGRAM_NETWORKS
from tests.unit.web.requests import asked

TELEGRAM = [ip_network(text) for text in TELEGRAM_NETWORKS]


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("149.154.167.220", True),
        ("91.108.7.255", True),
        ("::ffff:149.154.167.220", True),
        ("91.108.8.0", False),
        ("127.0.0.1", False),
        ("2001:db8::1", False),
        ("", False),
        (None, False),
        ("149.154.167.220, 6.6.6.6", False),
        ("no address", False),
    ],
)
def test_only_telegrams_own_networks_may_come(address: str | None, allowed: bool) -> None:  # noqa: FBT001 - a table
    assert is_allowed(address, TELEGRAM) is allowed


def test_without_networks_anybody_may_come() -> None:
    assert is_allowed(None, [])


def test_over_tcp_the_proxys_header_is_not_believed_here() -> None:
    """Uvicorn has judged the forwarding headers already, and X-Real-IP can be anybody's."""
    request = asked("203.0.113.9", ("x-real-ip", "149.154.167.220"))
    assert client_address(request) == "203.0.113.9"


def test_over_a_unix_socket_the_header_that_the_proxy_overwrites_is_believed() -> None:
    forged = ("x-forwarded-for", "149.154.167.220")
    assert client_address(asked(None, ("x-real-ip", " 203.0.113.9 "), forged)) == "203.0.113.9"
    assert client_address(asked(None, forged)) is None


def test_over_a_unix_socket_a_header_told_twice_is_none() -> None:
    twice = ("x-real-ip", "149.154.167.220"), ("x-real-ip", "203.0.113.9")
    assert client_address(asked(None, *twice)) is None


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080", "[::1]"]
)
def test_a_visitor_at_this_machine_is_known_by_address_and_name(host: str) -> None:
    assert is_direct_from_loopback(asked("127.0.0.1", ("host", host)))
    assert is_direct_from_loopback(asked("::1", ("host", host)))


@pytest.mark.parametrize(
    "host", ["", "bot.example.org", "evil.example:8080", "127.0.0.1.evil.example"]
)
def test_a_name_of_somewhere_else_is_not_this_machine(host: str) -> None:
    """A web page may give its own name our address."""
    assert not is_direct_from_loopback(asked("127.0.0.1", ("host", host)))


@pytest.mark.parametrize(
    "header",
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"],
)
def test_a_visitor_who_came_through_a_proxy_is_not_at_this_machine(header: str) -> None:
    assert not is_direct_from_loopback(asked("127.0.0.1", (header, "127.0.0.1")))


def test_a_proxy_that_adds_no_header_is_known_by_its_old_http() -> None:
    request = asked("127.0.0.1")
    request.scope["http_version"] = "1.0"
    assert not is_direct_from_loopback(request)


def test_a_unix_socket_and_another_machine_are_elsewhere() -> None:
    assert not is_direct_from_loopback(asked(None))
    assert not is_direct_from_loopback(asked("192.0.2.1"))
