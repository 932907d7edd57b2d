"""The registry of served resources: the built-in ones, and those that custom resource definitions add.

Routing, discovery and OpenAPI read the registry. A `CustomResource` adds the schema, the printer columns and the scale
paths of one version of a definition.

The verbs call `completed_definition` when a definition is written and `custom_resources` when it takes effect. All
versions of a resource share one set of objects; conversion changes the apiVersion only (strategy None). Names never
conflict here, so a definition is established by the write that stores it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from numalign.simulator import trees
from numalign.simulator.apiserver.schemas import structural
from numalign.simulator.apiserver.schemas.structural import StructuralSchema
from numalign.simulator.apiserver.storage.resources import BUILT_IN, GroupResource, Resource
from numalign.simulator.trees import Tree

CONDITIONS: Final = (
    ("NamesAccepted", "NoConflicts", "no conflicts found"),
    ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
)


@dataclass(frozen=True)
class CustomResource:
    """One served version of a custom resource definition."""

    resource: Resource
    schema: StructuralSchema
    columns: list[Tree] = field(default_factory=list)
    scale: Tree | None = None
    """specReplicasPath, statusReplicasPath and labelSelectorPath."""


class Registry:
    def __init__(self, resources: Iterable[Resource] = BUILT_IN) -> None:
        self._resources = {(each.group, each.version, each.plural): each for each in resources}
        self._customs: dict[tuple[str, str, str], CustomResource] = {}
        self.generation = 0
        """Increases with every change, so that documents made from the registry can be cached until then."""

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        return next((each for each in self if each.gvk == (group, version, kind)), None)

    def has_group(self, group: str) -> bool:
        return any(each.group == group for each in self)

    def custom(self, resource: Resource) -> CustomResource | None:
        return self._customs.get((resource.group, resource.version, resource.plural))

    def schema(self, resource: Resource) -> StructuralSchema | None:
        """The schema of a custom resource; None for a built-in one."""
        found = self.custom(resource)
        return None if found is None else found.schema

    def define(self, group_resource: GroupResource, customs: Iterable[CustomResource]) -> None:
        """Replaces all versions of the custom resource; without versions it is no longer served."""
        for resource in [each for each in self if each.custom and each.group_resource == group_resource]:
            del self._resources[resource.group, resource.version, resource.plural]
            del self._customs[resource.group, resource.version, resource.plural]
        for custom in customs:
            resource = custom.resource
            self._resources[resource.group, resource.version, resource.plural] = resource
            self._customs[resource.group, resource.version, resource.plural] = custom
        self.generation += 1


def completed_definition(crd: Tree, old: Tree | None, now: str) -> Tree:
    """The definition with derived names and a status that says it is established."""
    spec = crd.get("spec") or {}
    names = _names(spec)
    spec = {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}
    return {**crd, "spec": spec, "status": _status(spec, names, trees.at(old or {}, "status") or {}, now)}


def _names(spec: Tree) -> Tree:
    names = dict(spec.get("names") or {})
    if names.get("kind"):
        names["singular"] = names.get("singular") or names["kind"].lower()
        names["listKind"] = names.get("listKind") or names["kind"] + "List"
    return names


def _status(spec: Tree, names: Tree, before: Tree, now: str) -> Tree:
    since = {each["type"]: each["lastTransitionTime"] for each in before.get("conditions") or ()}
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": since.get(kind, now), "reason": why, "message": text}
        for kind, why, text in CONDITIONS
    ]
    versions = spec.get("versions") or ()
    stored = [each.get("name", "") for each in versions if isinstance(each, dict) and each.get("storage")]
    kept = dict.fromkeys([*(before.get("storedVersions") or ()), *stored])
    return {"conditions": conditions, "acceptedNames": names, "storedVersions": list(kept)}


def custom_resources(crd: Tree) -> list[CustomResource]:
    """One for each served version of a valid definition."""
    return [_custom(crd["spec"], version) for version in crd["spec"]["versions"] if version.get("served")]


def _custom(spec: Tree, version: Tree) -> CustomResource:
    names, parts = spec["names"], version.get("subresources") or {}
    tree = trees.at(version, "schema", "openAPIV3Schema")
    resource = Resource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        singular=names.get("singular", ""),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        subresources=frozenset(part for part in ("status", "scale") if part in parts),
        generations=True,
        custom=True,
    )
    return CustomResource(
        resource,
        structural.StructuralSchema(tree or {}, has_status_subresource="status" in parts),
        columns=list(version.get("additionalPrinterColumns") or ()),
        scale=parts.get("scale"),
    )


def per_version(versions: list[Any], index: int, part: str) -> str:
    """The path that errors name for a part of a version: the server hoists parts that all versions share."""
    keys = {"schema": "validation"}
    alike = all(each.get(part) == versions[0].get(part) for each in versions)
    return f"spec.{keys.get(part, part)}" if alike else f"spec.versions[{index}].{part}"
