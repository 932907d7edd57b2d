"""Finishes a folder of installed packages while an image is built: drops what never runs, and compiles bytecode.

The Dockerfile runs it, with the image's Python and the folder as argument. Tests and sources in C of dependencies are a
tenth of the image. Libraries are left as they are: `strip` breaks those whose search path was patched, such as numpy's.
Of bytecode with unchecked hashes neither the bytes nor their use depend on the time of a file, and nothing could write
it later, because the root file system of a pod is read-only."""

import compileall
import shutil
import sys
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Final

FOLDERS: Final = ("tests",)
UNUSED: Final = ("/numba/cuda", "/numpy/f2py", "/pygments/lexers")
"""Parts of dependencies for GPUs, for Fortran and for the colours of programs, which numalign never imports; 3 MB of
the compressed image."""
ENDINGS: Final = {".a", ".c", ".h", ".pxd", ".pyi", ".pyx"}


def main(folder: Path) -> int:
    for path in sorted(folder.rglob("*")):
        if path.is_dir() and (path.name in FOLDERS or path.as_posix().endswith(UNUSED)):
            shutil.rmtree(path)
        elif path.suffix in ENDINGS and path.is_file():
            path.unlink()
    # Forced: bytecode that goes by times would be kept where it is present, and be stale in the image.
    compiled = compileall.compile_dir(folder, quiet=1, force=True, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    return 0 if compiled else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
