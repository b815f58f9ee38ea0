"""The generic names bot, sender and storage are safe: one distribution owns them, ours.

Ferryman is an application in an environment of its own. What an operator sees carries its name;
the import packages need not, as long as nothing else in the environment claims them.
"""

import importlib
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.house.sources import PRODUCT, ROOT

FERRYMAN = "ferryman"
# What lies beside the code and must reach the machine it runs on.
DATA_SUFFIXES = {".sql", ".html", ".css", ".js", ".svg"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as it would be installed on a server."""
    target = tmp_path_factory.mktemp("dist")
    return zipfile.ZipFile(next(WheelBuilder(str(ROOT)).build(directory=str(target))))


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PRODUCT)
    assert len(tops) == len(PRODUCT) + 1


@pytest.mark.parametrize("package", PRODUCT)
def test_the_wheel_holds_what_lies_beside_the_code(wheel: zipfile.ZipFile, package: str) -> None:
    """A statement or a page left behind would be missed only on the server."""
    wanted = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / package).rglob("*")
        if path.suffix in {*DATA_SUFFIXES, ".py"}
    }
    assert wanted - set(wheel.namelist()) == set()


def test_the_wheel_brings_the_command_and_refuses_to_be_uploaded(wheel: zipfile.ZipFile) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    info = f"{FERRYMAN}-{project['version']}.dist-info"
    commands = wheel.read(f"{info}/entry_points.txt").decode().split()
    assert commands == ["[console_scripts]", "ferryman", "=", "bot.cli.main:main"]
    assert "Classifier: Private :: Do Not Upload" in wheel.read(f"{info}/METADATA").decode()


@pytest.mark.parametrize("package", PRODUCT)
def test_no_other_distribution_claims_our_names(package: str) -> None:
    claims = {
        distribution.name
        for distribution in metadata.distributions()
        for file in distribution.files or ()
        if file.parts[0] in (package, f"{package}.py")
    }
    assert claims <= {FERRYMAN}


def test_ferryman_is_installed_once() -> None:
    installed = [found.version for found in metadata.distributions() if found.name == FERRYMAN]
    assert len(installed) == 1


@pytest.mark.parametrize("package", [*PRODUCT, "tests"])
def test_a_name_leads_to_our_package(package: str) -> None:
    """A stray `bot.py` in the working directory, or another's `tests`, would win silently."""
    found = importlib.import_module(package).__file__
    assert found is not None
    assert Path(found) == ROOT / package / "__init__.py"
