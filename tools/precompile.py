"""Compiles the scheduler's kernel while an image is built, so that no pod has to; the same bytes every time.

The Dockerfile runs it with the image's Python. The argument is the prefix that numba was installed into.
NUMBA_CACHE_DIR says where the result goes, NUMBA_CPU_NAME and NUMBA_CPU_FEATURES for which CPU it is. Beside machine
code numba keeps a listing of types. Functions appear there with their address in memory, which differs from run to run:
it is overwritten with as many zeros, because the file is a pickle."""

import os
import re
import site
import sys
import sysconfig
from pathlib import Path
from typing import Final

ADDRESS: Final = re.compile(rb"(?<= at 0x)[0-9a-f]+(?=>)")


def without_addresses(kept: bytes) -> bytes:
    """Of the same length."""
    return ADDRESS.sub(lambda found: b"0" * len(found[0]), kept)


def main(prefix: str) -> None:
    site.addsitedir(sysconfig.get_path("purelib", vars={"base": prefix, "platbase": prefix}))
    from numalign.placement.kernels import compiled

    compiled.warm()
    print(compiled.origin())
    for file in Path(os.environ["NUMBA_CACHE_DIR"]).glob("*/*.nb[ic]"):
        file.write_bytes(without_addresses(file.read_bytes()))


if __name__ == "__main__":
    main(sys.argv[1])
