"""A directory with a configuration in it, for tests of what is read from where."""

from pathlib import Path

import pytest

from storage.errors import ConfigurationError, Fault
from storage.options import Settings
from storage.settings import Reading, load

TOKEN = "123456789:AAF-made_up_for_these_tests_0123456789"
SMALLEST = '[bots.main]\ntoken_file = "main.token"\nsecret_file = "main.secret"\n'


class House:
    """A directory with a configuration file and secrets, and an environment."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "ferryman.toml"
        self.environ: dict[str, str] = {}

    def write(self, text: str = SMALLEST) -> None:
        self.path.write_text(text)

    def keep(self, name: str, content: str) -> None:
        (self.path.parent / name).write_text(content)

    def load(self) -> Settings:
        return load(self.path, self.environ)

    def reading(self) -> Reading:
        return Reading(self.path, self.environ)

    def faults(self) -> list[Fault]:
        return faults_of(self.reading())

    def only_fault(self) -> Fault:
        [fault] = self.faults()
        return fault


def faults_of(reading: Reading) -> list[Fault]:
    with pytest.raises(ConfigurationError) as caught:
        reading.finish()
    return list(caught.value.faults)
