"""DaemonSets: one pod per eligible node, bound by the scheduler.

Node affinity to the node's name ties a pod to its node. Updates are RollingUpdate (by maxUnavailable) or OnDelete.
maxSurge and rollbacks, for which kube-controller-manager keeps ControllerRevisions, are not implemented."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import DAEMONSETS, NODES, PODS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, matching, owners, pods
from numalign.simulator.controllers.framework.actions import Action, Create, Delete, RecordEvent, Requeue
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key, full_name
from numalign.simulator.controllers.workloads import deployments, replicasets
from numalign.simulator.trees import Tree

HASH_LABEL: Final = "controller-revision-hash"
ENDURED: Final = (
    (matching.NOT_READY, matching.NO_EXECUTE),
    (matching.UNREACHABLE, matching.NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", matching.NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", matching.NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", matching.NO_SCHEDULE),
    (matching.UNSCHEDULABLE, matching.NO_SCHEDULE),
)
NETWORK: Final = ("node.kubernetes.io/network-unavailable", matching.NO_SCHEDULE)
FAILED_PODS_STAY: Final = 1.0
"""Seconds before a failed pod is replaced. kube-controller-manager doubles this up to 15 min."""


class DaemonSets:
    name = "daemonset-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(DAEMONSETS, lambda change: context.enqueue(change.key))
        context.views.watch(PODS, lambda change: context.enqueue_controller(change, DAEMONSETS))
        context.views.watch(NODES, self._node_changed)

    def _node_changed(self, change: Change) -> None:
        if change.old is not None and _decisive(change.old) == _decisive(change.tree):
            return
        for daemonset in self._context.views[DAEMONSETS]:
            self._context.enqueue((daemonset["metadata"]["namespace"], daemonset["metadata"]["name"]))

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        daemonset = views[DAEMONSETS].get(key)
        if daemonset is None:
            return []
        claims = owners.claimed(DAEMONSETS, daemonset, PODS, views[PODS].candidates_of(daemonset))
        now = self._context.api.clock.wall()
        return claims or reconcile(daemonset, views[PODS].owned_by(daemonset), list(views[NODES]), now)


def _decisive(node: Tree) -> tuple[object, ...]:
    """The fields of a node that DaemonSets depend on. Heartbeats do not change them."""
    spec = node.get("spec") or {}
    return node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable")


def reconcile(daemonset: Tree, owned: Sequence[Tree], nodes: Sequence[Tree], now: datetime) -> list[Action]:
    digest = pods.digest(daemonset["spec"]["template"])
    by_node = _by_node(owned)
    update = actions.status(DAEMONSETS, daemonset, status(daemonset, by_node, nodes, now))
    if daemonset["metadata"].get("deletionTimestamp"):
        return update
    spec = daemon_template(daemonset, digest)["spec"]
    managed = [
        action for node in nodes for action in _managed(daemonset, node, by_node.get(_name(node), []), spec, now)
    ]
    return [*update, *(managed or _rolled(daemonset, by_node, digest, now))]


def target(pod: Tree) -> str:
    """The node of a pod: where it is bound, or what its affinity names."""
    if bound := pod["spec"].get("nodeName"):
        return str(bound)
    terms = (matching.required_affinity(pod["spec"]) or {}).get("nodeSelectorTerms") or ()
    fields = [field for term in terms for field in term.get("matchFields") or () if field["key"] == matching.NAME_FIELD]
    return str(fields[0]["values"][0]) if fields else ""


def should_run(node: Tree, spec: Tree) -> tuple[bool, bool]:
    """Whether a pod should be created on the node, and whether an existing pod may stay there."""
    taints = (node.get("spec") or {}).get("taints") or ()
    tolerations = spec.get("tolerations") or ()
    if not matching.node_matches(spec, node) or spec.get("nodeName", _name(node)) != _name(node):
        return False, False
    stays = matching.untolerated(taints, tolerations, (matching.NO_EXECUTE,)) is None
    return matching.untolerated(taints, tolerations) is None, stays


def daemon_template(daemonset: Tree, digest: str) -> Tree:
    template = pods.hashed(daemonset["spec"]["template"], digest, HASH_LABEL)
    spec = template["spec"]
    endured = (*ENDURED, NETWORK) if spec.get("hostNetwork") else ENDURED
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in endured]
    mine = [each for each in spec.get("tolerations") or () if each not in added]
    return template | {"spec": spec | {"tolerations": [*mine, *added]}}


def _managed(daemonset: Tree, node: Tree, there: Sequence[Tree], spec: Tree, now: datetime) -> list[Action]:
    runs, stays = should_run(node, spec)
    if runs and not there:
        return [Create(PODS, _pod(daemonset, _name(node)), daemonset)]
    living = [pod for pod in there if not pods.is_terminating(pod)]
    if not stays:
        return [Delete(PODS, pod, daemonset) for pod in living]
    finished = [action for pod in living if pods.is_finished(pod) for action in _replaced(daemonset, pod, now)]
    extra = pods.oldest_first(pod for pod in living if not pods.is_finished(pod))[1:]
    return [*finished, *(Delete(PODS, pod, daemonset) for pod in extra)]


def _replaced(daemonset: Tree, pod: Tree, now: datetime) -> list[Action]:
    # A kubelet that rejects the pod would reject a replacement at once.
    age = clock.seconds_since(pod["metadata"].get("creationTimestamp"), now)
    if pods.phase(pod) == "Failed" and age is not None and age < FAILED_PODS_STAY:
        return [Requeue(FAILED_PODS_STAY - age)]
    where = f"{full_name(pod)} on node {target(pod)}"
    if pods.phase(pod) == "Failed":
        note = RecordEvent(
            daemonset, "FailedDaemonPod", f"Found failed daemon pod {where}, will try to kill it", "Warning"
        )
    else:
        note = RecordEvent(
            daemonset, "SucceededDaemonPod", f"Found succeeded daemon pod {where}, will try to delete it"
        )
    return [note, Delete(PODS, pod, daemonset)]


def _rolled(daemonset: Tree, by_node: dict[str, list[Tree]], digest: str, now: datetime) -> list[Action]:
    """Deletes pods of an old template: unavailable ones at once, available ones within maxUnavailable."""
    strategy = daemonset["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    amount = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    may_miss = max(1, deployments.share(amount, len(by_node), up=True))
    available = {id(pod) for there in by_node.values() for pod in there if _is_available(daemonset, pod, now)}
    old = [pod for there in by_node.values() for pod in there if pods.is_active(pod) and _hash(pod) != digest]
    useless = [pod for pod in old if id(pod) not in available]
    missing = sum(not any(id(pod) in available for pod in there) for there in by_node.values())
    candidates = [pod for pod in old if id(pod) in available]
    return [Delete(PODS, pod, daemonset) for pod in (*useless, *candidates[: max(0, may_miss - missing)])]


def status(daemonset: Tree, by_node: dict[str, list[Tree]], nodes: Sequence[Tree], now: datetime) -> Tree:
    digest = pods.digest(daemonset["spec"]["template"])
    spec = daemon_template(daemonset, digest)["spec"]
    runs = {_name(node): should_run(node, spec) for node in nodes}
    wanted = [name for name, (should, _) in runs.items() if should]
    there = [pods.oldest_first(by_node[name])[0] for name in wanted if by_node.get(name)]
    available = sum(_is_available(daemonset, pod, now) for pod in there)
    counts = {
        "currentNumberScheduled": len(there),
        "desiredNumberScheduled": len(wanted),
        "numberMisscheduled": sum(name in by_node and not stays for name, (_, stays) in runs.items()),
        "numberReady": sum(map(pods.is_ready, there)),
        "updatedNumberScheduled": sum(_hash(pod) == digest for pod in there),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
        "observedGeneration": daemonset["metadata"].get("generation", 0),
    }
    always = ("currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady")
    return {name: count for name, count in counts.items() if count or name in always}


def _is_available(daemonset: Tree, pod: Tree, now: datetime) -> bool:
    return pods.is_active(pod) and pods.is_available(pod, replicasets.min_ready(daemonset), now)


def _pod(daemonset: Tree, node: str) -> Tree:
    template = daemon_template(daemonset, pods.digest(daemonset["spec"]["template"]))
    affinity = template["spec"].get("affinity") or {}
    field = {"key": matching.NAME_FIELD, "operator": "In", "values": [node]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    tied = affinity | {"nodeAffinity": (affinity.get("nodeAffinity") or {}) | required}
    return pods.made(DAEMONSETS, daemonset, template | {"spec": template["spec"] | {"affinity": tied}})


def _by_node(owned: Sequence[Tree]) -> dict[str, list[Tree]]:
    found: dict[str, list[Tree]] = {}
    for pod in owned:
        found.setdefault(target(pod), []).append(pod)
    return found


def _hash(pod: Tree) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH_LABEL, ""))


def _name(node: Tree) -> str:
    return str(node["metadata"]["name"])
