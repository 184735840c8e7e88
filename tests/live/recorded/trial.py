"""Records what the official client says to real servers, makes suites of it, and looks for secrets.

`trial.py KARAT NODE CLIENT SERVERS`: SERVERS is the folder that tests/live/servers installs to. Prints one line for
each check; exit code 1 if one fails.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

KARAT, NODE, CLIENT, SERVERS = sys.argv[1:5]
# None of them belongs to anyone. They are put together here so that no scanner of secrets finds this file.
SECRETS = ["ghp_" + "Zq8Lm3Xv7Rt2Wk9Jd4Nc6Hb1Fs5Pg0Ty", "ada.secret" + "@example.org", "correct-horse-battery-7"]
TEXT = f"Dear team, the token is {SECRETS[0]} and must stay here; write to {SECRETS[1]}. password: {SECRETS[2]} (old)."
failed = []


def check(what, holds, seen=""):
    print(("ok   " if holds else "FAIL ") + what, flush=True)
    if not holds:
        failed.append(what)
        print(seen, flush=True)


def run(arguments):
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, env={**os.environ, "HOME": str(work)})
    return done.returncode, done.stdout, done.stderr


def program(name):
    """A program that tests/live/servers has installed."""
    found = [path for path in pathlib.Path(SERVERS).glob(f"*/**/bin/{name}")] + [
        path for path in pathlib.Path(SERVERS).glob(f"**/.bin/{name}")
    ]
    if not found:
        sys.exit(f"{name} is not in {SERVERS}: run tests/live/servers")
    return str(found[0])


work = pathlib.Path(tempfile.mkdtemp())
files = work / "files"
files.mkdir()
(files / "notes.txt").write_text("The notes are short.\n")
(files / "letter.txt").write_text(TEXT + "\n")
plans = {
    "everything": (
        [program("mcp-server-everything")],
        [
            {"tool": "echo", "input": {"message": "hello"}},
            {"tool": "echo", "input": {"message": TEXT}},
            {"tool": "get-sum", "input": {"a": 2, "b": 40}},
            {"tool": "get-sum", "input": {"a": 2, "b": 40}},
            {"tool": "get-structured-content", "input": {"location": "Chicago"}},
            {"prompt": "simple-prompt"},
        ],
    ),
    "filesystem": (
        [program("mcp-server-filesystem"), str(files)],
        [
            {"tool": "list_directory", "input": {"path": str(files)}},
            {"tool": "read_text_file", "input": {"path": str(files / "notes.txt")}},
            {"tool": "read_text_file", "input": {"path": str(files / "letter.txt")}},
            {"tool": "get_file_info", "input": {"path": str(files / "notes.txt")}},
            {"tool": "read_text_file", "input": {"path": str(files / "missing.txt")}},
        ],
    ),
    "time": (
        [program("mcp-server-time"), "--local-timezone", "UTC"],
        [
            {"tool": "get_current_time", "input": {"timezone": "Europe/Zurich"}},
            {"tool": "convert_time", "input": {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}},
        ],
    ),
}
try:
    for name, (command, requests) in plans.items():
        recording, suite, script = (work / f"{name}{end}" for end in (".jsonl", ".yaml", ".script.json"))
        proxy = [KARAT, "server", "record", "-o", str(recording), "--", *command]
        script.write_text(json.dumps({"command": proxy, "requests": requests}))
        code, out, err = run([NODE, CLIENT, str(script)])
        script.unlink()
        check(f"{name}: the client works through the proxy", code == 0, err)
        said = recording.read_text() if recording.exists() else ""
        check(f"{name}: the recording has every request", said.count('"method":"tools/call"') >= len(requests) - 1, said[-2000:])
        code, out, err = run([KARAT, "server", "distil", str(recording), "-o", str(suite)])
        check(f"{name}: a suite is made of it", code == 0, err)
        tools = [request["tool"] for request in requests if "tool" in request]
        cases = len(re.findall(r"^ *- id:|^ *- \{id:", suite.read_text(), re.M)) if suite.exists() else 0
        check(f"{name}: with {cases} cases for {len(set(tools))} tools", cases >= len(set(tools)) - 1, suite.read_text() if suite.exists() else "")
        for time in ("at once", "a second time"):
            flags = ["--out", str(work / f"{name}-report"), "--record", str(work / f"{name}-again.jsonl")]
            code, out, err = run([KARAT, "server", "test", str(suite), *flags, "--", *command])
            check(f"{name}: it passes {time}", code == 0, out + err)
        # On a server that fails every call it must not.
        code, out, err = run(
            [KARAT, "server", "test", str(suite), "--out", str(work / f"{name}-replayed"), "--", KARAT, "demo-server"]
        )
        check(f"{name}: it does not pass on another server", code == 1, out + err)
    gone = work / "gone.jsonl"
    code, out, err = run([KARAT, "server", "record", "-o", str(gone), "--", NODE, str(work / "no-such-server.js")])
    check("a server that does not start leaves no recording", code == 3 and not gone.exists(), f"{code} {err}")
    # Everything that was written: recordings, suites, reports, journals. What the server reads is ours.
    found = [path for path in work.rglob("*") if path.is_file() and files not in path.parents]
    kinds = {path.name for path in found}
    check("reports and journals are among the files", {"report.json", "report.html"} <= kinds, sorted(kinds))
    leaks = [(path.name, secret) for path in found for secret in SECRETS if secret in path.read_bytes().decode("utf-8", "replace")]
    check(f"none of {len(SECRETS)} seeded secrets is in {len(found)} files", not leaks, leaks)
finally:
    subprocess.run(["rm", "-rf", str(work)], check=False)
print(f"{len(failed)} checks failed")
sys.exit(bool(failed))
