"""Recorded runs of a whole scheduler with preemption: one node, one pod on it, and a pod that needs its place.

Of kube-scheduler's preemption only the choice of victims is repeated: pods of lower priority, removed in a simulation
that Filter must pass (scheduler plugin spec 16)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from numalign.api.nrt import normalise, placementcodec
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin.suites import objects
from numalign.oracle.plugin.suites.suite import Case, Suite
from numalign.placement.reference import args, classes, demand, filter, numanodes, victims
from numalign.placement.reference.caches import selection
from numalign.placement.reference.filter import Preemption, Seen
from numalign.placement.reference.victims import Cycle


class Run:
    """The node, its cached report, and the two pods."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.settings = args.complete(given["config"])
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
        cycle = Cycle(args.preemption_mode(self.settings))
        cycle = victims.pre_filter(cycle)[0] if pre_filter else cycle
        cycle, told = victims.remove_pod(cycle, self.victim)
        return told.is_success and self.fits(without=cycle.pods)


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


def _answer(case: Case) -> object:
    given = case["input"]
    run = Run(given)
    run.victim_runs(_with_placement(given, run.victim))
    is_lower = given["victim"]["priority"] < given["preemptor"]["priority"]
    evicted = not run.fits() and is_lower and run.evicts(pre_filter=given["preFilterEnabled"])
    if evicted:
        run.victim_is_gone()
    return {"eviction": evicted, "preemptorEventuallyScheduled": run.fits()}


SUITES: tuple[Suite, ...] = (Suite("integration_preemption", _answer),)
