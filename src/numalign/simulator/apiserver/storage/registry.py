"""Which resources are served at this moment: the built-in ones, and those that custom resource definitions add.

Paths, discovery and OpenAPI ask here. A custom resource brings along what only it has: its schema, its columns and the
paths of its scale."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from numalign.simulator.apiserver.schemas.structural import Schema
from numalign.simulator.apiserver.storage.resources import BUILT_IN, Resource
from numalign.simulator.trees import Tree


@dataclass(frozen=True)
class Custom:
    """What a custom resource definition says about one version."""

    resource: Resource
    schema: Schema
    columns: list[Tree] = field(default_factory=list)
    scale: Tree | None = None
    """specReplicasPath, statusReplicasPath and labelSelectorPath."""


class Registry:
    def __init__(self, resources: Iterable[Resource] = BUILT_IN) -> None:
        self._resources = {(each.group, each.version, each.plural): each for each in resources}
        self._customs: dict[tuple[str, str, str], Custom] = {}
        self.generation = 0
        """Grows with every change, so that documents made of the registry can be kept until then."""

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._resources.get((group, version, plural))

    def of_kind(self, group: str, version: str, kind: str) -> Resource | None:
        return next((each for each in self if each.gvk == (group, version, kind)), None)

    def has_group(self, group: str) -> bool:
        return any(each.group == group for each in self)

    def custom(self, resource: Resource) -> Custom | None:
        return self._customs.get((resource.group, resource.version, resource.plural))

    def schema(self, resource: Resource) -> Schema | None:
        """The schema of a custom resource; None for a built-in one."""
        found = self.custom(resource)
        return None if found is None else found.schema

    def define(self, home: tuple[str, str], customs: Iterable[Custom]) -> None:
        """These are now all versions of the custom resource; none means that it is no longer served."""
        for resource in [each for each in self if each.custom and each.home == home]:
            del self._resources[resource.group, resource.version, resource.plural]
            del self._customs[resource.group, resource.version, resource.plural]
        for custom in customs:
            resource = custom.resource
            self._resources[resource.group, resource.version, resource.plural] = resource
            self._customs[resource.group, resource.version, resource.plural] = custom
        self.generation += 1
