"""What requests mean to the API server, and responses for its verbs.

`routes` answers a `Request` of `process.http` with a `Response`, or with a `WatchRequest` if it opens a watch.
`request_info` resolves a path to resource, namespace, name and subresource. Unknown groups get a 404 in
plain text, as the real server's outermost handler answers; unknown paths within a group get a Status."""

from typing import Any, Final

from msgspec import Struct

from numalign.process.http.messages import JSON, TEXT, Response
from numalign.simulator import trees
from numalign.simulator.apiserver.schemas.registry import Registry
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES, PODS, Resource
from numalign.simulator.apiserver.verbs.list import SelectionPredicate
from numalign.simulator.apiserver.verbs.watch import WatchStart

NAMESPACE_SUBRESOURCES: Final = frozenset({"status", "finalize"})
"""The subresources of a namespace; any other segment after its name is a resource within it."""


class WatchRequest:
    """A watch to be opened."""

    def __init__(self, resource: Resource, predicate: SelectionPredicate, since: WatchStart) -> None:
        self.resource = resource
        self.predicate = predicate
        self.since = since
        self.bookmarks = False
        self.seconds = 0.0
        """The server ends the watch after this time."""
        self.accept = ""
        self.include = ""


def json_response(tree: Any, code: int = 200) -> Response:
    return Response(code, trees.encoded(tree))


def error_response(problem: StatusError) -> Response:
    details = problem.details or {}
    retry = details.get("retryAfterSeconds")
    headers = (("Retry-After", str(retry)),) if retry else ()
    return Response(problem.code, trees.encoded(problem.status()), JSON, headers)


def text_response(body: str, code: int = 200) -> Response:
    return Response(code, body.encode(), TEXT)


class RequestInfo(Struct, frozen=True):
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    is_watch: bool = False
    """Whether it is one of the older paths under /watch."""


class NoSuchGroup(Exception):
    pass


def request_info(registry: Registry, path: str) -> RequestInfo:
    """Raises NoSuchGroup, or StatusError 404."""
    steps = path.strip("/").split("/")
    if steps[0] == "api" and len(steps) > 2:
        group, version, rest = "", steps[1], steps[2:]
    elif steps[0] == "apis" and len(steps) > 3:
        group, version, rest = steps[1], steps[2], steps[3:]
    else:
        raise NoSuchGroup
    is_watch = rest[0] == "watch"
    found = _within(registry, group, version, rest[1:] if is_watch else rest)
    if found is None:
        if not registry.has_group(group):
            raise NoSuchGroup
        raise errors.no_such_path()
    return RequestInfo(found.resource, found.namespace, found.name, found.subresource, is_watch) if is_watch else found


def _within(registry: Registry, group: str, version: str, rest: list[str]) -> RequestInfo | None:
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and not (group == "" and rest[2] in NAMESPACE_SUBRESOURCES):
        namespace, rest = rest[1], rest[2:]
    if not rest or len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    if (group, plural, bool(namespace)) == ("", "bindings", True) and not name:
        return RequestInfo(PODS, namespace, "", "binding")
    resource = registry.find(group, version, plural)
    if resource is None or (namespace and not resource.namespaced):
        return None
    if resource is not NAMESPACES and name and resource.namespaced and not namespace:
        return None
    return RequestInfo(resource, namespace, name, subresource)
