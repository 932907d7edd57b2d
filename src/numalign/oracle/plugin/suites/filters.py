"""Recorded results of Filter, scheduling cycles of one pod, and preemption.

Of kube-scheduler's preemption only the choice of victims is repeated: pods of lower priority, removed in a simulation
that Filter must pass (scheduler plugin spec 16)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import structs

from numalign.api.nrt import normalise, placementcodec
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import DEFAULT_SCHEDULER, Pod
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference, Raw
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.plugin import defects, victims
from numalign.oracle.plugin.suites import objects, scores
from numalign.oracle.plugin.suites.scores import ZONE_64
from numalign.oracle.plugin.victims import VictimsCycle
from numalign.placement import referenceargs
from numalign.placement.reference import classes, demand, eviction, filter, numanodes
from numalign.placement.reference.caches import selection
from numalign.placement.reference.filter import FilterResult, Preemption, Seen
from numalign.placement.reference.status import Status
from numalign.placement.referenceargs import PreemptionMode


def _verdict(given: Mapping[str, Any], raw_node: Raw | None) -> FilterResult:
    wanted = demand.of(objects.pod(given["pod"]))
    if raw_node is None:
        return filter.decide(wanted, None, Seen())
    node = objects.node(raw_node)
    seen = objects.seen(node.metadata.name, given)
    return filter.decide(wanted, classes.present_on(node), seen, _preemption(given))


def _preemption(given: Mapping[str, Any]) -> Preemption:
    cycle, _ = victims.pre_filter(VictimsCycle(referenceargs.preemption_mode(objects.settings(given))))
    for raw in given.get("victims") or ():
        cycle, _ = victims.remove_pod(cycle, objects.pod(raw))
    return Preemption(cycle.pods, objects.placement(given.get("placement")))


def _status(status: Status) -> dict[str, object]:
    return {"code": status.code, "reasons": status.reasons}


def _answer(case: Case) -> object:
    return {"status": _status(_verdict(case["input"], case["input"]["node"]).status)}


def _answer_with_mark(case: Case) -> object:
    verdict = _verdict(case["input"], case["input"]["node"])
    return {"status": _status(verdict.status), "markedMaybeOverReserved": verdict.rejects_node}


def _cycle(case: Case) -> object:
    given = case["input"]
    verdicts = {raw["metadata"]["name"]: _verdict(given, raw).status for raw in given["nodes"]}
    rated = scores.of_nodes(given)
    return {
        "left": [name for name, status in verdicts.items() if status.is_success],
        "stock": objects.pod(given["pod"]).spec.scheduler_name == DEFAULT_SCHEDULER,
        "message": "; ".join(reason for status in verdicts.values() for reason in status.reasons),
        "filter": {name: _status(status) for name, status in verdicts.items()},
        "scores": rated,
    }


def _same_cycle(expected: Any, answered: Any) -> Sequence[Difference]:
    """Filter and scores are compared exactly. The pod must end on an allowed node. Without one it stays pending with a
    message that contains the recorded text."""
    allowed, part = expected["allowedNodes"], expected["errorContains"]
    message = "" if answered["left"] else answered["message"]
    measured = {key: expected[key] for key in expected if key not in ("allowedNodes", "errorContains")}
    return [
        *suite.exactly(measured, {key: answered[key] for key in ("filter", "scores")}),
        *([] if _lands(allowed, answered) else [Difference("allowedNodes", allowed, answered["left"])]),
        *([] if part in message else [Difference("errorContains", part, message)]),
    ]


def _lands(allowed: Sequence[str], answered: Any) -> bool:
    """Allowed are the best nodes, or any feasible node if other plugins score too."""
    left, rated = answered["left"], answered["scores"]
    if not left:
        return not allowed
    best = max(rated[name] for name in left)
    ends = {name for name in left if answered["stock"] or rated[name] == best}
    return ends <= set(allowed) <= set(rated) and len(set(allowed)) == len(allowed)


def _has_zone_twice(given: Mapping[str, Any]) -> bool:
    listed = map(scores.ids, objects.reports(given))
    return any(len(set(zones)) < len(zones) for zones in listed)


def _is_inconsistent(case: Case) -> bool:
    """The error of this defect only. Comparisons without reasons have just the code."""
    recorded, defect = case["expect"]["status"], defects.INCONSISTENT
    return bool(recorded["code"] == defect.code and recorded.get("reasons", defect.reasons)[0] == defect.reasons[0])


ZONE_TWICE = DeliberateDifference(
    "zone-twice",
    "two zones of one id can fail the pod's whole cycle; the container does not fit there, and other nodes are tried",
    _has_zone_twice,
    _is_inconsistent,
)

PLAIN = ("filter_basic", "filter_multicontainer_pod_scope", "filter_multicontainer_container_scope")
MARKED = ("filter_random", "edge_filter", "filter_preemption", "filter_preemption_random", "reference_quirks_filter")


def _suites(names: Sequence[str], answer: Callable[[Case], object]) -> tuple[Suite, ...]:
    return tuple(Suite(name, answer, deliberate=(ZONE_64, ZONE_TWICE)) for name in names)


def _tracked(case: Case) -> object:
    cycle, codes = VictimsCycle(PreemptionMode(case["input"]["preemptionMode"])), []
    for step in case["input"]["steps"]:
        pod = Pod(metadata=ObjectMeta(**step["pod"])) if step.get("pod") else None
        match step["op"]:
            case "PreFilter":
                cycle, status = victims.pre_filter(cycle)
            case "RemovePod":
                cycle, status = victims.remove_pod(cycle, pod)
            case _:
                cycle, status = victims.add_pod(cycle, pod)
        codes.append(status.code)
    names = None if cycle.victims is None else sorted(pod.metadata.full_name for pod in cycle.pods)
    return {"statusCodes": codes, "victims": names}


def _simulated(case: Case) -> object:
    given = case["input"]
    report = None if given["nrt"] is None else objects.report(given["nrt"])
    gone = list(map(objects.pod, given["victims"] or ()))
    after = eviction.simulate(report, gone, objects.placement(given["placement"]))
    if isinstance(after, eviction.Impossible):
        return {"error": after, "nrt": given["nrt"]}
    zones = [
        {**raw, "resources": msgspec.to_builtins(zone.resources)}
        for raw, zone in zip(given["nrt"]["zones"], after.zones or (), strict=True)
    ]
    return {"error": None, "nrt": {**given["nrt"], "zones": zones}}


class PreemptionRun:
    """The node, its cached report, and the two pods."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.settings = referenceargs.complete(given["config"])
        node = objects.node(given["node"])
        self.node, self.present = node.metadata.name, classes.present_on(node)
        self.before = objects.report(given["nrtBeforeVictim"])
        self.victim, self.preemptor = _bound(given["victim"], self.node), objects.pod(given["preemptor"]["pod"])
        self.cache = selection.build(self.settings, {self.preemptor.spec.scheduler_name}, [self.before])

    def victim_runs(self, report: NodeResourceTopology) -> None:
        self.cache.reserve(self.node, self.victim)
        self.cache.post_bind(self.node, self.victim)
        self.cache.pod_seen(self.victim)
        self._reported(report, [self.victim])

    def victim_is_gone(self) -> None:
        self.cache.pod_gone(self.victim)
        self._reported(self.before, [])

    def _reported(self, report: NodeResourceTopology, pods: list[Pod]) -> None:
        self.cache.nrt_changed(report)
        self.cache.resync({self.node: report}, pods, now=0.0)

    def fits(self, without: tuple[Pod, ...] = ()) -> bool:
        found = self.cache.look_up(self.node)
        seen = Seen(found.fresh, None if found.nrt is None else numanodes.read(found.nrt))
        preemption = Preemption(without, self.cache.placement(self.node))
        return filter.decide(demand.of(self.preemptor), self.present, seen, preemption).status.is_success

    def evicts(self, *, pre_filter: bool) -> bool:
        cycle = VictimsCycle(referenceargs.preemption_mode(self.settings))
        cycle = victims.pre_filter(cycle)[0] if pre_filter else cycle
        cycle, result = victims.remove_pod(cycle, self.victim)
        return result.is_success and self.fits(without=cycle.pods)


def _bound(raw: Mapping[str, Any], node: str) -> Pod:
    pod = objects.pod(raw["pod"])
    status = structs.replace(pod.status, phase="Running")
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=node), status=status)


def _with_placement(given: Mapping[str, Any], victim: Pod) -> NodeResourceTopology:
    report = objects.report(given["nrtWithVictim"])
    if not given["nrtCarriesPlacement"]:
        return report
    names = (victim.metadata.namespace, victim.metadata.name)
    placed = {ContainerRef(*names, each.name): given["victim"]["numaNode"] for each in victim.spec.containers}
    payload = placementcodec.encode(placed, len(report.zones or ()))
    # All containers are in one zone, the busiest, so no zone needs a vector.
    metadata = Attribute(name=normalise.PLACEMENT_METADATA, value=payload.metadata)
    return structs.replace(report, attributes=(*report.attributes, metadata))


def _preempted(case: Case) -> object:
    given = case["input"]
    run = PreemptionRun(given)
    run.victim_runs(_with_placement(given, run.victim))
    is_lower = given["victim"]["priority"] < given["preemptor"]["priority"]
    evicted = not run.fits() and is_lower and run.evicts(pre_filter=given["preFilterEnabled"])
    if evicted:
        run.victim_is_gone()
    return {"eviction": evicted, "preemptorEventuallyScheduled": run.fits()}


SUITES: tuple[Suite, ...] = (
    *_suites(PLAIN, _answer),
    *_suites(MARKED, _answer_with_mark),
    Suite("integration_single_cycle", _cycle, _same_cycle),
    Suite("victim_tracking", _tracked),
    Suite("nrt_post_eviction", _simulated, objects.by_amount),
    Suite("integration_preemption", _preempted),
)
