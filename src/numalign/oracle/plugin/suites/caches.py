"""Recorded behaviour of the plugin's caches: sessions, lookups, helpers of a resync, and runs of a whole scheduler.

A run needs the order of a scheduler only: filter, reserve, bind, and a retry after a change. The recording chooses
among feasible nodes, because scores have suites of their own. Expectations are part of the steps of a run."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from numalign.api.nrt import fingerprint
from numalign.api.objects.pod import Pod
from numalign.oracle.harness.divergence import Case, Difference
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.plugin.suites import cachesessions, objects
from numalign.placement import referenceargs
from numalign.placement.reference import classes, demand, filter, numanodes
from numalign.placement.reference.caches import foreignpods, podgroups, records, repairs, reports, selection
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.records import Record
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.reference.filter import Seen
from numalign.placement.referenceargs import ForeignPodsDetect, PreemptionMode, ResyncMethod

POINTERS = ("see expectedNode in steps", "see steps")
ANY_NODE = "*"
PENDING = ""


class CacheRun:
    """One recorded run. All pods are in one namespace and identified by name."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        raw_pods = [step["pod"] for step in given["steps"] if step["op"] == "createPod"]
        profiles = {objects.pod(raw).spec.scheduler_name for raw in raw_pods}
        self.present = {node.metadata.name: classes.present_on(node) for node in map(objects.node, given["nodes"])}
        self.nrts = {nrt.metadata.name: nrt for nrt in map(objects.report, given["nrts"])}
        self.cache = selection.build(referenceargs.complete(given["config"]), profiles, self.nrts.values())
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
    run = CacheRun(case["input"])
    differences = [each for step in case["input"]["steps"] for each in run.take(step)]
    return [*differences, *run.misplaced()]


def _as_found(expected: Any, answered: Any) -> Sequence[Difference]:
    # The recording beside the steps is only a pointer to them. Any other expectation would not be compared.
    pointer = expected.get("note") if expected.keys() == {"note"} else None
    return [*answered, *([] if pointer in POINTERS else [Difference("", expected, "only what the steps expect")])]


REASONS = {
    Repair.LATE_REPORT: "a report that appears after the start is never cached; we take it in",
    Repair.REPORT_GONE: "a deleted report is used for good; we forget the node",
    Repair.MISSED_SETTINGS: "changed settings are seen by the watch only; a round of ours finds them too",
    Repair.EMPTY_NODE: "a node without relevant pods never recovers; we accept the fingerprint of no pods",
    Repair.ENDED_PODS: "a report without pods that have ended never matches; we accept it as well",
    Repair.STARTING_PODS: "a report with pods that are bound and Pending never matches; we accept it as well",
    Repair.PINNED_PODS: "a report that signs only pods that its node pins may never match; we accept it as well",
    Repair.UNREPORTED_POD: "a refresh drops reservations of pods that the report cannot know yet; we keep them",
    Repair.RESYNC_WINDOW: "a refresh drops what happened since it read the cluster; we keep it",
}


def _differs_by(repair: Repair) -> DeliberateDifference:
    """The repair applies if the session ends differently with it than with only the repairs before it."""
    before = frozenset(list(Repair)[: list(Repair).index(repair)])

    def applies(given: Mapping[str, Any]) -> bool:
        return cachesessions.play(given, before) != cachesessions.play(given, before | {repair})

    return DeliberateDifference(f"cache-{repair}", REASONS[repair], applies, _is_unmended)


def _is_unmended(case: Case) -> bool:
    """The recording equals the result without any repair."""
    return not _same_objects(case["expect"], {"steps": cachesessions.play(case["input"], repairs.NONE)})


def _session(case: Case) -> object:
    return {"steps": cachesessions.play(case["input"])}


def _same_objects(expected: Any, answered: Any) -> Sequence[Difference]:
    """Reports are compared as decoded: a field may be omitted or empty."""
    return objects.by_amount(_as_read(expected), _as_read(answered))


def _as_read(value: Any, key: str = "") -> Any:
    if isinstance(value, Mapping):
        if key == "nrt":
            return msgspec.to_builtins(objects.report(value))
        return {name: _as_read(each, name) for name, each in value.items()}
    return [_as_read(each) for each in value] if isinstance(value, list | tuple) else value


def _look_up(case: Case) -> object:
    given = case["input"]
    cache = cachesessions.cache_of(given, list(map(objects.report, objects.reports(given))), Rules())
    if given["hasForeignPods"] and isinstance(cache, OverReserve):
        cache.has_foreign_pods(given["node"])
    found = cachesessions.look_up(cache, given["node"])
    return {"fresh": found["fresh"], "nrt": found["nrt"]}


def _is_foreign(case: Case) -> object:
    given, detect = case["input"], ForeignPodsDetect(case["input"]["foreignPodsDetect"])
    pod, listed = objects.pod(given["pod"]), given["nrtResources"] or ()
    return {"result": foreignpods.is_foreign(pod, listed, given["profileNames"] or (), detect)}


def _pod_data(case: Case) -> object:
    given = case["input"]
    judge = records.judged(frozenset(given["nrtResources"] or ()))
    grouped = podgroups.by_node(map(objects.pod, given["pods"] or ()), cachesessions.relevance(given["podRelevance"]))
    preempts = given["preemptionMode"] == PreemptionMode.ENABLED
    noted = {node: [records.of(pod, judge) for pod in pods.relevant] for node, pods in grouped.items()}
    return {"podData": {node: [_written(each, preempts) for each in found] for node, found in noted.items() if found}}


def _written(record: Record, preempts: bool) -> dict[str, object]:
    # The plugin keeps either the names of the containers or a flag; numalign knows both.
    return {
        "namespace": record.namespace,
        "name": record.name,
        "exclusiveResources": "Unknown" if preempts else "Alloc" if record.is_exclusive else "None",
        "hasExclusiveResources": record.is_exclusive,
        "pinnedContainers": record.pinned if preempts else (),
    }


def _watched(case: Case) -> object:
    given = case["input"]
    steps = [
        {"op": "watchEvent", "eventType": given["event"]["type"], "nrt": given["event"]["object"]},
        {"op": "desynced"},
    ]
    session = {
        "cacheType": "OverReserve",
        "initialNRTs": given["cached"],
        "initialPods": [],
        "podRelevance": "Always",
        "preemptionMode": "Disabled",
        "cache": None,
        "profileNames": [],
        "steps": steps,
    }
    desynced: Any = cachesessions.play(session)[-1]
    return {"configChanged": desynced["configChanged"]}


def _names(case: Case) -> object:
    raw = case["input"]["nrt"]
    return {"names": None if raw is None else sorted(classes.listed_by(objects.report(raw)))}


def _signature(case: Case) -> reports.Signature:
    return reports.signature(objects.report(case["input"]["nrt"]), ResyncMethod(case["input"]["resyncMethod"]))


def _checked(case: Case) -> object:
    given = case["input"]
    kept = (pod for pod in given["pods"] or () if pod["hasExclusiveResources"] or not given["onlyExclusive"])
    try:
        fingerprint.check(given["fingerprint"], ((pod["namespace"], pod["name"]) for pod in kept))
    except fingerprint.FingerprintError as problem:
        return {"error": problem.reason}
    return {"error": None}


SUITES: tuple[Suite, ...] = (
    Suite("cache_scenario", _session, _same_objects, tuple(map(_differs_by, Repair))),
    Suite("get_cached_nrt", _look_up, _same_objects),
    Suite("is_foreign_pod", _is_foreign),
    Suite("node_to_pod_data", _pod_data),
    Suite("node_to_pod_data_exclusive", _pod_data),
    Suite("watch_attr_change", _watched),
    Suite(
        "cache_resync_method",
        lambda case: {"method": referenceargs.resync_method(cachesessions.cache_args(case["input"]["cache"]))},
    ),
    Suite(
        "foreign_pods_detect_mode",
        lambda case: {"mode": referenceargs.foreign_pods_detect(cachesessions.cache_args(case["input"]["cache"]))},
    ),
    Suite("resource_names_from_nrt", _names),
    Suite("fingerprint_from_nrt", lambda case: {"fingerprint": _signature(case).text}),
    Suite("fingerprint_method_from_nrt", lambda case: {"onlyExclusive": _signature(case).only_exclusive}),
    Suite("check_fingerprint_for_node", _checked),
    Suite("integration_cache", _answer, _as_found),
)
