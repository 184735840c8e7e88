"""Builds the wheel: the program first, then maturin with the module and the package.

`pip install packages/python` calls the functions; `python backend.py program [cargo arguments]` only puts
the program in its place, for a `maturin build` with arguments of its own. PROFILE names the cargo profile of
the program (release), which aborts on a panic; that of the module (python) must not.
"""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def program(*arguments):
    """Builds the program and puts it where maturin takes the scripts of the wheel from."""
    profile = os.environ.get("PROFILE", "release")
    words = ["cargo", "build", "--locked", "--package", "karat", "--profile", profile, *arguments]
    subprocess.run([*words, "--message-format", "short"], cwd=ROOT, check=True)
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    if "--target" in arguments:
        target /= arguments[arguments.index("--target") + 1]
    windows = "windows" in "".join(arguments) or ("--target" not in arguments and sys.platform == "win32")
    name = "karat.exe" if windows else "karat"
    scripts = HERE / "karat.data/scripts"
    shutil.rmtree(scripts, ignore_errors=True)
    scripts.mkdir(parents=True)
    shutil.copy2(target / ("debug" if profile == "dev" else profile) / name, scripts / name)


def __getattr__(name):
    # Everything else of PEP 517 and 660 is maturin's, which is not there when only the program is built.
    import maturin

    return getattr(maturin, name)


def build_wheel(*arguments, **settings):
    import maturin

    program()
    return maturin.build_wheel(*arguments, **settings)


def build_editable(*arguments, **settings):
    import maturin

    program()
    return maturin.build_editable(*arguments, **settings)


if __name__ == "__main__":
    if sys.argv[1:2] != ["program"]:
        sys.exit(__doc__)
    program(*sys.argv[2:])
