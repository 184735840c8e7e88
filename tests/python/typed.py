"""Checked by `mypy --strict`, and run: the types of what users write are those that the package says."""

from __future__ import annotations

from collections.abc import Callable

import karat
import karat.arrow
from karat import KaratError, Report

recall: float = karat.recall_at(["a", "b"], {"b": 1}, k=2)
scores: dict[str, float | None] = karat.metrics.rank(["a"], ["a"], ["mrr"])
low: float = karat.wilson(45, 50).low
test: karat.stats.PairedT = karat.paired_t([1.0, 2.0, 4.0], [1.0, 1.0, 1.0])
interval: karat.Interval = karat.cluster_bootstrap([0.0, 1.0, 1.0], ["a", "b", "b"])
accuracy: float = karat.ragas_tool_call_accuracy([("add", {"a": 1})], [{"name": "add", "args": {"a": 1}}])

report: Report = karat.score_rankings([{"id": str(n), "ranked": ["a"], "relevant": ["a", "b"]} for n in range(4)])
value: float | None = report["recall@5"]
names: list[str] = [item.id for item in report.items()]
delta: float | None = karat.compare(report, report)["recall@5"].delta
partial: karat.Partial = karat.merge([karat.Partial("rankings"), karat.Partial("rankings")])
schema: karat.arrow.BatchSchema = karat.arrow.input_schema("traces")
try:
    partial.report()
except KaratError as error:
    place: tuple[str | None, int | None, str | None] = (error.file, error.line, error.id)
else:
    raise AssertionError("a report of nothing")
assert (recall, value, delta) == (1.0, 0.5, 0.0)

golden: Callable[[str], object] = karat.golden
