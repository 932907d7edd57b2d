"""Where one pod is, and what has become of it so far: for whoever asks about a pod by name.

`numalign explain pod` starts with it. Zones are those of the ledger, with how sure we are of them; what the pod's own
status says is passed on as it is. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.explain import nodeview
from numalign.placement.explain.nodeview import Tenant
from numalign.scheduler.cluster import Cluster
from numalign.scheduler.intake import stormguard

SCHEDULED: Final = "PodScheduled"


class Stage(StrEnum):
    GATED = "gated"
    WAITING = "waiting"
    DECIDED = "decided"
    """A node was chosen; the binding is not seen yet."""
    BOUND = "bound"
    RUNNING = "running"
    REJECTED = "rejected"
    """Its node turned it away."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


WITHOUT_NODE: Final = frozenset({Stage.GATED, Stage.WAITING})
OVER: Final = frozenset({Stage.REJECTED, Stage.SUCCEEDED, Stage.FAILED})


class PodProgress(Struct, frozen=True, kw_only=True):
    stage: Stage
    node: str = ""
    is_leaving: bool = False
    """It was deleted, and has not ended yet."""
    tenant: Tenant | None = None
    """What it holds on its node, as the ledger has it. None: it has none, or the node has no report."""
    gates: tuple[str, ...] = ()
    nominated: str = ""
    reason: str = ""
    message: str = ""
    """What its status says last: of its scheduling while it waits, else of the pod itself."""


def of(pod: Pod, cluster: Cluster) -> PodProgress:
    decided = cluster.assumed.get(pod.metadata.uid)
    node = pod.spec.node_name or (decided.pod.spec.node_name if decided is not None else "")
    stage = _stage(pod, decided=decided is not None)
    reason, message = _said(pod, stage)
    return PodProgress(
        stage=stage,
        node=node,
        is_leaving=pod.metadata.deletion_timestamp is not None,
        tenant=_tenant(pod, node, cluster) if node and stage not in OVER else None,
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
        nominated=pod.status.nominated_node_name,
        reason=reason,
        message=message,
    )


def _stage(pod: Pod, *, decided: bool) -> Stage:
    if pod.status.is_finished:
        if stormguard.is_rejection(pod):
            return Stage.REJECTED
        return Stage.SUCCEEDED if pod.status.phase == "Succeeded" else Stage.FAILED
    if pod.spec.node_name:
        return Stage.RUNNING if pod.has_started else Stage.BOUND
    if decided:
        return Stage.DECIDED
    return Stage.GATED if pod.spec.scheduling_gates else Stage.WAITING


def _said(pod: Pod, stage: Stage) -> tuple[str, str]:
    if stage not in WITHOUT_NODE:
        return pod.status.reason, pod.status.message
    scheduled = (each for each in pod.status.conditions if each.type == SCHEDULED and each.status == "False")
    said = next(scheduled, None)
    return (said.reason, said.message) if said is not None else ("", "")


def _tenant(pod: Pod, node: str, cluster: Cluster) -> Tenant | None:
    held = nodeview.of(cluster.engine, node)
    tenants = held.tenants if held is not None else ()
    return next((each for each in tenants if each.uid == pod.metadata.uid), None)
