"""Work that must not grow with the square, and inputs and servers without end. Times are processor seconds, which
a busy machine does not stretch much, and limits are four times what Karat promises."""

import json
import os
import pathlib
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

from common import BM25, SERVER, environment, lines, retrieval, rss_mb, scratch, write

SLACK = 4


def tools(count):
    for n in range(count):
        schema = {"type": "object", "properties": {"path": {"type": "string", "description": f"Path {n}"}}}
        yield {"name": f"tool_{n}", "description": f"Turns handle {n} of machine {n % 97}.", "inputSchema": schema}


def calls(count):
    return [{"name": f"tool_{n % 50}", "arguments": {"n": n}, "result": {}} for n in range(count)]


def growth(team):
    area = team.area("time and memory of large inputs")

    def measured(what, limit, small, large, memory_mb=1024, seconds=120):
        """Both sizes are run; the larger one has a limit and may not take much more than its share."""
        first, ran = (team.run(*one, seconds=seconds) for one in (small, large))
        good = ran.wrong(memory_mb) is None and ran.cpu < limit * SLACK
        area.attempt(good, f"{what}: {ran.wrong(memory_mb) or f'{ran.cpu:.1f} s'}: {ran}")
        # Four times the size: 4.5 for n log n, 16 for a square. Below a second, starting counts more.
        area.attempt(ran.cpu < 1 or ran.cpu < 9 * first.cpu, f"{what}: {first.cpu:.2f} s, four times the size {ran.cpu:.2f} s")
        area.figure(f"{what}: {ran.cpu:.2f} s of processor, {ran.seconds:.2f} s, {ran.peak_mb:.0f} MB (promised {limit} s; a quarter of it: {first.cpu:.2f} s)")

    with scratch() as folder:
        for count in (5_000, 20_000):
            definitions = list(tools(count))
            listing = json.dumps({"tools": definitions})
            server = SERVER + f"listing = json.loads(open('tools{count}.json').read())\nserve(lambda method, params: listing)\n"
            corpus = {"tools": [{"server": "s", "tool": tool["name"], "description": tool["description"]} for tool in definitions]}
            expected = [{"name": call["name"]} for call in calls(count)]
            native = {"id": "a", "input": "x", "calls": calls(count), "output": "1"}
            write(folder, {
                f"tools{count}.json": listing,
                f"server{count}.py": server,
                f"corpus{count}.json": corpus,
                f"trace{count}.jsonl": lines([{**native, "expect": {"calls": expected}}]),
                f"any{count}.jsonl": lines([{**native, "expect": {"calls": [{"any_order": expected}]}}]),
                f"golden{count}.jsonl": lines([{"id": f"q{n}", "query": f"turn handle {n}", "labels": [{"tool_id": f"s:tool_{n}", "relevance": 2}]} for n in range(0, count, 20)]),
                f"keys{count}.yaml": "".join(f"key{n}: {n}\n" for n in range(count * 10)),
            })  # fmt: skip
        both = lambda words: [([word.format(count) for word in words], folder) for count in (5_000, 20_000)]  # noqa: E731
        measured("lint of 20,000 tools", 5, *both(["server", "lint", "--", "python3", "server{}.py"]))
        measured("lock of 20,000 tools", 5, *both(["corpus", "lock", "corpus{}.json", "--output", "lock{}.json"]))
        measured("a trace of 20,000 calls", 2, *both(["agent", "score", "trace{}.jsonl", "-q"]))
        measured("20,000 calls in any order", 2, *both(["agent", "score", "any{}.jsonl", "-q"]))
        measured("search in 20,000 tools", 10, *both(["retrieval", "run", "--corpus", "corpus{}.json", "--golden", "golden{}.jsonl", "--out", "out{}"]))
        measured("a mapping of 200,000 keys", 5, *both(["agent", "score", "trace5000.jsonl", "--tasks", "keys{}.yaml", "-q"]))


ENDLESS_LIST = SERVER + """
page = {"name": "t", "description": "x" * 10_000, "inputSchema": {"type": "object"}}
serve(lambda method, params: {"tools": [{**page, "name": f"t{params.get('cursor', '')}-{n}"} for n in range(1000)], "nextCursor": str(int(params.get("cursor", 0)) + 1)})
"""
ENDLESS_NOTES = SERVER.replace(
    "            result = answer(message",
    """            while True:
                sys.stdout.write(('{"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "%s"}}' + chr(10)) % ("x" * 60000))
            result = answer(message""",
) + "serve(None)\n"
ENDLESS_LINE = "import sys\nwhile True: sys.stdout.write('x' * 65536)\n"
ENDLESS_ERRORS = SERVER + "while True: sys.stderr.write('x' * 65536)\n"
SLOW_PAGES = SERVER + """
import time
def answer(method, params):
    time.sleep(0.5)
    return {"tools": [], "nextCursor": str(time.time())}
serve(answer)
"""


def endless(team):
    area = team.area("servers and inputs without end")
    with scratch() as folder:
        servers = {"list": ENDLESS_LIST, "notes": ENDLESS_NOTES, "line": ENDLESS_LINE, "errors": ENDLESS_ERRORS, "slow": SLOW_PAGES}
        write(folder, {f"{name}.py": code for name, code in servers.items()})
        limits = ["--timeout", "3s", "--start-timeout", "5s"]
        for name in servers:
            for words in (["lint"], ["call", "--tool", "t", "--record", f"{name}.jsonl"]):
                known = limits if words[0] == "call" else limits[2:]
                ran = team.run(["server", *words, *known, "--", "python3", f"{name}.py"], folder, seconds=90)
                area.attempt(ran.wrong(400) is None and ran.code in (0, 2, 3), f"{name} {words[0]}: {ran.wrong(400)} {ran}")
        largest = max((path.stat().st_size for path in pathlib.Path(folder).glob("*.jsonl")), default=0)
        area.attempt(largest <= 300 << 20, f"a recording of {largest >> 20} MB")
        area.figure(f"the largest recording: {largest >> 20} MB")

    with scratch() as folder:
        write(folder, {**retrieval(4, BM25), "run": "q1 Q0 a 1 0.9 t\n", "rules.yar": (
            "rule slow { condition: for all i in (1..1000000000) : (for all j in (1..1000000000) : (i + j > 0)) }\n"
        )})  # fmt: skip
        threat = {"id": "a", "label": "malicious", "category": "tool_poisoning", "tool": {"name": "t", "description": "x"}}
        write(folder, {"threats.jsonl": lines([threat, {**threat, "id": "b", "label": "benign", "category": "x"}])})
        write(folder, {"yara.toml": '[[detection]]\nname = "y"\ncorpus = "threats.jsonl"\nsystem = { yara = "rules.yar" }\ntimeout_ms = 1000\n'})
        ran = team.run(["check", "yara.toml"], folder, seconds=60)
        if b"has no YARA" in ran.err:
            area.figure("this build has no YARA; the time-out of rules is tried by `cargo test -p karat-detection --features yara`")
        else:
            area.attempt(ran.wrong() is None and ran.code == 3, f"a YARA rule without end: {ran}")
        os.mkfifo(pathlib.Path(folder, "pipe"))
        pathlib.Path(folder, "runs").mkdir()
        os.mkfifo(pathlib.Path(folder, "runs", "a.json"))
        inputs = [
            ["check", "{}"], ["agent", "score", "{}"], ["agent", "score", "golden.jsonl", "--tasks", "{}"], ["agent", "diff", "{}", "{}"],
            ["retrieval", "trec", "--qrels", "{}", "--run", "run"], ["retrieval", "trec", "--qrels", "run", "--run", "{}"],
            ["retrieval", "score", "--corpus", "{}", "--golden", "golden.jsonl"], ["retrieval", "score", "--corpus", "tools.json", "--golden", "{}"],
            ["retrieval", "score", "--corpus", "tools.json", "--golden", "golden.jsonl", "--rankings", "{}"],
            ["detection", "score", "--corpus", "{}", "--verdicts", "run"], ["detection", "score", "--corpus", "threats.jsonl", "--verdicts", "{}"],
            ["server", "test", "{}", "--", "true"], ["server", "lint", "--config", "{}", "--server", "a"],
            ["compare", "{}", "{}"], ["comment", "{}"], ["history", "add", "{}"], ["corpus", "verify", "{}"], ["corpus", "lock", "{}"],
            ["corpus", "verify", "tools.json", "--lock", "{}"], ["resilience", "score", "{}"], ["demo-server", "--replay", "{}"], ["merge", "{}"],
        ]  # fmt: skip
        running = []
        for place in ("pipe", "/dev/zero", "/dev/urandom", "runs"):
            for words in inputs if place != "runs" else [["resilience", "score", "runs"], ["corpus", "verify", "runs"], ["merge", "runs"]]:
                running.append((place, [word.format(place) for word in words]))
        # Each waits some seconds for a writer; so several at a time.
        with ThreadPoolExecutor(24) as pool:
            for (place, words), ran in zip(running, pool.map(lambda one: team.run(one[1], folder, seconds=90), running)):
                area.attempt(ran.wrong(700) is None and ran.code in (2, 3), f"{' '.join(words)}: {ran.wrong(700)} {ran}")


def flat_load(team):
    area = team.area("memory of a load at a fixed rate")
    seconds = team.times(16, 120)
    with scratch() as folder:
        words = ["server", "load", "--tool", "add", "--input", '{"a":1,"b":2}', "--rate", "1500", "--duration", f"{seconds}s"]
        load = subprocess.Popen(
            [team.karat, *words, "--", team.karat, "demo-server"], cwd=folder, env=environment(),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        readings = []
        while load.poll() is None:
            time.sleep(0.5)
            try:
                readings.append(rss_mb(load.pid))
            except (OSError, StopIteration):
                break
        load.wait()
        # Without the start, and the end, at which the report is made.
        within = readings[8:-4]
        before, after = max(within[: len(within) // 3]), max(within[-len(within) // 3 :])
        area.attempt(load.returncode in (0, 1), f"ended with {load.returncode}")
        area.attempt(after <= before * 1.1 + 1, f"{before:.1f} MB, later {after:.1f} MB")
        area.figure(f"{before:.1f} MB after some seconds, {after:.1f} MB at the end of {seconds} s at 1,500 calls a second")


def run(team):
    growth(team)
    endless(team)
    flat_load(team)
