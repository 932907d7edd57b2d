"""Starts one program of the lab: it ends with its parent and sees its node's files.

`processes` runs this file as a script, with a Python that loads nothing else and one argument in JSON. The kernel ends
the program when its parent ends, so that no part outlives a lab. Mounts are made in a mount namespace of the program
and end with it. A kubelet does on its machine what pods ask for, so its program may write into given folders only: all
other mounts are read-only in its namespace."""

import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence

CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
SYS_MOUNT_SETATTR = 442
"""Linux 5.12 and newer, on every architecture that Go builds kubelets for."""
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1


class MountAttributes(ctypes.Structure):
    """struct mount_attr."""

    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user_namespace", ctypes.c_uint64),
    )


def command(
    program: Sequence[str],
    mounts: Iterable[tuple[str, str]],
    *,
    parent: int = 0,
    writable: Iterable[str] | None = None,
) -> list[str]:
    """The command line that starts the program. Without a parent it may outlive the caller. `writable` are the only
    folders where it may write; None means everywhere."""
    folders = None if writable is None else list(writable)
    asked = json.dumps({"program": list(program), "mounts": list(mounts), "parent": parent, "writable": folders})
    return [sys.executable, "-I", "-S", __file__, asked]


def main(asked: str) -> None:
    options = json.loads(asked)
    libc = ctypes.CDLL(None, use_errno=True)
    if options["parent"]:
        _end_with(libc, options["parent"])
    if options["mounts"]:
        _mount(libc, options["mounts"], options["writable"])
    os.execv(options["program"][0], options["program"])


def _end_with(libc: ctypes.CDLL, parent: int) -> None:
    _checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    # The parent may have ended before the call.
    if os.getppid() != parent:
        sys.exit(1)


def _mount(libc: ctypes.CDLL, mounts: Iterable[tuple[str, str]], writable: Sequence[str] | None) -> None:
    _checked(libc.unshare(CLONE_NEWNS), "unshare")
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")
    if writable is not None:
        _protect(libc, writable)
    for source, target in mounts:
        _bind(libc, source, target)
    # The working folder may be in one of the mounts, and was entered before them.
    os.chdir(os.getcwd())


def _protect(libc: ctypes.CDLL, writable: Sequence[str]) -> None:
    """Make everything read-only except these folders, which become mounts of their own."""
    for folder in writable:
        _bind(libc, folder, folder)
    _set_attributes(libc, "/", MountAttributes(set=MOUNT_ATTR_RDONLY))
    for folder in writable:
        _set_attributes(libc, folder, MountAttributes(clear=MOUNT_ATTR_RDONLY))


def _bind(libc: ctypes.CDLL, source: str, target: str) -> None:
    _checked(libc.mount(source.encode(), target.encode(), None, MS_BIND | MS_REC, None), f"mount {target}")


def _set_attributes(libc: ctypes.CDLL, path: str, wanted: MountAttributes) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(wanted))
    result = libc.syscall(
        SYS_MOUNT_SETATTR, AT_FDCWD, ctypes.c_char_p(path.encode()), AT_RECURSIVE, ctypes.byref(wanted), size
    )
    _checked(result, f"mount_setattr {path}, which needs Linux 5.12 or newer")


def _checked(result: int, what: str) -> None:
    if result != 0:
        sys.exit(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    main(sys.argv[1])
