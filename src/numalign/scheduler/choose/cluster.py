"""The cluster as the scheduler knows it: the engine for zones and totals, `ClusterState` for everything else.

`intake` applies what informers see, `cycle` and `binder` what was decided and what became of it. A pod is assumed on
its node from the decision until a watch event confirms it or a failed binding forgets it. Methods return the
engine's wakes: nodes on which a waiting pod may fit now."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes import directresult
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, PodStatus
from numalign.placement import facts
from numalign.placement.decisions import Decision, Wake, WakeCause
from numalign.placement.engine import Engine
from numalign.placement.facts import Fact, Forecast
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.clusterstate import ClusterState
from numalign.process.log import about
from numalign.scheduler import placementannotation
from numalign.scheduler.choose.rankcache import RankCache

LOG: Final = logging.getLogger(__name__)
FORECAST_BROKEN: Final = "forecast-broken"


class AssumedDecision(Struct, eq=False):
    """A decision whose binding is not seen yet."""

    pod: Pod
    """With its node in the spec."""
    decision: Decision
    is_sent: bool = False
    """A Binding was sent, and may take effect whatever its answer is."""
    is_bound: bool = False
    """The API server said so; only the watch lags."""


class Cluster:
    def __init__(self, engine: Engine, world: ClusterState) -> None:
        self.engine = engine
        self.world = world
        self.ranks = RankCache(engine, world)
        world.totals.kernel = lambda: engine.kernel or nodeamounts
        self.assumed: dict[str, AssumedDecision] = {}
        """By uid."""
        self._rows: dict[str, int] = {}
        """By node, the row that the cluster state uses for it."""
        self._nodes: dict[str, Node] = {}
        self._reports: dict[str, NodeResourceTopology] = {}
        """By node, the latest."""
        self._deleted_reports: dict[str, NodeResourceTopology] = {}
        """By node, the last one of each node whose report was deleted."""
        self._once_reported: set[str] = set()
        """Nodes on which a pod has a decision as an annotation: its scheduler knew the node's zones."""
        self.waiting_elsewhere: dict[str, Pod] = {}
        """By uid: pods without a node that other schedulers are to place."""
        self._rowless: dict[str, dict[str, Pod]] = {}
        """Pods on nodes that have no row, by node and uid; the world has all others."""
        self._rowless_on: dict[str, str] = {}
        """By uid, the nodes of these."""

    # What was seen

    def node(self, node: Node, now: float = 0.0) -> list[Wake]:
        name = node.metadata.name
        self._nodes[name] = node
        wakes = self._apply(facts.NodeSeen(node), name)
        self.world.put_node(self._rows[name], node)
        self._follow_report(name, now)
        return wakes

    def node_gone(self, name: str) -> list[Wake]:
        if self._nodes.pop(name, None) is not None and name in self._rows:
            self.world.drop_node(self._rows[name])
        # The next report is read without it.
        self._reports.pop(name, None)
        self._deleted_reports.pop(name, None)
        self._once_reported.discard(name)
        return self._apply(facts.NodeGone(name), name)

    def report(self, written: NodeResourceTopology, now: float) -> list[Wake]:
        name = written.metadata.name
        before, self._reports[name] = self._reports.get(name), written
        self._deleted_reports.pop(name, None)
        # Most reports repeat the one before.
        if before is not None and _is_repeated(before, written):
            return self._apply(facts.ReportRepeated(name, written), name)
        wakes = self._apply(facts.ReportSeen(normalise.normalise(written), now, written), name)
        self._follow_report(name, now)
        return wakes

    def report_gone(self, node: str, now: float) -> list[Wake]:
        last = self._reports.pop(node, None)
        if last is not None and node in self._nodes:
            self._deleted_reports[node] = last
        wakes = self._apply(facts.ReportGone(node, now), node)
        self._follow_report(node, now)
        return wakes

    def pod(self, pod: Pod, now: float) -> list[Wake]:
        """A pod that has a node was seen as it is now."""
        uid, node = pod.metadata.uid, pod.spec.node_name
        wakes: list[Wake] = []
        self.waiting_elsewhere.pop(uid, None)
        assumed = self.assumed.pop(uid, None)
        is_new = assumed is None and not self.counts(uid)
        forecast = self._forecast(pod) if is_new else None
        if is_new and node not in self._once_reported and (forecast or _is_placed_directly(pod)):
            self._once_reported.add(node)
            self._follow_report(node, now)
        if assumed is not None and assumed.pod.spec.node_name != node:
            wakes += self.engine.apply(facts.BindFailed(uid))
        if pod.status.is_finished:
            self._release(uid)
        else:
            self._count(pod)
        return wakes + self.engine.apply(facts.PodSeen(pod, now, forecast))

    def pod_gone(self, pod: Pod, now: float) -> list[Wake]:
        self.waiting_elsewhere.pop(pod.metadata.uid, None)
        assumed = self.assumed.pop(pod.metadata.uid, None)
        self._release(pod.metadata.uid)
        # Deleted before the watch showed its node: it may run there all the same.
        last = assumed.pod if assumed is not None and (assumed.is_sent or assumed.is_bound) else pod
        return self.engine.apply(facts.PodGone(last, now))

    def waits_elsewhere(self, pod: Pod) -> None:
        """A pod without a node was seen that another scheduler is to place."""
        if pod.status.is_finished or pod.spec.scheduling_gates or pod.metadata.deletion_timestamp is not None:
            self.waiting_elsewhere.pop(pod.metadata.uid, None)
        else:
            self.waiting_elsewhere[pod.metadata.uid] = pod

    def tick(self, now: float) -> list[Wake]:
        wakes = self.engine.apply(facts.Tick(now))
        for wake in wakes:
            if wake.cause is WakeCause.REPORT:
                self._follow_report(wake.node, now)
        return wakes

    def graces_ended(self, now: float) -> list[Wake]:
        """Nodes whose time for their first report, or for their kubelet to come back, is over by now. They are as they
        were."""
        rows = {*self.world.unreported.tick(now), *self.world.kubelets_away.tick(now)}
        return [Wake(self.engine.names[row], WakeCause.GRACE) for row in sorted(rows)]

    # What was decided

    def assume(self, pod: Pod, decision: Decision) -> Pod:
        """The engine has charged it; now it counts for the other rules too. Gives the pod as it will be."""
        placed = structs.replace(pod, spec=structs.replace(pod.spec, node_name=decision.node))
        self.assumed[pod.metadata.uid] = AssumedDecision(placed, decision)
        self._count(placed)
        return placed

    def sends(self, uid: str) -> None:
        """A Binding of the pod is about to be sent."""
        assumed = self.assumed.get(uid)
        if assumed is not None:
            assumed.is_sent = True

    def bound(self, uid: str) -> list[Wake]:
        """The API server took the binding; the pod stays assumed until it is seen."""
        assumed = self.assumed.get(uid)
        if assumed is not None:
            assumed.is_bound = True
        return self.engine.apply(facts.PodBound(uid))

    def forget(self, uid: str) -> list[Wake]:
        """The decision did not come about. Nothing happens where the pod was seen on a node, or is gone."""
        assumed = self.assumed.pop(uid, None)
        if assumed is None:
            return []
        self._release(uid)
        return self.engine.apply(facts.BindFailed(uid))

    # What was restored

    def restore_once_reported(self, names: Iterable[str], since: Callable[[str], float]) -> None:
        """Replaces what pods say of the reports of their nodes, because a Node may be younger than its pods. `since`:
        when a node was first seen Ready. The ledger is restored already."""
        self._once_reported = set(names)
        for name in self._nodes:
            if name in self._rows:
                self.world.unreported.drop(self._rows[name])
            self._follow_report(name, since(name))

    # What is known

    @property
    def once_reported(self) -> frozenset[str]:
        """Nodes on which a pod has a decision as an annotation, since their Nodes are there."""
        return frozenset(self._once_reported)

    def has_node(self, name: str) -> bool:
        return name in self._nodes

    def node_named(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def report_of(self, node: str) -> NodeResourceTopology | None:
        """The node's report, also where it was deleted and is still in force."""
        return self._reports.get(node) or self._deleted_reports.get(node)

    @property
    def deleted_reports(self) -> tuple[NodeResourceTopology, ...]:
        """Those that are still in force."""
        return tuple(each for node, each in self._deleted_reports.items() if not self.engine.lacks_report(node))

    def counts(self, uid: str) -> bool:
        """Whether the pod counts for some node."""
        return uid in self.world.pods or uid in self._rowless_on

    def node_of(self, uid: str) -> str:
        """The node that the pod counts for; empty: none."""
        assigned = self.world.pods.get(uid)
        return assigned.pod.spec.node_name if assigned is not None else self._rowless_on.get(uid, "")

    def pods_on(self, name: str) -> tuple[Pod, ...]:
        if name in self._rows:
            return tuple(assigned.pod for assigned in self.world.on_row[self._rows[name]].values())
        return tuple(self._rowless.get(name, {}).values())

    @property
    def nodes(self) -> int:
        return len(self._nodes)

    @property
    def pods(self) -> int:
        return len(self.world.pods) + len(self._rowless_on)

    def _forecast(self, pod: Pod) -> Forecast | None:
        """What a former leader, or ourselves before a restart, wrote on a pod that is new to us."""
        if pod.spec.scheduler_name not in self.engine.settings.profiles:
            return None
        try:
            return placementannotation.decode(pod.metadata)
        except BadObject as problem:
            LOG.info("%s", problem, extra=about(pod=pod.metadata.full_name, uid=pod.metadata.uid))
            self.engine.problems[FORECAST_BROKEN] += 1
            return None

    def _apply(self, fact: Fact, name: str) -> list[Wake]:
        wakes = self.engine.apply(fact)
        self._follow_row(name)
        return wakes

    def _follow_report(self, name: str, now: float) -> None:
        """The world knows which Nodes lack a report, and which have one that says that the kubelet does not answer."""
        node, row = self._nodes.get(name), self._rows.get(name)
        if node is None or row is None:
            return
        if self.engine.lacks_report(name):
            # A node that has lost its report is not one whose publisher is missing: its grace period does not begin.
            self.world.unreported.put(row, now, is_ready=node.is_ready and name not in self._once_reported)
        else:
            self.world.unreported.drop(row)
        if self.engine.kubelet_is_away(name):
            self.world.kubelets_away.put(row, now, is_ready=True)
        else:
            self.world.kubelets_away.drop(row)

    def _follow_row(self, name: str) -> None:
        """Rows are the engine's to give; where one changed hands, the pods of the node go along."""
        row, before = self.engine.row(name), self._rows.get(name)
        if row == before:
            return
        if before is not None:
            del self._rows[name]
            for assigned in tuple(self.world.on_row[before].values()):
                self.world.drop_pod(assigned.uid)
                self._put_rowless(assigned.uid, assigned.pod)
        if row is not None:
            self._rows[name] = row
            for uid, pod in self._rowless.pop(name, {}).items():
                del self._rowless_on[uid]
                self.world.put_pod(uid, row, pod)

    def _count(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        before, row = self.world.pods.get(uid), self._rows.get(node)
        if before is not None and before.row == row and _alike(before.pod, pod):
            return
        if before is not None or uid in self._rowless_on:
            self._release(uid)
        if row is None:
            self._put_rowless(uid, pod)
        else:
            self.world.put_pod(uid, row, pod)

    def _put_rowless(self, uid: str, pod: Pod) -> None:
        node = pod.spec.node_name
        self._rowless.setdefault(node, {})[uid], self._rowless_on[uid] = pod, node

    def _release(self, uid: str) -> None:
        self.world.drop_pod(uid)
        node = self._rowless_on.pop(uid, None)
        if node is not None:
            del self._rowless[node][uid]
            if not self._rowless[node]:
                del self._rowless[node]


def _is_placed_directly(pod: Pod) -> bool:
    """Whether a scheduler decided zones and CPUs of the pod for a node in direct mode, as only a report says."""
    try:
        return directresult.of_pod(pod) is not None
    except BadObject:
        return False


def _is_repeated(old: NodeResourceTopology, new: NodeResourceTopology) -> bool:
    """Whether the report is equal apart from its metadata."""
    annotations = old.metadata.annotations == new.metadata.annotations
    return annotations and structs.replace(new, metadata=old.metadata) == old


def _alike(old: Pod, new: Pod) -> bool:
    """Whether no rule could tell them apart: most changes of a pod's status say how it fares."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
        and (old.status is new.status or _fare_alike(old.status, new.status))
    )


def _fare_alike(old: PodStatus, new: PodStatus) -> bool:
    return old.start_time == new.start_time and _sizes(old) == _sizes(new)


def _sizes(status: PodStatus) -> tuple[object, ...]:
    """What a resize in place changes (kube-scheduler spec 2.2)."""
    statuses = (*status.init_container_statuses, *status.container_statuses)
    containers = tuple((each.allocated_resources, each.resources) for each in statuses)
    resizing = tuple(each for each in status.conditions if each.type.startswith("PodResize"))
    return status.allocated_resources, status.resources, containers, resizing
