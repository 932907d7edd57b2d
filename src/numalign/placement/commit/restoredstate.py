"""What a kubelet knows about its pods, rebuilt from where the report says they are.

`objectmodel` starts the kubelet and calls `of`. Amounts come from the published checkpoints, holdings from the
placements; hints that were stored when pods were admitted and leftovers of init containers are not restored, as
nobody but the pod itself ever looks at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.podplacements import Holding, MemoryBlock, PodPlacement
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec
from numalign.kubelet import demand as demands
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState, Ids
from numalign.kubelet.holdings import WHOLE_POD
from numalign.kubelet.memory.state import Block, MemoryState, Table, ZoneMemory
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.placement.commit.deviceids import Devices

Holders = Mapping[str, PodPlacement]
"""Pod identity to what the pod holds."""


class Residents(Struct, frozen=True):
    """The pods of a node, by the name the managers know each by."""

    active: Mapping[str, Pod]
    placed: Holders


def residents(placements: Iterable[PodPlacement], pods: Mapping[str, Pod]) -> Residents:
    """Every pod in the report, with its spec where it is known."""
    active: dict[str, Pod] = {}
    placed: dict[str, PodPlacement] = {}
    for each in placements:
        known = pods.get(f"{each.namespace}/{each.name}")
        # Another pod under the same name is not this one.
        same = known is not None and each.uid in ("", known.metadata.uid)
        pod = known if known is not None and same else _stand_in(each)
        active[demands.identity(pod)] = pod
        placed[demands.identity(pod)] = each
    return Residents(active, placed)


def device_state(placed: Holders, devices: Devices) -> DeviceState:
    held: dict[str, dict[str, dict[str, Ids]]] = {}
    for uid, pod in placed.items():
        before: dict[str, Ids] = {}
        for holding in pod.holdings:
            own = held.setdefault(uid, {}).setdefault(holding.container, {})
            for each in holding.devices:
                ids = devices.give(each, before.get(each.resource, frozenset()))
                own[each.resource] = own.get(each.resource, frozenset()) | ids
                before[each.resource] = before.get(each.resource, frozenset()) | ids
    return DeviceState(pods={uid: _with_devices(containers) for uid, containers in held.items()})


def of(kubelet: Kubelet, facts: NodeFacts, known: Residents, devices: DeviceState) -> KubeletState:
    return KubeletState(
        devices=devices,
        cpu=_cpus(facts.default_cpus or 0, known.placed) if kubelet.cpu else None,
        memory=_memory(kubelet, facts, known.placed) if kubelet.memory else None,
        active=known.active,
    )


def _with_devices(containers: Mapping[str, Mapping[str, Ids]]) -> dict[str, Mapping[str, Ids]]:
    return {name: held for name, held in containers.items() if held}


def _cpus(default: int, placed: Holders) -> CPUState:
    return CPUState(
        default=default,
        assignments={
            uid: own
            for uid, pod in placed.items()
            if (own := {each.container: each.cpus for each in _of_containers(pod) if each.cpus})
        },
        pods={uid: whole.cpus for uid, pod in placed.items() if (whole := _whole(pod)) and whole.cpus},
    )


def _memory(kubelet: Kubelet, facts: NodeFacts, placed: Holders) -> MemoryState:
    allocatable = kubelet.memory.allocatable if kubelet.memory else {}
    zones = {
        each.zone: ZoneMemory(
            cells=each.cells,
            tables={
                kind: Table(each.free[kind], amount - each.free[kind])
                for kind, amount in allocatable[each.zone].items()
            },
            assignments=each.assignments,
        )
        for each in facts.memory or ()
    }
    blocks = {
        uid: own
        for uid, pod in placed.items()
        if (own := {each.container: _blocks(each.memory) for each in _of_containers(pod) if each.memory})
    }
    whole = {uid: _blocks(whole.memory) for uid, pod in placed.items() if (whole := _whole(pod)) and whole.memory}
    return MemoryState(zones=zones, blocks=blocks, pods=whole)


def _blocks(memory: Iterable[MemoryBlock]) -> tuple[Block, ...]:
    return tuple(Block(each.type, each.zones, each.size) for each in memory)


def _of_containers(pod: PodPlacement) -> Iterable[Holding]:
    return (holding for holding in pod.holdings if holding.container != WHOLE_POD)


def _whole(pod: PodPlacement) -> Holding | None:
    return next((holding for holding in pod.holdings if holding.container == WHOLE_POD), None)


def _stand_in(placed: PodPlacement) -> Pod:
    containers = tuple(Container(name=holding.container) for holding in _of_containers(placed))
    metadata = ObjectMeta(namespace=placed.namespace, name=placed.name, uid=placed.uid)
    return Pod(metadata=metadata, spec=PodSpec(containers=containers))
