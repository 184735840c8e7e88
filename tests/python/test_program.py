"""The command that the wheel installs is the program: streams, exit codes and signals are its own."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import karat

PROGRAM = karat.find_program()
WAYS = ([PROGRAM], [sys.executable, "-m", "karat"])


def run(words, **more):
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, **more)


def test_it_is_next_to_the_interpreter_and_of_the_same_version():
    assert pathlib.Path(PROGRAM).parent == pathlib.Path(sys.executable).parent
    for way in WAYS:
        assert run([*way, "--version"]).stdout.strip() == f"karat {karat.__version__}"


def test_exit_codes(tmp_path):
    (tmp_path / "karat.toml").write_text("[[retrieval]]\nwrong = 1\n")
    for way in WAYS:
        assert run([*way, "no-such-command"]).returncode == 2
        assert run([*way, "check"], cwd=tmp_path).returncode == 2
        assert run([*way, "server", "lint", "--", "false"], cwd=tmp_path).returncode == 3


def test_stdin_reaches_it():
    line = '{"id": 1}\n'
    for way in WAYS:
        ended = run([*way, "retrieval", "serve-fitness"], input=line)
        assert len(ended.stdout.splitlines()) == 2, ended


def test_signals_reach_it():
    for number in (signal.SIGINT, signal.SIGTERM):
        codes = set()
        for way in WAYS:
            child = subprocess.Popen(
                [*way, "demo-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            # Until it is the program, not the interpreter that becomes it.
            until = time.monotonic() + 30
            while "karat" not in os.readlink(f"/proc/{child.pid}/exe") and time.monotonic() < until:
                time.sleep(0.01)
            time.sleep(0.2)
            assert child.poll() is None
            child.send_signal(number)
            try:
                # The stream in stays open: only the signal can end it.
                codes.add(child.wait(timeout=30))
            finally:
                child.kill()
            assert b"Traceback" not in child.stderr.read()
        assert len(codes) == 1, (number, codes)


def test_the_module_unwinds():
    # So that a panic becomes an exception; with the profile of the program it would end the interpreter.
    module = pathlib.Path(karat._karat.__file__).read_bytes()
    assert b"_Unwind_RaiseException" in module
    if sys.platform == "linux":
        assert b"_Unwind_RaiseException" not in pathlib.Path(PROGRAM).read_bytes()
