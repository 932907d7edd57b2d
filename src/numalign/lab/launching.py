"""Starts one program of the lab: it ends with its parent and sees its node's files.

`processes` runs this file as a script, with a Python that loads nothing else and one argument in JSON. The kernel ends
the program when its parent ends, so that no part outlives a lab. Mounts are made in a mount namespace of the program
and end with it."""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1


def command(program: Sequence[str], mounts: Iterable[tuple[str, str]], *, parent: int = 0) -> list[str]:
    """The command line that starts the program. Without a parent it may outlive the caller."""
    asked = json.dumps({"program": list(program), "mounts": list(mounts), "parent": parent})
    return [sys.executable, "-I", "-S", __file__, asked]


def main(asked: str) -> None:
    options = json.loads(asked)
    libc = ctypes.CDLL(None, use_errno=True)
    if options["parent"]:
        _end_with(libc, options["parent"])
    if options["mounts"]:
        _mount(libc, options["mounts"])
    os.execv(options["program"][0], options["program"])


def _end_with(libc: ctypes.CDLL, parent: int) -> None:
    _checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    # The parent may have ended before the call.
    if os.getppid() != parent:
        sys.exit(1)


def _mount(libc: ctypes.CDLL, mounts: Iterable[tuple[str, str]]) -> None:
    _checked(libc.unshare(CLONE_NEWNS), "unshare")
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")
    for source, target in mounts:
        _checked(libc.mount(source.encode(), target.encode(), None, MS_BIND | MS_REC, None), f"mount {target}")


def _checked(result: int, what: str) -> None:
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1])
