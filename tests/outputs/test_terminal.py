"""`karat check` in a real terminal: tmux at three widths, for each verdict.

The captures are the blocks of docs/terminal.md, so the page shows what a user sees.
`./test update` writes them again; look at the difference before you commit it.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import time
import unittest

KARAT = os.environ["KARAT"]
PAGE = pathlib.Path(os.environ["KARAT_ROOT"]) / "docs/terminal.md"
WIDTHS = [60, 100, 160]
STATES = {"pass": 0, "fail": 1, "not measured": 3, "inconclusive": 0}
HEIGHT = 45

TOOLS = """{"tools": [
  {"server": "tracker", "tool": "create_issue", "description": "Open a ticket."},
  {"server": "files", "tool": "list_files", "description": "Show what a folder holds."},
  {"server": "mail", "tool": "send_mail", "description": "Write a message to an address."},
  {"server": "calendar", "tool": "add_event", "description": "Put a meeting into the calendar."}
]}"""
GOLDEN = "".join(
    f'{{"id": "{id}", "query": "{query}", "labels": [{{"tool_id": "{tool}", "relevance": 2}}]}}\n'
    for id, query, tool in [
        ("ticket", "open a ticket about the broken login page", "tracker:create_issue"),
        ("folder", "what does the folder of the project hold", "files:list_files"),
        ("message", "write a message to the team", "mail:send_mail"),
        ("meeting", "put the meeting with the auditors into my calendar", "calendar:add_event"),
    ]
)
PROJECT = """name = "gateway"

[[retrieval]]
name = "search"
corpus = "tools.json"
golden = "golden.jsonl"
system = { builtin = "bm25" }
baseline = "search.json"

[retrieval.gate.metrics]
"recall@1" = { max_drop = 0.0 }
"mrr" = { max_drop = 0.02 }
"""
LOST = 'system = { command = ["sh", "-c", "echo cannot open the index >&2; exit 3"] }'


class Terminal(unittest.TestCase):
    """Each capture is one screen of a terminal."""

    def setUp(self):
        self.assertTrue(shutil.which("tmux"), "install tmux: the captures need a real terminal")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.environment = {**os.environ, "SOURCE_DATE_EPOCH": "1794711845", "LC_ALL": "C.UTF-8"}
        for name in ("CI", "GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS", "GITLAB_CI", "TMUX", "COLUMNS"):
            self.environment.pop(name, None)

    def project(self, state):
        """A project that ends in this state."""
        for name, text in [("tools.json", TOOLS), ("golden.jsonl", GOLDEN), ("karat.toml", PROJECT)]:
            (self.folder / name).write_text(text)
        accept = [KARAT, "baseline", "update", "--quiet"]
        subprocess.run(accept, cwd=self.folder, env=self.environment, check=True, capture_output=True)
        project = PROJECT
        if state == "fail":
            tools = TOOLS.replace("Open a ticket.", "Nothing of note.")
            (self.folder / "tools.json").write_text(tools.replace("Put a meeting into", "Unrelated to"))
        elif state == "not measured":
            project = project.replace('system = { builtin = "bm25" }', LOST)
        elif state == "inconclusive":
            rules = project.index('"recall@1"')
            project = project[:rules] + '"success@5" = { min = 0.9, certify = true }\n'
        (self.folder / "karat.toml").write_text(project)

    def capture(self, width):
        """The screen after `karat check`, and its exit code."""
        socket, done = str(self.folder / "tmux"), self.folder / "code"
        done.unlink(missing_ok=True)
        # The progress goes elsewhere: what is captured is the result.
        command = f"{shlex.quote(KARAT)} check 2>/dev/null; echo $? >{shlex.quote(str(done))}.new; mv {shlex.quote(str(done))}.new {shlex.quote(str(done))}; sleep 60"
        tmux = ["tmux", "-f", "/dev/null", "-S", socket]
        start = [*tmux, "new-session", "-d", "-x", str(width), "-y", str(HEIGHT), "sh", "-c", command]
        subprocess.run(start, cwd=self.folder, env=self.environment, check=True)
        try:
            deadline = time.monotonic() + 120
            while not done.exists():
                self.assertLess(time.monotonic(), deadline, "karat check did not end")
                time.sleep(0.05)
            time.sleep(0.2)
            screen = subprocess.run(
                [*tmux, "capture-pane", "-p"], env=self.environment, check=True, capture_output=True, text=True
            ).stdout
        finally:
            subprocess.run([*tmux, "kill-server"], env=self.environment, check=False, capture_output=True)
        lines = [line.rstrip() for line in screen.rstrip().splitlines()]
        return "\n".join(lines), int(done.read_text())

    def test_every_verdict_at_every_width_is_as_the_page_shows(self):
        page = PAGE.read_text()
        now = page
        for state, code in STATES.items():
            for width in WIDTHS:
                self.project(state)
                screen, ended = self.capture(width)
                self.assertEqual(ended, code, f"{state} at {width}:\n{screen}")
                self.assertLessEqual(screen.count("\n") + 1, 40, "a check fits 40 lines")
                widest = max(map(len, screen.splitlines()))
                self.assertLessEqual(widest, width)
                mark = f"<!-- capture: {state}, {width} columns -->"
                block = re.compile(re.escape(mark) + r"\n\n```text\n.*?\n```\n", re.S)
                self.assertRegex(now, block, f"{PAGE} has no block for {mark}")
                now = block.sub(lambda _: f"{mark}\n\n```text\n{screen}\n```\n", now)
        if os.environ.get("KARAT_CAPTURES") == "update":
            PAGE.write_text(now)
        self.maxDiff = None
        self.assertEqual(PAGE.read_text(), now)
