"""Node lifecycle and taint-based eviction.

`NodeLifecycle` sets Ready to Unknown on nodes without heartbeats and turns conditions and cordons into taints. A
renewed Lease or a changed node status is a heartbeat, at the time when this controller sees it. The limits on how many
nodes are tainted at a time, and the exception for zones in which most nodes are unhealthy, are not implemented.

`TaintEviction` deletes pods from nodes with NoExecute taints: at once, or after their tolerationSeconds. The time
starts when the controller first sees the pod with these taints. Removing the taints cancels the eviction."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import LEASES, NODES, PODS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import conditions, matching, pods
from numalign.simulator.controllers.framework.actions import Action, Delete, MergePatch, RecordEvent, Requeue, Update
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key, full_name, key_of
from numalign.simulator.trees import Tree

LEASE_NAMESPACE: Final = "kube-node-lease"
GRACE: Final = 40.0
STARTUP_GRACE: Final = 60.0
"""Seconds for a node whose kubelet has never posted a status."""
OBSERVED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
BY_CONDITION: Final = {
    ("Ready", "False"): matching.NOT_READY,
    ("Ready", "Unknown"): matching.UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
OURS: Final = frozenset({*BY_CONDITION.values(), matching.UNSCHEDULABLE})


class NodeLifecycle:
    name = "node-controller"

    def __init__(self, grace: float = GRACE) -> None:
        self._grace = grace
        self._seen: dict[str, float] = {}
        self._known: dict[str, Tree] = {}

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(NODES, self._node_changed)
        context.views.listen(LEASES, self._lease_changed)

    def _node_changed(self, change: Change) -> None:
        name = change.key[1]
        if change.kind == "DELETED":
            self._seen.pop(name, None)
            self._context.enqueue(change.key)
            return
        if name not in self._seen or _heartbeat(change.old) != _heartbeat(change.tree):
            self._seen[name] = self._context.api.clock.now()
        if change.old is None or _decisive(change.old) != _decisive(change.tree):
            self._context.enqueue(change.key)

    def _lease_changed(self, change: Change) -> None:
        if change.key[0] == LEASE_NAMESPACE and change.key[1] in self._seen and change.kind != "DELETED":
            self._seen[change.key[1]] = self._context.api.clock.now()

    def reconcile(self, key: Key) -> Iterable[Action]:
        node = self._context.views[NODES].get(key)
        if node is None:
            return self._left(key[1])
        clock = self._context.api.clock
        registered = self._registered(node)
        silent = clock.now() - self._seen[key[1]]
        on_node = self._context.views[PODS].on_node(key[1])
        return [*registered, *reconcile(node, on_node, silent, clock.wall(), self._grace)]

    def _registered(self, node: Tree) -> list[Action]:
        name = node["metadata"]["name"]
        is_new = name not in self._known
        self._known[name] = node
        return [_event(node, "RegisteredNode", f"Registered Node {name} in Controller")] if is_new else []

    def _left(self, name: str) -> list[Action]:
        node = self._known.pop(name, None)
        return [] if node is None else [_event(node, "RemovingNode", f"Removing Node {name} from Controller")]


def reconcile(node: Tree, on_node: Sequence[Tree], silent: float, now: datetime, grace: float = GRACE) -> list[Action]:
    """`silent` is the number of seconds since the last heartbeat."""
    ready = conditions.find(conditions.listed(node), "Ready")
    allowed = grace if ready is not None else STARTUP_GRACE
    if silent >= allowed and (ready is None or ready["status"] != "Unknown"):
        return _lost(node, on_node, now)
    # The end of the grace period is not an event, so the node is requeued for it.
    again: list[Action] = [Requeue(allowed - silent)] if silent < allowed else []
    became_unready = _notices_unready(node, on_node, now)
    return [*again, *became_unready, *_tainted(node, now)]


def _lost(node: Tree, on_node: Sequence[Tree], now: datetime) -> list[Action]:
    listed = conditions.listed(node)
    for kind in OBSERVED:
        listed = conditions.put(listed, _unknown(kind, conditions.find(listed, kind)), now)
    status = (node.get("status") or {}) | {"conditions": listed}
    return [Update(NODES, node | {"status": status}, "status"), *_announced(node), *_unready_pods(on_node, now)]


def _unknown(kind: str, before: Tree | None) -> Tree:
    if before is None:
        return conditions.made(kind, "Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status.")
    unknown = conditions.made(kind, "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    # The time of the last heartbeat stays as the kubelet wrote it.
    return unknown | {key: before[key] for key in ("lastHeartbeatTime",) if key in before}


def _notices_unready(node: Tree, on_node: Sequence[Tree], now: datetime) -> list[Action]:
    """Marks the pods of a node as not ready when the kubelet reports that the node is not ready."""
    ready = conditions.find(conditions.listed(node), "Ready")
    if ready is None or ready["status"] != "False" or _has(node, matching.NOT_READY):
        return []
    return [*_announced(node), *_unready_pods(on_node, now)]


def _announced(node: Tree) -> list[Action]:
    return [RecordEvent(node, "NodeNotReady", f"Node {node['metadata']['name']} status is now: NodeNotReady")]


def _unready_pods(on_node: Sequence[Tree], now: datetime) -> list[Action]:
    actions: list[Action] = []
    for pod in filter(pods.is_ready, on_node):
        ready = conditions.find(conditions.listed(pod), "Ready") or {}
        unready = ready | {"status": "False", "lastTransitionTime": clock.text(now)}
        listed = [unready if each is ready else each for each in conditions.listed(pod)]
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": listed}}
        actions += [
            MergePatch(PODS, pod, body, "status"),
            RecordEvent(pod, "NodeNotReady", "Node is not ready", "Warning"),
        ]
    return actions


def _tainted(node: Tree, now: datetime) -> list[Action]:
    spec = node.get("spec") or {}
    before = spec.get("taints") or []
    wanted = taints(node)
    kept = [taint for taint in before if taint["key"] not in OURS or _identity(taint) in wanted]
    there = {_identity(taint) for taint in kept}
    added = [
        {"key": key, "effect": effect, "timeAdded": clock.text(now)}
        for key, effect in wanted
        if (key, effect) not in there
    ]
    if not added and len(kept) == len(before):
        return []
    rest = {key: value for key, value in spec.items() if key != "taints"}
    after = [*kept, *added]
    return [Update(NODES, node | {"spec": rest | ({"taints": after} if after else {})})]


def taints(node: Tree) -> list[tuple[str, str]]:
    """Key and effect of the taints that the node's conditions and its cordon require."""
    stated = [(each["type"], each["status"]) for each in conditions.listed(node)]
    called_for = [state for state in stated if state in BY_CONDITION]
    wanted = [(BY_CONDITION[state], matching.NO_SCHEDULE) for state in called_for]
    wanted += [(BY_CONDITION[state], matching.NO_EXECUTE) for state in called_for if state[0] == "Ready"]
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append((matching.UNSCHEDULABLE, matching.NO_SCHEDULE))
    return wanted


def _identity(taint: Tree) -> tuple[str, str]:
    return taint["key"], taint["effect"]


def _has(node: Tree, key: str) -> bool:
    return any(taint["key"] == key for taint in (node.get("spec") or {}).get("taints") or ())


def _heartbeat(node: Tree | None) -> object:
    ready = conditions.find(conditions.listed(node), "Ready") if node is not None else None
    return (ready or {}).get("lastHeartbeatTime")


def _decisive(node: Tree) -> tuple[object, ...]:
    spec = node.get("spec") or {}
    states = [(each["type"], each["status"]) for each in conditions.listed(node)]
    return states, spec.get("taints"), spec.get("unschedulable")


def _event(node: Tree, reason: str, what: str) -> Action:
    return RecordEvent(node, reason, f"Node {node['metadata']['name']} event: {what}")


class TaintEviction:
    name = "taint-eviction-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        self._since: dict[Key, float] = {}
        context.views.watch(NODES, self._node_changed)
        context.views.watch(PODS, self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        if change.kind == "DELETED" or (change.old is not None and lethal(change.old) == lethal(change.tree)):
            return
        if change.old is None and not lethal(change.tree):
            return
        for pod in self._context.views[PODS].on_node(change.key[1]):
            self._context.enqueue(key_of(pod))

    def _pod_changed(self, change: Change) -> None:
        if change.key in self._since or lethal(self._node_of(change.tree)):
            self._context.enqueue(change.key)

    def _node_of(self, pod: Tree) -> Tree | None:
        return self._context.views[NODES].get(("", pod["spec"].get("nodeName") or ""))

    def reconcile(self, key: Key) -> Iterable[Action]:
        pod, now = self._context.views[PODS].get(key), self._context.api.clock.now()
        taints = lethal(self._node_of(pod)) if pod is not None else []
        if pod is None or not taints or pods.is_terminating(pod):
            return self._spared(key, pod)
        waited = now - self._since.setdefault(key, now)
        actions = evict_intolerant(pod, taints, waited, self._context.api.clock.wall())
        if not actions:
            return self._spared(key, pod)
        return actions

    def _spared(self, key: Key, pod: Tree | None) -> list[Action]:
        if self._since.pop(key, None) is None or pod is None or pods.is_terminating(pod):
            return []
        return [RecordEvent(pod, "TaintManagerEviction", f"Cancelling deletion of Pod {full_name(pod)}")]


def lethal(node: Tree | None) -> list[Tree]:
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint.get("effect") == matching.NO_EXECUTE]


def evict_intolerant(pod: Tree, taints: Sequence[Tree], waited: float, now: datetime) -> list[Action]:
    """Returns no action if the pod tolerates the taints without limit."""
    endures = matching.endures(taints, pod["spec"].get("tolerations") or ())
    if endures is None:
        return []
    if waited < endures:
        return [Requeue(endures - waited)]
    message = "Taint manager: deleting due to NoExecute taint"
    target = conditions.made("DisruptionTarget", "True", "DeletionByTaintManager", message)
    listed = conditions.put(conditions.listed(pod), target, now)
    return [
        RecordEvent(pod, "TaintManagerEviction", f"Marking for deletion Pod {full_name(pod)}"),
        MergePatch(
            PODS, pod, {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": listed}}, "status"
        ),
        Delete(PODS, pod),
    ]
