"""Judges a scenario from its history.

`measures` are the numbers that expectations refer to. `broken` are violations in any scenario: a pod that is bound
twice, or to a node that does not exist. Pure."""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.simulator.scenarios.history import HistoryEntry
from numalign.simulator.scenarios.scenario import ANY_SCHEDULER, Expectation, Scenario

COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
MEASURES: Final = {
    "created": "pods that were created",
    "bound": "pods that were bound to a node",
    "started": "pods that started",
    "finished": "pods that completed",
    "failed": "pods that ran and failed",
    "rejected": "pods that their kubelet rejected",
    "misaligned": "pods rejected with TopologyAffinityError",
    "running": "pods that run at the end",
    "pending": "pods that have no node at the end",
    "most-rejected": "rejected pods of the owner that has the most",
    "bounced-seconds": "time from the first rejection to the last",
    "longest-wait": "longest time from a pod's creation to its start, of those that started",
}
MISALIGNED: Final = "TopologyAffinityError"


class Violation(Struct, frozen=True):
    """One violation; `expected` is empty where the scenario does not state the expectation."""

    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.expected}: {self.found}" if self.expected else self.found


class _Pod(Struct):
    created: float
    node: str = ""
    started: float | None = None
    ended: bool = False


def judge(scenario: Scenario, scheduler: str, lines: Sequence[HistoryEntry]) -> list[Violation]:
    """All violations when this scheduler played the scenario."""
    expected = (*scenario.expect.get(ANY_SCHEDULER, ()), *scenario.expect.get(scheduler, ()))
    return [*broken(lines), *missed(expected, measures(lines))]


def missed(expected: Iterable[Expectation], found: Mapping[str, float]) -> list[Violation]:
    return [
        Violation(str(each), f"it was {found[each.measure]:g}")
        for each in expected
        if not COMPARISONS[each.comparison](found[each.measure], each.number)
    ]


def measures(lines: Sequence[HistoryEntry]) -> dict[str, float]:
    """All numbers of `MEASURES`."""
    counts = Counter(line.what for line in lines)
    pods = _pods(lines)
    there = [pod for pod in pods.values() if not pod.ended]
    rejected = [line for line in lines if line.what == "rejected"]
    by_owner = Counter(line.owner or line.name for line in rejected)
    waits = [pod.started - pod.created for pod in pods.values() if pod.started is not None]
    return {
        "created": counts["created"],
        "bound": counts["bound"],
        "started": counts["started"],
        "finished": counts["finished"],
        "failed": counts["failed"],
        "rejected": len(rejected),
        "misaligned": sum(line.why == MISALIGNED for line in rejected),
        "running": sum(pod.started is not None for pod in there),
        "pending": sum(not pod.node for pod in there),
        "most-rejected": max(by_owner.values(), default=0),
        "bounced-seconds": rejected[-1].at - rejected[0].at if rejected else 0.0,
        "longest-wait": max(waits, default=0.0),
    }


def broken(lines: Sequence[HistoryEntry]) -> list[Violation]:
    return [*bound_twice(lines), *bound_to_nothing(lines)]


def bound_twice(lines: Iterable[HistoryEntry]) -> Iterator[Violation]:
    bound: dict[str, str] = {}
    for line in lines:
        if line.what == "bound":
            if line.uid in bound:
                yield Violation("", f"{_named(line)} was bound twice: to {bound[line.uid]} and to {line.node}")
            bound[line.uid] = line.node


def bound_to_nothing(lines: Iterable[HistoryEntry]) -> Iterator[Violation]:
    nodes: set[str] = set()
    for line in lines:
        if line.what == "node":
            nodes.add(line.name)
        elif line.what == "node-gone":
            nodes.discard(line.name)
        elif line.what == "bound" and line.node not in nodes:
            yield Violation("", f"{_named(line)} was bound to {line.node}, which is not there")


def _named(line: HistoryEntry) -> str:
    return f"pod {line.namespace}/{line.name}"


def _pods(lines: Iterable[HistoryEntry]) -> dict[str, _Pod]:
    pods: dict[str, _Pod] = {}
    for line in lines:
        if line.what == "created":
            pods[line.uid] = _Pod(line.at)
        pod = pods.get(line.uid)
        if pod is None:
            continue
        pod.node = line.node
        if line.what == "started" and pod.started is None:
            pod.started = line.at
        pod.ended = pod.ended or line.what in ("finished", "failed", "rejected", "deleted")
    return pods
