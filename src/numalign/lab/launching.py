"""Starts one program of the lab: it ends with its parent and sees its node's files.

`processes` runs this file as a script, with a Python that loads nothing else and one argument in JSON. The kernel ends
the program when its parent ends, so that no part outlives a lab. Mounts are made in a mount namespace of the program
and end with it. A kubelet does on its machine what pods ask for, so its program may write into given folders only: all
other mounts are read-only in its namespace.

A node with real containers has namespaces that its programs share. Its first process makes them (`view`), further
programs enter them (`home`). They are in a process namespace: when the first process ends, the kernel ends all
others and every container. A process namespace is chosen by the parent, before the start (`first_process`,
`processes_of`)."""

import contextlib
import ctypes
import json
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x02000000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 0x2, 0x4, 0x8
MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1000, 0x4000, 0x40000, 0x100000
PR_SET_PDEATHSIG = 1
SYS_MOUNT_SETATTR = 442
"""Linux 5.12 and newer, on every architecture that Go builds kubelets for."""
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY = 1
OF_NODE = {"/run": "755", "/tmp": "1777"}
"""Folders of which a node with real containers has its own, by mode."""
SHARED_NAMESPACES = ("ipc", "uts", "net", "cgroup", "mnt")
"""What the programs of a node with real containers share beside processes. The mounts come last: the paths of the
others are read before."""
LEAF = "system"
"""The cgroup of a node's programs below that of the node: in the unified hierarchy a cgroup has either processes or
children with limits."""
SCRATCH = "/run/scratch"


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
    network: str = "",
    view: Mapping[str, object] | None = None,
    home: int = 0,
    cgroups: Iterable[str] = (),
) -> list[str]:
    """The command line that starts the program. Without a parent it may outlive the caller. `writable` are the only
    folders where it may write; None means everywhere. `network` is the path of its network namespace. `home` is the
    first process of the node that it runs on. `view` is for that first process: the node's `hostname` and the `cgroups`
    of the node by mount point. `cgroups` are the folders of the cgroups that the program enters."""
    asked = json.dumps(
        {
            "program": list(program),
            "mounts": list(mounts),
            "parent": parent,
            "writable": None if writable is None else list(writable),
            "network": network,
            "view": view,
            "home": home,
            "cgroups": list(cgroups),
        }
    )
    return [sys.executable, "-I", "-S", __file__, asked]


@contextlib.contextmanager
def first_process() -> Iterator[None]:
    """The next process that this thread starts is the first one of a new process namespace."""
    with _own_processes() as libc:
        _checked(libc.unshare(CLONE_NEWPID), "unshare processes")
        yield


@contextlib.contextmanager
def processes_of(pid: int) -> Iterator[None]:
    """Processes that this thread starts meanwhile are in the process namespace of this one."""
    with _own_processes() as libc:
        _set_namespace(libc, f"/proc/{pid}/ns/pid")
        yield


@contextlib.contextmanager
def _own_processes() -> Iterator[ctypes.CDLL]:
    """Processes that this thread starts later are in its own process namespace again."""
    libc = ctypes.CDLL(None, use_errno=True)
    own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield libc
    finally:
        libc.setns(own, CLONE_NEWPID)
        os.close(own)


def unshare_network() -> None:
    """Put this thread into a new network namespace."""
    _checked(ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET), "unshare network")


def main(asked: str) -> None:
    options = json.loads(asked)
    libc = ctypes.CDLL(None, use_errno=True)
    if options["parent"]:
        _end_with(libc, options["parent"])
    for cgroup in options["cgroups"]:
        _join(cgroup)
    if options["network"]:
        _set_namespace(libc, options["network"])
    if options["home"]:
        _enter(libc, options["home"])
    elif options["view"]:
        _make_node(libc, options["view"], options["mounts"], options["writable"])
    elif options["mounts"]:
        _mount(libc, options["mounts"], options["writable"])
    os.execv(options["program"][0], options["program"])


def _end_with(libc: ctypes.CDLL, parent: int) -> None:
    _checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    # The parent may have ended before the call. In another process namespace it has no number.
    if os.getppid() not in (parent, 0) or not os.path.exists(f"/proc/{parent}"):
        sys.exit(1)


def _join(cgroup: str) -> None:
    with open(f"{cgroup}/cgroup.procs", "w") as members:
        members.write("0")


def _set_namespace(libc: ctypes.CDLL, path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _checked(libc.setns(handle, 0), f"enter {path}")
    finally:
        os.close(handle)


def _enter(libc: ctypes.CDLL, home: int) -> None:
    workplace = os.getcwd()
    for name in SHARED_NAMESPACES:
        _set_namespace(libc, f"/proc/{home}/ns/{name}")
    try:
        os.chdir(workplace)
    except FileNotFoundError:
        # A folder of the user's below /tmp or /run: a node has its own of these.
        os.chdir("/")


def _mount(libc: ctypes.CDLL, mounts: Iterable[tuple[str, str]], writable: Sequence[str] | None) -> None:
    _checked(libc.unshare(CLONE_NEWNS), "unshare")
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")
    if writable is not None:
        _protect(libc, writable)
    for source, target in mounts:
        _bind(libc, source, target)
    # The working folder may be in one of the mounts, and was entered before them.
    os.chdir(os.getcwd())


def _make_node(
    libc: ctypes.CDLL, view: Mapping[str, object], mounts: Sequence[tuple[str, str]], writable: Sequence[str]
) -> None:
    """Make what the programs of a node share: the machine's files, own /proc, /run and /tmp, a /var/lib where changes
    are not kept, and of the cgroups only those of the node."""
    cgroups = view["cgroups"]
    assert isinstance(cgroups, dict)
    workplace = os.getcwd()
    _checked(libc.unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP), "unshare")
    for folder in cgroups.values():
        _join(f"{folder}/{LEAF}")
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "mount / private")
    _protect(libc, writable)
    # Held open: what comes now may hide their paths.
    sources = [(os.open(source, os.O_PATH), target) for source, target in mounts]
    shown = [(os.open(folder, os.O_PATH), mount_point) for mount_point, folder in cgroups.items()]
    _mount_new(libc, "proc", "/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    _keep_sysctls(libc)
    for folder, mode in OF_NODE.items():
        _mount_new(libc, "tmpfs", folder, MS_NOSUID | MS_NODEV, f"mode={mode}")
    _mount_changeable(libc, "/var/lib")
    for handle, target in (*sources, *shown):
        _make_mount_point(target, handle)
        _bind(libc, f"/proc/self/fd/{handle}", target)
        os.close(handle)
    for _, mount_point in shown:
        _set_attributes(libc, mount_point, MountAttributes(clear=MOUNT_ATTR_RDONLY))
    _checked(libc.mount(b"none", b"/", None, MS_REC | MS_SHARED, None), "mount / shared")
    hostname = str(view["hostname"]).encode()
    _checked(libc.sethostname(hostname, ctypes.c_size_t(len(hostname))), "sethostname")
    os.chdir(workplace)


def _keep_sysctls(libc: ctypes.CDLL) -> None:
    """Only settings of the network can be changed, because those are of the node's own network namespace."""
    for path in ("/proc/sys", "/proc/sys/net"):
        _bind(libc, path, path)
    _set_attributes(libc, "/proc/sys", MountAttributes(set=MOUNT_ATTR_RDONLY))
    _set_attributes(libc, "/proc/sys/net", MountAttributes(clear=MOUNT_ATTR_RDONLY))


def _mount_changeable(libc: ctypes.CDLL, folder: str) -> None:
    """Programs make folders there; changes stay in memory."""
    changes, temporary = f"{SCRATCH}{folder}/changes", f"{SCRATCH}{folder}/temporary"
    os.makedirs(changes)
    os.makedirs(temporary)
    _mount_new(libc, "overlay", folder, 0, f"lowerdir={folder},upperdir={changes},workdir={temporary}")


def _make_mount_point(target: str, source: int) -> None:
    if os.path.exists(target):
        return
    if os.path.isdir(f"/proc/self/fd/{source}"):
        os.makedirs(target)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT))


def _mount_new(libc: ctypes.CDLL, kind: str, target: str, flags: int, options: str = "") -> None:
    result = libc.mount(kind.encode(), target.encode(), kind.encode(), flags, options.encode())
    _checked(result, f"mount {kind} {target}")


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
