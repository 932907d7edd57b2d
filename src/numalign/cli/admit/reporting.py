"""Admits pods one after the other on a kubelet model and reports the outcomes.

`kubelet` and `demo` call `admit_all` with a kubelet and pods in order. The model decides, the placement room explains
refusals, and this module turns both into a `report.Report`. No container starts in between: each pod meets what the
pods before it hold, as in a burst that reaches a kubelet at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from numalign.api.attributes import cpuset
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Pod
from numalign.cli.admit import report, units, wording
from numalign.kubelet import admission, predicates, versions, zonetable
from numalign.kubelet import mask as masks
from numalign.kubelet.admission import Outcome
from numalign.kubelet.hints import HintList
from numalign.kubelet.mask import Mask
from numalign.kubelet.merge import Hints
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState
from numalign.kubelet.zonetable import Cell
from numalign.placement.explain import answers
from numalign.placement.explain import wording as reasons

NO_NAMES: Mapping[str, str] = {}
MOST_HINTS = 64


class Admission(Struct, frozen=True):
    """One pod's admission. `before`: the state that the pod meets, without leftovers of refused pods."""

    kubelet: Kubelet
    pod: Pod
    before: KubeletState
    outcome: Outcome


def admit_all(kubelet: Kubelet, pods: Iterable[tuple[Pod, str]]) -> report.Report:
    """Admit pods on an empty node, in order. Each comes with the place that it was read from."""
    state = kubelet.initial()
    reported = []
    for pod, source in pods:
        before = admission.collect(kubelet, state)
        state, outcome = admission.admit(kubelet, before, pod)
        reported.append(_pod(Admission(kubelet, pod, before, outcome), source))
    return report.Report(
        machine=kubelet.machine.name,
        kubelet=_kubelet(kubelet),
        pods=tuple(reported),
        resources=resources(kubelet, admission.collect(kubelet, state)),
    )


def _kubelet(kubelet: Kubelet) -> report.Kubelet:
    settings = kubelet.settings
    return report.Kubelet(
        version=str(versions.clamped(settings.minor)),
        topology_manager_policy=settings.topology_policy,
        topology_manager_scope=settings.topology_scope,
        cpu_manager_policy=settings.cpu_policy,
        memory_manager_policy=settings.memory_policy,
    )


def _pod(admitted: Admission, source: str) -> report.Pod:
    pod, outcome = admitted.pod, admitted.outcome
    return report.Pod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        source=source,
        qos_class=qos.of(pod),
        requests=units.requested(requests.effective(pod)),
        verdict=outcome.verdict,
        reason=outcome.reason,
        message=outcome.message,
        container=outcome.container,
        steps=outcome.steps,
        notes=tuple(_notes(admitted)),
        containers=tuple(_container(admitted.kubelet, *placed) for placed in outcome.placement.items()),
        explanation=_explanation(admitted) if outcome.verdict == "rejected" else None,
    )


def _explanation(admitted: Admission) -> report.Explanation:
    outcome = admitted.outcome
    reason = answers.of_kubelet(admitted.kubelet, admitted.before, admitted.pod)
    asked = units.requested(requests.effective(admitted.pod))
    totals = zonetable.of(admitted.kubelet, admitted.before).totals
    free = {name: units.total(name, totals[name].free) for name in asked if name in totals}
    return report.Explanation(
        container=reason.container if reason is not None else outcome.container,
        cause=reason.cause if reason is not None else "",
        text=reasons.sentence(reason) if reason is not None else "",
        never=reason is not None and reason.structural,
        node_has_room=all(asked[name] <= free[name] for name in free),
        node_free=free,
        lacks=tuple(map(report.lacking, reason.lacks)) if reason is not None else (),
        offered=_offered(outcome),
    )


def _offered(outcome: Outcome) -> tuple[report.Offered, ...]:
    """The hints of the alignment at which the pod was refused."""
    last = outcome.alignments[-1] if outcome.alignments else None
    if last is None or last.hint is not None:
        return ()
    return tuple(
        report.Offered(resource=name, hints=_hints(hints), count=hints.count if hints is not None else 0)
        for name, hints in last.offered.items()
    )


def _hints(hints: Hints | None) -> tuple[report.Hint, ...] | None:
    if hints is None:
        return None
    if isinstance(hints, HintList):
        found = sorted(hints.masks, key=masks.width)[:MOST_HINTS]
    else:
        found = [1 << zone for zone in hints.room.zones if hints.room.suits(1 << zone)]
    return tuple(report.Hint(zones=masks.members(mask), preferred=hints.prefers(mask)) for mask in found)


def _notes(admitted: Admission) -> Iterator[str]:
    if admitted.outcome.slow:
        yield wording.slow(admitted.outcome.steps)
    offered = predicates.allocatable(admitted.kubelet, admitted.before)
    for resource in requests.effective(admitted.pod):
        if resourcenames.is_extended(resource) and resource not in offered:
            yield wording.not_on_this_machine(resource)


def _container(kubelet: Kubelet, name: str, placed: ContainerPlacement) -> report.Container:
    mask, preferred = placed.affinity
    return report.Container(
        name=name,
        zones=masks.members(_zones(kubelet, placed)),
        affinity=report.Affinity(zones=None if mask is None else masks.members(mask), preferred=preferred),
        cpus=None if placed.cpus is None else cpuset.text(placed.cpus),
        memory=tuple(
            report.MemoryBlock(type=block.kind, zones=masks.members(block.zones), bytes=block.size)
            for block in placed.memory
        ),
        devices={resource: tuple(sorted(ids)) for resource, ids in placed.devices.items()},
    )


def _zones(kubelet: Kubelet, placed: ContainerPlacement) -> Mask:
    """Every zone that something of the container sits in."""
    zones = 0
    if kubelet.cpu and placed.cpus:
        for zone, count in kubelet.cpu.topology.by_zone(placed.cpus).items():
            zones |= zone if count else 0
    for block in placed.memory:
        zones |= block.zones
    for resource, ids in placed.devices.items():
        for device in ids:
            zones |= kubelet.devices.inventories[resource].zones.get(device, zonetable.NO_ZONE)
    return zones


def resources(
    kubelet: Kubelet, state: KubeletState, names: Mapping[str, str] = NO_NAMES
) -> tuple[report.Resource, ...]:
    """What the node has and who holds it; `names` are full names of pods by their uids, where uids are not names."""
    table = zonetable.of(kubelet, state)
    return tuple(
        report.Resource(
            name=name,
            allocatable=units.total(name, total.allocatable),
            free=units.total(name, total.free),
            zones=_zone_states(table.rows.get(name, {}), names),
        )
        for name, total in table.totals.items()
    )


def _zone_states(row: Mapping[Mask, Cell], names: Mapping[str, str]) -> tuple[report.ZoneState, ...]:
    return tuple(
        report.ZoneState(
            zones=masks.members(zones),
            allocatable=cell.allocatable,
            free=cell.free,
            pods={names.get(uid, uid): amount for uid, amount in cell.holders.items()},
        )
        for zones, cell in row.items()
    )
