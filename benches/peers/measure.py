"""Runs commands, each in a process of its own, and keeps what they used and said.

Every command has a time limit; one that fails or exceeds it ends the comparison. Rounds are
interleaved (first command, second command, ..., first command again), so that whatever else the
machine does falls on all of them alike.
"""

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 1800

# The peers must neither report usage nor look for anything on the network, and a hash seed of
# their own would make their runs differ.
QUIET = {
    "RAGAS_DO_NOT_TRACK": "true",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "PYTHONHASHSEED": "0",
    "NO_COLOR": "1",
}


class Failed(Exception):
    """Something could not be set up or measured; the message is for the user."""


@dataclass
class Usage:
    """What one run of a command used."""

    cpu_s: float
    peak_mb: float
    elapsed_s: float
    # CPU seconds without interpreter start and imports, where the program reports them.
    work_cpu_s: float | None = None


@dataclass
class Command:
    """A program to measure. `read` turns its output into (means by metric id, work CPU or None)."""

    name: str
    arguments: list
    read: object
    usages: list = field(default_factory=list)
    means: list = field(default_factory=list)

    def best(self, what):
        """The smallest value over the rounds; None where the program does not tell it."""
        values = [getattr(usage, what) for usage in self.usages]
        return None if None in values else min(values)


def environment():
    """The environment for what is measured."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return variables | QUIET


def run_once(arguments, folder):
    """Runs a command to its end; returns its usage and what it printed."""
    os.makedirs(folder, exist_ok=True)
    stdout, stderr = Path(folder, "stdout"), Path(folder, "stderr")
    launcher = subprocess.Popen(
        # -I -S: nothing of the user's, and half the memory.
        [sys.executable, "-I", "-S", HERE / "launch.py", stdout, stderr, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
        text=True,
    )
    try:
        told, _ = launcher.communicate(timeout=LIMIT_SECONDS)
    except BaseException as error:
        os.killpg(launcher.pid, signal.SIGKILL)
        launcher.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise Failed(f"{line(arguments)}\nstopped after {LIMIT_SECONDS} s") from None
        raise
    if launcher.returncode != 0:
        raise Failed(f"{line(arguments)}\ncould not be launched")
    status, cpu, peak, elapsed = told.split()
    if int(status) != 0:
        last = stderr.read_text(errors="replace")[-2000:]
        raise Failed(f"{line(arguments)}\nended with {status}:\n{last}")
    # Linux counts kibibytes, macOS bytes.
    peak_bytes = int(peak) * (1 if sys.platform == "darwin" else 1024)
    usage = Usage(cpu_s=float(cpu), peak_mb=peak_bytes / 1e6, elapsed_s=float(elapsed))
    return usage, stdout.read_text(encoding="utf-8")


def interleave(commands, rounds, folder, say):
    """Runs all commands `rounds` times in turn and keeps each one's usages and means."""
    for number in range(1, rounds + 1):
        for command in commands:
            say(f"round {number} of {rounds}: {command.name}")
            usage, output = run_once(command.arguments, folder)
            try:
                means, usage.work_cpu_s = command.read(output)
            except (ValueError, KeyError, TypeError) as error:
                raise Failed(
                    f"{line(command.arguments)}\nprinted what cannot be read ({error!r}):\n{output[:2000]}"
                ) from None
            command.usages.append(usage)
            command.means.append(means)


def smallest_measurable_mb(folder):
    """The peak of a program that does nothing: no smaller one can be told apart from it."""
    usage, _ = run_once([shutil.which("true") or "/bin/true"], folder)
    return usage.peak_mb


def line(arguments):
    return " ".join(str(argument) for argument in arguments)
