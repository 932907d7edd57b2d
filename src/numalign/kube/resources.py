"""Resources as data: where a kind lives under the API, and the struct that its objects are read into.

`request` makes calls of a `Target`, `client` and `informer` learn from it what comes back. A custom resource is one
more value made with `of`; nothing has to be registered."""

import re
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar, cast
from urllib.parse import quote

from msgspec import Struct

from numalign.api.decode import decode
from numalign.api.nrt import wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kube.objects import Event, Lease


class Named(Protocol):
    """What every decoded object has."""

    @property
    def metadata(self) -> ObjectMeta: ...


T = TypeVar("T", bound=Named)
PLAIN: Final = re.compile(r"[A-Za-z0-9._~-]+")


class Resource(Struct, Generic[T], frozen=True):
    """`read` decodes an object that does not match `struct` in one pass; it raises BadObject if it cannot."""

    group: str
    version: str
    plural: str
    kind: str
    struct: type[T]
    read: Callable[[bytes], T]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def at(self, name: str, namespace: str = "") -> "Target[T]":
        return Target(self, namespace, name)

    def within(self, namespace: str) -> "Target[T]":
        return Target(self, namespace)

    def everywhere(self) -> "Target[T]":
        """All namespaces, or a cluster-scoped resource."""
        return Target(self)


class Target(Struct, Generic[T], frozen=True):
    """One object, a part of it, or all objects of a namespace or cluster."""

    resource: Resource[T]
    namespace: str = ""
    name: str = ""
    part: str = ""

    def sub(self, part: str) -> "Target[T]":
        """Its subresource: status, scale, binding, eviction."""
        return Target(self.resource, self.namespace, self.name, part)

    @property
    def path(self) -> str:
        resource = self.resource
        path = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        if self.namespace:
            path += f"/namespaces/{_quoted(self.namespace)}"
        path += f"/{resource.plural}"
        if self.name:
            path += f"/{_quoted(self.name)}"
        return f"{path}/{_quoted(self.part)}" if self.part else path

    @property
    def words(self) -> str:
        """The target in messages: Pod default/web, or pods in default."""
        if not self.name:
            return f"{self.resource.plural} in {self.namespace}" if self.namespace else self.resource.plural
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource.kind} {place}{self.name}"


def _quoted(step: str) -> str:
    # API names almost never need quoting, and every call has three of them.
    return step if PLAIN.fullmatch(step) else quote(step, safe="")


def of(api_version: str, plural: str, kind: str, struct: type[T]) -> Resource[T]:
    """A resource by its apiVersion, decoded by the general rules."""
    group, _, version = api_version.rpartition("/")
    door = cast(Callable[[Any, bytes], T], decode.decode)
    return Resource(group, version, plural, kind, struct, lambda raw: door(struct, raw))


PODS: Final = of("v1", "pods", "Pod", Pod)
NODES: Final = of("v1", "nodes", "Node", Node)
LEASES: Final = of("coordination.k8s.io/v1", "leases", "Lease", Lease)
EVENTS: Final = of("events.k8s.io/v1", "events", "Event", Event)
# A malformed report is salvaged piece by piece, so it has a reader of its own.
TOPOLOGIES: Final = Resource(
    wire.GROUP,
    wire.V1ALPHA2,
    "noderesourcetopologies",
    wire.KIND,
    wire.NodeResourceTopology,
    wire.decode,
)
