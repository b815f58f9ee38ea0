"""What every test may lean on: how Hypothesis searches, where a browser is, and honest skips.

Kept small on purpose: a fixture that builds part of the house belongs beside the tests of that
part. Nothing here may stand in for our own code.
"""

import os
import shutil
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

UNDER_CI = os.environ.get("CI") == "true"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# The same examples in every run of CI: what passes today passes tomorrow. Elsewhere the search goes
# on where it stopped. A slow machine is no counter-example, so there is no deadline.
settings.register_profile(
    "house",
    derandomize=UNDER_CI,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("house")


@pytest.fixture(scope="session")
def full_proof() -> bool:
    """Whether a long proof runs its whole count (`FULL=1`) or the one trimmed to minutes."""
    return os.environ.get("FULL", "") not in ("", "0")


@pytest.fixture(scope="session")
def chromium() -> str:
    """Path of a real browser; without one the test is skipped, and says what to type."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium here; type: sudo apt-get install chromium")


def pytest_report_header() -> str:
    """Say under which conditions the tests run."""
    return f"ferryman: CI={UNDER_CI}, FULL={os.environ.get('FULL', '')}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under CI a skip is a failure: a proof that was not run has not passed."""
    report = yield
    if UNDER_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped under CI: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that skips itself whole."""
    report = yield
    if UNDER_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped under CI: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the figures of the long proofs: what was proven is told, also when all is well."""
    for report in terminalreporter.stats.get("passed", []):
        if report.when == "call" and "prove" in report.keywords and report.capstdout:
            terminalreporter.write(report.capstdout)
