"""A pod is asked to go, if its disruption budget allows it.

`kubectl drain` and schedulers that preempt politely post evictions. What the budget's status says decides
(disruptionsAllowed, kept by the disruption controller); every eviction that is granted is charged to it at once, so
that two of them cannot use the same allowance."""

from typing import Final

import msgspec

from numalign.simulator import trees
from numalign.simulator.apiserver.storage import errors, selectors
from numalign.simulator.apiserver.storage.errors import Cause, StatusError
from numalign.simulator.apiserver.storage.resources import PODDISRUPTIONBUDGETS, PODS
from numalign.simulator.apiserver.storage.ring import Entry
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.apiserver.verbs import delete
from numalign.simulator.apiserver.verbs.delete import DeleteOptions
from numalign.simulator.trees import Tree

TOO_MANY_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
DISRUPTION: Final[Tree] = {
    "type": "DisruptionTarget",
    "status": "True",
    "lastProbeTime": None,
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
VIOLATION: Final = "Cannot evict pod as it would violate the pod's disruption budget."
RETRY_UNPROCESSED: Final = 10


def evict(state: State, name: str, namespace: str, options: DeleteOptions) -> None:
    entry = state.entry(PODS, name, namespace)
    pod = trees.decoded(entry.data)
    if not _goes_anyway(pod):
        _charge(state, pod, _budgets(state, entry), dry_run=options.dry_run)
    if not options.dry_run:
        options = _say_why(state, entry, pod, options)
    delete.delete(state, PODS, name, namespace, options)


def _say_why(state: State, entry: Entry, pod: Tree, options: DeleteOptions) -> DeleteOptions:
    """The pod tells of its disruption before it goes. Its version is another one then, and has been checked."""
    delete.check(PODS, entry, pod, options)
    status = pod.get("status") or {}
    conditions = status.get("conditions") or []
    if not any(each.get("type") == DISRUPTION["type"] and each.get("status") == "True" for each in conditions):
        others = [each for each in conditions if each.get("type") != DISRUPTION["type"]]
        told = DISRUPTION | {"lastTransitionTime": state.clock.rfc3339()}
        new = pod | {"metadata": dict(pod["metadata"]), "status": status | {"conditions": [*others, told]}}
        state.store.commit(PODS, new, entry, pod)
    return msgspec.structs.replace(options, version="")


def _goes_anyway(pod: Tree) -> bool:
    """No budget counts a pod that has not started, has ended or is going."""
    return trees.text(pod, "status", "phase") in ("Succeeded", "Failed", "Pending") or (
        "deletionTimestamp" in pod["metadata"]
    )


def _budgets(state: State, pod: Entry) -> list[Entry]:
    return [
        entry
        for entry in state.store.shelf(PODDISRUPTIONBUDGETS).within(pod.namespace)
        if _covers(trees.decoded(entry.data), pod)
    ]


def _covers(budget: Tree, pod: Entry) -> bool:
    return selectors.selects(trees.at(budget, "spec", "selector"), pod.labels)


def _charge(state: State, pod: Tree, budgets: list[Entry], *, dry_run: bool) -> None:
    if not budgets:
        return
    if len(budgets) > 1:
        raise StatusError(500, "", TOO_MANY_BUDGETS)
    entry = budgets[0]
    budget = trees.decoded(entry.data)
    status = budget.get("status") or {}
    if not _is_ready(pod) and _lets_unready_go(budget, status):
        return
    _check(budget, status)
    if not dry_run:
        state.store.commit(PODDISRUPTIONBUDGETS, budget | {"status": _charged(state, pod, status)}, entry, budget)


def _is_ready(pod: Tree) -> bool:
    conditions = trees.at(pod, "status", "conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _lets_unready_go(budget: Tree, status: Tree) -> bool:
    """By policy always, else where the healthy ones are enough without it."""
    if trees.text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _check(budget: Tree, status: Tree) -> None:
    name, allowed = budget["metadata"]["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = Cause("", "DisruptionBudget", f"The disruption budget {name} is still being processed by the server.")
        raise errors.too_many_requests(VIOLATION, [cause], RETRY_UNPROCESSED)
    if allowed < 0:
        raise errors.forbidden(PODDISRUPTIONBUDGETS, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        message = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise errors.too_many_requests(VIOLATION, [Cause("", "DisruptionBudget", message)])


def _charged(state: State, pod: Tree, status: Tree) -> Tree:
    now, left = state.clock.rfc3339(), status.get("disruptionsAllowed", 0) - 1
    charged = status | {
        "disruptionsAllowed": left,
        "disruptedPods": (status.get("disruptedPods") or {}) | {pod["metadata"]["name"]: now},
    }
    if left == 0:
        charged["conditions"] = [_exhausted(now, status.get("observedGeneration", 0))]
    return charged


def _exhausted(now: str, generation: int) -> Tree:
    return {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
