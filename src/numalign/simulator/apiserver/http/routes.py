"""Routes requests to verbs and builds the responses.

`connections` passes every complete request to `Router.answer`. Paths that are not resources are answered by
`nonresource`. A request for a watch returns a `WatchRequest`, which `watchstream` opens."""

import logging
from collections.abc import Callable
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.http import bodies, nonresource, options, requests, responses
from numalign.simulator.apiserver.http.requests import Request, RequestInfo, Response, WatchRequest
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import PODS, REVIEWS, Resource
from numalign.simulator.apiserver.verbs import create, delete, patch, strategy, subresources, update
from numalign.simulator.apiserver.verbs.list import ListPage, SelectionPredicate, known_version, list_objects, predicate
from numalign.simulator.apiserver.verbs.patch import Patch, PatchKind, PatchTarget
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree

log = logging.getLogger(__name__)

BINDING: Final = Resource("", "v1", "bindings", "Binding", namespaced=True)
EVICTION: Final = Resource("policy", "v1", "evictions", "Eviction", namespaced=True)
PATCHES: Final[dict[str, PatchKind]] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
DONE: Final = trees.encoded({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
LONGEST_WATCH: Final = 1800.0
MOST_PLACES: Final = 1000
# Subresources that would need a kubelet.
OUT_OF_REACH: Final = frozenset(
    {"log", "exec", "attach", "portforward", "proxy", "token", "ephemeralcontainers", "resize"}
)


class Router:
    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.counts: dict[tuple[str, int], int] = {}
        """Requests by verb and code, for /metrics."""
        self._plain = nonresource.NonResourcePaths(state, self.counts)
        self._places: dict[str, RequestInfo] = {}
        self._generation = -1

    def answer(self, request: Request) -> Response | WatchRequest:
        try:
            found = self._answer(request)
        except StatusError as problem:
            found = requests.error_response(problem)
        except requests.NoSuchGroup:
            found = requests.text_response("404 page not found\n", 404)
        except Exception as problem:
            log.exception("%s %s", request.method, request.path)
            found = requests.error_response(errors.internal(f"{type(problem).__name__}: {problem}"))
        key = (request.method, 200 if isinstance(found, WatchRequest) else found.code)
        self.counts[key] = self.counts.get(key, 0) + 1
        return found

    def _answer(self, request: Request) -> Response | WatchRequest:
        place = self._places.get(request.path)
        if place is None or self._generation != self.state.registry.generation:
            plain = self._plain.answer(request)
            if plain is not None:
                return plain
            place = self._located(request.path)
        if place.part:
            return self._part(request, place)
        if place.name:
            return self._object(request, place)
        return self._collection(request, place)

    def _located(self, path: str) -> RequestInfo:
        """Cached for collections: there are few, and most writes go to one of them."""
        registry = self.state.registry
        if self._generation != registry.generation:
            self._places.clear()
            self._generation = registry.generation
        place = requests.request_info(registry, path)
        if not place.name and len(self._places) < MOST_PLACES:
            self._places[path] = place
        return place

    def _collection(self, request: Request, place: RequestInfo) -> Response | WatchRequest:
        resource = place.resource
        if request.method == "GET" and "list" in resource.verbs:
            if place.follows or request.flag("watch"):
                return self._follow(request, place)
            return responses.list_response(self.state, request, resource, self._page(request, place))
        if request.method == "POST" and "create" in resource.verbs and (place.namespace or not resource.namespaced):
            return self._create(request, place)
        if request.method == "DELETE" and "deletecollection" in resource.verbs:
            return self._delete_all(request, place)
        raise errors.method_not_allowed()

    def _object(self, request: Request, place: RequestInfo) -> Response | WatchRequest:
        resource = place.resource
        if resource in REVIEWS:
            raise errors.method_not_allowed()
        if request.method == "GET" and place.follows:
            return self._follow(request, place)
        if request.method == "GET":
            if version := request.query.get("resourceVersion", ""):
                known_version(self.state.store, version)
            return responses.object_response(
                self.state, request, resource, self.state.entry(resource, place.name, place.namespace)
            )
        verb = OBJECT_VERBS.get(request.method)
        if verb is None:
            raise errors.method_not_allowed()
        return verb(self, request, place)

    def _part(self, request: Request, place: RequestInfo) -> Response | WatchRequest:
        resource, part = place.resource, place.part
        if (resource, part) == (PODS, "binding") and request.method == "POST":
            return self._bind(request, place)
        if (resource, part) == (PODS, "eviction") and request.method == "POST":
            return self._evict(request, place)
        if part in OUT_OF_REACH and not resource.custom:
            self.state.entry(resource, place.name, place.namespace)
            why = "nobody would check one" if part == "token" else "its nodes are simulated"
            raise errors.not_served(f"the {part} of {resource.plural}: {why}")
        if part not in resource.subresources:
            raise errors.no_such_path()
        verb = PART_VERBS.get((part, request.method))
        if verb is None:
            raise errors.method_not_allowed()
        return verb(self, request, place)

    def _page(self, request: Request, place: RequestInfo) -> ListPage:
        return list_objects(self.state.store, place.resource, self._chosen(request, place), options.page(request))

    def _chosen(self, request: Request, place: RequestInfo) -> SelectionPredicate:
        query, fields = request.query, request.query.get("fieldSelector", "")
        if place.name:
            fields = f"metadata.name={place.name}"
        return predicate(place.resource, place.namespace, query.get("labelSelector", ""), fields)

    def _follow(self, request: Request, place: RequestInfo) -> WatchRequest:
        following = WatchRequest(place.resource, self._chosen(request, place), options.since(request))
        following.bookmarks = request.flag("allowWatchBookmarks")
        following.seconds = float(options.whole(request.query.get("timeoutSeconds", ""))) or LONGEST_WATCH
        following.accept, following.include = request.accept, responses.include_object(request.query)
        return following

    def _create(self, request: Request, place: RequestInfo) -> Response:
        resource = place.resource
        written = options.writing(request, options.CREATE)
        tree = bodies.read_object(request.body, request.content_type, resource)
        if resource in REVIEWS:
            return responses.tree_response(request, nonresource.review(resource, tree, self.state.clock.rfc3339()), 201)
        warnings = bodies.field_warnings(self.state, request, resource, tree)
        _place(tree, place)
        entry = create.create_object(self.state, resource, tree, written)
        return _warned(responses.object_response(self.state, request, resource, entry, 201), warnings)

    def _update(self, request: Request, place: RequestInfo) -> Response:
        resource = place.resource
        written = options.writing(request, options.UPDATE)
        tree = bodies.read_object(request.body, request.content_type, resource)
        warnings = bodies.field_warnings(self.state, request, resource, tree)
        _place(tree, place)
        is_new = self.state.store.entry(resource, place.name, place.namespace) is None
        entry = update.update_object(self.state, resource, tree, place.part, written)
        return _warned(
            responses.object_response(self.state, request, resource, entry, 201 if is_new else 200), warnings
        )

    def _patch(self, request: Request, place: RequestInfo) -> Response:
        kind = PATCHES.get(request.content_type.partition(";")[0].strip())
        if kind is None:
            raise errors.unsupported_media_type("415: Unsupported Media Type", {})
        written = options.applying(request) if kind == "apply" else options.patching(request)
        where = PatchTarget(place.resource, place.name, place.namespace, place.part)
        patched = patch.patch_object(self.state, where, Patch(kind, request.body), written)
        if place.part == "scale":
            return self._scale_of(request, place.resource, trees.decoded(patched.entry.data))
        return responses.object_response(
            self.state, request, place.resource, patched.entry, 201 if patched.is_new else 200
        )

    def _delete(self, request: Request, place: RequestInfo) -> Response:
        resource = place.resource
        deleted = delete.delete_object(self.state, resource, place.name, place.namespace, options.deleting(request))
        if not deleted.is_gone or resource.home in strategy.SHOWN_WHEN_DELETED:
            return responses.object_response(self.state, request, resource, deleted.entry)
        uid = trees.decoded(deleted.entry.data)["metadata"]["uid"]
        details = errors.details(resource, place.name) | {"uid": uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return requests.json_response(status)

    def _delete_all(self, request: Request, place: RequestInfo) -> Response:
        wanted, page = options.deleting(request), self._page(request, place)
        for entry in page.entries:
            delete.delete_object(self.state, place.resource, entry.name, entry.namespace, wanted)
        return responses.list_response(self.state, request, place.resource, page)

    def _bind(self, request: Request, place: RequestInfo) -> Response:
        written = options.writing(request, options.CREATE)
        tree = bodies.read_object(request.body, request.content_type, BINDING)
        pod = place.name or trees.text(tree, "metadata", "name")
        subresources.bind(self.state, subresources.read_binding(tree, pod, place.namespace), dry_run=written.dry_run)
        return Response(201, DONE)

    def _evict(self, request: Request, place: RequestInfo) -> Response:
        written = options.writing(request, options.CREATE)
        tree = bodies.read_object(request.body, request.content_type, EVICTION)
        if trees.text(tree, "metadata", "name") not in ("", place.name):
            raise errors.bad_request("name in URL does not match name in Eviction object")
        asked = dict(tree.get("deleteOptions") or {})
        if written.dry_run:
            asked["dryRun"] = ["All"]
        subresources.evict(self.state, place.name, place.namespace, options.deletion(asked))
        return Response(201, DONE)

    def _get_part(self, request: Request, place: RequestInfo) -> Response:
        return responses.object_response(
            self.state, request, place.resource, self.state.entry(place.resource, place.name, place.namespace)
        )

    def _get_scale(self, request: Request, place: RequestInfo) -> Response:
        entry = self.state.entry(place.resource, place.name, place.namespace)
        return self._scale_of(request, place.resource, trees.decoded(entry.data))

    def _put_scale(self, request: Request, place: RequestInfo) -> Response:
        tree = bodies.read_object(request.body, request.content_type, subresources.SCALE)
        _place(tree, place)
        entry = subresources.update_scale(self.state, place.resource, tree, options.writing(request, options.UPDATE))
        return self._scale_of(request, place.resource, trees.decoded(entry.data))

    def _scale_of(self, request: Request, resource: Resource, tree: Tree) -> Response:
        return responses.scale_response(self.state, request, subresources.scale_of(self.state.registry, resource, tree))


Verb = Callable[[Router, Request, RequestInfo], Response]
OBJECT_VERBS: Final[dict[str, Verb]] = {"PUT": Router._update, "PATCH": Router._patch, "DELETE": Router._delete}
PART_VERBS: Final[dict[tuple[str, str], Verb]] = {
    ("status", "GET"): Router._get_part,
    ("status", "PUT"): Router._update,
    ("status", "PATCH"): Router._patch,
    ("scale", "GET"): Router._get_scale,
    ("scale", "PUT"): Router._put_scale,
    ("scale", "PATCH"): Router._patch,
    ("finalize", "PUT"): Router._update,
}


def _place(tree: Tree, place: RequestInfo) -> None:
    """Sets namespace and name from the path; raises StatusError if the object names others."""
    metadata = tree.get("metadata")
    if metadata is None:
        metadata = tree["metadata"] = {}
    if metadata.get("namespace") and place.namespace and metadata["namespace"] != place.namespace:
        raise errors.bad_request(patch.WRONG_NAMESPACE)
    if place.name and metadata.get("name") and metadata["name"] != place.name:
        raise patch.wrong_name(metadata["name"], place.name)
    if place.namespace:
        metadata["namespace"] = place.namespace
    if place.name:
        metadata["name"] = place.name


def _warned(answer: Response, warnings: list[str]) -> Response:
    if warnings:
        quoted = (warning.replace("\\", "\\\\").replace('"', '\\"') for warning in warnings)
        answer.headers += tuple(("Warning", f'299 - "{each}"') for each in quoted)
    return answer
