"""The pytest plugin, in sessions of its own: golden sets as cases, regressions, the report at the end."""

import json
import os
import subprocess
import sys

import karat
from common import rankings

GOLDEN = '{"id": "one", "n": 1}\n{"id": "two", "n": 2}\n{"id": "three", "n": 3}\n'
CASES = """
import karat

@karat.golden("golden.jsonl")
def test_small(case):
    assert case["n"] < 3
"""
REPORTS = """
import karat

def test_reports(assert_no_regression):
    now = karat.Report.load("now.json")
    karat.assert_no_regression(karat.Report.load("before.json"), "before.json")
    assert_no_regression(now, "before.json")
"""


def session(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300,
    )


def test_cases_of_a_golden_set_are_tests_and_are_counted(tmp_path):
    (tmp_path / "golden.jsonl").write_text(GOLDEN)
    (tmp_path / "test_cases.py").write_text(CASES)
    for more in ([], ["-n", "2"]):
        ended = session(tmp_path, *more)
        assert "1 failed, 2 passed" in ended.stdout, ended.stdout + ended.stderr
        assert "test_small[three]" in ended.stdout
        assert "karat: golden.jsonl: 2 of 3 cases pass, 0.667 [0.208, 0.939]" in ended.stdout
    assert "passed" in session(tmp_path, "-k", "one").stdout


def test_a_golden_set_that_is_wrong_is_refused_with_its_line(tmp_path):
    (tmp_path / "test_cases.py").write_text(CASES)
    for text, message in [
        ('{"id": "a"}\n{"id": "a"}\n', "golden.jsonl:2: duplicate id 'a', first on line 1"),
        ('{"n": 1}\n', "golden.jsonl:1: every case needs an `id`"),
        ("", "there is no case in it"),
    ]:
        (tmp_path / "golden.jsonl").write_text(text)
        ended = session(tmp_path)
        assert ended.returncode != 0 and message in ended.stdout, ended.stdout


def test_a_regression_fails_the_test_and_is_in_the_report(tmp_path):
    rows = rankings(60)
    karat.score_rankings(rows, name="before").save(tmp_path / "before.json")
    for row in rows[:9]:
        row["ranked"] = []
    karat.score_rankings(rows, name="now").save(tmp_path / "now.json")
    (tmp_path / "test_reports.py").write_text(REPORTS)
    ended = session(tmp_path, "--karat-report", "report.json")
    assert ended.returncode == 1 and "retrieval now got worse" in ended.stdout, ended.stdout
    assert "karat: 2 reports, 1 worse (now)" in ended.stdout
    document = json.loads((tmp_path / "report.json").read_text())
    assert document["verdict"] == "fail" and [one["name"] for one in document["reports"]] == ["before", "now"]
    assert [one.name for one in karat.load(tmp_path / "report.json")] == ["before", "now"]
    shown = subprocess.run(
        [karat.find_program(), "show", "now", "--report", "report.json"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "q-00000" in shown.stdout, shown.stderr


def test_without_karat_a_session_has_no_line_of_it(tmp_path):
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    ended = session(tmp_path)
    assert ended.returncode == 0 and "karat:" not in ended.stdout
