"""PodDisruptionBudgets: computes how many pods may be evicted, which the eviction API enforces.

The API server records evicted pods in the status until they are deleted. They count as unhealthy meanwhile."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final

from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import (
    DEPLOYMENTS,
    PODDISRUPTIONBUDGETS,
    PODS,
    REPLICASETS,
    REPLICATIONCONTROLLERS,
    STATEFULSETS,
    Resource,
)
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, conditions, matching, owners, pods
from numalign.simulator.controllers.framework.actions import Action, RecordEvent, Requeue
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key, Views
from numalign.simulator.controllers.workloads import deployments, replicasets
from numalign.simulator.trees import Tree

DELETION_TIMEOUT: Final = 120.0
SCALED: Final[dict[str, Resource]] = {
    each.kind: each for each in (REPLICASETS, REPLICATIONCONTROLLERS, STATEFULSETS, DEPLOYMENTS)
}


class Budgets:
    name = "controllermanager"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(PODDISRUPTIONBUDGETS, lambda change: context.enqueue(change.key))
        context.views.watch(PODS, self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        for budget in self._context.views[PODDISRUPTIONBUDGETS].within(change.key[0]):
            if _selects(budget, change.tree) or (change.old is not None and _selects(budget, change.old)):
                self._context.enqueue((change.key[0], budget["metadata"]["name"]))

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        budget = views[PODDISRUPTIONBUDGETS].get(key)
        if budget is None:
            return []
        selected = [pod for pod in views[PODS].within(key[0]) if _selects(budget, pod) and not pods.is_finished(pod)]
        return reconcile(budget, selected, scale_of(views, selected), self._context.api.clock.wall())


def _selects(budget: Tree, pod: Tree) -> bool:
    selects = matching.everything_if_empty(budget["spec"].get("selector"))
    return selects(pod["metadata"].get("labels") or {})


def scale_of(views: Views, selected: Sequence[Tree]) -> int | None:
    """The sum of the replicas of all controllers of the pods; None if a controller has no scale."""
    scales: dict[str, int] = {}
    for pod in selected:
        held, namespace = owners.controller(pod), pod["metadata"]["namespace"]
        if held is None:
            continue
        top = _scaled(views, namespace, held)
        if top is None:
            return None
        scales[top["metadata"]["uid"]] = replicasets.replicas(top)
    return sum(scales.values())


def _scaled(views: Views, namespace: str, held: Tree) -> Tree | None:
    resource = SCALED.get(held["kind"])
    found = views[resource].get((namespace, held["name"])) if resource is not None else None
    above = owners.controller(found) if found is not None else None
    # The scale of a ReplicaSet is that of its Deployment.
    return found if above is None else _scaled(views, namespace, above) or found


def reconcile(budget: Tree, selected: Sequence[Tree], scale: int | None, now: datetime) -> list[Action]:
    """`scale` is the desired number of pods."""
    disrupted, again = _disrupted(budget, selected, now)
    expected = _expected(budget, selected, scale)
    nothing = [] if selected else [RecordEvent(budget, "NoPods", "No matching pods found")]
    if expected is None:
        return [
            *nothing,
            *_status_update(budget, (budget.get("status") or {}) | {"disruptionsAllowed": 0}, "SyncFailed", now),
        ]
    count, healthy_needed = expected
    healthy = sum(pods.is_ready(pod) and _stays(pod, disrupted) for pod in selected)
    allowed = max(0, healthy - healthy_needed) if count > 0 else 0
    status = {
        "currentHealthy": healthy,
        "desiredHealthy": healthy_needed,
        "expectedPods": count,
        "disruptionsAllowed": allowed,
        "observedGeneration": budget["metadata"].get("generation", 0),
    } | ({"disruptedPods": disrupted} if disrupted else {})
    update = _status_update(budget, status, "SufficientPods" if allowed else "InsufficientPods", now)
    return [*(nothing if update else []), *update, *again]


def _expected(budget: Tree, selected: Sequence[Tree], scale: int | None) -> tuple[int, int] | None:
    """The desired number of pods, and the number of them that must be healthy."""
    spec = budget["spec"]
    if "maxUnavailable" in spec:
        if scale is None:
            return None
        return scale, max(0, scale - deployments.share(spec["maxUnavailable"], scale, up=True))
    least = spec.get("minAvailable", 1)
    if isinstance(least, int):
        return len(selected), least
    return None if scale is None else (scale, deployments.share(least, scale, up=True))


def _stays(pod: Tree, disrupted: Tree) -> bool:
    return not pods.is_terminating(pod) and pod["metadata"]["name"] not in disrupted


def _disrupted(budget: Tree, selected: Sequence[Tree], now: datetime) -> tuple[Tree, list[Action]]:
    """Evicted pods that are not deleted yet, and when their entries expire."""
    written = (budget.get("status") or {}).get("disruptedPods") or {}
    there = {pod["metadata"]["name"] for pod in selected if not pods.is_terminating(pod)}
    until = timedelta(seconds=DELETION_TIMEOUT)
    kept = {name: at for name, at in written.items() if name in there and (clock.parsed(at) or now) + until > now}
    waits = [DELETION_TIMEOUT - (clock.seconds_since(at, now) or 0.0) for at in kept.values()]
    return kept, [Requeue(min(waits))] if waits else []


def _status_update(budget: Tree, status: Tree, reason: str, now: datetime) -> list[Action]:
    message = "found no controllers for some of the pods" if reason == "SyncFailed" else ""
    condition = conditions.made("DisruptionAllowed", str(reason == "SufficientPods"), reason, message)
    condition["observedGeneration"] = budget["metadata"].get("generation", 0)
    listed = conditions.put(conditions.listed(budget), condition, now)
    return actions.status(PODDISRUPTIONBUDGETS, budget, status | {"conditions": listed})
