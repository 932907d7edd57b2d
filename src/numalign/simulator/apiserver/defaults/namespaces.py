"""Namespaces: what a new one gets, and that nothing is put where there is none or where one is going.

Those that every server makes for itself count as there from the first moment on."""

from typing import Final

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import Cause, StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES, Resource
from numalign.simulator.apiserver.storage.state import Lookup
from numalign.simulator.trees import Tree

ALWAYS_THERE: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"


def complete(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    metadata, spec = tree["metadata"], tree.get("spec") or {}
    metadata["labels"] = (metadata.get("labels") or {}) | {NAME_LABEL: metadata.get("name", "")}
    finalizers = list(spec.get("finalizers") or ())
    if old is not None:
        # Only their own subresource changes them.
        finalizers = list((old.get("spec") or {}).get("finalizers") or ())
    elif FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    tree["spec"] = spec | {"finalizers": finalizers} if finalizers else spec
    if old is None:
        tree["status"] = {"phase": "Active"}


def admit_into(resource: Resource, tree: Tree, lookup: Lookup) -> None:
    """Raises unless the object's namespace takes new objects."""
    namespace = tree["metadata"].get("namespace", "")
    home = lookup(NAMESPACES, namespace)
    if home is None and namespace not in ALWAYS_THERE:
        raise errors.not_found(NAMESPACES, namespace)
    if home is not None and "deletionTimestamp" in home["metadata"]:
        raise _going(resource, tree["metadata"], namespace)


def _going(resource: Resource, metadata: Tree, namespace: str) -> StatusError:
    name = metadata.get("generateName") or metadata.get("name", "")
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = Cause("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
    refusal = errors.forbidden(resource, name, why)
    return StatusError(403, "Forbidden", refusal.message, errors.details(resource, name, [cause]))
