"""Describes one node for the dashboard: its hardware, who holds what, and what its report says and leaves out.

Sources call `detail` with the cluster as a scheduler knows it. Who holds what comes from the ledger, which knows more
pods than the report. Ids of CPUs and devices come from the report, because the kubelet chooses them; on a node in
direct mode they come from the decisions on its pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.podplacements import Holding, PodPlacement
from numalign.api.attributes.repairs import GuessCode
from numalign.api.decode import cpuset
from numalign.api.nrt import normalise, publishers
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.cli.results import topology as topologies
from numalign.cli.results.moments import fleet
from numalign.cli.results.moments.scene import Scene
from numalign.dashboard.details import (
    Container,
    Core,
    Cpu,
    CpuUse,
    Decided,
    Held,
    NodeDetail,
    NodePod,
    Part,
    Setting,
    Zones,
)
from numalign.kubelet import start
from numalign.placement.explain import amounts, nodeview, wording
from numalign.placement.explain.nodeview import ContainerDecision, Occupancy, Tenant

NOT_REPORTED = "not reported"
DEFAULT = "the kubelet's default; not reported"
STATIC = "static"
DIRECT = "direct"
NOTHING = NodeTopology(node="")


def detail(scene: Scene, name: str) -> NodeDetail | None:
    """None: there is neither a node nor a report of this name."""
    cluster = scene.cluster
    node, written = cluster.node_named(name), cluster.report_of(name)
    if node is None and written is None:
        return None
    topology = normalise.normalise(written) if written is not None else NOTHING
    facts, held = topology.facts, nodeview.of(cluster.engine, name)
    is_direct = held is not None and held.mode == DIRECT
    bound = {pod.metadata.uid: pod for pod in cluster.pods_on(name)}
    placed = _Placed(facts.placements or (), bound)
    seen = cluster.engine.view(name)
    heartbeat = publishers.moment(written.metadata.annotations.get(publishers.HEARTBEAT)) if written else None
    pods = tuple(sorted(_pods(held, bound, placed), key=lambda pod: (not pod.holds, pod.name)))
    return NodeDetail(
        name=name,
        exists=node is not None,
        status=topologies.status(node) if node is not None else "",
        taints=topologies.taints(node) if node is not None else (),
        policy=held.policy if held is not None else topology.manager.policy if written is not None else "",
        scope=held.scope if held is not None else topology.manager.scope if written is not None else "",
        is_direct=is_direct,
        zones=tuple(zone.id for zone in topology.zones),
        sockets=_sockets(facts),
        cores=tuple(Core(each.cpus, each.zone, each.socket, each.l3) for each in facts.cores) if facts.cores else None,
        cpus=_cpus(facts, _held(placed, held), is_direct=is_direct),
        parts=tuple(_parts(topology, held)),
        totals={
            resource: (total.offered, max(0, total.offered - total.requested))
            for resource, total in (seen.totals.items() if seen is not None else ())
            if total.offered
        },
        groups=_groups(facts),
        distances={zone.id: zone.costs for zone in topology.zones if zone.costs},
        pods=pods,
        pod_count=max(len(bound), len(pods)),
        settings=tuple(_settings(topology)) if written is not None else (),
        report=fleet.report_of(scene, name) if written is not None else None,
        heartbeat=heartbeat.timestamp() if heartbeat is not None else None,
        away=bool(facts.kubelet_away),
        assumed=tuple(sorted(wording.ASSUMPTIONS[each] for each in held.assumptions)) if held is not None else (),
        repaired=tuple(map(topologies.doubt, topology.guesses)),
    )


class _Placed:
    """What the report says that pods hold, by the names of the pods."""

    def __init__(self, placements: tuple[PodPlacement, ...], bound: Mapping[str, Pod]) -> None:
        self._by_pod: dict[str, tuple[Holding, ...]] = {}
        for each in placements:
            known = bound.get(each.uid)
            name = f"{each.namespace}/{each.name}" if each.name else known.metadata.full_name if known else each.uid
            self._by_pod[name] = each.holdings

    def cpus(self) -> Iterator[tuple[int, str, str]]:
        """Every CPU that a container holds, with its pod and its container."""
        for pod, holdings in self._by_pod.items():
            for each in holdings:
                for cpu in cpuset.members(each.cpus):
                    yield cpu, pod, each.container

    def of(self, pod: str, container: str) -> Holding | None:
        return next((each for each in self._by_pod.get(pod, ()) if each.container == container), None)


def _sockets(facts: NodeFacts) -> dict[int, Zones]:
    found: dict[int, dict[int, None]] = {}
    for core in facts.cores or ():
        found.setdefault(core.socket, {})[core.zone] = None
    return {socket: tuple(sorted(zones)) for socket, zones in sorted(found.items())}


def _groups(facts: NodeFacts) -> tuple[Zones, ...]:
    masks = {each.cells for each in facts.memory or () if each.cells & (each.cells - 1)}
    return tuple(sorted(cpuset.members(mask) for mask in masks))


def _held(placed: _Placed, held: Occupancy | None) -> dict[int, tuple[str, str]]:
    """By CPU, the pod and the container that have it for themselves."""
    found = {cpu: (pod, container) for cpu, pod, container in placed.cpus()}
    for tenant in held.tenants if held is not None else ():
        # An init container comes first, and hands its CPUs on.
        for each in tenant.decisions:
            found |= dict.fromkeys(cpuset.members(cpuset.parse(each.cpus)), (tenant.name, each.container))
    return found


def _cpus(facts: NodeFacts, held: Mapping[int, tuple[str, str]], *, is_direct: bool) -> dict[int, Cpu]:
    found = {}
    for core in facts.cores or ():
        for cpu in core.cpus:
            if cpu in held:
                found[cpu] = Cpu(cpu, CpuUse.HELD, *held[cpu])
            else:
                found[cpu] = Cpu(cpu, _use(cpu, facts, is_direct=is_direct))
    return found


def _use(cpu: int, facts: NodeFacts, *, is_direct: bool) -> CpuUse:
    """Of a CPU that no pod is known to hold."""
    if is_direct:
        return CpuUse.RESERVED if (facts.reserved_cpus or 0) >> cpu & 1 else CpuUse.FREE
    if facts.managers is not None and facts.managers.cpu != STATIC:
        return CpuUse.SHARED
    if facts.reserved_cpus is not None and facts.reserved_cpus >> cpu & 1:
        return CpuUse.RESERVED
    if facts.default_cpus is None:
        return CpuUse.UNKNOWN
    return CpuUse.FREE if facts.default_cpus >> cpu & 1 else CpuUse.TAKEN


def _parts(topology: NodeTopology, held: Occupancy | None) -> Iterator[Part]:
    """By zone what the report says, with what is free by the ledger; then devices of several zones, or of none."""
    free = (
        {} if held is None else {(name, cell.zones): cell for name, cells in held.resources.items() for cell in cells}
    )
    counted = {(each.resource, cpuset.members(each.zones or 0)): each for each in topology.facts.devices or ()}
    for zone in topology.zones:
        for resource, reported in zone.resources.items():
            cell = free.pop((resource, (zone.id,)), None)
            devices = counted.get((resource, (zone.id,)))
            if cell is not None:
                unit = _unit(resource)
                allocatable, left = cell.allocatable * unit, cell.free * unit
            else:
                allocatable, left = (reported.allocatable, reported.available) if held is None else (0, 0)
            size = devices.total if devices is not None else reported.capacity
            yield Part(
                resource=resource, zones=(zone.id,), size=max(size, allocatable), allocatable=allocatable, free=left
            )
    for (resource, zones), cell in free.items():
        devices, unit = counted.get((resource, zones)), _unit(resource)
        size = max(cell.allocatable * unit, devices.total if devices is not None else 0)
        allocatable, left = cell.allocatable * unit, cell.free * unit
        yield Part(resource=resource, zones=zones, size=size, allocatable=allocatable, free=left)


def _unit(resource: str) -> int:
    return 1000 if resource == resourcenames.CPU else 1


def _pods(held: Occupancy | None, bound: Mapping[str, Pod], placed: _Placed) -> Iterator[NodePod]:
    tenants = {each.uid: each for each in held.tenants} if held is not None else {}
    for uid, tenant in tenants.items():
        yield _pod(tenant.name, tenant, bound.get(uid), placed)
    for uid, pod in bound.items():
        if uid not in tenants:
            yield _pod(pod.metadata.full_name, None, pod, placed)


def _pod(name: str, tenant: Tenant | None, pod: Pod | None, placed: _Placed) -> NodePod:
    aligned = tenant.containers if tenant is not None else {}
    decided = decisions(tenant)
    named = [each.name for each in pod.in_admission_order()] if pod is not None else list(aligned)
    found = []
    # What a pod holds as a whole has no container.
    for container in (*named, *([""] if placed.of(name, "") else [])):
        holding = placed.of(name, container)
        found.append(
            Container(
                name=container,
                zones=tuple(aligned.get(container, ())),
                cpus=cpuset.members(holding.cpus) if holding is not None else (),
                devices=tuple(each for device in holding.devices for each in device.ids) if holding is not None else (),
                decided=decided.get(container),
            )
        )
    return NodePod(
        name=name,
        source=tenant.source if tenant is not None else "",
        arrived=tenant is None or not tenant.is_pending,
        leaving=tenant is not None and tenant.is_leaving,
        containers=tuple(found),
        holds=tuple(
            Held(
                resource=each.resource,
                amount=each.amount * _unit(each.resource),
                zones=each.zones,
                certain=each.certain,
            )
            for each in (tenant.charges if tenant is not None else ())
        ),
    )


def decisions(tenant: Tenant | None) -> dict[str, Decided]:
    """By container what was decided in direct mode, where something was."""
    return {each.container: _decided(each) for each in (tenant.decisions if tenant is not None else ())}


def _decided(decision: ContainerDecision) -> Decided:
    return Decided(
        cpus=decision.cpus,
        mems=decision.mems,
        devices=decision.devices,
        is_applied=decision.is_applied,
        in_effect=decision.cpus_in_effect,
        failure=decision.failure,
    )


def _settings(topology: NodeTopology) -> Iterator[Setting]:
    manager, facts, codes = topology.manager, topology.facts, {each.code for each in topology.guesses}
    yield Setting("Topology Manager policy", manager.policy, DEFAULT if GuessCode.POLICY_ASSUMED in codes else "")
    yield Setting("Topology Manager scope", manager.scope, DEFAULT if GuessCode.SCOPE_ASSUMED in codes else "")
    managers, build = facts.managers, facts.kubelet
    if managers is None or start.MAX_ZONES not in managers.topology_options:
        yield Setting("Topology Manager zones at most", str(manager.max_zones))
    if managers is None:
        yield Setting("CPU manager policy", "", NOT_REPORTED)
        yield Setting("Memory manager policy", "", NOT_REPORTED)
    else:
        for option, value in sorted(managers.topology_options.items()):
            yield Setting(f"Topology Manager option {option}", value)
        yield Setting("CPU manager policy", managers.cpu)
        for option, value in sorted(managers.cpu_options.items()):
            yield Setting(f"CPU manager option {option}", value)
        yield Setting("Memory manager policy", managers.memory)
    if facts.reserved_cpus is not None:
        yield Setting("Reserved CPUs", cpuset.text(facts.reserved_cpus) or "none")
    for zone, reserved in sorted((facts.reserved_memory or {}).items()):
        sizes = ", ".join(f"{amounts.named(name, size)}" for name, size in sorted(reserved.items()))
        yield Setting(f"Reserved in zone {zone}", sizes)
    yield Setting("Kubelet version", build.version if build is not None else "", "" if build else NOT_REPORTED)
    for gate, on in sorted(build.feature_gates.items()) if build is not None else ():
        yield Setting(f"Feature gate {gate}", str(on).lower())
