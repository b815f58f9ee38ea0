"""What `make bench` answers to whoever started it."""

import pytest

from tests.bench.__main__ import PARTS, exit_code, main
from tests.bench.table import AtLeast, Line

MET = Line("met", 2, "/s", AtLeast(1))
MISSED = Line("missed", 1, "/s", AtLeast(2))


@pytest.mark.parametrize(
    ("lines", "broken", "strict", "code"),
    [
        ([MET], [], True, 0),
        ([MET, MISSED], [], False, 0),
        ([MET, MISSED], [], True, 1),
        ([MET], ["sender: it did not start"], False, 1),
    ],
)
def test_a_miss_fails_only_the_strict_and_a_broken_part_fails_all(
    lines: list[Line], broken: list[str], *, strict: bool, code: int
) -> None:
    assert exit_code(lines, broken, strict=strict) == code


def test_an_unknown_part_is_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--only=webhook,nonsense"])
    said = capsys.readouterr().err
    assert "no such part: nonsense" in said
    assert all(part in said for part in PARTS)
