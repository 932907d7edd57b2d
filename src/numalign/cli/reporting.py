"""Admitting pods one after the other, and writing down what came of it.

`kubelet` and `demo` call `admit_all` with a kubelet and pods in order. The model decides, `explaining` finds reasons,
this module turns both into a `report.Report`. Nothing starts in between: each pod meets what those before it were
given, as in a burst that reaches a kubelet at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from numalign.api import cpuset, qos, requests, resourcenames
from numalign.api.pod import Pod
from numalign.cli import amounts, explaining, report, wording
from numalign.cli.explaining import Admission
from numalign.kubelet import admission, predicates, versions, zonetable
from numalign.kubelet import mask as masks
from numalign.kubelet.mask import Mask
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement, KubeletState
from numalign.kubelet.zonetable import Cell

NOBODY_ELSE: Mapping[str, str] = {}


def admit_all(kubelet: Kubelet, pods: Iterable[tuple[Pod, str]]) -> report.Report:
    """Admit pods on an empty node, in order. Each comes with the place that it was read from."""
    state = kubelet.initial()
    reported = []
    for pod, source in pods:
        before = admission.collect(kubelet, state)
        state, outcome = admission.admit(kubelet, before, pod)
        reported.append(_pod(Admission(kubelet, pod, before, state, outcome), source))
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
        requests=amounts.requested(requests.effective(pod)),
        verdict=outcome.verdict,
        reason=outcome.reason,
        message=outcome.message,
        container=outcome.container,
        steps=outcome.steps,
        notes=tuple(_notes(admitted)),
        containers=tuple(_container(admitted.kubelet, *placed) for placed in outcome.placement.items()),
        explanation=explaining.explain(admitted) if outcome.verdict == "rejected" else None,
    )


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
    kubelet: Kubelet, state: KubeletState, names: Mapping[str, str] = NOBODY_ELSE
) -> tuple[report.Resource, ...]:
    """What the node has and who holds it; `names` are full names of pods by their uids, where uids are not names."""
    table = zonetable.of(kubelet, state)
    return tuple(
        report.Resource(
            name=name,
            allocatable=amounts.total(name, total.allocatable),
            free=amounts.total(name, total.free),
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
