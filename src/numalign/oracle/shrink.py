"""Making a disagreement small: drop what is not needed for it, as long as it stays one.

Reductions are tried greedily, largest first; each candidate is put to the real code and the model again. What
belongs together is dropped together: a container with its step, a pod with its ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

Case = dict[str, Any]
Path = tuple[str | int, ...]

DROPPABLE = (
    "ops",
    "pods",
    "init",
    "containers",
    "providers",
    "devices",
    "cores",
    "numa",
    "memory_nodes",
    "nodes",
)
OPTIONAL = ("options", "cpu_options", "tm_options", "requests", "limits", "resources", "assignments", "hugepages")


def shrunk(case: Case, still_differs: Callable[[Case], bool], *, tries: int = 300) -> Case:
    """The smallest case found within so many tries that the two sides still disagree about."""
    best, left = case, tries
    progress = True
    while progress and left > 0:
        progress = False
        for candidate in reductions(best):
            left -= 1
            if left <= 0:
                break
            if still_differs(candidate):
                best, progress = candidate, True
                break
    return best


def reductions(case: Case) -> Iterator[Case]:
    """Cases with one thing less, the larger things first."""
    for path in sorted(_removable(case), key=len):
        candidate = _without(case, path)
        if candidate is not None:
            yield repaired(candidate)


def repaired(case: Case) -> Case:
    """Drop what refers to containers and pods that are gone."""
    if "pod" in case:
        names = {each["name"] for key in ("init", "containers") for each in case["pod"].get(key, ())}
        for key in ("steps", "removals"):
            if key in case:
                case[key] = [each for each in case[key] if each["container"] in names]
    if "pods" in case:
        containers = {
            pod["uid"]: {c["name"] for k in ("init", "containers") for c in pod.get(k, ())} for pod in case["pods"]
        }
        case["ops"] = [op for op in case["ops"] if _refers(op, containers)]
    return case


def _refers(op: Case, containers: dict[str, set[str]]) -> bool:
    known = containers.get(op["pod"])
    return known is not None and ("container" not in op or op["container"] in known)


def _removable(value: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(value, dict):
        for key, child in value.items():
            if key in DROPPABLE and isinstance(child, list):
                yield from ((*path, key, index) for index in range(len(child)))
            if key in OPTIONAL and isinstance(child, dict):
                yield from ((*path, key, name) for name in child)
            yield from _removable(child, (*path, key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _removable(child, (*path, index))


def _without(case: Case, path: Path) -> Case | None:
    candidate = deepcopy(case)
    parent: Any = candidate
    for step in path[:-1]:
        parent = parent[step]
    if path[-2] == "containers" and len(parent) == 1:
        return None
    del parent[path[-1]]
    return candidate
