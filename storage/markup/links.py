"""Which addresses Telegram takes for a link, an emoji, a date: the rest of the text's markup.

Pure. An address that is none is dropped without a word where it stands in markup, and refused
where it stands in an entity; so a text that is sent with entities must know beforehand
(TDLib, `LinkManager::check_link_impl`, `parse_url`, `check_tg_url_host`).
"""

import ipaddress
import re
from collections.abc import Iterator
from typing import Final

_INT64_MAX: Final = (1 << 63) - 1
_INT32_MAX: Final = (1 << 31) - 1
_PORT_MAX: Final = 65535
_SCHEME: Final = re.compile(r"(tg|ton|tonsite):(?://)?", re.IGNORECASE | re.ASCII)
_PROTOCOL: Final = re.compile(r"([^:/?#@\[\]]*)://")
_AUTHORITY: Final = re.compile(r"[^/?#]*")
_PART: Final = r"(?:[A-Za-z0-9.\-_!$,~*'();&+={}]|%[0-9a-fA-F]{{2}}|[^\x00-\x7f])*"
_HOST: Final = re.compile(_PART.format(""))
_USER: Final = re.compile(_PART.format(":"))
_INNER_HOST: Final = re.compile(r"[A-Za-z0-9_-]+")
_SITE_HOST: Final = re.compile(r"[A-Za-z0-9_.-]+")
_WHOLE: Final = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_DATE_FORMAT: Final = re.compile(r"[rR]|[tTdDwW]*")


def is_link(url: str) -> bool:
    """Tell whether Telegram makes a link of this address."""
    inner = _SCHEME.match(url)
    if inner is None:
        parts = _parts(url)
        return parts is not None and ("." in parts.host or parts.is_ipv6)
    scheme = inner[1].lower()
    rest = url[inner.end() :]
    parts = _parts(rest)
    if parts is None or parts.is_ipv6 or parts.has_user or parts.port or parts.protocol:
        return False
    allowed = _SITE_HOST if scheme == "tonsite" else _INNER_HOST
    return allowed.fullmatch(parts.host) is not None


class _Parts:
    __slots__ = ("has_user", "host", "is_ipv6", "port", "protocol")

    def __init__(self, protocol: str, authority: str) -> None:
        rest, port = _port_of(authority)
        user, at, host = rest.rpartition("@")
        self.protocol = protocol
        self.port = port
        self.has_user = bool(at and user)
        self.is_ipv6 = host.startswith("[") and host.endswith("]")
        self.host = host
        self._check(user)

    def _check(self, user: str) -> None:
        if self.port < 0 or self.port > _PORT_MAX or self.host in ("", "."):
            raise ValueError
        if self.is_ipv6:
            ipaddress.IPv6Address(self.host[1:-1])
        elif not _HOST.fullmatch(self.host) or not _USER.fullmatch(user):
            raise ValueError


def _parts(url: str) -> _Parts | None:
    found = _PROTOCOL.match(url)
    protocol = "" if found is None else found[1].lower()
    if found is not None and protocol not in ("http", "https"):
        return None
    authority = _AUTHORITY.match(url, 0 if found is None else found.end())
    assert authority is not None, "it matches nothing as well"
    try:
        return _Parts(protocol, authority[0])
    except ValueError:
        return None


def _port_of(authority: str) -> tuple[str, int]:
    """What stands before the port, and the port: 0 when there is none, -1 when it is no number."""
    for at in range(len(authority) - 1, 0, -1):
        char = authority[at]
        if char in "]@":
            break
        if char == ":":
            number = whole(authority[at + 1 :].lstrip("0") or "0", _INT32_MAX)
            return authority[:at], number or -1
    return authority, 0


def whole(digits: str, largest: int) -> int | None:
    """A number as Telegram writes it, no larger than this; None for everything else."""
    if not _WHOLE.fullmatch(digits):
        return None
    number = int(digits[:20])
    return number if -largest - 1 <= number <= largest and len(digits) <= 20 else None  # noqa: PLR2004 - the longest 64 bits


def emoji_of(url: str) -> str | None:
    """The custom emoji that a `tg://emoji?id=` address names; None for every other address."""
    for key, value in _tg_parameters(url, "emoji"):
        if key == "id":
            return emoji_id(value)
    return None


def emoji_id(given: str) -> str | None:
    """This id, if it may be one of a custom emoji."""
    return given if whole(given, _INT64_MAX) else None


def date_of(url: str) -> dict[str, object] | None:
    """The moment and format that a `tg://time?unix=` address names; None for every other one."""
    unix: int | None = None
    form = ""
    for key, value in _tg_parameters(url, "time"):
        if key == "unix":
            unix = whole(value, _INT32_MAX)
            if unix is None or unix <= 0:
                return None
        if key == "format":
            form = value
    if unix is None or not is_date_format(form):
        return None
    return date_fields(unix, form)


def is_date_format(form: str) -> bool:
    """Tell whether Telegram knows how to write a moment in this format."""
    return _DATE_FORMAT.fullmatch(form) is not None


def date_fields(unix: int, form: str) -> dict[str, object]:
    """What a `date_time` entity says beside its place."""
    return {"unix_time": unix, "date_time_format": form} if form else {"unix_time": unix}


def _tg_parameters(url: str, host: str) -> Iterator[tuple[str, str]]:
    if url[:3].lower() != "tg:":
        return
    rest = url[3:].removeprefix("//")
    if rest[: len(host)].lower() != host:
        return
    rest = rest[len(host) :].removeprefix("/")
    if not rest.startswith("?"):
        return
    for parameter in rest[1:].partition("#")[0].split("&"):
        key, _, value = parameter.partition("=")
        yield key, value
