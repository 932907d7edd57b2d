"""Recorded preemption: the pods that a cycle assumes to be removed, and a report without them."""

from __future__ import annotations

import msgspec

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.oracle.plugin.suites import objects
from numalign.oracle.plugin.suites.suite import Case, Suite
from numalign.placement.reference import eviction, victims
from numalign.placement.reference.args import PreemptionMode
from numalign.placement.reference.victims import Cycle


def _tracked(case: Case) -> object:
    cycle, codes = Cycle(PreemptionMode(case["input"]["preemptionMode"])), []
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


SUITES: tuple[Suite, ...] = (
    Suite("victim_tracking", _tracked),
    Suite("nrt_post_eviction", _simulated, objects.by_amount),
)
