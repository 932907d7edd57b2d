"""Small clusters with pods that are spread as a scheduler may leave them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from numalign.api.nrt import normalise
from numalign.api.objects.meta import ObjectMeta, OwnerReference
from numalign.api.objects.pod import Pod
from numalign.api.objects.selectors import LabelSelector
from numalign.api.objects.workloads import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from numalign.plan.defrag import planner
from numalign.plan.defrag.messages import DefragPlan
from numalign.plan.defrag.planner import Wanted
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot
from tests.unit.kubelet import made
from tests.unit.placement.direct import clusters
from tests.unit.placement.test_engine import node, report


class Tenant(Struct, frozen=True):
    """A pod that runs, or that ran and left room behind."""

    name: str
    node: str
    cpu: int
    owner: str = "ReplicaSet"
    """Kind of the controller; empty: none."""
    ended: bool = False
    priority: int = 0
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    group: str = ""
    """Name of the controller; empty: one of the pod's own."""


Policy = Any
DIRECT: Final = "direct"
"""Nodes in direct mode, where every pod gets one zone."""
ONE_ZONE: Final = {"numalign.io/numa-topology-policy": "SingleNUMANode"}


def pod(tenant: Tenant) -> Pod:
    plain = made.pod(tenant.name, made.container("c", cpu=tenant.cpu, memory="1Gi"))
    name = tenant.group or f"{tenant.name}-owner"
    owner = OwnerReference(kind=tenant.owner, name=name, uid=name, controller=True)
    metadata = ObjectMeta(
        name=tenant.name,
        namespace="default",
        uid=tenant.name,
        labels=dict(tenant.labels),
        annotations=dict(tenant.annotations),
        owner_references=(owner,) if tenant.owner else (),
    )
    return structs.replace(plain, metadata=metadata, spec=structs.replace(plain.spec, priority=tenant.priority))


def town(
    nodes: Sequence[str],
    tenants: Sequence[Tenant],
    policy: Policy = "single-numa-node",
    allowed: Mapping[str, int] = {},
) -> Callable[[], Restored]:
    """`policy`: of the kubelets, or `DIRECT`. `allowed`: by label value of `app`, evictions that a budget allows."""

    def build() -> Restored:
        found = restore.restored(Snapshot())
        for name in nodes:
            found.cluster.node(clusters.node(name, labels=ONE_ZONE) if policy == DIRECT else node(name))
            reported = clusters.topology(name) if policy == DIRECT else report(name, policy=policy)
            found.cluster.report(normalise.encode(reported), 0.0)
        for value, disruptions in allowed.items():
            found.stock.budgets.put(
                PodDisruptionBudget(
                    metadata=ObjectMeta(name=value, namespace="default"),
                    spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": value})),
                    status=PodDisruptionBudgetStatus(disruptions_allowed=disruptions),
                )
            )
        for tenant in tenants:
            run(found, pod(tenant), tenant.node)
        for tenant in tenants:
            if tenant.ended:
                restore.end(found, found.world.pods[tenant.name].pod)
        return found

    return build


def run(found: Restored, own: Pod, name: str) -> bool:
    """The pod on the node, where it runs; False: it does not fit."""
    engine = found.engine
    row = engine.rows[name]
    shape = engine.shape(own)
    engine.survey(shape)
    decision = engine.place(own, shape, row, 0.0)
    if decision is None:
        return False
    spec, status = structs.replace(own.spec, node_name=name), structs.replace(own.status, phase="Running")
    found.cluster.pod(structs.replace(own, spec=spec, status=status), 0.0)
    return True


def wanted_pods(count: int, cpu: int, **more: Any) -> Wanted:
    wanted = structs.replace(pod(Tenant("wanted", "", cpu)), metadata=ObjectMeta(name="wanted", uid="wanted"))
    return Wanted(text=f"{count} pods with {cpu} CPUs", pod=wanted, pods=count, **more)


def planned(cluster: Callable[[], Restored], wanted: Wanted) -> DefragPlan:
    return planner.plan(cluster, wanted)
