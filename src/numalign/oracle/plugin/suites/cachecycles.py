"""Recorded runs of a whole scheduler with a cache: pods arrive, are bound or wait, and the node's report changes.

A run needs the order of a scheduler only: filter, reserve, bind, and a retry after a change. The recording chooses
among feasible nodes, because scores have suites of their own. Expectations are part of the steps, so `answer` returns
the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin.suites import objects
from numalign.oracle.plugin.suites.suite import Case, Suite
from numalign.placement.reference import args, classes, demand, filter, numanodes
from numalign.placement.reference.caches import selection
from numalign.placement.reference.filter import Seen

POINTERS = ("see expectedNode in steps", "see steps")
ANY_NODE = "*"
PENDING = ""


class Run:
    """One recorded run. All pods are in one namespace and identified by name."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        raw_pods = [step["pod"] for step in given["steps"] if step["op"] == "createPod"]
        profiles = {objects.pod(raw).spec.scheduler_name for raw in raw_pods}
        self.present = {node.metadata.name: classes.present_on(node) for node in map(objects.node, given["nodes"])}
        self.nrts = {nrt.metadata.name: nrt for nrt in map(objects.report, given["nrts"])}
        self.cache = selection.build(args.complete(given["config"]), profiles, self.nrts.values())
        self.pods: dict[str, Pod] = {}
        self.wanted: dict[str, str] = {}
        self.bound: dict[str, str] = {}

    def take(self, step: Mapping[str, Any]) -> list[Difference]:
        match step:
            case {"op": "createPod", "pod": raw, "expectedNode": node}:
                pod = objects.pod(raw)
                self.pods[pod.metadata.name], self.wanted[pod.metadata.name] = pod, node
                self._try(pod)
            case {"op": "deletePod", "name": name}:
                self.cache.pod_gone(self.pods.pop(name))
            case {"op": "setPodPhase", "podIndexScheduled": place, "phase": phase}:
                name = list(self.bound)[place]
                status = structs.replace(self.pods[name].status, phase=phase)
                self._put(structs.replace(self.pods[name], status=status))
            case {"op": "updateNRT", "nrt": raw}:
                nrt = objects.report(raw)
                self.nrts[nrt.metadata.name] = nrt
                self.cache.nrt_changed(nrt)
                self._resync()
            case {"op": "expectScheduledCount", "count": count} if count != len(self.bound):
                return [Difference("expectScheduledCount", count, len(self.bound))]
        return []

    def misplaced(self) -> list[Difference]:
        """The pods that did not end on the expected node."""
        ends = {name: self.bound.get(name, PENDING) for name in self.wanted}
        return [
            Difference(name, self.wanted[name], node) for name, node in ends.items() if not self._is_wanted(name, node)
        ]

    def _is_wanted(self, name: str, node: str) -> bool:
        return node != PENDING if self.wanted[name] == ANY_NODE else node == self.wanted[name]

    def _resync(self) -> None:
        self.cache.resync(self.nrts, self.pods.values(), now=0.0)
        for pod in [pod for name, pod in self.pods.items() if name not in self.bound]:
            self._try(pod)

    def _try(self, pod: Pod) -> None:
        feasible = [node for node in self.present if self._fits(pod, node)]
        if feasible:
            node = next((node for node in feasible if self._is_wanted(pod.metadata.name, node)), feasible[0])
            self.bound[pod.metadata.name] = node
            self.cache.reserve(node, pod)
            self.cache.post_bind(node, pod)
            self._put(structs.replace(pod, spec=structs.replace(pod.spec, node_name=node)))

    def _fits(self, pod: Pod, node: str) -> bool:
        found = self.cache.look_up(node)
        seen = Seen(found.fresh, None if found.nrt is None else numanodes.read(found.nrt))
        verdict = filter.decide(demand.of(pod), self.present[node], seen)
        if verdict.rejects_node:
            self.cache.rejected(node)
        return verdict.status.is_success

    def _put(self, pod: Pod) -> None:
        self.pods[pod.metadata.name] = pod
        self.cache.pod_seen(pod)


def _answer(case: Case) -> object:
    run = Run(case["input"])
    differences = [each for step in case["input"]["steps"] for each in run.take(step)]
    return [*differences, *run.misplaced()]


def _as_found(expected: Any, answered: Any) -> Sequence[Difference]:
    # The recording beside the steps is only a pointer to them. Any other expectation would not be compared.
    pointer = expected.get("note") if expected.keys() == {"note"} else None
    return [*answered, *([] if pointer in POINTERS else [Difference("", expected, "only what the steps expect")])]


SUITES: tuple[Suite, ...] = (Suite("integration_cache", _answer, _as_found),)
