"""Reports and comparisons as objects."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _karat
from ._errors import KaratError
from .stats import Interval

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Check", "Comparison", "Delta", "Item", "Metric", "Report", "compare", "load"]

# The most rows that a notebook shows.
SHOWN = 200


class Metric(NamedTuple):
    """One metric of a report; `value` is None where it is undefined, and `undefined` says why."""

    id: str
    value: float | None
    n: int
    better: str
    interval: Interval | None
    method: str | None
    undefined: str | None
    left_out: int

    @classmethod
    def _of(cls, row: Mapping[str, Any]) -> Metric:
        found = row.get("interval")
        return cls(
            row["id"],
            row["value"],
            row["n"],
            row["better"],
            None if found is None else Interval(found["low"], found["high"]),
            None if found is None else found["method"],
            row.get("undefined"),
            row.get("left_out", 0),
        )


class Item(NamedTuple):
    """One item of a report with its scores."""

    id: str
    group: str | None
    metrics: Mapping[str, float | None]
    error: str | None


class Delta(NamedTuple):
    """The way one metric moved between two reports."""

    metric: str
    before: float | None
    after: float | None
    delta: float | None
    better: str
    interval: Interval | None
    p_value: float | None
    p_holm: float | None
    pairs: int
    improved: Sequence[str]
    worsened: Sequence[str]
    slice: str | None


class _Document:
    """JSON that is read once and shown as an object."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document

    def to_dict(self) -> dict[str, Any]:
        """The document as plain dictionaries and lists."""
        copy: dict[str, Any] = json.loads(self.to_json())
        return copy

    def to_json(self) -> str:
        """The document as JSON."""
        return json.dumps(self._document, ensure_ascii=False, separators=(",", ":"))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the document as JSON; the file is whole or as it was."""
        target = os.fspath(path)
        part = f"{target}.{os.getpid()}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                file.write(self.to_json() + "\n")
            os.replace(part, target)
        finally:
            if os.path.exists(part):
                os.unlink(part)


class Report(_Document):
    """The outcome of one evaluation of one system on one dataset.

    `report["recall@5"]` is the value of a metric, and `report.metrics` has all of them with their
    intervals.
    """

    @classmethod
    def from_json(cls, text: str, name: str = "the report") -> Report:
        """Reads a report from its JSON text."""
        return _single(name, _loaded(name, text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Report:
        """Reads a report from a file."""
        return _single(os.fspath(path), load(path))

    @property
    def schema(self) -> str:
        """The name and version of the format."""
        return str(self._document["schema"])

    @property
    def kind(self) -> str:
        """The kind of its items: `traces`, `ranking`, `verdicts`, …"""
        return str(self._document["kind"])

    @property
    def evaluation(self) -> str:
        """The evaluation: `agent`, `retrieval`, `detection`, …"""
        return str(self._document["evaluation"])

    @property
    def name(self) -> str:
        """The name of the entry."""
        return str(self._document["name"])

    @property
    def seed(self) -> int:
        """The seed of everything random."""
        return int(self._document["seed"])

    @property
    def runs(self) -> int:
        """The number of times each item was asked."""
        return int(self._document["runs"])

    @property
    def dataset(self) -> Mapping[str, str]:
        """`id`, `version` and `digest` of the data."""
        found: Mapping[str, str] = self._document["dataset"]
        return found

    @property
    def system(self) -> Mapping[str, Any]:
        """The measured system."""
        found: Mapping[str, Any] = self._document["system"]
        return found

    @property
    def environment(self) -> Mapping[str, Any]:
        """Times and versions: the only part that differs between equal runs."""
        found: Mapping[str, Any] = self._document["environment"]
        return found

    @property
    def warnings(self) -> Sequence[str]:
        """Remarks for a careful reader."""
        found: Sequence[str] = self._document.get("warnings", [])
        return found

    @property
    def metrics(self) -> dict[str, Metric]:
        """The metrics by id."""
        return {row["id"]: Metric._of(row) for row in self._document["metrics"]}

    def __getitem__(self, id: str) -> float | None:
        for row in self._document["metrics"]:
            if row["id"] == id:
                value: float | None = row["value"]
                return value
        known = ", ".join(row["id"] for row in self._document["metrics"])
        raise KeyError(f"{id!r} is not in the report; it has: {known}")

    def items(self) -> Iterator[Item]:
        """The items with their scores, sorted by id."""
        for row in self._document.get("items", []):
            error = row.get("error")
            yield Item(row["id"], row.get("group"), row["metrics"], error and error["message"])

    @property
    def verdict(self) -> str | None:
        """`pass`, `inconclusive` or `fail`; None without a gate."""
        gate = self._document.get("gate")
        return None if gate is None else str(gate["verdict"])

    @property
    def failures(self) -> list[str]:
        """The reason of each check of the gate that failed, and each control that landed elsewhere."""
        checks = (self._document.get("gate") or {}).get("checks", [])
        failed = [f"{check['metric']}: {check['reason']}" for check in checks if check["verdict"] == "fail"]
        if not checks:
            controls = self._document.get("controls", [])
            failed += [f"control {one['name']}: {one['expected']}" for one in controls if not one["ok"]]
        return failed

    @property
    def failed(self) -> bool:
        """True if the gate failed, or a control gave an unexpected result."""
        return bool(self.failures)

    def judged(
        self,
        baseline: Report | str | os.PathLike[str] | None = None,
        *,
        gate: Mapping[str, Any] | None = None,
        tolerance: float = 0.0,
    ) -> Report:
        """The report with a gate.

        `gate` has the keys of the table `gate` in karat.toml, such as `{"metrics": {"recall@5": {"min":
        0.7}}}`. Without it, no metric may be worse than in the baseline by more than `tolerance`.
        """
        policy = None if gate is None else json.dumps(gate)
        text = _karat.judge_report(self.to_json(), _text_of(baseline), policy, tolerance)
        return Report(json.loads(text))

    def compare(self, before: Report | str | os.PathLike[str], **settings: Any) -> Comparison:
        """Compares with an earlier report or a baseline file; see `karat.compare`."""
        return compare(before, self, **settings)

    def _table(self, what: str) -> _karat.Batch:
        if what == "items":
            return _karat.items_table(self.to_json())
        if what == "metrics":
            return _karat.metrics_table(self.to_json())
        raise KaratError(f"a report has tables of items and metrics, not of {what!r}")

    def to_arrow(self, what: str = "items") -> pyarrow.Table:
        """The items (or the metrics) as a table of pyarrow."""
        import pyarrow

        return pyarrow.table(self._table(what))

    def to_pandas(self, what: str = "items") -> pandas.DataFrame:
        """The items (or the metrics) as a data frame of pandas."""
        return self.to_arrow(what).to_pandas()

    def to_polars(self, what: str = "items") -> polars.DataFrame:
        """The items (or the metrics) as a data frame of polars."""
        import polars

        return polars.DataFrame(self._table(what))

    def __repr__(self) -> str:
        shown = [f"{row['id']}={_number(row['value'])}" for row in self._document["metrics"][:4]]
        more = len(self._document["metrics"]) - len(shown)
        end = f", and {more} more" if more > 0 else ""
        verdict = f", {self.verdict}" if self.verdict else ""
        return f"Report({self.evaluation} {self.name}{verdict}: {', '.join(shown)}{end})"

    def _repr_html_(self) -> str:
        title = f"{self.evaluation} · {self.name}" + (f" · {self.verdict}" if self.verdict else "")
        rows = [
            [
                metric.id,
                metric.undefined or "undefined" if metric.value is None else _number(metric.value),
                f"{_number(metric.interval.low)} – {_number(metric.interval.high)}" if metric.interval else "",
                str(metric.n),
            ]
            for metric in self.metrics.values()
        ]
        notes = [*self.failures, *self.warnings]
        return _html(title, ["metric", "value", "95 % interval", "n"], rows, notes)


class Comparison(_Document):
    """Two reports, item by item."""

    @property
    def against(self) -> str:
        """The other side, as text."""
        return str(self._document["against"])

    @property
    def deltas(self) -> list[Delta]:
        """One entry for each metric that both sides have."""
        found = []
        for row in self._document["deltas"]:
            ends = row.get("interval")
            found.append(
                Delta(
                    row["metric"],
                    row["before"],
                    row["after"],
                    row["delta"],
                    row["better"],
                    None if ends is None else Interval(ends["low"], ends["high"]),
                    row.get("p_value"),
                    row.get("p_holm"),
                    row["pairs"],
                    row["improved"],
                    row["worsened"],
                    row.get("slice"),
                )
            )
        return found

    def __getitem__(self, metric: str) -> Delta:
        for delta in self.deltas:
            if delta.metric == metric and delta.slice is None:
                return delta
        raise KeyError(f"{metric!r} was not compared")

    def __repr__(self) -> str:
        moved = [f"{d.metric} {_number(d.before)} → {_number(d.after)}" for d in self.deltas if d.delta]
        return f"Comparison(with {self.against}: {', '.join(moved) or 'no change'})"

    def _repr_html_(self) -> str:
        rows = [
            [
                d.metric if d.slice is None else f"{d.metric} on {d.slice}",
                _number(d.before),
                _number(d.after),
                _number(d.delta),
                _number(d.p_value),
                str(len(d.improved)),
                str(len(d.worsened)),
            ]
            for d in self.deltas
        ]
        head = ["metric", "before", "after", "change", "p", "better", "worse"]
        return _html(f"compared with {self.against}", head, rows, [])


class Check(_Document):
    """What `karat check` found: a report for each entry of the project, and one verdict."""

    @property
    def verdict(self) -> str | None:
        """The worst verdict; None where an entry could not be measured."""
        found: str | None = self._document["verdict"]
        return found

    @property
    def reports(self) -> list[Report]:
        """One report for each entry that was measured."""
        return [Report(one) for one in self._document["reports"]]

    @property
    def not_measured(self) -> list[str]:
        """Entries that could not be measured, with the reason."""
        rows = self._document.get("not_measured", [])
        return [f"{row['evaluation']} {row['name']}: {row['reason']}" for row in rows]

    @property
    def failed(self) -> bool:
        """True if a gate failed or an entry could not be measured."""
        return bool(self.not_measured) or self.verdict == "fail" or any(r.failed for r in self.reports)

    def __getitem__(self, name: str) -> Report:
        for report in self.reports:
            if name in (report.name, f"{report.evaluation} {report.name}"):
                return report
        raise KeyError(f"{name!r} was not measured; expected one of {', '.join(r.name for r in self.reports)}")

    def __repr__(self) -> str:
        return f"Check({self.verdict or 'not measured'}: {len(self.reports)} reports)"

    def _repr_html_(self) -> str:
        rows = [[r.evaluation, r.name, r.verdict or "", "; ".join(r.failures)] for r in self.reports]
        head = ["evaluation", "name", "verdict", "failures"]
        return _html(f"karat check: {self.verdict or 'not measured'}", head, rows, self.not_measured)


def load(path: str | os.PathLike[str]) -> list[Report]:
    """Reads the reports in a file: one report, or all of a `report.json` of `karat check`."""
    name = os.fspath(path)
    try:
        with open(name, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise KaratError(f"{name}: cannot be read: {error}", file=name) from error
    return _loaded(name, text)


def _single(name: str, reports: list[Report]) -> Report:
    if len(reports) != 1:
        raise KaratError(f"{name}: one report is needed, and there are {len(reports)}; karat.load reads all", file=name)
    return reports[0]


def _loaded(name: str, text: str) -> list[Report]:
    return [Report(json.loads(one)) for one in _karat.read_reports(name, text)]


def _text_of(source: Report | str | os.PathLike[str] | None) -> str | None:
    """The JSON of a report or of a file, which may be a baseline."""
    if source is None:
        return None
    if isinstance(source, Report):
        return source.to_json()
    name = os.fspath(source)
    try:
        with open(name, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise KaratError(f"{name}: cannot be read: {error}", file=name) from error


def compare(
    before: Report | str | os.PathLike[str],
    after: Report | str | os.PathLike[str],
    *,
    slices: Sequence[str] = (),
    primary: str | None = None,
) -> Comparison:
    """Compares two reports item by item: the change of each metric with its interval, a paired test and
    the items that moved. `before` may be a baseline file. Holm's correction is over all metrics, or over
    all but the primary one."""
    was, now = _text_of(before), _text_of(after)
    return Comparison(json.loads(_karat.compare_reports(was or "", now or "", list(slices), primary)))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _html(title: str, head: list[str], rows: list[list[str]], notes: Sequence[str]) -> str:
    """A table for a notebook. Every text comes from data that may be hostile, so every text is escaped."""
    escape = html.escape
    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:SHOWN]]
    if len(rows) > SHOWN:
        lines.append(f'<tr><td colspan="{len(head)}">and {len(rows) - SHOWN} more</td></tr>')
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes[:SHOWN])
    return (
        f"<div><strong>{escape(title)}</strong><table><thead><tr>{cells}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>{f'<ul>{listed}</ul>' if listed else ''}</div>"
    )
