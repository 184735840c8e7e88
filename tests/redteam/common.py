"""What the attempts share: Karat with limits of time and memory, seeded chance, a project, a table."""

import json
import os
import pathlib
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EPOCH = "1794711845"
# What a command may end with: pass, gate failed, bad input, not measured, inconclusive.
CODES = {0, 1, 2, 3, 4}


class Ran:
    """How a program ended."""

    def __init__(self, words, code, out, err, seconds, cpu, peak_mb, timed_out):
        self.words, self.code, self.out, self.err = words, code, out, err
        self.seconds, self.cpu, self.peak_mb, self.timed_out = seconds, cpu, peak_mb, timed_out

    @property
    def said(self):
        return self.out + self.err

    def wrong(self, memory_mb=512):
        """What is wrong with any run, whatever it was given; none if nothing is."""
        if self.timed_out:
            return f"no end within {self.seconds:.0f} s"
        if self.code not in CODES:
            return f"ended with {self.code}"
        if b"panicked at" in self.err:
            return "a panic"
        if self.peak_mb > memory_mb:
            return f"used {self.peak_mb:.0f} MB"
        return None

    def __str__(self):
        text = self.err[-400:].decode(errors="replace")
        return f"{' '.join(map(str, self.words))[:300]} → {self.code} in {self.seconds:.1f} s: {text}"


class Area:
    """Attempts of one kind, and those that failed."""

    def __init__(self, name, seed):
        self.name, self.tried, self.failures, self.figures = name, 0, [], []
        self.random = random.Random(f"{seed}/{name}")
        self.lock = threading.Lock()

    def attempt(self, good, message):
        """Counts an attempt. The message is for a failure."""
        with self.lock:
            self.tried += 1
            if not good:
                self.failures.append(str(message))
                print(f"FAILED {self.name}: {message}", flush=True)
        return bool(good)

    def figure(self, text):
        """Keeps a measured figure for the table."""
        self.figures.append(text)


class Team:
    """The program that is attacked, and the bounds of this run."""

    def __init__(self, karat, seed, long):
        self.karat, self.seed, self.long = str(pathlib.Path(karat).resolve()), seed, long
        self.areas = []

    def area(self, name):
        one = Area(name, self.seed)
        self.areas.append(one)
        return one

    def times(self, usual, long):
        return long if self.long else usual

    def run(self, words, folder, seconds=30, memory_mb=4096, stdin=None, env=None, program=None):
        """Runs Karat to its end, or to the end of its time, with a ceiling of memory that it can map."""
        full = ["prlimit", f"--as={memory_mb << 20}", "--core=0", *(program or [self.karat]), *map(str, words)]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            began = time.monotonic()
            process = subprocess.Popen(
                full,
                cwd=folder,
                stdin=stdin or subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=environment(env),
                start_new_session=True,
            )
            late = threading.Event()
            timer = threading.Timer(seconds, lambda: (late.set(), process.kill()))
            timer.start()
            _, status, usage = os.wait4(process.pid, 0)
            timer.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
            taken = time.monotonic() - began
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read(8 << 20))
        cpu = usage.ru_utime + usage.ru_stime
        return Ran(words, process.returncode, *texts, taken, cpu, usage.ru_maxrss / 1024, late.is_set())


def environment(more=None):
    """The variables of a run: no CI system, no colours, a fixed clock."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("CI", "GITHUB_", "GITLAB_", "TF_"))}
    return {**own, "NO_COLOR": "1", "SOURCE_DATE_EPOCH": EPOCH, **(more or {})}


def scratch():
    """A folder that is removed at the end of a `with`."""
    return tempfile.TemporaryDirectory(prefix="karat-redteam-", ignore_cleanup_errors=True)


def write(folder, files):
    """Writes files by name; values that are not text or bytes become JSON."""
    for name, content in files.items():
        path = pathlib.Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def lines(values):
    return "".join(json.dumps(value) + "\n" for value in values)


def retrieval(items, system, more=""):
    """The files of a project that measures a search over seven tools."""
    tools = [{"server": "s", "tool": f"t{n}", "description": f"Tool number {n}, which turns handle {n}."} for n in range(7)]
    golden = [
        {"id": f"q{n:04}", "query": f"turn handle {n * 3 % 7}", "labels": [{"tool_id": f"s:t{n * 3 % 7}", "relevance": 2}]}
        for n in range(items)
    ]
    project = f'[[retrieval]]\nname = "r"\ncorpus = "tools.json"\ngolden = "golden.jsonl"\nsystem = {system}\nlimit = 5\n{more}'
    return {"tools.json": {"tools": tools}, "golden.jsonl": lines(golden), "karat.toml": project}


BM25 = '{ builtin = "bm25" }'

# An MCP server in Python; a subclass of dict in `answers` maps methods to results.
SERVER = """
import json, sys
def serve(answer):
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        if message["method"] == "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "redteam", "version": "1"}}
        else:
            result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""

PIECES = [piece.encode("utf-8", "surrogatepass") for piece in (
    *'{}[]"\\:,\n\t=#\0', "\r\n", "\ufeff", "\u202e", "\x1b[31m", "null", "true", "-1", "1e999", "-0.0", "18446744073709551616",
    "0.1", "NaN", "\\ud800", "&a", "*a", "<<: *a", "!!binary", "- ", "---\n", "[[", "]]", "$ref", '{"a":', "[" * 200, "\ufffd", "é", "😀",
    "../../", "${HOME}", "9" * 400, "a" * 5000,
)] + [b"\xff\xfe", b"\xc3\x28", b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"]


def mutated(chance, seeds):
    """One of the seeds with one to four changes."""
    seed = bytearray(chance.choice(seeds))
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(seed))
        end = min(len(seed), start + chance.randint(0, 64))
        how = chance.randrange(7)
        if how == 0:
            del seed[start:end]
        elif how == 1:
            del seed[start:]
        elif how == 2:
            seed[start:start] = chance.choice(PIECES)
        elif how == 3:
            seed[start:end] = chance.choice(PIECES)
        elif how == 4:
            seed[end:end] = seed[start:end]
        elif how == 5:
            other = chance.choice(seeds)
            at = chance.randint(0, len(other))
            seed[start:end] = other[at : at + chance.randint(0, 64)]
        elif start < len(seed):
            seed[start] ^= 1 << chance.randrange(8)
    return bytes(seed)


def many_descriptors():
    """Lets this process and those that it starts open as many files as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def needs(program, package):
    if not shutil.which(program):
        sys.exit(f"redteam needs {program} (Debian: {package})")


def rss_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def processes_with(mark):
    """The processes with this among their arguments."""
    found = []
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(mark.encode() in word for word in words):
                found.append(int(folder.name))
    return found
