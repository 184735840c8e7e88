"""Batches in, batches out; and partial results that give the same report however the rows are divided."""

import math
import pickle
import random

import pandas
import polars
import pyarrow
import pytest

import karat
import karat.arrow
from common import ranking_table, rankings, traces, verdicts, without_environment

METRICS = ["recall@5", "ndcg@10", "mrr"]


def test_every_library_gets_its_own_kind_of_table_back():
    rows = rankings(50)
    table = ranking_table(rows)
    expected = [karat.recall_at(row["ranked"], row["relevant"], 5) for row in rows]
    for given, kind in [
        (table, pyarrow.Table),
        (table.to_batches()[0], pyarrow.RecordBatch),
        (pyarrow.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=7)), pyarrow.Table),
        (polars.DataFrame(table), polars.DataFrame),
        (table.to_pandas(types_mapper=pandas.ArrowDtype), pandas.DataFrame),
    ]:
        scored = karat.arrow.score(given, kind="rankings", metrics=METRICS)
        named = isinstance(scored, (pyarrow.Table, pyarrow.RecordBatch)) and kind is not pandas.DataFrame
        assert type(scored) is kind, (type(given), type(scored))
        assert list(scored["id"].to_pylist() if named else scored["id"]) == [row["id"] for row in rows]
        found = scored["recall@5"].to_pylist() if named else list(scored["recall@5"])
        assert found == expected, type(given)


def test_schemas_are_versioned_and_say_what_is_needed():
    for kind in ("traces", "rankings", "verdicts"):
        schema = pyarrow.schema(karat.arrow.input_schema(kind))
        assert schema.metadata[b"karat.schema"] == f"karat.arrow.{kind}/1".encode()
        assert "id" in schema.names and not schema.field("id").nullable
    scored = pyarrow.schema(karat.arrow.scored_schema("rankings", metrics=METRICS))
    assert scored.names[-3:] == METRICS


def test_nothing_is_copied_on_the_way_out():
    scored = karat.arrow.score(ranking_table(rankings(5)).to_batches()[0], kind="rankings", metrics=["mrr"])
    batch = karat._karat.Scorer("rankings", '{"metrics": ["mrr"]}').score_batch(ranking_table(rankings(5)).to_batches()[0])
    once, again = pyarrow.record_batch(batch), pyarrow.record_batch(batch)
    assert once["mrr"].buffers()[1].address == again["mrr"].buffers()[1].address
    assert once["mrr"].equals(scored["mrr"])


def test_any_division_of_the_rows_gives_the_same_report():
    table = ranking_table(rankings(400))
    whole = karat.Partial("rankings", metrics=METRICS).add(table).report()
    draw = random.Random(8)
    for parts in (2, 7, 40):
        numbers = [draw.randrange(parts) for _ in range(table.num_rows)]
        divided = [table.filter(pyarrow.array([n == part for n in numbers])) for part in range(parts)]
        made = [karat.Partial("rankings", metrics=METRICS).add(part) for part in divided]
        draw.shuffle(made)
        # As a tree, in another order, through bytes and through pickle.
        left = karat.merge(made[: parts // 2])
        right = karat.merge(pickle.loads(pickle.dumps(made[parts // 2 :])))
        merged = karat.merge([right, left])
        assert without_environment(merged.report()) == without_environment(whole)
        assert merged.to_bytes() == karat.merge([left, right]).to_bytes()


def test_a_report_of_scored_rows_is_that_of_the_rows():
    table = ranking_table(rankings(60))
    scored = karat.arrow.score(table, kind="rankings", metrics=METRICS)
    one = karat.Partial("rankings", metrics=METRICS).add(table)
    other = karat.Partial("rankings", metrics=METRICS).add_scored(scored)
    assert one.to_bytes() == other.to_bytes()


@pytest.mark.parametrize(("kind", "rows"), [("rankings", rankings()), ("traces", traces()), ("verdicts", verdicts())])
def test_lists_of_dictionaries_are_scored(kind, rows):
    score = getattr(karat, f"score_{kind}")
    report = score(rows, name="mine")
    assert report.name == "mine" and len(list(report.items())) == len(rows)
    assert all(metric.value is not None or metric.undefined for metric in report.metrics.values())
    assert without_environment(score(iter(rows), name="mine")) == without_environment(report)


def test_rankings_from_every_source_give_one_report(tmp_path):
    import pyarrow.parquet

    rows = rankings()
    table = ranking_table(rows)
    pyarrow.parquet.write_table(table, tmp_path / "rankings.parquet", row_group_size=64)
    (tmp_path / "rankings.jsonl").write_text("".join(f"{karat._report.json.dumps(row)}\n" for row in rows))
    reports = [
        karat.score_rankings(source, metrics=METRICS)
        for source in (rows, table, polars.DataFrame(table), tmp_path / "rankings.parquet", tmp_path / "rankings.jsonl")
    ]
    assert {without_environment(report) for report in reports} == {without_environment(reports[0])}
    assert reports[0]["recall@5"] == pytest.approx(
        sum(karat.recall_at(row["ranked"], row["relevant"], 5) for row in rows) / len(rows)
    )


def test_items_are_kept_as_the_caller_wants(monkeypatch):
    rows = rankings(30)
    assert len(list(karat.score_rankings(rows, items=False).items())) == 0
    monkeypatch.setattr(karat._score, "MAX_ITEMS", 10)
    assert len(list(karat.score_rankings(rows).items())) == 0
    assert len(list(karat.score_rankings(rows, items=True).items())) == 30


def test_traces_are_scored_as_the_command_line_does(tmp_path):
    rows = traces()
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(f"{karat._report.json.dumps(row)}\n" for row in rows))
    by_program, here = karat.score_traces(path), karat.score_traces(rows)
    shared = set(by_program.metrics) & set(here.metrics)
    assert {"calls.exact", "ragas.tool_call_f1"} <= shared
    for id in shared:
        # Here sums are rounded once; the program adds in the order of the file, so the last digit can differ.
        close = (here[id] is None) == (by_program[id] is None) and math.isclose(here[id] or 0, by_program[id] or 0, rel_tol=1e-15)
        assert close, (id, here[id], by_program[id])
