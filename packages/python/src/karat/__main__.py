"""`python -m karat`: runs the program with the same arguments, streams and exit code."""

from __future__ import annotations

import os
import subprocess
import sys

from ._program import find_program


def main() -> int:
    words = [find_program(), *sys.argv[1:]]
    if sys.platform == "win32":
        # There is no exec that waits; an interrupt reaches the program by itself.
        while True:
            try:
                return subprocess.run(words, check=False).returncode
            except KeyboardInterrupt:
                continue
    os.execv(words[0], words)


if __name__ == "__main__":
    sys.exit(main())
