"""The YARA analyzer of cisco-ai-mcp-scanner in process: `cisco.py FILE COUNT`.

Shows it what the scanner itself would: the description, and the rest of the definition as JSON. For
every line on its input it analyzes COUNT definitions and prints what that took, as throughput.rs does.
The texts are made beforehand, and starting, importing and compiling the rules are not counted, all of
which is in its favour.
"""

import asyncio
import itertools
import json
import logging
import os
import resource
import sys
import time

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
from mcpscanner.core.analyzers.yara_analyzer import YaraAnalyzer  # noqa: E402

logging.disable(logging.CRITICAL)


def texts(line):
    tool = json.loads(line)["tool"]
    description = tool.pop("description", "")
    return tool["name"], description, json.dumps(tool)


async def analyze(analyzer, definitions):
    flagged = 0
    for name, description, rest in definitions:
        found = await analyzer.analyze(description, {"tool_name": name, "content_type": "description"})
        more = await analyzer.analyze(rest, {"tool_name": name, "content_type": "parameters"})
        flagged += bool(found or more)
    return flagged


path, count = sys.argv[1], int(sys.argv[2])
with open(path, encoding="utf-8") as file:
    definitions = [texts(line) for line in file]
analyzer = YaraAnalyzer()
for _ in sys.stdin:
    started = time.perf_counter()
    began = time.thread_time()
    flagged = asyncio.run(analyze(analyzer, itertools.islice(itertools.cycle(definitions), count)))
    spent = time.thread_time() - began
    wall = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    taken = {"cpu_seconds": spent, "wall_seconds": wall, "flagged": flagged, "definitions": count, "peak_kib": peak}
    print(json.dumps(taken), flush=True)
