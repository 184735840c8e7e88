"""Texts of others in the logs of CI systems and on terminals: no line starts a command or an annotation of GitHub,
GitLab or Azure, and no control character gets through, whatever command prints the text."""

import os
import pty
import re
import subprocess
import threading

from common import SERVER, environment, lines, scratch, write

COMMANDS = [
    "::error file=app.js,line=1::forged",
    "::add-mask::e",
    "::stop-commands::t",
    "::set-output name=a::b",
    "##[error]forged",
    "##[section]forged",
    "##vso[task.setvariable variable=a]b",
    "##vso[task.complete result=Succeeded]",
    "section_start:1:a\r\x1b[0K",
    "section_end:1:a\r\x1b[0K",
    "\x1b]8;;http://example.com\x07link\x1b]8;;\x07",
    "\x9b31m\u202e\u200b\u2066",
]
# At the start of a line, in the middle, after blanks, after a line feed, and often, so that lines are wrapped in it.
TEXT = "u " + " ".join(COMMANDS) + "".join(f"\n{one}\n  {one}" for one in COMMANDS) + " ::error::x" * 40
ID = "a\n::error::forged\n##[error]x " + "##vso[task.complete]"

SYSTEMS = {"GITHUB_ACTIONS": "true", "GITLAB_CI": "true", "TF_BUILD": "True", "CI": "true"}

HOSTILE = SERVER + f"""
text, name = {TEXT!r}, "t ::error::x ##[error]y"
def answer(method, params):
    if method == "tools/list":
        return {{"tools": [{{"name": "t", "description": text, "inputSchema": {{"type": "object", "properties": {{name: {{"type": "string", "description": text}}}}}}}},
                         {{"name": name, "title": text, "description": text, "inputSchema": {{"type": "object"}}, "annotations": {{"readOnlyHint": True}}}}]}}
    return {{"content": [{{"type": "text", "text": text}}], "isError": True}}
serve(answer)
"""

SEARCH = f"""
import json, sys
for number, line in enumerate(sys.stdin):
    question = json.loads(line)
    answer = {{"ranked": [{{"tool_id": {TEXT!r}}}]}} if number % 2 else {{"error": {TEXT!r}}}
    print(json.dumps({{"id": question["id"], **answer}}), flush=True)
"""

DIES = f"import sys; sys.stderr.write({TEXT!r}); sys.exit(1)"


def files():
    label = [{"tool_id": "s:t", "relevance": 2}]
    suite = lines([{"test_cases": [
        {"id": ID, "about": TEXT, "tool": "t", "expect": {"contains": TEXT}},
        {"id": "b", "tool": "t", "input": {"x": "1"}, "expect": {"json": "$.a", "equals": TEXT}, "tags": [TEXT[:40]]},
    ]}])  # fmt: skip
    threat = {"id": ID, "label": "malicious", "category": "tool_poisoning", "tool": {"name": TEXT, "description": TEXT}}
    entry = '[[{kind}]]\nname = "r"\n{rest}\n'
    search = 'corpus = "tools.json"\ngolden = "golden.jsonl"\nsystem = {{ command = ["python3", "{0}"] }}\nmax_errors = {1}'
    return {
        "hostile.py": HOSTILE,
        "search.py": SEARCH,
        "dies.py": DIES,
        "suite.yaml": suite,
        "badsuite.yaml": lines([{"test_cases": [{"id": ID, "tool": "t", "input": {"x": "${" + TEXT + "}"}}]}]),
        "tools.json": {"tools": [{"server": "s", "tool": "t", "description": TEXT}, {"server": TEXT, "tool": TEXT, "description": TEXT}]},
        "golden.jsonl": lines([{"id": f"{ID}{n}", "query": TEXT, "labels": label} for n in range(4)]),
        "badgolden.jsonl": lines([{"id": ID, "query": TEXT, "labels": [{"tool_id": TEXT, "relevance": 2}]}] * 2),
        "search.toml": entry.format(kind="retrieval", rest=search.format("search.py", "1.0")),
        "strict.toml": entry.format(kind="retrieval", rest=search.format("search.py", "0.0")),
        "dies.toml": entry.format(kind="retrieval", rest=search.format("dies.py", "0.0")),
        "bad.toml": f"{TEXT}\n[[retrieval]]\n" + '"' + "::error::x" + '" = 1\n',
        "names.toml": entry.format(kind="retrieval", rest='"::error::x ##[error]y" = 1'),
        "threats.jsonl": lines([threat, {**threat, "id": "b", "label": "benign"}]),
        "verdicts.jsonl": lines([{"id": ID, "verdict": "flag", "findings": [{"message": TEXT}]}, {"id": "b", "verdict": "error", "message": TEXT}]),
        "traces.jsonl": lines([{"id": ID, "input": TEXT, "calls": [{"name": TEXT, "arguments": {TEXT: TEXT}, "result": TEXT, "error": TEXT}], "output": TEXT,
                                "expect": {"calls": [{"name": "add"}], "answer": {"contains": TEXT}}}]),
        "badtraces.jsonl": lines([{"id": ID, TEXT: TEXT, "calls": TEXT}]),
        "mcp.json": {"mcpServers": {"::error::x": {"command": "/nowhere/::error::x ##[error]y"}}},
        "run": "q1 Q0 ::error::x 1 ##[error]x tag\n",
        "qrels": "q1 0 ##vso[a]b 1 ::error::x\n::error::y\n",
    }  # fmt: skip


COMMANDS_RUN = [
    *(["server", *words, "--", "python3", "hostile.py"] for words in (
        ["lint"], ["scan"], ["test", "suite.yaml"], ["test", "suite.yaml", "-v"], ["call", "--tool", "t"], ["call", "--tool", "::error::x"],
        ["fuzz", "--inputs", "5"], ["attack"], ["load", "--tool", "t", "--count", "20"], ["suggest"],
    )),
    ["server", "test", "badsuite.yaml", "--", "python3", "hostile.py"],
    ["server", "lint", "--", "python3", "dies.py"],
    ["server", "lint", "--config", "mcp.json", "--server", "::error::x"],
    ["server", "lint", "--config", "mcp.json", "--server", "##[error]none"],
    ["check", "search.toml"], ["check", "search.toml", "-v"], ["show", "--out", "karat-report"], ["comment", "karat-report/report.json"],
    ["compare", "karat-report/report.json", "karat-report/report.json"],
    ["check", "strict.toml"], ["check", "dies.toml"], ["check", "bad.toml"], ["check", "names.toml"], ["check", "::error::x.toml"],
    ["baseline", "show", "search.toml"],
    ["retrieval", "score", "--corpus", "tools.json", "--golden", "badgolden.jsonl", "--rankings", "golden.jsonl"],
    ["retrieval", "trec", "--qrels", "qrels", "--run", "run"],
    ["corpus", "verify", "tools.json"], ["corpus", "verify", "threats.jsonl"], ["corpus", "diff", "tools.json", "tools.json"],
    ["corpus", "lock", "tools.json"],
    ["detection", "score", "--corpus", "threats.jsonl", "--verdicts", "verdicts.jsonl"],
    ["agent", "score", "traces.jsonl"], ["agent", "score", "traces.jsonl", "-v"], ["agent", "score", "badtraces.jsonl"], ["agent", "diff", "traces.jsonl", "traces.jsonl"],
    ["history", "add", "karat-report/report.json"], ["history", "list"], ["history", "show"],
]  # fmt: skip

COMMAND = re.compile(r"^\s*::|##\[|##vso\[|section_(start|end):\d+:[\w.-]+\r|[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")

# A terminal gets nothing that moves its cursor, changes its colours or title, or hides and turns text. Without colours
# stdout has no sequence at all; a progress bar on stderr may clear its line and move up to it.
RAW = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]")
BAR = re.compile(r"\x1b\[(2K|\d*[AG]|0?m)")


def read_all(master, into):
    """Reads a terminal until its last writer is gone."""
    while True:
        try:
            read = os.read(master, 65536)
        except OSError:
            return
        if not read:
            return
        into.append(read)


def on_terminals(team, words, folder, seconds=60):
    """What a command writes to two terminals, one for stdout and one for stderr."""
    pairs = [pty.openpty() for _ in range(2)]
    texts = [[], []]
    readers = [threading.Thread(target=read_all, args=(master, text)) for (master, _), text in zip(pairs, texts)]
    process = subprocess.Popen(
        [team.karat, *words], cwd=folder, env=environment({"TERM": "xterm-256color"}), stdin=subprocess.DEVNULL,
        stdout=pairs[0][1], stderr=pairs[1][1], start_new_session=True,
    )  # fmt: skip
    for _, slave in pairs:
        os.close(slave)
    for reader in readers:
        reader.start()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait() or -9
    for reader in readers:
        reader.join(10)
    for master, _ in pairs:
        os.close(master)
    return code, *(b"".join(text).decode(errors="replace") for text in texts)


def terminals(team):
    area = team.area("control characters on a terminal")
    seen = 0
    with scratch() as folder:
        write(folder, files())
        for words in COMMANDS_RUN:
            code, out, err = on_terminals(team, words, folder)
            seen += "forged" in out + err
            found = RAW.search(out) or RAW.search(BAR.sub("", err))
            area.attempt(code in (0, 1, 2, 3, 4) and not found, f"{' '.join(words)} → {code}, {found and found[0]!r}")
    area.attempt(seen > len(COMMANDS_RUN) // 4, f"only {seen} outputs showed a text")
    area.figure(f"{seen} of {len(COMMANDS_RUN)} commands showed such a text, escaped")


def run(team):
    terminals(team)
    area = team.area("log commands of CI systems")
    seen = 0
    for system, value in SYSTEMS.items():
        with scratch() as folder:
            write(folder, files())
            for words in COMMANDS_RUN:
                ran = team.run(words, folder, env={system: value})
                said = ran.said.decode(errors="surrogateescape")
                seen += "forged" in said or "error" in said
                # Lines as a CI system splits them: a lone carriage return does not end one.
                bad = [line for line in said.split("\n") if COMMAND.search(line.removesuffix("\r"))]
                area.attempt(ran.wrong() is None and not bad, f"{system}: {ran.wrong() or bad[:1]!r}: {' '.join(words)}")
    # A text that never shows proves nothing.
    area.attempt(seen > len(COMMANDS_RUN), f"only {seen} outputs showed a text")
    area.figure(f"{seen} outputs showed such a text, broken up")
