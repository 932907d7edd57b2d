"""Why the kubelet refused a pod, worked out from what the model kept: needs, free amounts and offers, per zone.

`reporting` calls `explain` for every pod that was rejected. The node's state right after a refusal still holds what the
pod had been given until then, so it shows what the refused container found. What it comes down to is for `causes` to
say; the kubelet's own words stay with the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from numalign.api import requests, resourcenames
from numalign.api.pod import Pod
from numalign.cli import amounts, causes, report, wording
from numalign.cli.causes import Cause, Request
from numalign.kubelet import demand as demands
from numalign.kubelet import mask as masks
from numalign.kubelet import predicates, zonetable
from numalign.kubelet.admission import Outcome
from numalign.kubelet.hints import HintList
from numalign.kubelet.mask import Mask
from numalign.kubelet.merge import Hints
from numalign.kubelet.refusals import SMT_ALIGNMENT, TOPOLOGY_AFFINITY, UNEXPECTED
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.zonetable import Total

MOST_OFFERS = 64

OUT_OF, PORTS = "OutOf", "NodePorts"
"""The reasons of the general predicates; a resource follows the first."""

NO_MEMORY = ("no NUMA nodes with enough memory", "failed to find NUMA nodes to extend", "violates NUMA node allocation")
"""What the memory manager says when no set of zones will do; its other refusals are about preference."""


class Admission(Struct, frozen=True):
    """One pod's admission with the states around it: `before` without leftovers, `after` as the kubelet left it."""

    kubelet: Kubelet
    pod: Pod
    before: KubeletState
    after: KubeletState
    outcome: Outcome

    @property
    def by_predicate(self) -> bool:
        return self.outcome.reason.startswith((OUT_OF, PORTS))

    @property
    def scope(self) -> str:
        """The container whose request was refused; empty for the whole pod."""
        outcome = self.outcome
        return outcome.alignments[-1].container if outcome.reason == TOPOLOGY_AFFINITY else outcome.container


def explain(admission: Admission) -> report.Explanation:
    totals = zonetable.of(admission.kubelet, admission.before).totals
    # Predicates come after the managers, who had given the pod all it asked for: no zone was short of anything.
    found = () if admission.by_predicate else tuple(_requests(admission))
    cause = _predicate(admission, totals) if admission.by_predicate else _manager(admission, found)
    return report.Explanation(
        container=admission.scope,
        cause=cause.name,
        text=cause.text,
        node_has_room=not _short_of(admission.pod, totals),
        wanted=tuple(_wanted(request, totals.get(request.resource), admission.after) for request in found),
    )


def _short_of(pod: Pod, totals: Mapping[str, Total]) -> list[str]:
    asked = amounts.requested(requests.effective(pod))
    return [name for name in asked if name in totals and asked[name] > amounts.total(name, totals[name].free)]


def _manager(admission: Admission, found: Sequence[Request]) -> Cause:
    if admission.outcome.reason == TOPOLOGY_AFFINITY:
        return causes.unaligned(found, admission.kubelet.settings.topology_policy)
    if admission.outcome.reason == SMT_ALIGNMENT:
        return causes.unallocated([request for request in found if request.resource == resourcenames.CPU])
    if any(text in admission.outcome.message for text in NO_MEMORY):
        return causes.no_memory([request for request in found if request.is_memory])
    return causes.unallocated(found) if admission.outcome.reason == UNEXPECTED else causes.MANAGER


def _predicate(admission: Admission, totals: Mapping[str, Total]) -> Cause:
    resource = admission.outcome.reason.removeprefix(OUT_OF)
    if resource == predicates.PODS:
        return Cause("node-exhausted", wording.no_more_pods(admission.kubelet.settings.max_pods))
    if resource not in totals:
        return causes.MANAGER
    asked = amounts.requested(requests.effective(admission.pod))[resource]
    free = amounts.total(resource, totals[resource].free)
    return Cause("node-exhausted", wording.node_exhausted(resource, asked, free))


def _requests(admission: Admission) -> Iterator[Request]:
    """What was asked of the managers at this point, beside what they had."""
    kubelet, after = admission.kubelet, admission.after
    pod = demands.of(admission.pod, kubelet.reading)
    asking = pod.container(admission.scope) if admission.scope else pod
    needs = {resourcenames.CPU: asking.cpus} if kubelet.cpu else {}
    needs |= (asking.memory or {}) if kubelet.memory else {}
    needs |= kubelet.devices.requested(after.devices, asking.limits)
    rows, reusable = zonetable.of(kubelet, after).rows, _reusable(admission, pod.uid)
    offered = _offered(admission)
    for resource, need in needs.items():
        # Even none of a device takes part in the alignment where an init container has left some to reuse.
        if need or resource in (offered or {}):
            held = reusable.get(resource, {})
            free = {zones: cell.free + held.get(zones, 0) for zones, cell in rows.get(resource, {}).items()}
            yield Request(resource, need, free, _hints(resource, offered))


def _offered(admission: Admission) -> Mapping[str, Hints | None] | None:
    """What was offered for this request; None where nobody was asked for hints."""
    made = [each.offered for each in admission.outcome.alignments if each.container == admission.scope]
    return made[-1] if made else None


def _hints(resource: str, offered: Mapping[str, Hints | None] | None) -> Hints | None:
    # Memory that fits nowhere is left out of the offers; others that fit nowhere offer an empty list.
    nowhere = HintList() if resourcenames.is_bytes(resource) else None
    return None if offered is None else offered.get(resource, nowhere)


def _reusable(admission: Admission, uid: str) -> dict[str, dict[Mask, int]]:
    """What the pod's own init containers leave to this one, by zone."""
    kubelet, after = admission.kubelet, admission.after
    left: dict[str, dict[Mask, int]] = {}
    if kubelet.cpu and after.cpu:
        left[resourcenames.CPU] = kubelet.cpu.topology.by_zone(after.cpu.reusable(uid))
    if after.memory and after.memory.reuse.uid == uid:
        for (zones, kind), amount in after.memory.reuse.amounts.items():
            left.setdefault(kind, {})[zones] = amount
    for resource, inventory in kubelet.devices.inventories.items():
        for device in after.devices.reusable(uid, resource):
            by_zones = left.setdefault(resource, {})
            zones = inventory.zones.get(device, zonetable.NO_ZONE)
            by_zones[zones] = by_zones.get(zones, 0) + 1
    return left


def _wanted(request: Request, total: Total | None, state: KubeletState) -> report.Wanted:
    return report.Wanted(
        resource=request.resource,
        needed=request.need,
        node_free=amounts.total(request.resource, total.free) if total else None,
        zones=tuple(_supply(request, zones, state) for zones in sorted(request.free, key=masks.width)),
        offered=_listed(request.hints),
        offered_count=request.hints.count if request.hints is not None else 0,
    )


def _supply(request: Request, zones: Mask, state: KubeletState) -> report.ZoneSupply:
    free = request.free[zones]
    group = state.memory.zones[zones.bit_length() - 1].cells if request.is_memory and state.memory else zones
    return report.ZoneSupply(
        zones=masks.members(zones),
        free=free,
        short=max(0, request.need - free),
        group=masks.members(group) if group != zones else None,
    )


def _listed(hints: Hints | None) -> tuple[report.Offer, ...] | None:
    if hints is None:
        return None
    if isinstance(hints, HintList):
        found = sorted(hints.masks, key=masks.width)[:MOST_OFFERS]
    else:
        found = [1 << zone for zone in hints.room.zones if hints.room.suits(1 << zone)]
    return tuple(report.Offer(zones=masks.members(mask), preferred=hints.prefers(mask)) for mask in found)
