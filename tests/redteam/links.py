"""Links that a repository puts in the place of outputs: nothing is written through them, neither to the file
nor below the folder that they lead to, and Karat names the path."""

import os
import pathlib
import subprocess

from common import BM25, lines, retrieval, scratch, write

PRECIOUS = "precious\n"
TRACES = lines([{"id": "a", "calls": [{"name": "add", "arguments": {"a": 1}, "result": {}}], "input": "add", "output": "1", "expect": {"answer": {"number": 1}}}])

# By the place of the link: the command that writes there. `{karat}` is the program.
FILES = {
    "karat-report/report.json": ["check"],
    "karat-report/report.html": ["check"],
    "karat-report/journal/retrieval-r.jsonl": ["check"],
    "out/journal/retrieval-r.jsonl": ["check", "--out", "out"],
    "karat-report/journal/retrieval-r.jsonl ": ["baseline", "update", "based.toml"],
    "baseline.json": ["baseline", "update", "based.toml"],
    "karat-history.sqlite": ["check", "--history"],
    "own.sqlite": ["check", "--history=own.sqlite"],
    "karat-history.sqlite ": ["history", "add", "kept/report.json"],
    "exported.json": ["history", "export", "1", "--db", "kept/history.sqlite", "-o", "exported.json"],
    "r.md": ["check", "-o", "r.md"],
    "r.xml": ["check", "-o", "r.xml"],
    "r.sarif": ["check", "-o", "r.sarif"],
    "r.html": ["check", "-o", "r.html"],
    "r.badge.json": ["check", "-o", "r.badge.json"],
    "r.score-report.json": ["check", "-o", "r.score-report.json"],
    "lock.json": ["corpus", "lock", "tools.json", "--output", "lock.json"],
    "qrels": ["retrieval", "export-trec", "--corpus", "tools.json", "--golden", "golden.jsonl", "--qrels", "qrels"],
    "session.jsonl": ["server", "call", "--tool", "add", "--input", '{"a":1,"b":2}', "--record", "session.jsonl", "--", "{karat}", "demo-server"],
    "suite.yaml": ["server", "suggest", "-o", "suite.yaml", "--", "{karat}", "demo-server"],
    "lint.sarif": ["server", "lint", "--sarif", "lint.sarif", "--", "{karat}", "demo-server"],
    "suggested-tasks.jsonl": ["agent", "suggest", "traces.jsonl"],
    "spans.jsonl": ["agent", "listen", "--port", "0"],
    "karat-report/report.json ": ["server", "load", "--count", "5", "--tool", "add", "--input", '{"a":1,"b":2}', "--", "{karat}", "demo-server"],
    "karat-report/report.json  ": ["agent", "score", "traces.jsonl"],
    "snapshots.snapshots/a.json": ["server", "test", "snapshots.yaml", "--update", "--", "{karat}", "demo-server"],
}
FOLDERS = {
    "karat-report": ["check"],
    "karat-report/journal": ["check"],
    "out": ["check", "--out", "out"],
    "out/deep": ["check", "--out", "out/deep/er"],
    "base": ["baseline", "update", "linked.toml"],
    "snapshots.snapshots": ["server", "test", "snapshots.yaml", "--update", "--", "{karat}", "demo-server"],
    "captured": ["corpus", "capture", "--out", "captured", "--", "{karat}", "demo-server"],
    "reports": ["check", "-o", "reports/r.md"],
    "history": ["check", "--history=history/h.sqlite"],
    "records": ["server", "call", "--tool", "add", "--input", '{"a":1,"b":2}', "--record", "records/s.jsonl", "--", "{karat}", "demo-server"],
}  # fmt: skip


def project(team, folder):
    baseline = 'baseline = "{}"\n\n[retrieval.gate.metrics]\n"recall@5" = {{ max_drop = 0.0 }}\n'
    files = retrieval(8, BM25)
    files["linked.toml"] = files["karat.toml"] + baseline.format("base/baseline.json")
    files["based.toml"] = files["karat.toml"] + baseline.format("baseline.json")
    files["traces.jsonl"] = TRACES
    files["snapshots.yaml"] = "name: snapshots\ntest_cases:\n  - {id: a, tool: add, input: {a: 1, b: 2}, expect: {result: $, snapshot: true}}\n"
    write(folder, files)
    for words in (["check", "--out", "kept"], ["history", "add", "kept/report.json", "--db", "kept/history.sqlite"]):
        ran = team.run(words, folder)
        if ran.code != 0:
            raise SystemExit(f"redteam: the project for links is wrong: {ran}")


def state(folder):
    """Everything below a folder, with its content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


def ended(team, words, folder):
    """A listener that is wrongly started does not end by itself."""
    if words[:2] != ["agent", "listen"]:
        return team.run(words, folder)
    return team.run(words, folder, seconds=5)


def run(team):
    area = team.area("links in place of outputs")
    for place, words in [*FILES.items(), *FOLDERS.items()]:
        for kind in ("to a file of the user", "to nothing") if place in FILES else ("to a folder of the user",):
            with scratch() as folder, scratch() as home:
                project(team, folder)
                subprocess.run(["git", "init", "-q", folder], check=True)
                place = place.strip()
                link = pathlib.Path(folder, place)
                link.parent.mkdir(parents=True, exist_ok=True)
                target = pathlib.Path(home, "precious")
                if kind == "to a file of the user":
                    target.write_text(PRECIOUS)
                elif kind == "to a folder of the user":
                    target.mkdir()
                    (target / "own").write_text(PRECIOUS)
                link.symlink_to(target)
                before = state(home)
                words = [team.karat if word == "{karat}" else word for word in words]
                ran = ended(team, words, folder)
                what = f"{place} {kind}, {' '.join(words)[:60]}"
                area.attempt(state(home) == before, f"{what}: written through the link: {ran}")
                area.attempt(link.is_symlink() and os.readlink(link) == str(target), f"{what}: the link is gone: {ran}")
                named = pathlib.Path(place).name.encode() in ran.err
                area.attempt(ran.code == 2 and named, f"{what}: not refused with the path: {ran}")
