"""Processes as a host's /proc shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

SERVICE: Final = "0::/system.slice/kubelet.service"


def kubelet(
    proc: Path,
    pid: int,
    *flags: str,
    uids: str = "0 0 0 0",
    inside: str = "",
    cgroup: str = SERVICE,
    mounts: str = "mnt:[1]",
    started: int = 100,
) -> None:
    """A process that calls itself kubelet. `inside`: its ids in PID namespaces below that of this /proc."""
    folder = proc / str(pid)
    process(folder, mounts)
    ids = "\t".join(f"{pid} {inside}".split())
    users = "\t".join(uids.split())
    (folder / "comm").write_text("kubelet\n")
    (folder / "cmdline").write_bytes("\0".join(("/usr/bin/kubelet", *flags, "")).encode())
    (folder / "status").write_text(f"Name:\tkubelet\nUid:\t{users}\nNSpid:\t{ids}\n")
    (folder / "cgroup").write_text(f"{cgroup}\n")
    (folder / "stat").write_text(f"{pid} (kubelet) S 1 {' '.join(['0'] * 17)} {started} 0\n")


def process(folder: Path, mounts: str) -> None:
    """Any process, of which only the mount namespace can be read."""
    (folder / "ns").mkdir(parents=True)
    (folder / "ns/mnt").symlink_to(mounts)
