"""From the path of a request to the resource, object and part that it means.

Only resources that the registry serves have paths. Groups that nobody serves are answered as the real server's outer
ring does, in plain text; within a group, with a Status."""

from typing import Final

from msgspec import Struct

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.registry import Registry
from numalign.simulator.apiserver.storage.resources import NAMESPACES, PODS, Resource

OWN_PARTS: Final = frozenset({"status", "finalize"})
"""What may follow a namespace's own name; anything else there is a resource within it."""


class Located(Struct, frozen=True):
    resource: Resource
    namespace: str = ""
    name: str = ""
    part: str = ""
    follows: bool = False
    """Whether it is one of the old paths under /watch."""


class NoSuchGroup(Exception):
    pass


def located(registry: Registry, path: str) -> Located:
    """Raises NoSuchGroup, or StatusError 404."""
    steps = path.strip("/").split("/")
    if steps[0] == "api" and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        raise NoSuchGroup
    follows = rest[0] == "watch"
    found = _within(registry, group, version, rest[1:] if follows else rest)
    if found is None:
        if not registry.has_group(group):
            raise NoSuchGroup
        raise errors.no_such_path()
    return Located(found.resource, found.namespace, found.name, found.part, follows) if follows else found


def _within(registry: Registry, group: str, version: str, rest: list[str]) -> Located | None:
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and not (group == "" and rest[2] in OWN_PARTS):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        return None
    plural, name, part = (*rest, "", "")[:3]
    if (group, plural, bool(namespace)) == ("", "bindings", True) and not name:
        return Located(PODS, namespace, "", "binding")
    resource = registry.find(group, version, plural)
    if resource is None or (namespace and not resource.namespaced):
        return None
    if resource is not NAMESPACES and name and resource.namespaced and not namespace:
        return None
    return Located(resource, namespace, name, part)
