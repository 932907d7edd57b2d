"""What a kubelet says to other requests of a running pod (in-place resize), and what a new pod would find.

`numalign plan resize` calls `answer`. First what the API server refuses, then what the kubelet does, in its order
(kubelet spec 8): `infeasible` is final, `deferred` is tried again whenever something changes. A resize never moves a
pod: the CPUs, memory and devices that it holds stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct, structs

from numalign.api.decode import quantity
from numalign.api.decode.quantity import Quantity
from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Container, Pod, PodStatus, ResourceList, ResourceRequirements
from numalign.api.objects.qos import QoS
from numalign.kubelet import demand
from numalign.kubelet.demand import PodDemand
from numalign.kubelet.settings import Settings
from numalign.kubelet.topologymanager import policies
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.commit.restorekubelet import RestoredKubelet
from numalign.placement.explain import whatif
from numalign.placement.reports import nodesettings
from numalign.plan.questions import nodes, scene
from numalign.plan.questions.nodes import KnownNode
from numalign.scheduler.choose import filtering
from numalign.scheduler.snapshot.snapshot import Snapshot

Verdict = Literal["fits", "deferred", "infeasible", "refused", "unknown"]
RESIZABLE: Final = (resourcenames.CPU, resourcenames.MEMORY)
GATE: Final = "InPlacePodVerticalScaling"
EXCLUSIVE: Final = (
    (resourcenames.CPU, "cpu_policy", "static", "InPlacePodVerticalScalingExclusiveCPUs", "CPU"),
    (resourcenames.MEMORY, "memory_policy", "Static", "InPlacePodVerticalScalingExclusiveMemory", "Memory"),
)
"""What a static policy keeps from being resized, and the alpha gate that lifts it."""


class NewRequests(Struct, frozen=True):
    """New requests of one container."""

    container: str
    """Empty: the only one."""
    amounts: Mapping[str, Quantity]


class Instead(Struct, frozen=True, kw_only=True, rename="camel"):
    """What becomes of a new pod with these requests, once the old one is gone."""

    same_node: bool
    """Whether its node would certainly admit it."""
    node: str = ""
    """Where the scheduler would put it; empty: nowhere."""
    why: str = ""


class ResizePlan(Struct, frozen=True, kw_only=True, rename="camel"):
    pod: str
    node: str
    verdict: Verdict
    by: str
    """Who says so: the API server, or the kubelet."""
    reason: str = ""
    message: str = ""
    zones_kept: bool = True
    notes: tuple[str, ...] = ()
    instead: Instead | None = None

    @property
    def fits(self) -> bool:
        return self.verdict == "fits"


class _No(Exception):
    def __init__(self, verdict: Verdict, message: str, reason: str = "", by: str = "kubelet") -> None:
        super().__init__(message)
        self.verdict, self.message, self.reason, self.by = verdict, message, reason, by


def answer(taken: Snapshot, name: str, wanted: NewRequests) -> ResizePlan:
    """BadObject if there is no such pod, or if it does not run."""
    pod = taken.pod(name)
    if pod is None:
        raise BadObject("Pod", name, "", "is not in the cluster; see kubectl get pods -A")
    node = pod.spec.node_name
    if not node or pod.status.is_finished:
        why = (
            "has ended"
            if pod.status.is_finished
            else "has no node yet; its requests can be changed by creating it anew"
        )
        raise BadObject("Pod", name, "", why)
    known = nodes.known(taken, frozenset({node})).get(node)
    if known is None:
        raise BadObject("Pod", name, "spec.nodeName", f"node {node} is not in the cluster")
    container = _container(pod, wanted.container)
    resized = _resized(pod, container, wanted.amounts)
    plan = ResizePlan(pod=name, node=node, verdict="fits", by="kubelet", notes=tuple(_notes(pod, container, resized)))
    try:
        _ask_server(pod, container, resized, wanted.amounts)
        assumed = _ask_kubelet(known, pod, resized)
    except _No as no:
        found = structs.replace(plan, verdict=no.verdict, by=no.by, reason=no.reason, message=no.message)
        return structs.replace(found, instead=_instead(taken, pod, resized))
    return structs.replace(plan, notes=(*plan.notes, *assumed))


def _container(pod: Pod, name: str) -> Container:
    found = [each for each in pod.in_admission_order() if each.name == name or not name]
    if not found:
        names = ", ".join(each.name for each in pod.in_admission_order())
        raise BadObject("Pod", pod.metadata.full_name, "--container", f"has no container {name}; it has {names}")
    if not name and len(pod.spec.containers) != 1:
        names = ", ".join(each.name for each in pod.spec.containers)
        raise BadObject("Pod", pod.metadata.full_name, "--container", f"is needed: the pod has {names}")
    return found[-1]


def _resized(pod: Pod, container: Container, amounts: Mapping[str, Quantity]) -> Pod:
    """The pod with the new requests; where limits were equal to the requests, they stay equal."""
    own = container.resources
    equal = {name for name in amounts if name in own.limits and own.limits[name] == own.requests.get(name)}
    new = ResourceRequirements(
        requests={**own.requests, **amounts},
        limits={**own.limits, **{name: amounts[name] for name in equal}},
    )

    def with_new(each: Container) -> Container:
        return structs.replace(each, resources=new) if each.name == container.name else each

    spec = structs.replace(
        pod.spec,
        containers=tuple(map(with_new, pod.spec.containers)),
        init_containers=tuple(map(with_new, pod.spec.init_containers)),
    )
    return structs.replace(pod, spec=spec)


def _ask_server(pod: Pod, container: Container, resized: Pod, amounts: Mapping[str, Quantity]) -> None:
    """What the API server refuses."""
    for name, amount in amounts.items():
        if name not in RESIZABLE:
            raise _No("refused", f"only cpu and memory can be resized, not {name}", by="API server")
        if amount < quantity.ZERO:
            raise _No("refused", f"{name} {amount} is negative", by="API server")
        own = next(each for each in resized.in_admission_order() if each.name == container.name)
        limit = own.resources.limits.get(name)
        if limit is not None and amount > limit:
            raise _No("refused", f"the request of {amount} {name} is more than the limit of {limit}", by="API server")
    if container in pod.spec.init_containers and not container.is_sidecar:
        raise _No("refused", "init containers that end cannot be resized", by="API server")
    before, after = qos.of(pod), qos.computed(resized)
    if before is not after:
        why = f"the QoS class may not change: it is {before}, and would be {after}"
        raise _No("refused", why, by="API server")


def _ask_kubelet(known: KnownNode, pod: Pod, resized: Pod) -> list[str]:
    """What the node's kubelet says, check by check; notes on what is assumed about it."""
    noted = set[Assumption]()
    restored = known.restored
    if restored is not None:
        settings = restored.kubelet.settings
    elif known.topology is not None:
        settings = nodesettings.read(known.topology, known.node, noted)
    else:
        raise _No("unknown", "the node has no report, so nothing is known about its kubelet's managers", by="numalign")
    if not settings.gate(GATE):
        raise _No("infeasible", f"the kubelet's feature gate {GATE} is off")
    if scene.is_of_node(pod) and pod.metadata.controller is not None and pod.metadata.controller.kind == scene.STATIC:
        raise _No("infeasible", "In-place resize of static-pods is not supported", "Infeasible")
    _ask_managers(settings, pod, resized)
    _ask_capacity(known, resized)
    _ask_topology(restored, settings, resized)
    _ask_totals(known, resized)
    return [f"assumed: {each}" for each in sorted(map(str, noted))]


def _ask_managers(settings: Settings, pod: Pod, resized: Pod) -> None:
    if qos.of(pod) is not QoS.GUARANTEED:
        return
    for resource, field, static, gate, manager in EXCLUSIVE:
        pairs = zip(pod.in_admission_order(), resized.in_admission_order(), strict=True)
        differs = any(
            one.resources.requests.get(resource) != two.resources.requests.get(resource) for one, two in pairs
        )
        if differs and getattr(settings, field) == static and not settings.gate(gate):
            why = f'Resize is infeasible for Guaranteed Pods alongside {manager} Manager policy "{static}"'
            raise _No("infeasible", why, "Infeasible")


def _ask_capacity(known: KnownNode, resized: Pod) -> None:
    asked, offered = requests.effective(resized), known.node.status.allocatable
    for resource in (resourcenames.MEMORY, resourcenames.CPU):
        wanted, most = asked.get(resource, quantity.ZERO), offered.get(resource, quantity.ZERO)
        if wanted > most:
            numbers = (wanted.milli, most.milli) if resource == resourcenames.CPU else (wanted.value, most.value)
            why = f"Node didn't have enough capacity: {resource}, requested: {numbers[0]}, capacity: {numbers[1]}"
            raise _No("infeasible", why, "Infeasible")


def _ask_topology(restored: RestoredKubelet | None, settings: Settings, resized: Pod) -> None:
    """The Topology Manager merges hints once more. CPU and Memory Manager give none; devices give those of what the pod
    holds, which may have become worse than what is free."""
    if settings.topology_policy == "none":
        return
    if restored is None:
        if any(map(resourcenames.is_extended, requests.effective(resized))):
            why = "the node's report does not say which devices the pod holds, so its hints are not known"
            raise _No("unknown", why, by="numalign")
        return
    kubelet, state = restored
    asked: PodDemand = demand.of(resized, kubelet.reading)
    offered = (
        [kubelet.devices.container_hints(state.devices, asked, each) for each in asked.containers]
        if settings.topology_scope == "container"
        else [kubelet.devices.pod_hints(state.devices, asked)]
    )
    for hints in offered:
        if policies.merge([hints], kubelet.rules).admitted is None:
            why = "Resources cannot be allocated with Topology locality"
            raise _No("deferred", why, "Deferred")


def _ask_totals(known: KnownNode, resized: Pod) -> None:
    others = requests.together(
        [requests.assigned(each) for each in known.pods if each.metadata.uid != resized.metadata.uid]
    )
    asked, offered = requests.effective(resized), known.node.status.allocatable
    for resource in RESIZABLE:
        wanted, used = asked.get(resource, quantity.ZERO), others.get(resource, quantity.ZERO)
        if resource in offered and wanted > quantity.ZERO and wanted + used > offered[resource]:
            numbers = [_number(resource, each) for each in (wanted, used, offered[resource])]
            why = "Node didn't have enough resource: {}, requested: {}, used: {}, capacity: {}"
            raise _No("deferred", why.format(resource, *numbers), "Deferred")


def _number(resource: str, amount: Quantity) -> int:
    return amount.milli if resource == resourcenames.CPU else amount.value


def _notes(pod: Pod, container: Container, resized: Pod) -> Iterator[str]:
    own = next(each for each in resized.in_admission_order() if each.name == container.name)
    before, after = _memory_limit(container.resources.limits), _memory_limit(own.resources.limits)
    if before is not None and after is not None and after < before:
        yield "a lower memory limit takes effect only if the container uses less than it"
    if qos.of(pod) is not QoS.GUARANTEED:
        yield "the pod is not Guaranteed: kubelets pin none of its CPUs and memory, so the resize concerns totals only"


def _memory_limit(limits: ResourceList) -> Quantity | None:
    return limits.get(resourcenames.MEMORY)


def _instead(taken: Snapshot, pod: Pod, resized: Pod) -> Instead | None:
    """What a new pod with these requests would find, without the old one."""
    opened = scene.opened(taken)
    fresh = requests.defaulted(structs.replace(scene.again(resized), status=PodStatus()))
    profile, engine = opened.arrivals.profile(fresh), opened.made.engine
    try:
        shape = filtering.shape(profile, engine, fresh)
    except BadObject:
        return None
    row, gone = engine.row(pod.spec.node_name), {pod.metadata.uid}
    asked = whatif.of(engine, fresh, shape)
    same = row is not None and asked.has_totals(row, gone) and asked.admits(row, gone)
    placed = opened.arrivals.place(fresh)
    if placed is not None:
        return Instead(same_node=same, node=placed.decision.node)
    return Instead(same_node=same, why="" if same else scene.why_not(opened, fresh))
