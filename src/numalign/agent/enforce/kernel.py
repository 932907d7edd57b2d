"""What the kernel lets the first process of a container use: CPUs and memory zones, from /proc.

`enforcer` compares it with what was applied."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from numalign.agent.sources import hostfiles
from numalign.api.decode import cpuset

LISTS: Final = re.compile(r"^(Cpus|Mems)_allowed_list:\s*(\S*)$", re.MULTILINE)


def allowed(host: Path, pid: int) -> tuple[int, int] | None:
    """CPUs and zones as masks; None where the process is gone or its file cannot be read."""
    try:
        raw = hostfiles.content(host / "proc" / str(pid) / "status")
        found = dict(LISTS.findall((raw or b"").decode("utf-8", "replace")))
        return cpuset.parse(found["Cpus"]), cpuset.parse(found["Mems"])
    except (hostfiles.Unreadable, KeyError, cpuset.CPUSetError):
        return None
