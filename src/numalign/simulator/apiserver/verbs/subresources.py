"""The subresources that are not part of the object: binding and eviction of pods, and scale.

`bind` assigns a pod to its node: the write that a scheduler makes. A pod that is bound, gated or being deleted is
rejected with the real server's message; labels and annotations of the Binding are added to the pod.

`evict` deletes a pod if its disruption budget allows it. The budget's status decides (disruptionsAllowed, maintained by
the disruption controller), and every granted eviction decrements it at once, so that two evictions cannot use the same
allowance.

`scale_of` shows the replicas of deployments, replica sets, stateful sets and custom resources that declare a scale
subresource; `update_scale` writes them."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.schemas.registry import Registry
from numalign.simulator.apiserver.storage import errors, labelselectors
from numalign.simulator.apiserver.storage.errors import StatusCause, StatusError
from numalign.simulator.apiserver.storage.resources import PODDISRUPTIONBUDGETS, PODS, REPLICATIONCONTROLLERS, Resource
from numalign.simulator.apiserver.storage.store import StoredObject
from numalign.simulator.apiserver.verbs import delete, update
from numalign.simulator.apiserver.verbs.delete import DeleteOptions
from numalign.simulator.apiserver.verbs.state import ServerState, WriteOptions
from numalign.simulator.apiserver.verbs.update import check_version, replace_object
from numalign.simulator.trees import Tree

SCHEDULED: Final = "PodScheduled"
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
SCALE: Final = Resource("autoscaling", "v1", "scales", "Scale", namespaced=True)
BUILT_IN_PATHS: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


class Binding(Struct, frozen=True):
    pod: str
    namespace: str
    node: str
    uid: str = ""
    version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def read_binding(tree: Tree, pod: str, namespace: str) -> Binding:
    """The Binding in the body of a request for this pod."""
    metadata, target = trees.metadata(tree), tree.get("target") or {}
    if metadata.get("name") != pod:
        raise errors.bad_request("name in URL does not match name in Binding object")
    if target.get("kind") not in (None, "", "Node"):
        kind = target["kind"]
        raise StatusError(500, "", f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        raise StatusError(500, "", "target.name: Required value")
    return Binding(
        pod,
        namespace,
        target["name"],
        metadata.get("uid") or "",
        metadata.get("resourceVersion") or "",
        metadata.get("labels") or {},
        metadata.get("annotations") or {},
    )


def bind(state: ServerState, binding: Binding, *, dry_run: bool = False) -> None:
    entry = state.entry(PODS, binding.pod, binding.namespace)
    old = trees.decoded(entry.data)
    _check_binding(binding, old)
    if dry_run:
        return
    metadata = dict(old["metadata"])
    for name, added in (("labels", binding.labels), ("annotations", binding.annotations)):
        if added:
            metadata[name] = (metadata.get(name) or {}) | added
    new = old | {"metadata": metadata, "spec": old["spec"] | {"nodeName": binding.node}}
    status = old.get("status") or {}
    new["status"] = status | {"conditions": _scheduled(status.get("conditions") or [], state.clock.rfc3339())}
    state.store.commit(PODS, new, entry, old)


def _check_binding(binding: Binding, pod: Tree) -> None:
    metadata, spec = pod["metadata"], pod["spec"]
    if binding.uid and binding.uid != metadata["uid"]:
        raise update.precondition_failed(PODS, pod, "UID", (binding.uid, metadata["uid"]))
    if binding.version and binding.version != metadata["resourceVersion"]:
        versions = (binding.version, metadata["resourceVersion"])
        raise update.precondition_failed(PODS, pod, "ResourceVersion", versions)
    if "deletionTimestamp" in metadata:
        raise _binding_conflict(binding, "is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _binding_conflict(binding, f'is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _binding_conflict(binding, "has non-empty .spec.schedulingGates")


def _binding_conflict(binding: Binding, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on pods/binding "{binding.pod}": pod {binding.pod} {why}'
    return StatusError(409, "Conflict", message, {"name": binding.pod, "kind": "pods/binding"})


def _scheduled(conditions: list[Tree], now: str) -> list[Tree]:
    made = {"type": SCHEDULED, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    known = next((each for each in conditions if each.get("type") == SCHEDULED), None)
    if known is None:
        return [*conditions, made]
    if known.get("status") == "True":
        made["lastTransitionTime"] = known.get("lastTransitionTime")
    return [made if each is known else each for each in conditions]


def evict(state: ServerState, name: str, namespace: str, options: DeleteOptions) -> None:
    entry = state.entry(PODS, name, namespace)
    pod = trees.decoded(entry.data)
    if not _is_exempt(pod):
        _charge(state, pod, _budgets(state, entry), dry_run=options.dry_run)
    if not options.dry_run:
        options = _mark_disrupted(state, entry, pod, options)
    delete.delete_object(state, PODS, name, namespace, options)


def _mark_disrupted(state: ServerState, entry: StoredObject, pod: Tree, options: DeleteOptions) -> DeleteOptions:
    """Sets the DisruptionTarget condition before the deletion. Preconditions are checked before, on the old version."""
    delete.check_preconditions(PODS, entry, pod, options)
    status = pod.get("status") or {}
    conditions = status.get("conditions") or []
    if not any(each.get("type") == DISRUPTION["type"] and each.get("status") == "True" for each in conditions):
        others = [each for each in conditions if each.get("type") != DISRUPTION["type"]]
        condition = DISRUPTION | {"lastTransitionTime": state.clock.rfc3339()}
        new = pod | {"metadata": dict(pod["metadata"]), "status": status | {"conditions": [*others, condition]}}
        state.store.commit(PODS, new, entry, pod)
    return msgspec.structs.replace(options, version="")


def _is_exempt(pod: Tree) -> bool:
    """Budgets do not count a pod that has not started, has ended or is being deleted."""
    return trees.text(pod, "status", "phase") in ("Succeeded", "Failed", "Pending") or (
        "deletionTimestamp" in pod["metadata"]
    )


def _budgets(state: ServerState, pod: StoredObject) -> list[StoredObject]:
    return [
        entry
        for entry in state.store.collection(PODDISRUPTIONBUDGETS).within(pod.namespace)
        if labelselectors.selects(trees.at(trees.decoded(entry.data), "spec", "selector"), pod.labels)
    ]


def _charge(state: ServerState, pod: Tree, budgets: list[StoredObject], *, dry_run: bool) -> None:
    if not budgets:
        return
    if len(budgets) > 1:
        raise StatusError(500, "", TOO_MANY_BUDGETS)
    entry = budgets[0]
    budget = trees.decoded(entry.data)
    status = budget.get("status") or {}
    if not _is_ready(pod) and _allows_unhealthy(budget, status):
        return
    _check_budget(budget, status)
    if not dry_run:
        state.store.commit(PODDISRUPTIONBUDGETS, budget | {"status": _charged(state, pod, status)}, entry, budget)


def _is_ready(pod: Tree) -> bool:
    conditions = trees.at(pod, "status", "conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _allows_unhealthy(budget: Tree, status: Tree) -> bool:
    """Whether the policy always allows it, or enough other pods are healthy."""
    if trees.text(budget, "spec", "unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _check_budget(budget: Tree, status: Tree) -> None:
    name, allowed = budget["metadata"]["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = StatusCause(
            "", "DisruptionBudget", f"The disruption budget {name} is still being processed by the server."
        )
        raise errors.too_many_requests(VIOLATION, [cause], RETRY_UNPROCESSED)
    if allowed < 0:
        raise errors.forbidden(PODDISRUPTIONBUDGETS, name, "pdb disruptions allowed is negative")
    if allowed == 0:
        needs, has = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        message = f"The disruption budget {name} needs {needs} healthy pods and has {has} currently"
        raise errors.too_many_requests(VIOLATION, [StatusCause("", "DisruptionBudget", message)])


def _charged(state: ServerState, pod: Tree, status: Tree) -> Tree:
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


def scale_of(registry: Registry, resource: Resource, tree: Tree) -> Tree:
    metadata, paths = tree["metadata"], _paths(registry, resource)
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Tree = {"replicas": _at(tree, paths["statusReplicasPath"]) or 0}
    if selector := _selector(resource, tree, paths):
        status["selector"] = selector
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "spec": {"replicas": _at(tree, paths["specReplicasPath"]) or 0},
        "status": status,
    }


def scaled(registry: Registry, resource: Resource, tree: Tree, scale: Tree) -> Tree:
    """A copy of the object with the replicas of the scale."""
    replicas = trees.at(scale, "spec", "replicas") or 0
    if not isinstance(replicas, int) or replicas < 0:
        cause = fielderrors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid(SCALE, tree["metadata"]["name"], [cause])
    return _with(tree, _steps(_paths(registry, resource)["specReplicasPath"]), replicas)


def update_scale(state: ServerState, resource: Resource, scale: Tree, options: WriteOptions) -> StoredObject:
    """Writes the replicas of the scale to the object, if the scale is the latest."""
    metadata = trees.metadata(scale)
    entry = state.entry(resource, metadata.get("name", ""), metadata.get("namespace", ""))
    check_version(resource, metadata.get("resourceVersion") or "", entry, options)
    new = scaled(state.registry, resource, trees.decoded(entry.data), scale)
    return replace_object(state, resource, entry, trees.decoded(entry.data), new, options=options)


def _paths(registry: Registry, resource: Resource) -> Tree:
    custom = registry.custom(resource)
    return (custom.scale if custom is not None else None) or BUILT_IN_PATHS


def _selector(resource: Resource, tree: Tree, paths: Tree) -> str:
    if resource.custom:
        path = paths.get("labelSelectorPath")
        return str(_at(tree, path) or "") if path else ""
    selector = trees.at(tree, "spec", "selector")
    # The selector of a ReplicationController is a map of labels.
    return labelselectors.selector_text({"matchLabels": selector} if resource is REPLICATIONCONTROLLERS else selector)


def _steps(path: str) -> list[str]:
    return path.lstrip(".").split(".")


def _at(tree: Tree, path: str) -> Any:
    return trees.at(tree, *_steps(path))


def _with(tree: Tree, steps: list[str], value: Any) -> Tree:
    first, *rest = steps
    return tree | {first: _with(tree.get(first) or {}, rest, value) if rest else value}
