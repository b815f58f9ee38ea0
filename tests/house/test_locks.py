"""The locks pin every byte that is installed, name no index, and stay above the known holes.

Floors, not advisories: this needs no network, and a check that could not ask must not pass.
"""

import re
import tomllib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.house.sources import ROOT

LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-peers.lock",
    "requirements-thirdparty.lock",
)
each_lock = pytest.mark.parametrize("lock", LOCKS)

# The oldest release without a hole that is known to matter here. Where a package is not wanted at
# all, its floor holds for the day it comes along with another.
SECURITY_FLOORS = MappingProxyType(
    {
        "starlette": "1.9",  # a poisoned Host header, unbounded forms and ranges
        "h11": "0.16",  # smuggling through chunked bodies
        "jinja2": "3.1.6",  # out of the sandbox
        "python-multipart": "0.0.30",  # endless parsing of parts
        "aiohttp": "3.14",  # smuggling, and unbounded decompression
        "tornado": "6.5",  # endless warnings from one form
    }
)

_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?P<rest>.*)$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")
_FOREIGN = re.compile(r"://|^\s*(-i|-f|-e|--(index|extra|find|trusted|no-binary|pre)[a-z-]*)\b")
_REASONED = re.compile(r'^    "[^"]+", +# \w.*\w')


def read(lock: str) -> str:
    """Return the text of a lock."""
    return (ROOT / lock).read_text(encoding="utf-8")


def pins(text: str) -> Mapping[str, Version]:
    """Read what a lock pins, by canonical name."""
    found = (_PIN.match(line) for line in text.splitlines())
    return {canonicalize_name(pin["name"]): Version(pin["version"]) for pin in found if pin}


def faults(text: str) -> list[str]:
    """Say what is wrong with the text of a lock, a line each."""
    lines = text.splitlines()
    found = [f"{line}: leads elsewhere" for line in lines if _FOREIGN.search(line)]
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if line and line[0] not in "# " and not _PIN.match(line):
            found.append(f"{line}: not pinned")
        elif _PIN.match(line) and not _HASH.match(after):
            found.append(f"{line}: no hash")
    for name, version in pins(text).items():
        floor = SECURITY_FLOORS.get(name)
        if floor is not None and version < Version(floor):
            found.append(f"{name}=={version}: below {floor}")
    return found


def unreasoned(text: str) -> list[str]:
    """List the dependencies in the text of a pyproject.toml that stand without their reason."""
    arrays = re.findall(r"(?ms)^(?:dependencies|dev|peers|thirdparty) = \[\n(.*?)^\]", text)
    lines = [line for array in arrays for line in array.splitlines()]
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return [line for line in lines if not _REASONED.match(line)]


def declared(*, dev: bool) -> list[Requirement]:
    """Read what pyproject.toml asks for, with or without what only developers need."""
    config: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*config["project"]["dependencies"]]
    if dev:
        wanted += config["dependency-groups"]["dev"]
    return [Requirement(line) for line in wanted]


@each_lock
def test_a_lock_pins_every_byte_and_names_no_index(lock: str) -> None:
    assert faults(read(lock)) == []
    assert len(pins(read(lock))) > 10


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("idna==3.10\n", "no hash"),
        ("idna>=3.10\n    --hash=sha256:" + "0" * 64, "not pinned"),
        ("--index-url https://example.org/simple\n", "leads elsewhere"),
        ("--find-links wheels\n", "leads elsewhere"),
        ("h11==0.14.0 \\\n    --hash=sha256:" + "0" * 64, "below 0.16"),
        ("python-multipart==0.0.20 \\\n    --hash=sha256:" + "0" * 64, "below 0.0.30"),
    ],
)
def test_a_fault_in_a_lock_is_seen(planted: str, fault: str) -> None:
    assert any(fault in line for line in faults(planted))


@pytest.mark.parametrize(
    ("lock", "dev"), [("requirements.lock", False), ("requirements-dev.lock", True)]
)
def test_a_lock_answers_what_the_project_asks_for(lock: str, *, dev: bool) -> None:
    """A lock that was not made anew would install yesterday's project."""
    pinned = pins(read(lock))
    for wanted in declared(dev=dev):
        assert pinned[canonicalize_name(wanted.name)] in wanted.specifier, wanted


@pytest.mark.parametrize("lock", ["requirements-dev.lock", "requirements-thirdparty.lock"])
def test_what_is_tried_is_what_servers_run(lock: str) -> None:
    assert pins(read("requirements.lock")).items() <= pins(read(lock)).items()


def test_a_floor_in_the_project_is_no_lower_than_the_safe_one() -> None:
    """Who installs without our locks must be safe too."""
    for wanted in declared(dev=True):
        floor = SECURITY_FLOORS.get(canonicalize_name(wanted.name))
        assert floor is None or any(
            found.operator == ">=" and Version(found.version) >= Version(floor)
            for found in wanted.specifier
        ), wanted


def test_every_dependency_stands_beside_its_reason() -> None:
    assert unreasoned((ROOT / "pyproject.toml").read_text(encoding="utf-8")) == []


def test_a_dependency_without_a_reason_is_seen() -> None:
    assert unreasoned('dependencies = [\n    "idna>=3",\n]\n') == ['    "idna>=3",']
    assert unreasoned('dev = [\n    "idna>=3", # names of hosts\n]\n') == []
