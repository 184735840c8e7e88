"""A scanner that Karat can measure: one JSON line in, one JSON line out.

In:  {"id": "a-01", "server": "tidemark", "tool": {"name": ..., "description": ...}, "run": 0}
     and, where an entry has them, "peers", "before", "result" and "instructions"
Out: {"id": "a-01", "verdict": "flag", "severity": "high", "findings": [...]}

The verdict is flag, pass, unsupported or error. Replace `scan` with a call to your own scanner.
"""

import json
import re
import sys

RULES = [
    ("secret-file", re.compile(r"\.env file|\.ssh/id_\w+\b(?!\.pub)|credentials", re.I)),
    ("override", re.compile(r"ignore all previous instructions|rules .* do not apply", re.I)),
    ("secrecy", re.compile(r"(do not|don't) (mention|show|tell)|tell nobody|need not be told", re.I)),
    ("hidden-text", re.compile("[\U000e0000-\U000e007f]|[\u200b\u200c]{6}")),
]


def scan(entry):
    text = json.dumps(entry["tool"], ensure_ascii=False) + entry.get("result", "")
    return [{"rule": name, "severity": "high"} for name, rule in RULES if rule.search(text)]


for line in sys.stdin:
    asked = json.loads(line)
    findings = scan(asked)
    answer = {"id": asked["id"], "verdict": "flag" if findings else "pass", "findings": findings}
    print(json.dumps(answer), flush=True)
