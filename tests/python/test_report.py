"""Reports as objects: values, tables, comparison, gate, notebooks, files; and the program's own check."""

import copy
import json

import pandas
import polars
import pytest

import karat
from common import rankings


def report(seed=1, name="search", worse=0):
    rows = rankings(120, seed=seed)
    for row in rows[:worse]:
        row["ranked"] = ["nothing"]
    return karat.score_rankings(rows, name=name, metrics=["recall@5", "mrr", "hard_negative_rate"])


def test_a_report_has_its_metrics_and_items():
    found = report()
    recall = found.metrics["recall@5"]
    assert found["recall@5"] == recall.value and recall.n == 120 and recall.better == "higher"
    assert recall.interval.low < recall.value < recall.interval.high
    items = list(found.items())
    assert items == sorted(items, key=lambda item: item.id)
    assert items[0].metrics["recall@5"] in (0.0, 0.5, 1.0)
    with pytest.raises(KeyError, match="it has: "):
        found["recall@6"]
    assert "recall@5=" in repr(found) and not found.failed and found.verdict is None


def test_tables_of_a_report():
    found = report()
    table = found.to_arrow()
    assert table.num_rows == 120 and {"id", "group", "recall@5"} <= set(table.column_names)
    assert isinstance(found.to_pandas(), pandas.DataFrame) and isinstance(found.to_polars(), polars.DataFrame)
    assert found.to_pandas()["recall@5"].mean() == pytest.approx(found["recall@5"])
    metrics = found.to_polars("metrics")
    assert metrics.filter(polars.col("metric") == "mrr")["value"][0] == found["mrr"]


def test_a_comparison_is_paired_and_names_what_moved():
    before, after = report(), report(worse=10)
    delta = karat.compare(before, after)["recall@5"]
    assert delta.before == before["recall@5"] and delta.after == after["recall@5"]
    assert delta.delta < 0 and delta.pairs == 120 and delta.p_value < 0.2
    assert delta.worsened and set(delta.worsened) <= {f"q-{n:05}" for n in range(10)} and not delta.improved
    same = karat.compare(before, before)
    assert all(delta.delta in (0.0, None) for delta in same.deltas) and "no change" in repr(same)
    with pytest.raises(karat.KaratError):
        karat.compare(before, karat.score_verdicts([{"id": "a", "label": "benign", "verdict": True}]))


def test_a_gate_decides(tmp_path):
    before, after = report(), report(worse=10)
    assert before.judged(before).verdict == "pass"
    judged = after.judged(before)
    assert judged.failed and any("recall@5" in reason for reason in judged.failures)
    assert not after.judged(before, tolerance=0.5).failed
    assert before.judged(gate={"metrics": {"recall@5": {"min": 0.99}}}).failed
    before.save(tmp_path / "before.json")
    assert after.judged(tmp_path / "before.json").failed
    with pytest.raises(karat.KaratError, match="unknown metric"):
        before.judged(gate={"metrics": {"recal@5": {"min": 0.9}}})


def test_a_saved_report_is_the_same_and_the_program_reads_it(tmp_path):
    found = report()
    found.save(tmp_path / "report.json")
    again = karat.Report.load(tmp_path / "report.json")
    assert again.to_dict() == found.to_dict()
    document = json.loads(karat._program.run(["compare", str(tmp_path / "report.json"), str(tmp_path / "report.json"), "--json"]))
    assert document["comparisons"]


def test_hostile_text_is_escaped_in_notebooks():
    hostile = "<script>alert(1)</script>"
    document = copy.deepcopy(report(name=hostile).judged(gate={"metrics": {"recall@5": {"min": 0.99}}}).to_dict())
    document["warnings"] = [hostile]
    document["metrics"][0]["id"] = hostile
    shown = karat.Report(document)._repr_html_()
    assert "<script" not in shown and shown.count("&lt;script&gt;") >= 3
    assert "<script" not in karat.compare(report(), report(worse=3))._repr_html_()


def test_a_project_is_checked(tmp_path):
    found = karat.check(bundled=True, out=tmp_path / "out")
    assert found.verdict == "pass" and not found.failed and len(found.reports) > 3
    assert found["bm25"]["recall@5"] > 0.3
    assert (tmp_path / "out/report.html").is_file()
    assert "Check(pass" in repr(found) and "<table>" in found._repr_html_()


def test_a_project_that_fails_is_a_result_and_one_that_is_wrong_an_exception(tmp_path):
    project = tmp_path / "karat.toml"
    entry = '[[retrieval]]\nname = "r"\ndataset = "bundled:tools/v1"\nsystem = { builtin = "bm25" }\n'
    project.write_text(entry + 'gate = { metrics = { "recall@5" = { min = 0.99 } } }\n')
    found = karat.check(project, out=tmp_path / "out")
    assert found.failed and found.verdict == "fail"
    assert any("recall@5" in reason for reason in found["r"].failures)
    project.write_text("[[retrieval]]\nwrong = 1\n")
    with pytest.raises(karat.KaratError, match="wrong") as raised:
        karat.check(project)
    assert raised.value.file is not None and raised.value.line == 2
