"""Mutated inputs of every kind that Karat reads: each run ends with an exit code of Karat's own, without a panic,
within its time and memory."""

import gzip
import io
import itertools
import json
import lzma
import pathlib
import shutil
import tarfile
import threading
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

from common import BM25, ROOT, lines, mutated, retrieval, scratch, write
from servers import started

CORPUS = ROOT / "fuzz/corpus"
# The time and memory of one run; ordinary ones take hundredths of a second and 30 MB.
SECONDS, MEMORY_MB = 20, 400


def corpus(target):
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


def archives():
    """Recorded runs in every kind of archive."""
    run = b'{"utility": true, "security": false, "messages": [], "error": null, "duration": 1.0}'
    files = {"p/banking/user_task_0/none/none.json": run, "p/banking/user_task_0/direct/injection_task_1.json": run}
    tar, zipped = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as out:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            out.addfile(member, io.BytesIO(content))
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as out:
        for name, content in files.items():
            out.writestr(name, content)
    tar = tar.getvalue()
    return [tar, gzip.compress(tar), lzma.compress(tar), zipped.getvalue(), *corpus("archive")]


def made(team, folder):
    """The files that Karat writes itself, from a small project."""
    project = retrieval(12, BM25, 'baseline = "baseline.json"\n\n[retrieval.gate.metrics]\n"recall@5" = { max_drop = 0.0 }\n')
    write(folder, project)
    call = ["server", "call", "--tool", "add", "--input", '{"a":1,"b":2}', "--record", "session.jsonl", "--", team.karat, "demo-server"]
    for words in (
        ["baseline", "update"], ["check", "--history=history.sqlite"], ["corpus", "lock", "tools.json", "--output", "lock.json"], call,
        ["check", "--partition", "hash:1/1", "--out", "part"],
        ["retrieval", "export-trec", "--corpus", "tools.json", "--golden", "golden.jsonl", "--qrels", "qrels", "--run", "trec.run", "--rankings", "karat-report/journal/retrieval-r.jsonl"],
    ):  # fmt: skip
        ran = team.run(words, folder)
        if ran.code != 0:
            raise SystemExit(f"redteam: a file to mutate cannot be made: {ran}")
    return {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*") if path.is_file()}


def kinds(team, own):
    """By kind: the seeds, the place of the mutated file, and the commands that read it."""
    journal = "karat-report/journal/retrieval-r.jsonl"
    demo = ["--", team.karat, "demo-server"]
    report = "karat-report/report.json"
    threat = [line for line in (ROOT / "datasets/threats/v1/entries/tool_poisoning.jsonl").read_bytes().splitlines(True)][:4]
    shapes = [seed[1:] for seed in corpus("shapes")] + corpus("traces")
    score = ["retrieval", "score", "--corpus", "tools.json", "--golden", "golden.jsonl", "--rankings"]
    return {
        "karat.toml": ([own["karat.toml"], *corpus("project")], "karat.toml", [["check"], ["baseline", "show"]]),
        "golden set, lines": ([own["golden.jsonl"]], "golden.jsonl", [["check"]]),
        "golden set, YAML": (corpus("yaml"), "golden.yaml", [["retrieval", "score", "--corpus", "tools.json", "--golden", "golden.yaml", "--rankings", journal]]),
        "corpus of tools": ([own["tools.json"]], "tools.json", [["check"], ["corpus", "lock", "tools.json"], ["corpus", "diff", "tools.json", "tools.json"]]),
        "rankings": ([own[journal], *corpus("rankings")], "rankings.jsonl", [[*score, "rankings.jsonl"]]),
        "threat corpus": ([b"".join(threat), *corpus("threats")], "threats.jsonl", [["detection", "score", "--corpus", "threats.jsonl", "--verdicts", "verdicts"], ["corpus", "verify", "threats.jsonl"]]),
        "verdicts": (corpus("verdicts"), "verdicts", [["detection", "score", "--corpus", "threats.jsonl", "--verdicts", "verdicts"]]),
        "suite": (corpus("suite"), "suite.yaml", [["server", "test", "suite.yaml", "--timeout", "2s", *demo]]),
        "traces": (shapes, "traces.jsonl", [["agent", "score", "traces.jsonl"], ["agent", "diff", "traces.jsonl", "traces.jsonl"]]),
        "tasks": ([lines([{"id": "a", "input": "x", "expect": {"calls": [{"name": "add"}], "answer": {"number": 1}}}]).encode(), *corpus("yaml")], "tasks.yaml", [["agent", "score", "good.jsonl", "--tasks", "tasks.yaml"]]),
        "report": ([own[report], *corpus("report")], "r.json", [["compare", "r.json", report], ["comment", "r.json"], ["history", "add", "r.json", "--db", "new.sqlite"]]),
        "baseline": ([own["baseline.json"], *corpus("baseline")], "baseline.json", [["check"], ["baseline", "show"]]),
        "history": ([own["history.sqlite"]], "history.sqlite", [["history", "list", "--db", "history.sqlite"], ["history", "add", report, "--db", "history.sqlite"], ["history", "export", "1", "--db", "history.sqlite"]]),
        "journal": ([own[journal], *corpus("journal")], journal, [["check", "--resume"]]),
        "part of a run": ([own["part/journal/retrieval-r.part-1-of-1.jsonl"]], "part/journal/retrieval-r.part-1-of-1.jsonl", [["merge", "part", "--out", "merged"]]),
        "archive of runs": (archives(), "runs.archive", [["resilience", "score", "runs.archive"], ["import", "agentdojo", "runs.archive", "-o", "imported"]]),
        "recorded runs": (corpus("attacked_runs"), "runs.jsonl", [["resilience", "score", "--format", "native", "runs.jsonl"]]),
        "manifest": (corpus("manifest"), "frozen/manifest.toml", [["corpus", "verify", "frozen"]]),
        "lock": ([own["lock.json"]], "lock.json", [["corpus", "verify", "tools.json", "--lock", "lock.json"]]),
        "list of servers": ([json.dumps({"mcpServers": {"demo": {"command": team.karat, "args": ["demo-server"]}}}).encode(), *corpus("servers")], "mcp.json", [["server", "lint", "--start-timeout", "2s", "--config", "mcp.json", "--server", "demo"]]),
        "recording": ([own["session.jsonl"], *corpus("recording")], "session.jsonl", [["demo-server", "--replay", "session.jsonl"], ["agent", "score", "session.jsonl"]]),
        "TREC": ([own["qrels"], own["trec.run"], *corpus("trec")], "qrels", [["retrieval", "trec", "--qrels", "qrels", "--run", "trec.run"], ["retrieval", "trec", "--qrels", "trec.run", "--run", "qrels"]]),
        "compressed": ([gzip.compress(own["golden.jsonl"]), lzma.compress(own["golden.jsonl"]), *corpus("json_lines")], "golden.jsonl", [["check"]]),
    }  # fmt: skip


def inputs(team):
    area = team.area("mutated inputs")
    with scratch() as seed, scratch() as stack:
        own = made(team, seed)
        kept = str(pathlib.Path(stack, "kept"))
        shutil.copytree(seed, kept)
        native = lines([{"id": "a", "input": "x", "calls": [{"name": "add", "arguments": {"a": 1}, "result": {}}], "output": "1"}])
        threats = (ROOT / "datasets/threats/v1/entries/tool_poisoning.jsonl").read_bytes()
        write(kept, {"good.jsonl": native, "threats.jsonl": threats, "verdicts": corpus("verdicts")[0], "frozen/data": "x"})
        work, worst = [], [0.0, 0.0]
        for name, (seeds, place, commands) in kinds(team, own).items():
            for number, words in itertools.product(range(team.times(60, 1500)), commands):
                work.append((name, place, mutated(area.random, seeds), words))
        area.random.shuffle(work)
        folders = threading.local()
        made_folders = []

        def attempt(one):
            name, place, content, words = one
            if not hasattr(folders, "own"):
                folders.own = scratch()
                made_folders.append(folders.own)
            folder = folders.own.name
            shutil.rmtree(folder)
            shutil.copytree(kept, folder)
            write(folder, {place: content})
            ran = team.run(words, folder, seconds=SECONDS, memory_mb=2048)
            wrong = ran.wrong(MEMORY_MB)
            if wrong:
                keep = pathlib.Path(f"redteam-{team.seed}-{area.tried}")
                write(ROOT / "target" / "redteam", {f"{keep.name}/{pathlib.Path(place).name}": content})
            worst[0], worst[1] = max(worst[0], ran.seconds), max(worst[1], ran.peak_mb)
            area.attempt(wrong is None, f"{name}: {wrong}: {ran}")

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(attempt, work))
        for folder in made_folders:
            folder.cleanup()
        area.figure(f"{len(kinds(team, own))} kinds; the longest run {worst[0]:.1f} s, the largest {worst[1]:.0f} MB")


def changed(chance, document):
    """A document with other values at a few places, most of which can still be read."""
    document = json.loads(json.dumps(document))
    places = []

    def walk(value):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            places.append((value, key))
            if isinstance(value[key], (dict, list)):
                walk(value[key])

    walk(document)
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(places)
        if isinstance(holder[key], str):
            holder[key] = chance.choice(["", "<script>alert(1)</script>", "\u202e\x00\x9b", "../../x", "a" * 100_000, "${x}", "{{ 1 }}", "2026-99-99T00:00:00Z"])
        elif isinstance(holder[key], (int, float)) and not isinstance(holder[key], bool):
            holder[key] = chance.choice([0, -1, 1e308, 18446744073709551615, 0.1, -1e-300, 10**12])
        elif isinstance(holder[key], list):
            holder[key] = chance.choice([[], holder[key] * 2])
    return document


def dashboard(team):
    area = team.area("mutated reports in the dashboard")
    with scratch() as folder:
        own = made(team, folder)
        report = json.loads(own["karat-report/report.json"])
        shown = 0
        for _ in range(team.times(40, 400)):
            write(folder, {"r.json": changed(area.random, report)})
            if team.run(["history", "add", "r.json", "--db", "one.sqlite"], folder).code != 0:
                area.attempt(True, "")
                continue
            shown += 1
            with started(team, folder, ["serve", "r.json", "--port", "0"]) as (process, port, _):
                for path in ("", "runs", "runs/1", "runs/1/report", "runs/1/report.json", "evaluations/1", "evaluations/1/metrics/1", "compare?before=1&after=1", "x"):
                    try:
                        status = urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=20).status
                    except urllib.error.HTTPError as error:
                        status = error.code
                    area.attempt(status < 500 and process.poll() is None, f"/{path}: {status}")
        area.figure(f"{shown} reports were shown")


def run(team):
    inputs(team)
    dashboard(team)
