"""The pytest plugin: the outcome of golden sets and reports at the end of a session.

It is loaded by itself once the package is installed. `--karat-report FILE` writes the reports of
`assert_no_regression` as one file that `karat show`, `karat compare` and `karat history` read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from ._golden import assert_no_regression, judged
from .stats import wilson

if TYPE_CHECKING:
    from ._report import Report

GOLDEN = "karat_golden"
REPORT = "karat_report"
VERDICTS = {"pass": 0, "inconclusive": 1, "fail": 2}


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("karat")
    group.addoption(
        "--karat-report", metavar="FILE", default=None, help="write the reports of assert_no_regression to FILE"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{GOLDEN}(path): the case of a golden set, made by karat.golden")
    config.pluginmanager.register(_Session(config), "karat-session")


@pytest.fixture(name="assert_no_regression")
def assert_no_regression_fixture() -> Callable[..., Report]:
    """`karat.assert_no_regression`."""
    return assert_no_regression


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Sends what a test judged with its report, since a worker of pytest-xdist has another memory."""
    before = len(judged)
    marker = item.get_closest_marker(GOLDEN)
    if marker is not None:
        item.user_properties.append((GOLDEN, marker.args[0]))
    yield
    for report in judged[before:]:
        item.user_properties.append((REPORT, report.to_json()))


class _Session:
    """What was seen in the session."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.golden: dict[str, list[int]] = {}
        self.reports: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or report.skipped:
            return
        for name, value in report.user_properties:
            if name == GOLDEN:
                counts = self.golden.setdefault(str(value), [0, 0])
                counts[0] += int(report.passed)
                counts[1] += 1
            elif name == REPORT:
                self.reports.append(json.loads(str(value)))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for path, (passed, of) in sorted(self.golden.items()):
            low, high = wilson(passed, of)
            rate = f"{passed / of:.3f} [{low:.3f}, {high:.3f}]"
            terminalreporter.write_line(f"karat: {path}: {passed} of {of} cases pass, {rate}")
        if self.reports:
            worse = [one["name"] for one in self.reports if one["gate"]["verdict"] == "fail"]
            named = f" ({', '.join(worse)})" if worse else ""
            plural = "" if len(self.reports) == 1 else "s"
            line = f"karat: {len(self.reports)} report{plural}, {len(worse)} worse{named}"
            terminalreporter.write_line(line.encode("ascii", "backslashreplace").decode())
        path = self.config.getoption("karat_report")
        if path is not None and not hasattr(self.config, "workerinput"):
            self._write(path)
            terminalreporter.write_line(f"karat: {path}")

    def _write(self, path: str) -> None:
        verdicts = [one["gate"]["verdict"] for one in self.reports]
        document = {
            "schema": "karat.check/1",
            "verdict": max(verdicts, key=lambda verdict: VERDICTS[verdict], default=None),
            "reports": self.reports,
            "not_measured": [],
        }
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False)
            file.write("\n")
