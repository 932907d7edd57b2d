"""Controllers of namespaces and of what every namespace contains.

`Namespaces` empties a namespace that is being deleted and then removes its finalizer. It checks the namespace every
second until it is empty, because pods have a grace period. `ServiceAccounts` creates the `default` ServiceAccount and
the ConfigMap with the CA certificate in every namespace."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, NAMESPACES, SERVICEACCOUNTS, Resource
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, conditions, views
from numalign.simulator.controllers.framework.actions import Action, Create, Delete, Requeue, Update
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

FINALIZER: Final = "kubernetes"
PATIENCE: Final = 1.0
FINE: Final = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)

Contents = Mapping[Resource, Sequence[Tree]]


class Namespaces:
    name = "namespace-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(NAMESPACES, lambda change: context.enqueue(change.key))

    def reconcile(self, key: Key) -> Iterable[Action]:
        api, namespace = self._context.api, self._context.views[NAMESPACES].get(key)
        if namespace is None or not namespace["metadata"].get("deletionTimestamp"):
            return []
        inside = [resource for resource in views.kept(api) if resource.namespaced]
        contents = {resource: api.list(resource, key[1]).items for resource in inside}
        return reconcile(namespace, contents, api.clock.wall())


def reconcile(namespace: Tree, contents: Contents, now: datetime) -> list[Action]:
    """Handles a namespace that is being deleted."""
    left = {resource: objects for resource, objects in contents.items() if objects}
    if not left:
        return _finalized(namespace)
    removed = [
        Delete(resource, each, propagation="Background")
        for resource, objects in left.items()
        for each in objects
        if not each["metadata"].get("deletionTimestamp")
    ]
    status = (namespace.get("status") or {}) | {"conditions": _deletion_conditions(namespace, left, now)}
    return [*removed, *actions.status(NAMESPACES, namespace, status), Requeue(PATIENCE)]


def _finalized(namespace: Tree) -> list[Action]:
    spec = namespace.get("spec") or {}
    finalizers = [each for each in spec.get("finalizers") or () if each != FINALIZER]
    if finalizers == (spec.get("finalizers") or []):
        return []
    return [Update(NAMESPACES, namespace | {"spec": spec | {"finalizers": finalizers}}, "finalize")]


def _deletion_conditions(namespace: Tree, left: Contents, now: datetime) -> conditions.Conditions:
    counts = sorted(
        f"{resource.plural}.{resource.group} has {len(left[resource])} resource instances" for resource in left
    )
    held: dict[str, int] = {}
    for each in (each for objects in left.values() for each in objects):
        for finalizer in each["metadata"].get("finalizers") or ():
            held[finalizer] = held.get(finalizer, 0) + 1
    waits = [f"{finalizer} in {held[finalizer]} resource instances" for finalizer in sorted(held)]
    listed = conditions.listed(namespace)
    for kind, reason, message in FINE:
        condition = conditions.made(kind, "False", reason, message)
        if kind == "NamespaceContentRemaining":
            message = f"Some resources are remaining: {', '.join(counts)}"
            condition = conditions.made(kind, "True", "SomeResourcesRemain", message)
        elif kind == "NamespaceFinalizersRemaining" and waits:
            message = f"Some content in the namespace has finalizers remaining: {', '.join(waits)}"
            condition = conditions.made(kind, "True", "SomeFinalizersRemain", message)
        listed = conditions.put(listed, condition, now)
    return listed


DEFAULT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
DESCRIPTION: Final = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using "
    "internal endpoints such as the internal service IP or kubernetes.default.svc. "
    "No other usage is guaranteed across distributions of Kubernetes clusters."
}


class ServiceAccounts:
    """Keys are (namespace, "")."""

    name = "service-account-controller"

    def __init__(self, certificate: str = "") -> None:
        self._certificate = certificate

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(NAMESPACES, lambda change: context.enqueue((change.key[1], "")))
        context.views.watch(SERVICEACCOUNTS, self._changed)
        context.views.watch(CONFIGMAPS, self._changed)

    def _changed(self, change: Change) -> None:
        if change.key[1] in (DEFAULT, ROOT_CA) and change.kind != "ADDED":
            self._context.enqueue((change.key[0], ""))

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        namespace = views[NAMESPACES].get(("", key[0]))
        if namespace is None:
            return []
        account = views[SERVICEACCOUNTS].get((key[0], DEFAULT))
        return ensure_default_account(namespace, account, views[CONFIGMAPS].get((key[0], ROOT_CA)), self._certificate)


def ensure_default_account(
    namespace: Tree, account: Tree | None, bundle: Tree | None, certificate: str
) -> Sequence[Action]:
    if namespace["metadata"].get("deletionTimestamp"):
        return []
    home = namespace["metadata"]["name"]
    actions: list[Action] = []
    if account is None:
        metadata = {"name": DEFAULT, "namespace": home}
        actions.append(Create(SERVICEACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
    data = {"ca.crt": certificate}
    if bundle is None:
        metadata = {"name": ROOT_CA, "namespace": home, "annotations": DESCRIPTION}
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        actions.append(Create(CONFIGMAPS, tree))
    elif bundle.get("data") != data:
        actions.append(Update(CONFIGMAPS, bundle | {"data": data}))
    return actions
