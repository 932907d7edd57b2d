"""The recorded cases that the repository carries, by family."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from numalign.oracle.harness import files
from numalign.oracle.harness.files import RecordedValue
from numalign.oracle.kubelet import vectors
from numalign.oracle.kubelet.forms import Topologies

DATA = Path(__file__).parent / "data"

COUNTS = {
    "tm_merge": 3360,
    "cpu_static": 1820,
    "cpu_distribute": 420,
    "mem_static": 630,
    "device_hints": 770,
    "sequence": 532,
    "sequence_podlevel": 280,
    "cpu_livelock": 1,
}


def file(family: str) -> Path:
    (found,) = DATA.glob(f"{family}.json*")
    return found


@cache
def cases(family: str) -> dict[str, Any]:
    """Every case of a family as plain JSON, by its id."""
    return {found.value["id"]: found.value for found in files.values(file(family))}


@cache
def topologies() -> Topologies:
    return vectors.topologies_in(DATA)


def vector(found: RecordedValue) -> vectors.Vector:
    return vectors.of(found, topologies)
