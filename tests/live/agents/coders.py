"""Runs coding agents against the scripted endpoint and keeps what they print and the session files.

coders.py (claude|codex|gemini|opencode) BIN FOLDER
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
# The Gemini CLI takes a result that is a number for structured content, and calls it a failure.
WORDS = {"WORDS": "1"} if WHICH == "gemini" else {}
GEMINI = {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": URL.removesuffix("/v1")}
ENV = {"PATH": os.environ["PATH"], "HOME": HOME, **WORDS, **GEMINI, "CODEX_HOME": os.path.join(HOME, ".codex"), "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": URL.removesuffix("/v1"), **QUIET}


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


def gemini(task, question):
    tools = {"command": sys.executable, "args": [SERVER], "trust": True, "env": WORDS}
    settings = {
        "mcpServers": {"tools": tools}, "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
    }
    os.makedirs(os.path.join(HOME, ".gemini"), exist_ok=True)
    with open(os.path.join(HOME, ".gemini", "settings.json"), "w") as out:
        json.dump(settings, out)
    return [BIN, "-p", question, "-m", "gemini-2.5-flash", "--yolo", "--skip-trust", "-o", "stream-json"]


def opencode(task, question):
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "script", "options": {"baseURL": URL, "apiKey": "none"}, "models": {"gpt-4o-mini": {"name": "model"}}}
    settings = {
        "provider": {"script": provider}, "model": "script/gpt-4o-mini", "small_model": "script/gpt-4o-mini",
        "mcp": {"tools": {"type": "local", "command": [sys.executable, SERVER], "enabled": True}},
        "autoupdate": False, "share": "disabled", "permission": "allow",
    }
    with open(os.path.join(WORK, "opencode.json"), "w") as out:
        json.dump(settings, out)
    # The question is given to its standard input: arguments are put in quotes.
    return [BIN, "run", "--format", "json"]


def exported(printed):
    """The session of opencode that was printed, in a file."""
    session = json.loads(printed.splitlines()[0])["sessionID"]
    path = os.path.join(HOME, session + ".json")
    with open(path, "w") as out:
        subprocess.run([BIN, "export", session], env=ENV, cwd=WORK, stdout=out, stderr=subprocess.DEVNULL, check=True, timeout=240)
    return {path}


def place(kind):
    folder = os.path.join(FOLDER, f"own+{WHICH}.plain.{kind}")
    os.makedirs(folder, exist_ok=True)
    return folder


PATTERNS = {"claude": "/.claude/projects/**/*.jsonl", "codex": "/.codex/sessions/**/*.jsonl", "gemini": "/.gemini/tmp/**/chats/*.jsonl"}
known = set()
try:
    for task, (question, _, answer) in TASKS.items():
        command = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}[WHICH](task, question)
        given = question if WHICH == "opencode" else ""
        done = subprocess.run(command, env=ENV, cwd=WORK, capture_output=True, text=True, timeout=240, input=given)
        if done.returncode:
            sys.exit(f"{task}: exit {done.returncode}: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        # What is printed has no prompt: the file is named after the task.
        with open(os.path.join(place("printed"), task + ".jsonl"), "w") as out:
            out.write(done.stdout)
        sessions = exported(done.stdout) if WHICH == "opencode" else set(glob.glob(HOME + PATTERNS[WHICH], recursive=True)) - known
        known |= sessions
        if len(sessions) != 1:
            sys.exit(f"{task}: {len(sessions)} new session files")
        shutil.copy(sessions.pop(), place("sessions"))
finally:
    shutil.rmtree(HOME, ignore_errors=True)
