"""A search that Karat can measure: one JSON line in, one JSON line out.

In:  {"id": "q-1", "query": "open a bug report", "limit": 10, "run": 0}
Out: {"id": "q-1", "ranked": [{"tool_id": "tracker:create_issue", "score": 2.0}, ...]}

Replace `search` with a call to your own index.
"""

import json
import pathlib
import sys

CORPUS = pathlib.Path(__file__).parent / "datasets/starter/v1/tools/tools.json"
TOOLS = json.loads(CORPUS.read_text())["tools"]


def search(query, limit):
    words = set(query.lower().split())
    scored = []
    for tool in TOOLS:
        text = f"{tool['tool'].replace('_', ' ')} {tool['description']}".lower()
        score = sum(word in text for word in words)
        scored.append((-score, f"{tool['server']}:{tool['tool']}"))
    return [{"tool_id": tool_id, "score": -score} for score, tool_id in sorted(scored)[:limit]]


for line in sys.stdin:
    asked = json.loads(line)
    ranked = search(asked["query"], asked["limit"])
    print(json.dumps({"id": asked["id"], "ranked": ranked}), flush=True)
