#!/usr/bin/env python3
"""`kubectl numalign` where Krew installed it: makes an environment once, and runs the command in it.

The archive of `tools/krew.py` has this file as `kubectl-numalign`, beside numalign's wheel and the pinned, hashed list
of what it needs. The first call installs them into the user's cache, and says so; each later call only starts Python.
The file uses the standard library and syntax of Python 3.6, so that an old Python can say that it is too old."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from typing import NoReturn

HERE = os.path.dirname(os.path.realpath(__file__))
NEEDED = (3, 11)
NEWER = ("python3.14", "python3.13", "python3.12", "python3.11")
WHO = "kubectl numalign"


def main() -> None:
    if sys.version_info[:2] < NEEDED:
        newer = next(filter(None, map(shutil.which, NEWER)), None)
        if newer is None:
            fail(f"needs Python 3.11 or newer; python3 is {sys.version_info[0]}.{sys.version_info[1]}")
        os.execv(newer, [newer, *sys.argv])
    # kubectl asks a program of another name for completions; it may be a link to this file.
    asks = os.path.basename(sys.argv[0]).startswith("kubectl_complete")
    called = "complete" if asks else "plugin"
    python = os.path.join(environment(), "bin", "python")
    code = f"from numalign.cli.main import {called}; {called}()"
    os.execv(python, [python, "-P", "-c", code, *sys.argv[1:]])


def environment() -> str:
    """The folder of the environment for this archive and this Python; it is made where it is not there yet."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    base = os.path.join(cache, "numalign", "kubectl")
    folder = os.path.join(base, fingerprint())
    if os.path.isdir(folder):
        return folder
    sys.stderr.write(f"{WHO}: the first call installs what the command needs into {folder}\n")
    try:
        os.makedirs(base, mode=0o700, exist_ok=True)
        made = tempfile.mkdtemp(dir=base)
    except OSError as problem:
        fail(f"{base}: {problem.strerror}; set XDG_CACHE_HOME to a folder that can be written")
    try:
        install(made)
        os.rename(made, folder)
    except OSError:
        # Another call was faster.
        if not os.path.isdir(folder):
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def install(folder: str) -> None:
    pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    # What lies on the caller's path is not part of the environment.
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    wheels = [os.path.join(HERE, name) for name in sorted(os.listdir(HERE)) if name.endswith(".whl")]
    for command in (
        [sys.executable, "-m", "venv", folder],
        [*pip, "--require-hashes", "--only-binary", ":all:", "--requirement", os.path.join(HERE, "requirements.txt")],
        [*pip, "--no-index", "--no-deps", *wheels],
    ):
        if subprocess.call(command, stdout=sys.stderr, env=alone) != 0:
            shutil.rmtree(folder, ignore_errors=True)
            fail("its packages could not be installed, see above; the next call tries again")


def fingerprint() -> str:
    """Of all that the environment is made of."""
    found = hashlib.sha256(os.path.realpath(sys.executable).encode() + repr(sys.version_info[:2]).encode())
    for name in sorted(os.listdir(HERE)):
        if name.endswith((".whl", ".txt")):
            with open(os.path.join(HERE, name), "rb") as file:
                found.update(file.read())
    return found.hexdigest()[:16]


def fail(why: str) -> NoReturn:
    sys.stderr.write(f"{WHO}: {why}\n")
    sys.exit(2)


if __name__ == "__main__":
    main()
