"""Builds what is published, into an empty folder: both wheels, the product's source archive, and their SHA-256 sums.

`make dist` runs it. The same sources give the same bytes on every machine with the pinned builder: all times in the
archives are that of the commit (SOURCE_DATE_EPOCH overrides it), and file modes are normalised."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
EPOCH: Final = "SOURCE_DATE_EPOCH"
SUMS: Final = "SHA256SUMS"
BUILDS: Final = ((ROOT, "build_wheel"), (ROOT, "build_sdist"), (ROOT / "devkit", "build_wheel"))
CALL: Final = "import sys, hatchling.build as build; getattr(build, sys.argv[1])(sys.argv[2])"


def main(target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    environment = {**os.environ, EPOCH: os.environ.get(EPOCH) or committed()}
    for project, how in BUILDS:
        subprocess.run(
            [sys.executable, "-P", "-c", CALL, how, target.resolve()], cwd=project, env=environment, check=True
        )
    files = sorted(path for path in target.iterdir() if path.is_file())
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (target / SUMS).write_text("".join(sums))
    sys.stdout.write("".join(sums))


def committed() -> str:
    """Of the last commit, in seconds since 1970."""
    ran = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.strip()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
