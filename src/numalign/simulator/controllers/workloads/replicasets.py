"""ReplicaSets: keeps the desired number of active pods.

A failed pod is not active, for example one that its kubelet rejected with TopologyAffinityError, so the controller
replaces it at once, without back-off. With a scheduler that does not see the cause of the rejection, this is the
rejection storm of real clusters."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from numalign.simulator.apiserver.storage.resources import PODS, REPLICASETS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, conditions, owners, pods
from numalign.simulator.controllers.framework.actions import Action, Create, Delete, Requeue
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

FAILURE = "ReplicaFailure"


class ReplicaSets:
    name = "replicaset-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(REPLICASETS, lambda change: context.enqueue(change.key))
        context.views.watch(PODS, self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        self._context.enqueue_controller(change, REPLICASETS)
        if change.kind == "ADDED" and owners.controller(change.tree) is None:
            for replicaset in self._context.views[REPLICASETS].within(change.key[0]):
                self._context.enqueue((change.key[0], replicaset["metadata"]["name"]))

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        replicaset = views[REPLICASETS].get(key)
        if replicaset is None:
            return []
        refused = self._context.performer.refused.get(replicaset["metadata"]["uid"], "")
        claims = owners.claimed(REPLICASETS, replicaset, PODS, views[PODS].unfinished_candidates_of(replicaset))
        return claims or reconcile(
            replicaset, views[PODS].unfinished_of(replicaset), self._context.api.clock.wall(), refused
        )


def reconcile(replicaset: Tree, owned: Sequence[Tree], now: datetime, refused: str = "") -> list[Action]:
    """`refused` is the error of the last pod creation; empty if it succeeded."""
    active = [pod for pod in owned if pods.is_active(pod)]
    # Where no pod is missing, kube-controller-manager forgets that one could not be created.
    refused = refused if len(active) < replicas(replicaset) else ""
    # The status comes first, because it must be written even if a pod cannot be created.
    return [
        *actions.status(REPLICASETS, replicaset, status(replicaset, owned, now, refused)),
        *_recheck(replicaset, active, now),
        *_adjusted(replicaset, active, now),
    ]


def _adjusted(replicaset: Tree, active: Sequence[Tree], now: datetime) -> list[Action]:
    if replicaset["metadata"].get("deletionTimestamp"):
        return []
    missing = replicas(replicaset) - len(active)
    if missing > 0:
        pod = pods.made(REPLICASETS, replicaset, replicaset["spec"].get("template") or {})
        return [Create(PODS, pod, replicaset) for _ in range(min(missing, pods.MOST_AT_ONCE))]
    return [Delete(PODS, pod, replicaset) for pod in pods.victims(active, min(-missing, pods.MOST_AT_ONCE), now)]


def _recheck(replicaset: Tree, active: Sequence[Tree], now: datetime) -> list[Action]:
    """Requeues the ReplicaSet for the time when its pods become available."""
    waits = [pods.unavailable_for(pod, min_ready(replicaset), now) for pod in active if pods.is_ready(pod)]
    return [Requeue(min(wait for wait in waits if wait > 0))] if any(waits) else []


def replicas(tree: Tree) -> int:
    count: int = tree["spec"].get("replicas", 1)
    return count


def min_ready(tree: Tree) -> int:
    seconds: int = tree["spec"].get("minReadySeconds", 0)
    return seconds


def status(replicaset: Tree, owned: Sequence[Tree], now: datetime, refused: str = "") -> Tree:
    active = [pod for pod in owned if pods.is_active(pod)]
    template = ((replicaset["spec"].get("template") or {}).get("metadata") or {}).get("labels") or {}
    counts = {
        "replicas": len(active),
        "fullyLabeledReplicas": sum(
            template.items() <= (pod["metadata"].get("labels") or {}).items() for pod in active
        ),
        "readyReplicas": sum(map(pods.is_ready, active)),
        "availableReplicas": sum(pods.is_available(pod, min_ready(replicaset), now) for pod in active),
        "terminatingReplicas": sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned),
    }
    listed = _failure(replicaset, refused, now)
    # kube-controller-manager omits zero counts except these two.
    kept = {name: count for name, count in counts.items() if count or name in ("replicas", "terminatingReplicas")}
    generation = {"observedGeneration": replicaset["metadata"].get("generation", 0)}
    return kept | generation | ({"conditions": listed} if listed else {})


def _failure(replicaset: Tree, refused: str, now: datetime) -> list[Tree]:
    listed = conditions.listed(replicaset)
    if not refused:
        return conditions.without(listed, FAILURE)
    if conditions.find(listed, FAILURE) is not None:
        # kube-controller-manager keeps the first one: every message has the name of another pod.
        return listed
    return conditions.put(listed, conditions.made(FAILURE, "True", "FailedCreate", refused), now)
