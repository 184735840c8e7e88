"""Golden sets and regressions for tests; `karat.pytest_plugin` shows them at the end of a session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ._errors import KaratError
from ._report import Report
from ._score import _lines

__all__ = ["assert_no_regression", "golden"]

Test = TypeVar("Test", bound=Callable[..., Any])

# The reports of this process, for the end of the session.
judged: list[Report] = []


def cases(path: str | os.PathLike[str]) -> list[tuple[str, Mapping[str, Any]]]:
    """The cases of a golden set (JSON lines, each with an `id`), by id."""
    name = os.fspath(path)
    found: dict[str, tuple[int | None, Mapping[str, Any]]] = {}
    for line, case in _lines(name):
        id = case.get("id") if isinstance(case, Mapping) else None
        if not isinstance(id, str):
            raise KaratError(f"{name}:{line}: every case needs an `id` as text", file=name, line=line)
        if id in found:
            message = f"{name}:{line}: duplicate id {id!r}, first on line {found[id][0]}"
            raise KaratError(message, file=name, line=line, id=id)
        found[id] = (line, case)
    if not found:
        raise KaratError(f"{name}: there is no case in it", file=name)
    return [(id, case) for id, (_, case) in found.items()]


def golden(path: str | os.PathLike[str], argument: str = "case") -> Callable[[Test], Test]:
    """Runs a test for each case of a golden set; the id of the case is that of the test.

        @karat.golden("golden.jsonl")
        def test_search(case):
            assert case["expected"] in search(case["query"])

    The path is relative to the folder in which pytest was started. The share of cases that pass is shown at
    the end of the session, with its interval.
    """
    import pytest

    found = cases(path)

    def decorated(test: Test) -> Test:
        values = [pytest.param(case, id=id) for id, case in found]
        marked: Test = pytest.mark.parametrize(argument, values)(test)
        marked = pytest.mark.karat_golden(os.fspath(path))(marked)
        return marked

    return decorated


def assert_no_regression(
    report: Report,
    baseline: Report | str | os.PathLike[str] | None = None,
    *,
    gate: Mapping[str, Any] | None = None,
    tolerance: float = 0.0,
) -> Report:
    """Fails the test if the report is worse than the baseline (a report, or a file of one or of a baseline).

    Without `gate`, no metric may be worse by more than `tolerance`; with it, its rules decide, as in
    karat.toml, and some need no baseline. Returns the report with its gate and comparison.
    """
    __tracebackhide__ = True
    if baseline is None and gate is None:
        raise KaratError("assert_no_regression needs a baseline or a gate")
    result = report.judged(baseline, gate=gate, tolerance=tolerance)
    judged.append(result)
    if result.failed:
        raise AssertionError("\n".join([f"{result.evaluation} {result.name} got worse:", *result.failures]))
    return result
