"""Bad input is one clear exception, with the place where it is known."""

import hashlib
import json

import pyarrow
import pytest

import karat
import karat.arrow
from common import ranking_table, rankings


def refused(message, work, **place):
    with pytest.raises(karat.KaratError, match=message) as raised:
        work()
    for name, value in place.items():
        assert getattr(raised.value, name) == value
    assert "\n" not in str(raised.value)
    return raised.value


def score(table, **options):
    return lambda: karat.arrow.score(table, kind="rankings", **options)


def test_a_wrong_schema():
    table = ranking_table(rankings(5))
    refused("column `ranked` is missing", score(table.drop_columns(["ranked"])))
    numbers = table.set_column(2, "ranked", pyarrow.array([1, 2, 3, 4, 5]))
    refused("column `ranked` is Int64; it should be list", score(numbers))
    other = table.replace_schema_metadata({"karat.schema": "karat.arrow.rankings/99"})
    refused("karat.arrow.rankings/99", score(other))
    refused("one Int64|batch of columns", score(pyarrow.array([1, 2])))


def test_nulls():
    table = ranking_table(rankings(3))
    broken = table.set_column(0, "id", pyarrow.array(["a", None, "c"]))
    refused("column `id` is null in row 1", score(broken))
    broken = table.set_column(2, "ranked", pyarrow.array([["x"], None, ["y"]]))
    refused("column `ranked` is null in row 1", score(broken))


def test_a_bad_row_names_its_id():
    rows = rankings(3)
    rows[1]["ranked"] = ["a", "a"]
    error = refused("`a` is listed twice", score(ranking_table(rows)), id="q-00001")
    assert "max_errors" in str(error)
    scored = karat.arrow.score(ranking_table(rows), kind="rankings", max_errors=0.5)
    assert "listed twice" in scored["error"].to_pylist()[1]


def test_wrong_options():
    table = ranking_table(rankings(3))
    refused("did you mean", score(table, metrics=["recal@5"]))
    refused("unknown field `metric`", score(table, metric=["recall@5"]))
    refused("max_errors", score(table, max_errors=2))
    refused("none of traces, rankings and verdicts", lambda: karat.arrow.score(table, kind="rows"))
    refused("is not Arrow data", lambda: karat.arrow.score([1, 2], kind="rankings"))


def test_partial_results_that_do_not_belong_together():
    table = ranking_table(rankings(20))
    made = karat.Partial("rankings", metrics=["mrr"]).add(table)
    other = karat.Partial("rankings", metrics=["recall@5"]).add(table)
    refused("differ in", lambda: karat.merge([made, other]))
    refused("there is no partial result", lambda: karat.merge([]))
    data = made.to_bytes()
    for broken in (b"", b"nonsense", data[:-3], data[:20] + bytes([data[20] ^ 1]) + data[21:]):
        refused("not a partial result of Karat, or a damaged one", lambda: karat.Partial.from_bytes(broken))


def test_partial_results_of_another_version():
    body = karat.Partial("rankings").to_bytes()[:-32]
    version = karat.__version__.encode()
    for found, other in [(version, b"9" * len(version)), (b"karat.partial/1", b"karat.partial/9")]:
        assert body.count(found) == 1
        changed = body.replace(found, other)
        # The digest fits, so that only the version is wrong.
        data = changed + hashlib.sha256(changed).digest()
        refused("make all partials with one version", lambda: karat.Partial.from_bytes(data))


def test_parts_that_overlap_or_are_missing():
    table = ranking_table(rankings(200))
    whole = karat.Partial("rankings").add(table).report()
    parts = []
    for number in (1, 2, 3):
        made = karat.Partial("rankings", part=f"hash:{number}/3")
        # Of a foreign row nothing is counted; the part is made again from its own rows.
        error = refused(f"is not in part hash:{number}/3", lambda: made.add(table))
        assert error.id is not None
        refused("has met an error before", made.report)
        made = karat.Partial("rankings", part=f"hash:{number}/3")
        for row in range(table.num_rows):
            try:
                karat.Partial("rankings", part=f"hash:{number}/3").add(table.slice(row, 1))
            except karat.KaratError:
                continue
            made.add(table.slice(row, 1))
        parts.append(made)
    assert karat.merge(parts).report().metrics == whole.metrics
    refused("duplicate part hash:2/3", lambda: karat.merge([*parts, parts[1]]))
    refused("of 3 parts 1 are missing", lambda: karat.merge(parts[:2]).report())
    refused("number of parts", lambda: karat.merge([parts[0], karat.Partial("rankings", part="hash:2/4")]))
    refused("their division", lambda: karat.merge([parts[0], karat.Partial("rankings").add(table)]))
    refused("expected hash:PART/PARTS", lambda: karat.Partial("rankings", part="2 of 3"))


def test_rows_of_dictionaries():
    rows = rankings(3)
    refused("row 0: a mapping is needed", lambda: karat.score_rankings([3]))
    refused("row 1.*`id` is missing", lambda: karat.score_rankings([rows[0], {"ranked": []}]))
    refused("`ranked` must be a list", lambda: karat.score_rankings([{**rows[0], "ranked": "abc"}]), id="q-00000")
    refused("whole grades", lambda: karat.score_rankings([{**rows[0], "relevant": {"a": 0.5}}]), id="q-00000")
    refused("`score` is a str", lambda: karat.score_verdicts([{"id": "a", "label": "benign", "score": "1"}]))
    refused("set is not JSON", lambda: karat.score_traces([{"id": "a", "calls": [{"name": "x", "arguments": {1, 2}}]}]), id="a")


def test_files(tmp_path):
    path = tmp_path / "rankings.jsonl"
    path.write_text(json.dumps(rankings(1)[0]) + "\n{broken\n")
    refused("rankings.jsonl:2", lambda: karat.score_rankings(path), file=str(path), line=2)
    missing = str(tmp_path / "missing.jsonl")
    refused("cannot be read", lambda: karat.score_rankings(missing), file=missing)
    refused("missing.parquet", lambda: karat.score_rankings(str(tmp_path / "missing.parquet")))
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    refused("broken.parquet", lambda: karat.score_rankings(tmp_path / "broken.parquet"))
    traces = tmp_path / "traces.jsonl"
    traces.write_text('{"id": "a", "calls": []}\n{"id": 7}\n')
    error = refused("traces.jsonl", lambda: karat.score_traces(traces))
    assert error.file is not None and error.file.endswith("traces.jsonl")


def test_a_report_that_is_none(tmp_path):
    path = tmp_path / "report.json"
    path.write_text('{"schema": "karat.report/99"}')
    refused("newer Karat", lambda: karat.load(path), file=str(path))
    path.write_text("{")
    refused("report.json:1", lambda: karat.load(path), file=str(path), line=1)


def test_exceptions_can_be_sent_between_processes():
    import pickle

    error = karat.KaratError("wrong", file="a.jsonl", line=3, id="x")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.file, again.line, again.id) == ("wrong", "a.jsonl", 3, "x")
    assert isinstance(again, ValueError)
