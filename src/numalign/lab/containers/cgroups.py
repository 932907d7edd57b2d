"""The cgroups of a lab, and their removal when the lab ends in whatever way.

`up` makes a cgroup per lab in every hierarchy, with one per node below it. A node sees only its own. The kernel keeps
cgroups whose processes have ended, so a `Sweeper` waits beside the lab: a process of its own, which holds the end of a
pipe. The pipe closes when the lab's process ends, even by SIGKILL. Then it ends what is left in the cgroups and removes
them. `state` calls `sweep` for a lab whose sweeper was killed, too."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from numalign.lab.launching import LEAF
from numalign.process import interpreter

MOUNTS: Final = Path("/proc/self/mountinfo")
ROOT: Final = "/sys/fs/cgroup"
PATIENCE: Final = 20.0
LOOK: Final = 0.05
CPUSET: Final = ("cpuset.cpus", "cpuset.mems")
PREFIX: Final = "numalign-"


def hierarchies() -> list[Path]:
    """The mount point of each hierarchy: several in version 1, one in version 2."""
    found = []
    for line in MOUNTS.read_text().splitlines():
        place, _, kind = line.partition(" - ")
        mount_point = place.split()[4]
        if kind.split()[0] in ("cgroup", "cgroup2") and (mount_point + "/").startswith(ROOT + "/"):
            found.append(Path(mount_point))
    return found


def make(lab: str, node: str) -> dict[str, str]:
    """Make the cgroups of a node; their folders by mount point."""
    mounted = hierarchies()
    for root in mounted:
        within = root
        for name in (lab, node, LEAF):
            # Only where there is no other hierarchy is every controller of the unified one needed.
            if len(mounted) == 1 and name != LEAF:
                _offer_controllers(within)
            within = within / name
            within.mkdir(exist_ok=True)
            _fill(within)
    return {str(root): str(root / lab / node) for root in mounted}


def _offer_controllers(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for controller in (folder / "cgroup.controllers").read_text().split():
            (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def _fill(folder: Path) -> None:
    """In version 1 a new cgroup has no CPUs and no memory nodes, and takes no process."""
    for name in CPUSET:
        file = folder / name
        if (folder / "cgroup.clone_children").exists() and file.exists() and not file.read_text().strip():
            file.write_text((folder.parent / name).read_text())


def sweep(name: str) -> bool:
    """End the processes in the cgroups of this name and remove the cgroups; False if some stay."""
    until = time.monotonic() + PATIENCE
    # In every hierarchy before the next look.
    while [root for root in hierarchies() if not _removed(root / name)]:
        if time.monotonic() > until:
            return False
        time.sleep(LOOK)
    return True


def _removed(top: Path) -> bool:
    for folder in _bottom_up(top):
        _kill_members(folder)
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not top.exists()


def _bottom_up(top: Path) -> Iterator[Path]:
    for path, _, _ in os.walk(top, topdown=False):
        yield Path(path)


def _kill_members(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in map(int, (folder / "cgroup.procs").read_text().split()):
            # A member of another process namespace is shown as 0.
            if pid:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class Sweeper:
    """Removes the cgroups of a lab when this process has ended or calls `finish`."""

    def __init__(self, lab: str) -> None:
        self.cgroup = f"{PREFIX}{lab}-{os.getpid()}"
        # A session of its own, so that an interrupt in the terminal does not end it before the lab.
        command = (*interpreter.PYTHON, "-m", __name__, self.cgroup)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def finish(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def main(name: str, lab: IO[bytes]) -> None:
    lab.read()
    if not sweep(name):
        sys.exit(f"cgroup {name} has processes that do not end")


if __name__ == "__main__":
    main(sys.argv[1], sys.stdin.buffer)
