"""How many replicas there are to be, for whoever scales without knowing the kind.

Deployments, replica sets, stateful sets and custom resources that declare it have a `scale`; this module shows it and
turns a written one into a change of the object itself."""

from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import fielderrors
from numalign.simulator.apiserver.schemas.registry import Registry
from numalign.simulator.apiserver.storage import errors, labelselectors
from numalign.simulator.apiserver.storage.resources import REPLICATIONCONTROLLERS, Resource
from numalign.simulator.apiserver.storage.store import StoredObject
from numalign.simulator.apiserver.verbs import update as updating
from numalign.simulator.apiserver.verbs.state import ServerState, WriteOptions
from numalign.simulator.trees import Tree

SCALE: Final = Resource("autoscaling", "v1", "scales", "Scale", namespaced=True)
BUILT_IN_PATHS: Final = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def shown(registry: Registry, resource: Resource, tree: Tree) -> Tree:
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
    """The object as the scale wants it; what it was given is left alone."""
    replicas = trees.at(scale, "spec", "replicas") or 0
    if not isinstance(replicas, int) or replicas < 0:
        cause = fielderrors.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid(SCALE, tree["metadata"]["name"], [cause])
    return _with(tree, _steps(_paths(registry, resource)["specReplicasPath"]), replicas)


def update(state: ServerState, resource: Resource, scale: Tree, options: WriteOptions) -> StoredObject:
    """The object scaled, provided the scale was the latest."""
    metadata = trees.metadata(scale)
    entry = state.entry(resource, metadata.get("name", ""), metadata.get("namespace", ""))
    updating.check_version(resource, metadata.get("resourceVersion") or "", entry, options)
    new = scaled(state.registry, resource, trees.decoded(entry.data), scale)
    return updating.replace(state, resource, entry, trees.decoded(entry.data), new, options=options)


def _paths(registry: Registry, resource: Resource) -> Tree:
    custom = registry.custom(resource)
    return (custom.scale if custom is not None else None) or BUILT_IN_PATHS


def _selector(resource: Resource, tree: Tree, paths: Tree) -> str:
    if resource.custom:
        path = paths.get("labelSelectorPath")
        return str(_at(tree, path) or "") if path else ""
    selector = trees.at(tree, "spec", "selector")
    # The oldest of them selects by labels alone.
    return labelselectors.written({"matchLabels": selector} if resource is REPLICATIONCONTROLLERS else selector)


def _steps(path: str) -> list[str]:
    return path.lstrip(".").split(".")


def _at(tree: Tree, path: str) -> Any:
    return trees.at(tree, *_steps(path))


def _with(tree: Tree, steps: list[str], value: Any) -> Tree:
    first, *rest = steps
    return tree | {first: _with(tree.get(first) or {}, rest, value) if rest else value}
