"""Prepares what the comparison needs: the peers in a virtual environment, karat from its sources.

Everything lies under target/, so `cargo clean` removes it. The network is used for packages from PyPI (or the
index that pip is configured for) and by cargo for crates that are not there yet; by nothing else.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from measure import Failed

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "target" / "peers"
DATA = FOLDER / "data"
SETUP_LIMIT_SECONDS = 3600

PEERS = ["pytrec-eval-terrier", "ir_measures", "ragas"]


def peers(say):
    """The folder of the peers' programs, installed unless they already are."""
    venv = FOLDER / "venv"
    say("preparing the peers (from PyPI, once)")
    install = ROOT / "scripts" / "python-env"
    step([install, venv, HERE / "requirements.txt"], environment={"PYTHON": sys.executable})
    return venv / "bin"


def peer_versions(programs):
    """The versions that are really installed."""
    program = (
        "import sys, json, importlib.metadata as m;"
        "print(json.dumps({name: m.version(name) for name in sys.argv[1:]}))"
    )
    return json.loads(step([programs / "python", "-I", "-c", program, *PEERS]))


def karat(say):
    """The release binary, built from this checkout."""
    say("building karat (cargo build --release -p karat)")
    target = ROOT / "target"
    step(["cargo", "build", "--release", "--quiet", "-p", "karat", "--target-dir", target], folder=ROOT)
    return target / "release" / "karat"


def karat_version(binary):
    return step([binary, "--version"]).strip()


def data(kind, *sizes):
    """Makes the files of one size in another process; returns what data.py reports about them."""
    program = [sys.executable, HERE / "data.py", DATA, kind, *map(str, sizes)]
    return json.loads(step(program))


def step(arguments, folder=None, environment=None):
    """Runs one step of the preparation; its complaints go to the terminal."""
    try:
        done = subprocess.run(
            arguments,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            timeout=SETUP_LIMIT_SECONDS,
            check=True,
            text=True,
        )
    except OSError as error:
        raise Failed(f"{arguments[0]} cannot be run: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise Failed(f"`{' '.join(map(str, arguments))}` ended with {error.returncode}") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"`{' '.join(map(str, arguments))}` stopped after {SETUP_LIMIT_SECONDS} s") from None
    return done.stdout
