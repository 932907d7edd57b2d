"""Indexed jobs: each pod has a number of its own, and each number has to succeed once.

`jobs` and `jobtally` call these; for other jobs they find nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from numalign.simulator.apiserver.storage.resources import JOBS
from numalign.simulator.controllers.workloads import pods
from numalign.simulator.trees import Tree

if TYPE_CHECKING:
    from numalign.simulator.controllers.workloads.jobtally import Tally

INDEX: Final = "batch.kubernetes.io/job-completion-index"
VARIABLE: Final = "JOB_COMPLETION_INDEX"


def is_indexed(job: Tree) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index(pod: Tree) -> int | None:
    written = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(written) if written.isdecimal() else None


def succeeded(job: Tree, done: Iterable[Tree]) -> frozenset[int]:
    if not is_indexed(job):
        return frozenset()
    earlier = read((job.get("status") or {}).get("completedIndexes", ""))
    found = earlier | {index(pod) for pod in done}
    return frozenset(each for each in found if each is not None and each < job["spec"]["completions"])


def repeated(job: Tree, active: Sequence[Tree], done: frozenset[int]) -> list[Tree]:
    if not is_indexed(job):
        return []
    seen: set[int | None] = {None, *done}
    extra = []
    for pod in pods.oldest_first(active):
        if index(pod) in seen:
            extra.append(pod)
        seen.add(index(pod))
    return extra


def missing(job: Tree, counted: Tally, count: int) -> list[int]:
    """The lowest indexes that neither run nor are done."""
    taken = counted.indexes | {index(pod) for pod in counted.active}
    return [each for each in range(job["spec"]["completions"]) if each not in taken][:count]


def pod(job: Tree, template: Tree, index: int) -> Tree:
    metadata, spec, name = template["metadata"], template["spec"], job["metadata"]["name"]
    marked = {INDEX: str(index)}
    variable = {"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}}
    numbered = template | {
        "metadata": metadata
        | {
            "annotations": (metadata.get("annotations") or {}) | marked,
            "labels": (metadata.get("labels") or {}) | marked,
        },
        "spec": spec
        | {
            "hostname": f"{name}-{index}",
            "containers": [each | {"env": [*(each.get("env") or ()), variable]} for each in spec["containers"]],
        },
    }
    return pods.made(JOBS, job, numbered, f"{name}-{index}-")


def completed(job: Tree, counted: Tally) -> Tree:
    """The part of the status that lists them."""
    return {"completedIndexes": written(counted.indexes)} if is_indexed(job) and counted.indexes else {}


def written(indexes: Iterable[int]) -> str:
    """`0-2,5`; two neighbours are written with a comma, as the real one does."""
    parts: list[list[int]] = []
    for each in sorted(indexes):
        if parts and parts[-1][-1] == each - 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    return ",".join(_interval(part) for part in parts)


def read(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _interval(part: Sequence[int]) -> str:
    return f"{part[0]}-{part[-1]}" if len(part) > 2 else ",".join(map(str, part))
