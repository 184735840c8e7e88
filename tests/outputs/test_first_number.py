"""One command, without a project, to the first number about one's own system: a server from npm and one
from PyPI, a search endpoint, a scanner and a file of traces. Each has a minute."""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

KARAT = os.environ["KARAT"]
ROOT = pathlib.Path(os.environ["KARAT_ROOT"])
SERVERS = ROOT / "target/live/servers"
MINUTE = 60

SCANNER = """
import json, sys

for line in sys.stdin:
    entry = json.loads(line)
    print(json.dumps({"id": entry["id"], "verdict": "flag" if "ignore" in line.lower() else "pass"}), flush=True)
"""

TRACE = {
    "messages": [
        {"role": "user", "content": "What is 2 + 3?"},
        {
            "role": "assistant",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a": 2, "b": 3}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "5"},
        {"role": "assistant", "content": "5"},
    ]
}


def bundled():
    """The bundled tools: id and words."""
    for file in sorted((ROOT / "datasets/tools/v1/tools").glob("*.json")):
        server = json.loads(file.read_text())
        for tool in server["tools"]:
            text = f"{tool['tool']} {tool['description']}".replace("_", " ").lower()
            yield f"{server['server']['name']}:{tool['tool']}", set(text.split())


class Search(http.server.BaseHTTPRequestHandler):
    """A search that counts common words; a tool that is asked for by its name comes first."""

    tools = dict(bundled())

    def do_GET(self):
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["q"][0]
        self.server.asked.append(asked)
        words = set(asked.replace("_", " ").lower().split())

        def rank(tool):
            return tool.split(":")[1] not in asked, -len(words & self.tools[tool]), tool

        body = json.dumps(sorted(self.tools, key=rank)[:50]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class FirstNumber(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def karat(self, evaluation, verb, *words):
        """Runs one command in an empty folder; it must end within the minute."""
        ran = subprocess.run(
            [KARAT, evaluation, verb, "--json", *words], cwd=self.folder, capture_output=True, text=True, timeout=MINUTE
        )
        self.assertIn(ran.returncode, [0, 1], ran.stderr)
        return json.loads(ran.stdout)

    def metrics(self, document):
        """The metrics with a value."""
        found = [metric for report in document["reports"] for metric in report["metrics"]]
        return {metric["id"]: metric["value"] for metric in found if metric["value"] is not None}

    def scan(self, name, program):
        document = self.karat("server", "scan", "--", str(SERVERS / name / "bin" / program))
        self.assertGreater(document["lint"]["tools"], 0)
        found = self.metrics(document["fuzz"])
        self.assertGreater(found["fuzz.calls"], 0)

    def test_a_server_from_npm(self):
        self.scan("everything", "mcp-server-everything")

    def test_a_server_from_pypi(self):
        self.scan("time", "mcp-server-time")

    def test_a_search_endpoint(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Search)
        server.asked = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        address = f"http://127.0.0.1:{server.server_port}/search?q={{query}}"
        found = self.metrics(self.karat("retrieval", "run", "--url", address))
        self.assertTrue(0 < found["recall@5"] < 1, found)
        self.assertGreater(len(set(server.asked)), 400)

    def test_a_scanner(self):
        (self.folder / "scanner.py").write_text(SCANNER)
        found = self.metrics(self.karat("detection", "run", "--", sys.executable, "scanner.py"))
        self.assertTrue(0 < found["recall"] < 1 and 0 <= found["fpr"] < 1, found)

    def test_a_file_of_traces(self):
        (self.folder / "run.jsonl").write_text(json.dumps(TRACE) + "\n")
        found = self.metrics(self.karat("agent", "score", "run.jsonl"))
        self.assertTrue(found)


if __name__ == "__main__":
    unittest.main()
