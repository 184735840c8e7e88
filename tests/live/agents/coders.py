"""Runs Claude Code and Codex against the scripted endpoint and keeps what they print and the session files.

coders.py (claude|codex) BIN FOLDER
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import endpoint
from endpoint import TASKS

WHICH, BIN, FOLDER = sys.argv[1:4]
sys.argv = sys.argv[:1]
URL = endpoint.start()
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tools_server.py")
HOME = tempfile.mkdtemp()
WORK = os.path.join(HOME, "work")
os.makedirs(WORK)
os.makedirs(os.path.join(HOME, ".codex"))
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
}
ENV = {"PATH": os.environ["PATH"], "HOME": HOME, "CODEX_HOME": os.path.join(HOME, ".codex"), "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": URL.removesuffix("/v1"), **QUIET}


def claude(task, question):
    servers = {"mcpServers": {"tools": {"command": sys.executable, "args": [SERVER]}}}
    return [
        BIN, "-p", question, "--output-format", "stream-json", "--verbose", "--mcp-config", json.dumps(servers), "--strict-mcp-config",
        "--model", "claude-sonnet-4-5", "--allowedTools", "mcp__tools",
    ]


def codex(task, question):
    config = {
        "model_provider": "script", "model_providers.script.name": "script", "model_providers.script.base_url": URL,
        "model_providers.script.wire_api": "responses", "model_providers.script.env_key": "OPENAI_API_KEY", "model": "gpt-4o-mini",
        "mcp_servers.tools.command": sys.executable, "mcp_servers.tools.args": [SERVER], "mcp_servers.tools.default_tools_approval_mode": "approve",
    }
    options = [part for key, value in config.items() for part in ("-c", f"{key}={json.dumps(value)}")]
    return [BIN, "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options, question]


def place(kind):
    folder = os.path.join(FOLDER, f"own+{WHICH}.plain.{kind}")
    os.makedirs(folder, exist_ok=True)
    return folder


PATTERNS = {"claude": "/.claude/projects/**/*.jsonl", "codex": "/.codex/sessions/**/*.jsonl"}
known = set()
try:
    for task, (question, _, answer) in TASKS.items():
        command = {"claude": claude, "codex": codex}[WHICH](task, question)
        done = subprocess.run(command, env=ENV, cwd=WORK, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{task}: exit {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        # What is printed has no prompt: the file is named after the task.
        with open(os.path.join(place("printed"), task + ".jsonl"), "w") as out:
            out.write(done.stdout)
        sessions = set(glob.glob(HOME + PATTERNS[WHICH], recursive=True)) - known
        known |= sessions
        if len(sessions) != 1:
            sys.exit(f"{task}: {len(sessions)} new session files")
        shutil.copy(sessions.pop(), place("sessions"))
finally:
    shutil.rmtree(HOME, ignore_errors=True)
