"""Small recorded cases, written by hand, and files made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MERGE: dict[str, Any] = {
    "id": "merge-1",
    "policy": "restricted",
    "prefer_closest": False,
    "numa_nodes": [0, 1],
    "distances": None,
    "providers": [{"cpu": [{"mask": [1], "preferred": True}]}, None],
    "best": {"mask": [1], "preferred": True},
    "admit": True,
}

CPU: dict[str, Any] = {
    "id": "cpu-1",
    "topology": "four",
    "options": {},
    "tm_policy": "none",
    "num_reserved": 1,
    "reserved_cpus": "0",
    "allocatable": "1-3",
    "default": "0-3",
    "assignments": {},
    "pod": {
        "uid": "pod",
        "containers": [
            {"name": name, "requests": {"cpu": cpus, "memory": "1Mi"}, "limits": {"cpu": cpus, "memory": "1Mi"}}
            for name, cpus in (("a", "1"), ("b", "2"))
        ],
    },
    "pod_hints": {"cpu": [{"mask": [0], "preferred": True}]},
    "steps": [
        {
            "container": name,
            "hints": {"cpu": [{"mask": [0], "preferred": True}]},
            "affinity": {"mask": [0], "preferred": True},
            "cpus": cpus,
            "default_after": left,
        }
        for name, cpus, left in (("a", "1", "0,2-3"), ("b", "2-3", "0"))
    ],
    "pod_hints_after": {"cpu": [{"mask": [0], "preferred": True}]},
    "removals": [{"container": "b", "default_after": "0,2-3"}, {"container": "a", "default_after": "0-3"}],
}

FOUR: dict[str, Any] = {
    "name": "four",
    "num_cpus": 4,
    "num_sockets": 1,
    "numa": [{"id": 0, "distances": [10], "cores": [{"socket": 0, "uncore": None, "cpus": [cpu]} for cpu in range(4)]}],
}


def lines(path: Path, *cases: Any) -> Path:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))
    return path


def with_table(path: Path) -> Path:
    """The same path, with the table of machines beside it."""
    (path.parent / "topologies.json").write_text(json.dumps([FOUR]))
    return path
