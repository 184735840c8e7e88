"""The program that is installed with this package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence

from ._errors import KaratError
from ._report import Check

__all__ = ["check", "find_program"]

# `karat: FILE:LINE: message`, as the program writes it.
PLACE = re.compile(r"^(?:karat: )?(?P<file>[^:\n]+):(?P<line>\d+)(?::\d+)?: ")


def find_program() -> str:
    """The path of the program.

    Raises FileNotFoundError if the package was installed without it.
    """
    name = "karat.exe" if sys.platform == "win32" else "karat"
    user = sysconfig.get_preferred_scheme("user")
    # Above the package: where `pip install --target FOLDER` puts programs.
    target = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    folders = [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", vars={"base": sys.base_prefix}),
        sysconfig.get_path("scripts", scheme=user),
        os.path.join(target, "bin"),
    ]
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            return path
    raise FileNotFoundError(f"{name} is in none of {', '.join(folders)}; install the package karat again")


def check(
    path: str | os.PathLike[str] | None = None,
    *,
    bundled: bool = False,
    out: str | os.PathLike[str] | None = None,
    arguments: Sequence[str] = (),
) -> Check:
    """Runs `karat check` on a project (a karat.toml or its folder; the nearest one without a path).

    Returns its reports and its verdict, also when a gate failed or an entry could not be measured. A
    mistake in the project raises KaratError. `out` is the folder for report.html and report.json, and
    `arguments` are further ones of the command.
    """
    words = ["check", "--json", *arguments]
    if bundled:
        words.append("--bundled")
    if out is not None:
        words += ["--out", os.fspath(out)]
    if path is not None:
        words.append(os.fspath(path))
    return Check(json.loads(run(words)))


def run(words: Sequence[str]) -> str:
    """Runs the program, and returns its output unless it reports bad input."""
    ended = subprocess.run(
        [find_program(), *words], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
    )
    # 1: a gate failed; 3: not measured; 4: inconclusive. All of them have a report.
    if ended.returncode in (0, 1, 3, 4) and ended.stdout.strip():
        return ended.stdout
    said = ended.stderr.strip() or f"karat ended with code {ended.returncode} and said nothing"
    place = PLACE.match(said)
    message = said.removeprefix("karat: ")
    if place is None:
        raise KaratError(message)
    raise KaratError(message, file=place["file"], line=int(place["line"]))
