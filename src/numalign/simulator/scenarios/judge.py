"""Judges a scenario from its history.

`measures` are the numbers that expectations refer to. `broken` are violations in any scenario: a pod that is bound
twice, or to a node that does not exist. `failures` is the verdict on a whole run; it includes a run that proves
nothing, because no expectation is set or because calls of the scenario were refused. Pure."""

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.simulator.scenarios.history import HistoryEntry
from numalign.simulator.scenarios.scenario import ANY_SCHEDULER, SCHEDULERS, Expectation, Scenario

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
    "rejected-own": "rejected pods that name the scheduler of the run",
    "misaligned": "pods rejected with TopologyAffinityError",
    "running": "pods that run at the end",
    "pending": "pods that have no node at the end",
    "most-rejected": "rejected pods of the owner that has the most",
    "bounced-seconds": "time from the first rejection to the last",
    "longest-wait": "longest time from creation to start, of pods that started",
}
SECONDS: Final = frozenset({"bounced-seconds", "longest-wait"})
"""The measures that are times; all others count pods."""
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
    return [*broken(lines), *missed(expected(scenario, scheduler), measures(lines, scheduler))]


def expected(scenario: Scenario, scheduler: str) -> tuple[Expectation, ...]:
    """What the scenario expects of this scheduler: of any, and of this one by name."""
    return (*scenario.expect.get(ANY_SCHEDULER, ()), *scenario.expect.get(scheduler, ()))


def failures(
    scenario: Scenario, scheduler: str, lines: Sequence[HistoryEntry], refused: Sequence[str]
) -> list[Violation]:
    """Why a run does not count as passed; `refused` are the calls of the scenario that failed, as sentences."""
    found = judge(scenario, scheduler, lines)
    if refused:
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        found.append(Violation("", f"a call of the scenario failed: {refused[0]}{more}"))
    unserved = Counter(
        line.scheduler for line in lines if line.what == "created" and line.scheduler not in ("", *SCHEDULERS)
    )
    for name, count in sorted(unserved.items()):
        found.append(
            Violation(
                "", f"no scheduler {name} runs in a scenario, so {count} pods that name it stay pending; {_SERVED}"
            )
        )
    if not expected(scenario, scheduler):
        example = f"expect: {{{scheduler}: {{rejected: 0}}}}"
        found.append(Violation("", f"nothing is expected of {scheduler}; write for example {example}"))
    return found


_SERVED: Final = f"a scenario runs {' and '.join(SCHEDULERS)}"


def missed(expected: Iterable[Expectation], found: Mapping[str, float]) -> list[Violation]:
    return [
        Violation(str(each), f"it was {found[each.measure]:g}")
        for each in expected
        if not COMPARISONS[each.comparison](found[each.measure], each.number)
    ]


def measures(lines: Sequence[HistoryEntry], scheduler: str = "") -> dict[str, float]:
    """All numbers of `MEASURES` of a run of this scheduler."""
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
        "rejected-own": sum(line.scheduler == scheduler for line in rejected),
        "misaligned": sum(line.why == MISALIGNED for line in rejected),
        "running": sum(pod.started is not None for pod in there),
        "pending": sum(not pod.node for pod in there),
        "most-rejected": max(by_owner.values(), default=0),
        "bounced-seconds": rejected[-1].at - rejected[0].at if rejected else 0.0,
        "longest-wait": max(waits, default=0.0),
    }


class LongestWait(Struct, frozen=True):
    """The pod that waited longest for a node, and the last reason that its scheduler wrote on it."""

    pod: str
    seconds: float
    reason: str
    """Empty where no scheduler refused the pod."""


def longest_wait(lines: Sequence[HistoryEntry]) -> LongestWait | None:
    """Of the pods that started; None where none did."""
    waits = {uid: pod.started - pod.created for uid, pod in _pods(lines).items() if pod.started is not None}
    if not waits:
        return None
    uid = max(waits, key=lambda each: waits[each])
    name = next(_named(line) for line in lines if line.uid == uid)
    reasons = [line.words for line in lines if line.uid == uid and line.what == "refused"]
    return LongestWait(name, waits[uid], reasons[-1] if reasons else "")


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
