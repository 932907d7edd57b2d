"""Nodes of a snapshot with the kubelet behind each, and the same nodes changed.

`changed` starts a kubelet with the change and admits the node's pods again, in the order of their creation, as a
kubelet does at start. `with_more` and `with_manager` leave every pod where it is: they tell what the next pod would
find. The kubelet is that of the exact model, restored from the report of our agent. Reports of other publishers do not
say enough for that: only the policy and the scope of such a node can be changed, or the amounts of its zones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, structs

from numalign.api.decode import cpuset, quantity
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import Amounts, NodeTopology
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, ResourceList
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.kubelet import admission, demand, start
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, Machine, Zone
from numalign.kubelet.refusals import StartRefusal, Undecided
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.placement.commit import restorekubelet
from numalign.placement.commit.restorekubelet import RestoredKubelet
from numalign.plan.questions import changes
from numalign.plan.questions.changes import Change, Undivided
from numalign.scheduler.capacity import templates
from numalign.scheduler.snapshot.snapshot import Snapshot

MILLI: Final = 1000
UNSAID: Final = "its report does not describe its kubelet, so only the Topology Manager can be changed there"


class KnownNode(Struct, frozen=True, kw_only=True):
    node: Node
    pods: tuple[Pod, ...]
    """Those that count on it, in the order of their creation."""
    topology: NodeTopology | None = None
    restored: RestoredKubelet | None = None
    """None: the report does not say enough."""

    @property
    def name(self) -> str:
        return self.node.metadata.name


class Refusal(Struct, frozen=True):
    """A pod that the changed kubelet does not admit."""

    pod: Pod
    why: str


class ChangedNode(Struct, frozen=True, kw_only=True):
    node: Node
    report: NodeResourceTopology | None
    stays: tuple[Pod, ...]
    refused: tuple[Refusal, ...] = ()
    problem: str = ""
    """Why the node is as it was."""


def known(taken: Snapshot, names: frozenset[str] | None = None) -> dict[str, KnownNode]:
    """The nodes of a snapshot, or those of these names."""
    by_node: dict[str, list[Pod]] = {}
    for pod in taken.every(PODS):
        if pod.spec.node_name and not pod.status.is_finished:
            by_node.setdefault(pod.spec.node_name, []).append(pod)
    reports = {each.metadata.name: each for each in taken.every(TOPOLOGIES)}
    return {
        node.metadata.name: _known(node, reports.get(node.metadata.name), by_node.get(node.metadata.name, ()))
        for node in taken.every(NODES)
        if names is None or node.metadata.name in names
    }


def _known(node: Node, written: NodeResourceTopology | None, pods: Sequence[Pod]) -> KnownNode:
    ordered = tuple(sorted(pods, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.full_name)))
    if written is None:
        return KnownNode(node=node, pods=ordered)
    try:
        topology = normalise.normalise(written)
    except BadObject:
        # The scheduler skips it, too.
        return KnownNode(node=node, pods=ordered)
    restored = restorekubelet.restored(topology, {pod.metadata.full_name: pod for pod in ordered})
    return KnownNode(node=node, pods=ordered, topology=topology, restored=restored)


def changed(each: KnownNode, change: Change, source: str) -> ChangedNode:
    """The node with the change. BadObject if no kubelet would start with it."""
    if each.restored is None:
        return _changed_report(each, change)
    before, state = each.restored
    try:
        machine = _whole(before.machine, each)
        if change.zones_per_socket:
            machine = changes.divided(machine, change.zones_per_socket)
        kubelet = start.start(machine, changes.settings(before.settings, change, machine, source))
    except Undivided as problem:
        raise BadObject("Node", each.name, "zones per socket", str(problem)) from None
    except (StartRefusal, Undecided) as refusal:
        raise BadObject("Node", each.name, "kubelet", f"would not start: {refusal}") from None
    node = _offering(each.node, before, kubelet, change)
    if change.from_empty:
        written = normalise.encode(report.of(each.name, kubelet, kubelet.initial()))
        return ChangedNode(node=node, report=written, stays=())
    state = start.restart(kubelet, state) if change.keeps_placements else kubelet.initial()
    stays, refused = list[Pod](), list[Refusal]()
    for pod in each.pods:
        uid = demand.identity(pod)
        if why := _lacking(node, stays, pod):
            state = state.without_pod(uid)
        else:
            state, outcome = admission.align(kubelet, state, pod)
            why = "" if outcome.admitted else f"{outcome.reason or outcome.verdict}: {outcome.message}"
        if why:
            refused.append(Refusal(pod, why))
        else:
            stays.append(pod)
            state = admission.started(kubelet, state, uid)
    return ChangedNode(
        node=node,
        report=normalise.encode(report.of(each.name, kubelet, state)),
        stays=tuple(stays),
        refused=tuple(refused),
    )


def _changed_report(each: KnownNode, change: Change) -> ChangedNode:
    """What can be said of a node whose kubelet cannot be restored: its pods stay as they are."""
    if each.topology is None:
        why = "it has no report, so nothing is known about its zones"
    elif not change.keeps_placements or "topologyManagerPolicyOptions" in change.kubelet:
        why = UNSAID
    else:
        topology = templates.emptied(each.topology) if change.from_empty else each.topology
        manager = _manager(topology.manager, change.kubelet)
        return ChangedNode(
            node=each.node, report=normalise.encode(structs.replace(topology, manager=manager)), stays=each.pods
        )
    there = emptied(each) if change.from_empty else written(each)
    return ChangedNode(node=each.node, report=there, stays=each.pods, problem=why)


def emptied(each: KnownNode) -> NodeResourceTopology | None:
    """The report as if no pod were there; None: the node has none."""
    return normalise.encode(templates.emptied(each.topology)) if each.topology is not None else None


def written(each: KnownNode) -> NodeResourceTopology | None:
    """The report as it is."""
    return normalise.encode(each.topology) if each.topology is not None else None


def _manager(before: TopologyManager, given: Mapping[str, object]) -> TopologyManager:
    read = changes.settings(
        Settings(topology_policy=before.policy, topology_scope=before.scope),
        Change(kubelet=given),
        _NO_MACHINE,
        "change",
    )
    return structs.replace(before, policy=read.topology_policy, scope=read.topology_scope)


_NO_MACHINE: Final = Machine("", ())


def _whole(machine: Machine, each: KnownNode) -> Machine:
    """With the memory that the report counts: a kubelet that does not pin memory is restored without it."""
    if any(zone.memory for zone in machine.zones) or each.topology is None:
        return machine
    amounts = {zone.id: zone.resources.get(resourcenames.MEMORY) for zone in each.topology.zones}
    zones = (
        structs.replace(zone, memory=found.capacity if (found := amounts.get(zone.id)) is not None else 0)
        for zone in machine.zones
    )
    return structs.replace(machine, zones=tuple(zones))


def _offering(node: Node, before: Kubelet, after: Kubelet, change: Change) -> Node:
    """The Node with what the other reservations leave."""
    amounts = dict(node.status.allocatable)
    for name in (resourcenames.CPU, resourcenames.MEMORY):
        more = before.settings.withheld(name) - after.settings.withheld(name)
        if more and name in amounts:
            own = amounts[name].milli + more if name == resourcenames.CPU else amounts[name].value + more
            amounts[name] = quantity.of_milli(max(0, own)) if name == resourcenames.CPU else quantity.of(max(0, own))
    if "maxPods" in change.kubelet:
        amounts["pods"] = quantity.of(after.settings.max_pods)
    info = node.status.node_info
    if change.minor:
        info = structs.replace(info, kubelet_version=f"v{change.minor}.0")
    return structs.replace(node, status=structs.replace(node.status, allocatable=amounts, node_info=info))


def _lacking(node: Node, there: Iterable[Pod], pod: Pod) -> str:
    """The resource of the node's totals that the pod does not find; empty: it finds all."""
    offered = node.status.allocatable
    taken = requests.together([requests.effective(each) for each in there])
    for name, wanted in requests.effective(pod).items():
        if (
            name in offered
            and wanted.nanos
            and wanted.nanos > offered[name].nanos - taken.get(name, quantity.ZERO).nanos
        ):
            return f"OutOf{name}: the node's totals have too little {name}"
    return ""


def with_manager(each: KnownNode, manager: TopologyManager) -> NodeResourceTopology | None:
    """The report of the node with another policy or scope, every pod being where it is. None: none would start."""
    if each.restored is None:
        return normalise.encode(structs.replace(each.topology, manager=manager)) if each.topology is not None else None
    before, state = each.restored
    settings = structs.replace(before.settings, topology_policy=manager.policy, topology_scope=manager.scope)
    try:
        kubelet = start.start(before.machine, settings)
    except (StartRefusal, Undecided):
        return None
    return normalise.encode(report.of(each.name, kubelet, state))


def with_more(each: KnownNode, resource: str) -> ChangedNode | None:
    """The node with one more device, or one more core, in each zone, every pod being where it is. None: it cannot be
    said what that would be."""
    if each.topology is None:
        return ChangedNode(node=_plus(each.node, resource, 1), report=None, stays=each.pods)
    if each.restored is None:
        made = tuple(_more_amounts(zone.resources, resource) for zone in each.topology.zones)
        zones = tuple(
            structs.replace(zone, resources=amounts) for zone, amounts in zip(each.topology.zones, made, strict=True)
        )
        written = normalise.encode(structs.replace(each.topology, zones=zones))
        return ChangedNode(node=_plus(each.node, resource, len(zones)), report=written, stays=each.pods)
    before, state = each.restored
    machine, cpus = _with_cores(before.machine) if resource == resourcenames.CPU else (before.machine, 0)
    if resource != resourcenames.CPU:
        machine = _with_devices(before.machine, resource)
    try:
        kubelet = start.start(machine, before.settings)
    except (StartRefusal, Undecided):
        return None
    more = cpus.bit_count() if cpus else sum(bool(zone.cores) for zone in machine.zones)
    written = normalise.encode(report.of(each.name, kubelet, _with_free(state, cpus)))
    return ChangedNode(node=_plus(each.node, resource, more), report=written, stays=each.pods)


def _with_free(state: KubeletState, cpus: int) -> KubeletState:
    if state.cpu is None or not cpus:
        return state
    return structs.replace(state, cpu=structs.replace(state.cpu, default=state.cpu.default | cpus))


def _with_cores(machine: Machine) -> tuple[Machine, int]:
    """With one more core in each zone that has any; and the mask of the new CPUs."""
    first = machine.cpus.bit_length()
    made, added = list[Zone](), 0
    for zone in machine.zones:
        if zone.cores:
            like = zone.cores[-1]
            cpus = tuple(range(first, first + len(like.cpus)))
            first, added = first + len(cpus), added | cpuset.of(cpus)
            zone = structs.replace(zone, cores=(*zone.cores, Core(like.socket, cpus, like.uncore)))
        made.append(zone)
    return structs.replace(machine, zones=tuple(made)), added


def _with_devices(machine: Machine, resource: str) -> Machine:
    plugin = machine.devices.get(resource, DevicePlugin())
    more = tuple(Device(f"one-more-{zone.id}", (zone.id,)) for zone in machine.zones if zone.cores)
    return structs.replace(
        machine,
        devices={**machine.devices, resource: structs.replace(plugin, devices=(*plugin.devices, *more))},
    )


def _more_amounts(there: Mapping[str, Amounts], resource: str) -> dict[str, Amounts]:
    unit = MILLI if resource == resourcenames.CPU else 1
    own = there.get(resource, Amounts(0, 0, 0))
    return {**there, resource: Amounts(own.capacity + unit, own.allocatable + unit, own.available + unit)}


def _plus(node: Node, resource: str, more: int) -> Node:
    def added(amounts: ResourceList) -> ResourceList:
        own = amounts.get(resource, quantity.ZERO)
        return {**amounts, resource: quantity.of_milli(own.milli + MILLI * more)}

    status = node.status
    status = structs.replace(status, allocatable=added(status.allocatable), capacity=added(status.capacity))
    return structs.replace(node, status=status)
