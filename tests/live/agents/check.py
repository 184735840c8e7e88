"""Scores what the libraries exported and compares every value with what the script did.

check.py KARAT FOLDER prints a table of sources and exits with 1 if a value is wrong.
"""

import glob
import json
import os
import subprocess
import sys

from endpoint import INPUT, OUTPUT, TASKS

KARAT, FOLDER = sys.argv[1:3]
TASK_FILE = os.path.join(FOLDER, "tasks.jsonl")
EXCHANGE = INPUT + OUTPUT
# In these the exception of a tool ends the run, so the task that fails has one exchange and no answer.
CRASHES = ("langchain", "pydantic-ai")


def write_tasks():
    with open(TASK_FILE, "w") as out:
        for name, (question, rounds, answer) in TASKS.items():
            calls = [{"name": n, "arguments": a} for calls in rounds for n, a in calls]
            expect = {"calls": calls, "answer": {"equals": answer}}
            out.write(json.dumps({"id": name, "input": question, "expect": expect}) + "\n")


def karat(*arguments):
    done = subprocess.run([KARAT, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def score(files, *more):
    """The scores of each task, or the message of the failure."""
    code, out, error = karat("agent", "score", *files, "--tasks", TASK_FILE, "--per-item", "--json", *more)
    if code:
        return None, f"exit {code}: {error.strip().splitlines()[0] if error.strip() else out[:200]}"
    document = json.loads(out)
    scores = {}
    for item in document["items"]:
        scores.setdefault(item["id"], []).append(item["scores"])
    return scores, "; ".join(document["warnings"])


def expected(base, task):
    """The values that a whole record of a task gives."""
    _, rounds, _ = TASKS[task]
    crashed = task == "failing" and answers(base).get(task) is None
    exchanges = 1 if crashed else len(rounds) + 1
    return {"calls.exact": 1.0, "answer.correct": 0.0 if crashed else 1.0, "run.tokens": float(exchanges * EXCHANGE)}


def answers(base):
    path = base + ".answers.json"
    if not os.path.exists(path):
        return {task: answer for task, (_, _, answer) in TASKS.items()}
    with open(path) as file:
        return json.load(file)


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


def main():
    write_tasks()
    failed = 0
    rows = []
    for kind in (".spans.jsonl", ".spans.binpb", ".console.json", ".openai.jsonl", ".anthropic.jsonl", ".langchain.jsonl", ".pydantic-ai.jsonl", ".agents-trace.jsonl", ".haystack.jsonl", ".autogen.jsonl", ".eval.json", ".eval"):
        for path in sorted(glob.glob(os.path.join(FOLDER, "*" + kind))):
            base = path.removesuffix(kind)
            name = os.path.basename(base)
            files = [path]
            if kind == ".spans.jsonl" and os.path.exists(base + ".logs.jsonl"):
                files.append(base + ".logs.jsonl")
            if name.startswith("own+") and kind in (".spans.jsonl", ".spans.binpb", ".console.json"):
                if not any(library in name for library in ("pydantic-ai", "vercel", "google-adk", "strands")):
                    continue  # nothing instruments it
            if ("openai-v2" in name or "google-adk" in name) and kind in (".spans.binpb", ".console.json"):
                continue  # the content is in the log records
            scores, note = score(files)
            if scores is None:
                rows.append((name + kind, "FAILED", note))
                failed += 1
                continue
            keys = {"calls.exact", "answer.correct", "run.tokens"}
            library = name.split("+", 1)[1]
            errors = kind.startswith((".spans", ".console")) and not library.startswith(("openai-chat", "openai-responses", "anthropic"))
            errors = errors or kind == ".anthropic.jsonl"
            if kind in (".langchain.jsonl", ".pydantic-ai.jsonl", ".haystack.jsonl", ".autogen.jsonl"):
                keys.discard("run.tokens")
            if kind == ".openai.jsonl" and not library.startswith(("openai-chat", "openai-responses")):
                keys.discard("run.tokens")
            if kind == ".agents-trace.jsonl":
                # Answers are not in it, so a run without a call leaves nothing to read.
                keys.discard("answer.correct")
                scores.setdefault("none", [expected(base, "none")])
            if library.startswith("crewai"):
                # Its instrumentation records tools, and not the model.
                keys = {"calls.exact"}
                scores.setdefault("none", [expected(base, "none")])
            if library.startswith("autogen.stream"):
                # Its streams do not ask for the usage.
                keys.discard("run.tokens")
            if library.startswith("google-adk"):
                # It counts tokens of reasoning twice.
                keys.discard("run.tokens")
            if library.startswith(CRASHES) and not kind.startswith((".spans", ".console")):
                scores.setdefault("failing", [{**expected(base, "failing"), "mcpbench.execution_success": 0.0}])
            faults = wrong(base, scores, keys, errors)
            failed += bool(faults)
            rows.append((name + kind, "WRONG" if faults else "right", "; ".join(faults) or ", ".join(sorted(keys))))
    width = max(len(row[0]) for row in rows)
    for name, verdict, text in rows:
        print(f"{name:<{width}}  {verdict:<6}  {text[:300]}")
    print(f"{len(rows) - failed} of {len(rows)} read right")
    return 1 if failed else 0


sys.exit(main())
