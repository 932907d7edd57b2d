"""Nodes, pods and reports in a line each: the words in which tests of the ledger speak.

A node has zones of 8 CPUs and 8 GiB. The model that places foreign pods is the simplest there is: the lowest zone that
surely has room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import structs

from numalign.api.attributes.podplacements import Holding as PublishedHolding
from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.decode import quantity
from numalign.api.nrt import fingerprint
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import (
    Container,
    ContainerRunning,
    ContainerState,
    ContainerStatus,
    ContainerTerminated,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source
from numalign.placement.columns.nodefacts import Groups, RowFacts, Supply, supplies_of
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.ledger.ledger import Ledger
from numalign.placement.ledger.nodeledger import Row

NODE, NIC = "n1", "example.com/nic"
GIB = 1 << 30
CPUS = 8
RUNNING = ContainerState(running=ContainerRunning())
TERMINATED = ContainerState(terminated=ContainerTerminated())


def rules(zones: Sequence[int] = (0, 1), **more: Any) -> NodeRules:
    given: dict[str, Any] = {"zones": tuple(zones), "policy": "single-numa-node", "static_cpus": True} | more
    return NodeRules(**given)


def facts(free: Sequence[int] = (CPUS, CPUS), zones: Sequence[int] = (0, 1), **more: Any) -> RowFacts:
    """A plain report of so many free CPUs by zone."""
    sizes = (CPUS,) * len(free)
    supplies = {"cpu": Supply(size=sizes, allocatable=sizes, free=tuple(free))} | more.pop("supplies", {})
    settings = {name: more.pop(name) for name in ("policy", "static_memory", "minor") if name in more}
    given: dict[str, Any] = {"node": NODE, "rules": rules(zones, **settings), "supplies": supplies_of(supplies)} | more
    return RowFacts(**given)


def with_memory(cpus: Sequence[int], memory: Sequence[int], **more: Any) -> RowFacts:
    """The same with GiB of memory by zone, of 8 each, and groups as they are without blocks of several zones."""
    sizes = (8 * GIB,) * len(memory)
    supply = Supply(size=sizes, allocatable=sizes, free=tuple(amount * GIB for amount in memory))
    groups = Groups(tuple(1 << position for position in range(len(memory))))
    given: dict[str, Any] = {"supplies": {"memory": supply}, "static_memory": True, "groups": groups} | more
    return facts(cpus, **given)


def agent(free: Sequence[int], *placements: PodPlacement, zones: Sequence[int] = (0, 1), **more: Any) -> RowFacts:
    """A report of our agent: CPU n of zone position p is number 16 p + n."""
    masks = tuple(((1 << CPUS) - 1) << 16 * position for position in range(len(zones)))
    given: dict[str, Any] = {"placements": placements, "zone_cpus": masks} | more
    return facts(free, zones, **given)


def signed(free: Sequence[int], *names: str, exclusive_only: bool = False, **more: Any) -> RowFacts:
    """A plain report with the fingerprint of these pods in the namespace `default`."""
    text = fingerprint.of([("default", name) for name in names])
    given: dict[str, Any] = {"fingerprint": text, "exclusive_only": exclusive_only} | more
    return facts(free, **given)


def container(name: str, cpus: int = 0, restart_policy: str = "", **devices: int) -> Container:
    amounts = {"cpu": quantity.parse(str(cpus)), "memory": quantity.parse("1Gi")} if cpus else {}
    amounts |= {f"example.com/{name}": quantity.parse(str(count)) for name, count in devices.items()}
    wants = ResourceRequirements(requests=amounts, limits=amounts)
    return Container(name=name, restart_policy=restart_policy, resources=wants)


def pod(name: str, cpus: int = 2, *, node: str = NODE, uid: str = "", **more: Any) -> Pod:
    """A Guaranteed pod on a node, its uid made from its name unless it is given."""
    init = tuple(more.pop("init", ()))
    metadata = ObjectMeta(name=name, namespace="default", uid=uid or f"uid-{name}", **more.pop("metadata", {}))
    containers = (container("app", cpus, **more.pop("devices", {})),)
    spec = PodSpec(containers=containers, init_containers=init, node_name=node, **more)
    return Pod(metadata=metadata, spec=spec, status=PodStatus(phase="Pending"))


def running(pod: Pod) -> Pod:
    statuses = tuple(map(_runs, pod.spec.containers))
    return structs.replace(pod, status=PodStatus(phase="Running", container_statuses=statuses))


def _runs(container: Container) -> ContainerStatus:
    """With what the kubelet gave it: some minors read that instead of the requests."""
    given = container.resources.requests
    return ContainerStatus(name=container.name, started=True, state=RUNNING, allocated_resources=given)


def initialising(pod: Pod) -> Pod:
    """Its first init container runs."""
    statuses = (ContainerStatus(name=pod.spec.init_containers[0].name, started=True, state=RUNNING),)
    return structs.replace(pod, status=PodStatus(phase="Pending", init_container_statuses=statuses))


def terminated(pod: Pod) -> Pod:
    statuses = tuple(ContainerStatus(name=each.name, state=TERMINATED) for each in pod.spec.containers)
    return structs.replace(pod, status=PodStatus(phase="Running", container_statuses=statuses))


def finished(pod: Pod, phase: str = "Succeeded", reason: str = "") -> Pod:
    return structs.replace(pod, status=PodStatus(phase=phase, reason=reason))


def held(pod: Pod, zone: int, cpus: int = 2, **more: Any) -> Holding:
    """A prediction: so many CPUs in one zone."""
    containers = (ContainerZones("app", (1 << zone,)),)
    entries = (Entry(CPU, cpus, 1 << zone), *more.pop("beside", ()))
    given: dict[str, Any] = {"containers": containers} | more
    return holding(pod, entries, **given)


def holding(pod: Pod, entries: Sequence[Entry], **more: Any) -> Holding:
    given: dict[str, Any] = {"source": Source.PREDICTED, "entries": tuple(entries)} | more
    return Holding(uid=pod.metadata.uid, name=pod.metadata.full_name, **given)


def placed(pod: Pod, position: int, cpus: int = 2, first: int = 0, **more: Any) -> PodPlacement:
    """What our agent says of a pod: CPUs of one zone, from its first-th on."""
    mask = ((1 << cpus) - 1) << (16 * position + first)
    uid = more.pop("uid", pod.metadata.uid)
    kept = PublishedHolding(container="app", cpus=mask, **more)
    return PodPlacement(namespace="default", name=pod.metadata.name, uid=uid, holdings=(kept,))


def lowest_zone_with_room(pod: Pod, row: Row) -> Sequence[Holding]:
    (cpu,) = (each.resources.requests["cpu"].value for each in pod.spec.containers)
    zone = next((z for z in range(len(row.facts.rules.zones)) if least(row, z) >= cpu), None)
    return () if zone is None else [held(pod, zone, cpu)]


def ledger(placer: Any = lowest_zone_with_room) -> Ledger:
    return Ledger(Resources(), Shapes(), placer)


def least(row: Row, position: int, column: int = CPU) -> int:
    return by_zone(row, column)[position] - sum(
        entry.amount for entry in row.entries if entry.column == column and entry.zones >> position & 1
    )


def most(row: Row, position: int, column: int = CPU) -> int:
    inside = (e for e in row.entries if e.column == column and e.certain and e.zones == 1 << position)
    return by_zone(row, column)[position] - sum(entry.amount for entry in inside)


def bounds(ledger: Ledger, node: str = NODE, column: int = CPU) -> list[tuple[int, int]]:
    """By zone position: what is free at least and at most."""
    row = ledger.row(node)
    assert row is not None
    positions = range(len(row.facts.rules.zones))
    return [(least(row, position, column), most(row, position, column)) for position in positions]


def free(ledger: Ledger, node: str = NODE, column: int = CPU) -> list[int]:
    """By zone position: what is free, where that is known exactly."""
    row = ledger.row(node)
    assert row is not None
    assert row.entries == ()
    return by_zone(row, column)


def by_zone(row: Row, column: int) -> list[int]:
    """What is free, with all known pods charged and without what may lie in several zones."""
    return row.free[column :: row.width]
