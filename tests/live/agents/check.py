"""Scores what the libraries exported and compares every value with what the script did.

check.py KARAT FOLDER prints a table of sources and exits with 1 if a value is wrong, a library did not run, or
a library that ran left nothing to read.
"""

import glob
import json
import os
import subprocess
import sys

from endpoint import INPUT, OUTPUT, TASKS

KARAT, FOLDER = sys.argv[1:3]
EXCHANGE = INPUT + OUTPUT
SPANS = (".spans.jsonl", ".spans.binpb", ".console.json")
# What is written by the library itself, and what it has.
ALL = {"calls.exact", "answer.correct", "run.tokens"}
WORDS = {"calls.exact", "answer.correct"}
OWN = {
    ".openai.jsonl": ALL, ".anthropic.jsonl": ALL, ".bedrock.jsonl": ALL, ".gemini.jsonl": WORDS, ".langchain.jsonl": WORDS,
    ".pydantic-ai.jsonl": WORDS, ".haystack.jsonl": WORDS, ".autogen.jsonl": WORDS, ".semantic-kernel.jsonl": WORDS,
    ".agents-trace.jsonl": {"calls.exact", "run.tokens"}, ".eval.json": ALL, ".eval": ALL, ".mlflow.jsonl": ALL,
    ".langsmith.jsonl": ALL, ".phoenix.json": ALL, ".phoenix-otlp.json": ALL, ".phoenix-frame.jsonl": ALL, ".sessions": ALL, ".printed": ALL,
}
# These have no spans of OpenTelemetry, or none that say what the model did.
NO_SPANS = ("own+openai-agents", "own+haystack", "own+inspect", "own+claude", "own+codex", "own+gemini", "own+opencode", "mlflow+", "langsmith+")
# Their content is in log records, which the other files of the run do not have.
IN_LOGS = ("openai-v2+", "traceloop-events+", "own+google-adk", "own+semantic-kernel", "otel+bedrock")
# Clients: the program calls the tools, and what it sends back does not say whether they failed.
CLIENTS = ("openai-chat", "openai-responses", "anthropic", "bedrock", "google-genai", "litellm")
# Sources that do not have all, and why.
LESS = {
    "openinference+crewai": {"calls.exact"},  # records tools, and not the model
    "openinference+autogen.stream": WORDS,  # its streams do not ask for the usage
    "own+google-adk": WORDS,  # counts tokens of reasoning twice
    "openinference+dspy": WORDS,  # has no usage
}
# The prefix of the name of a tool.
PREFIXES = {"own+semantic-kernel": "tools-", "own+opencode": "tools_", "own+gemini.plain.printed": "mcp_tools_"}
# They run the calls of a round at once and record that alone, so the order is that in which the threads began.
ANY_ORDER = ("openinference+crewai",)


def tasks_file(source):
    prefix = next((prefix for begin, prefix in PREFIXES.items() if source.startswith(begin)), "")
    path = os.path.join(FOLDER, "tasks.jsonl")
    with open(path, "w") as out:
        for name, (question, rounds, answer) in TASKS.items():
            calls = []
            for round in rounds:
                made = [{"name": prefix + n, "arguments": a} for n, a in round]
                calls += [{"any_order": made}] if source.startswith(ANY_ORDER) and len(made) > 1 else made
            expect = {"calls": calls, "answer": {"equals": answer}}
            out.write(json.dumps({"id": name, "input": question, "expect": expect}) + "\n")
    return path


def score(files, tasks):
    """The scores of each task, or the message of the failure."""
    command = [KARAT, "agent", "score", *files, "--tasks", tasks, "--per-item", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        error = done.stderr.strip() or done.stdout[:200]
        return None, f"exit {done.returncode}: {error.splitlines()[0]}"
    document = json.loads(done.stdout)
    scores = {}
    for item in document["items"]:
        scores.setdefault(item["id"], []).append(item["scores"])
    return scores, "; ".join(document["warnings"])


def answers(base):
    path = base + ".answers.json"
    if not os.path.exists(path):
        return {task: answer for task, (_, _, answer) in TASKS.items()}
    with open(path) as file:
        return json.load(file)


def expected(base, task):
    """The values that a whole record of a task gives. The exception of a tool ends the run in some libraries:
    the task that fails has one exchange and no answer then."""
    _, rounds, _ = TASKS[task]
    crashed = task == "failing" and answers(base).get(task) is None
    exchanges = 1 if crashed else len(rounds) + 1
    return {"calls.exact": 1.0, "answer.correct": 0.0 if crashed else 1.0, "run.tokens": float(exchanges * EXCHANGE)}


def wrong(base, scores, keys, records_errors):
    faults = []
    for task in TASKS:
        runs = scores.get(task, [])
        if len(runs) != 1:
            faults.append(f"{task}: {len(runs)} traces")
            continue
        for key, value in expected(base, task).items():
            if key in keys and runs[0].get(key) != value:
                faults.append(f"{task} {key} {runs[0].get(key)} for {value}")
        if records_errors and TASKS[task][1]:
            value = 0.0 if task == "failing" else 1.0
            if runs[0].get("mcpbench.execution_success") != value:
                faults.append(f"{task} execution {runs[0].get('mcpbench.execution_success')} for {value}")
    faults += [f"further trace {task}" for task in scores if task not in TASKS]
    return faults


def check(name, kind, base):
    """The verdict of one export, and the reason."""
    path = base + kind
    files = sorted(glob.glob(path + "/*")) if os.path.isdir(path) else [path]
    if kind == ".spans.jsonl" and os.path.exists(base + ".logs.jsonl") and os.path.getsize(base + ".logs.jsonl"):
        files.append(base + ".logs.jsonl")
    scores, note = score(files, tasks_file(name + kind))
    if scores is None:
        return "FAILED", note
    library = name.split("+", 1)[1]
    keys = set(ALL if kind in SPANS else OWN[kind])
    if kind == ".openai.jsonl" and not library.startswith(("openai-chat", "openai-responses")):
        keys.discard("run.tokens")
    keys &= next((less for source, less in LESS.items() if name.startswith(source)), ALL)
    errors = kind in (".anthropic.jsonl", ".langsmith.jsonl", ".sessions", ".printed")
    errors |= kind in SPANS + (".mlflow.jsonl",) and not library.startswith(CLIENTS)
    # Without an answer or a model, a run without a call leaves nothing to read.
    if "answer.correct" not in keys:
        scores.setdefault("none", [expected(base, "none")])
    # A run that the exception ended returned no messages.
    crashed = answers(base).get("failing") is None
    if crashed and kind in OWN and kind not in (".mlflow.jsonl", ".langsmith.jsonl"):
        scores.setdefault("failing", [{**expected(base, "failing"), "mcpbench.execution_success": 0.0}])
    faults = wrong(base, scores, keys, errors)
    return ("WRONG", "; ".join(faults)) if faults else ("right", ", ".join(sorted(keys)))


def main():
    rows = []
    for kind in SPANS + tuple(OWN):
        for path in sorted(glob.glob(os.path.join(glob.escape(FOLDER), "*" + kind))):
            base = path.removesuffix(kind)
            name = os.path.basename(base)
            if kind in SPANS and name.startswith(NO_SPANS):
                continue
            if kind in SPANS[1:] and name.startswith(IN_LOGS):
                continue
            rows.append((name + kind, *check(name, kind, base)))
    # Every source that was started is in the table.
    with open(os.path.join(FOLDER, "driven.txt")) as file:
        for line in file:
            name, state = line.split()
            if state != "ran":
                rows.append((name, "FAILED", "it did not run; see its log"))
            elif not any(row[0].startswith(name + ".") for row in rows):
                rows.append((name, "FAILED", "it left nothing to read"))
    failed = sum(verdict != "right" for _, verdict, _ in rows)
    width = max(len(row[0]) for row in rows)
    for name, verdict, text in rows:
        print(f"{name:<{width}}  {verdict:<6}  {text[:300]}")
    print(f"{len(rows) - failed} of {len(rows)} read right")
    return 1 if failed else 0


sys.exit(main())
