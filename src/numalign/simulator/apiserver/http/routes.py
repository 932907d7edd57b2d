"""Routes requests to verbs and builds the responses.

`connections` passes every complete request to `Router.answer`. Paths that are not resources are answered by
`nonresource`. A request for a watch returns a `WatchRequest`, which `watchstream` opens."""

import logging
from collections.abc import Callable
from typing import Final

from numalign.process.http.messages import Request, Response
from numalign.simulator import trees
from numalign.simulator.apiserver.http import bodies, nonresource, options, requests, responses
from numalign.simulator.apiserver.http.requests import RequestInfo, WatchRequest
from numalign.simulator.apiserver.storage import errors, resources
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
TOO_DEEP: Final = "the body of the request is nested too deeply"
MAX_WATCH_SECONDS: Final = 1800.0
MAX_CACHED_PATHS: Final = 1000
STORED_ONLY: Final = frozenset({resources.STATEFULSETS, resources.CRONJOBS, resources.RESOURCEQUOTAS})
"""Kinds that users expect a controller to act on; here none does."""
# Subresources that would need a kubelet.
UNSERVED: Final = frozenset({"log", "exec", "attach", "portforward", "proxy", "token", "ephemeralcontainers", "resize"})


class Router:
    def __init__(self, state: ServerState) -> None:
        self.state = state
        self.counts: dict[tuple[str, int], int] = {}
        """Requests by verb and code, for /metrics."""
        self._plain = nonresource.NonResourcePaths(state, self.counts)
        self._infos: dict[str, RequestInfo] = {}
        self._generation = -1

    def answer(self, request: Request) -> Response | WatchRequest:
        try:
            found = self._answer(request)
        except StatusError as problem:
            found = requests.error_response(problem)
        except requests.NoSuchGroup:
            found = requests.text_response("404 page not found\n", 404)
        except RecursionError:
            found = requests.error_response(errors.bad_request(TOO_DEEP))
        except Exception as problem:
            log.exception("%s %s", request.method, request.path)
            found = requests.error_response(errors.internal(f"{type(problem).__name__}: {problem}"))
        key = (request.method, 200 if isinstance(found, WatchRequest) else found.code)
        self.counts[key] = self.counts.get(key, 0) + 1
        return found

    def _answer(self, request: Request) -> Response | WatchRequest:
        info = self._infos.get(request.path)
        if info is None or self._generation != self.state.registry.generation:
            plain = self._plain.answer(request)
            if plain is not None:
                return plain
            info = self._request_info(request.path)
        if info.subresource:
            return self._subresource(request, info)
        if info.name:
            return self._object(request, info)
        return self._collection(request, info)

    def _request_info(self, path: str) -> RequestInfo:
        """Cached for collections: there are few, and most writes go to one of them."""
        registry = self.state.registry
        if self._generation != registry.generation:
            self._infos.clear()
            self._generation = registry.generation
        info = requests.request_info(registry, path)
        if not info.name and len(self._infos) < MAX_CACHED_PATHS:
            self._infos[path] = info
        return info

    def _collection(self, request: Request, info: RequestInfo) -> Response | WatchRequest:
        resource = info.resource
        if request.method == "GET" and "list" in resource.verbs:
            if info.is_watch or request.flag("watch"):
                return self._watch(request, info)
            return responses.list_response(self.state, request, resource, self._page(request, info))
        if request.method == "POST" and "create" in resource.verbs and (info.namespace or not resource.namespaced):
            return self._create(request, info)
        if request.method == "DELETE" and "deletecollection" in resource.verbs:
            return self._delete_all(request, info)
        raise errors.method_not_allowed()

    def _object(self, request: Request, info: RequestInfo) -> Response | WatchRequest:
        resource = info.resource
        if resource in REVIEWS:
            raise errors.method_not_allowed()
        if request.method == "GET" and info.is_watch:
            return self._watch(request, info)
        if request.method == "GET":
            if version := request.query.get("resourceVersion", ""):
                known_version(self.state.store, version)
            return responses.object_response(
                self.state, request, resource, self.state.entry(resource, info.name, info.namespace)
            )
        verb = OBJECT_VERBS.get(request.method)
        if verb is None:
            raise errors.method_not_allowed()
        return verb(self, request, info)

    def _subresource(self, request: Request, info: RequestInfo) -> Response | WatchRequest:
        resource, subresource = info.resource, info.subresource
        if (resource, subresource) == (PODS, "binding") and request.method == "POST":
            return self._bind(request, info)
        if (resource, subresource) == (PODS, "eviction") and request.method == "POST":
            return self._evict(request, info)
        if subresource in UNSERVED and not resource.custom:
            self.state.entry(resource, info.name, info.namespace)
            why = "tokens are not checked" if subresource == "token" else "its nodes are simulated"
            raise errors.not_served(f"the {subresource} of {resource.plural}: {why}")
        if subresource not in resource.subresources:
            raise errors.no_such_path()
        verb = SUBRESOURCE_VERBS.get((subresource, request.method))
        if verb is None:
            raise errors.method_not_allowed()
        return verb(self, request, info)

    def _page(self, request: Request, info: RequestInfo) -> ListPage:
        return list_objects(
            self.state.store, info.resource, self._predicate(request, info), options.list_options(request)
        )

    def _predicate(self, request: Request, info: RequestInfo) -> SelectionPredicate:
        query, fields = request.query, request.query.get("fieldSelector", "")
        if info.name:
            fields = f"metadata.name={info.name}"
        return predicate(info.resource, info.namespace, query.get("labelSelector", ""), fields)

    def _watch(self, request: Request, info: RequestInfo) -> WatchRequest:
        watch = WatchRequest(info.resource, self._predicate(request, info), options.watch_start(request))
        watch.bookmarks = request.flag("allowWatchBookmarks")
        watch.seconds = float(options.parse_integer(request.query.get("timeoutSeconds", ""))) or MAX_WATCH_SECONDS
        watch.accept, watch.include = request.accept, responses.include_object(request.query)
        return watch

    def _create(self, request: Request, info: RequestInfo) -> Response:
        resource = info.resource
        written = options.write_options(request, options.CREATE)
        tree = bodies.read_object(request.body, request.content_type, resource)
        if resource in REVIEWS:
            return responses.tree_response(request, nonresource.review(resource, tree, self.state.clock.rfc3339()), 201)
        warnings = bodies.field_warnings(self.state, request, resource, tree)
        if resource in STORED_ONLY:
            warnings = [
                *warnings,
                f"the embedded cluster stores {resource.kind} objects, and no controller acts on them",
            ]
        _set_identity(tree, info)
        entry = create.create_object(self.state, resource, tree, written)
        return _with_warnings(responses.object_response(self.state, request, resource, entry, 201), warnings)

    def _update(self, request: Request, info: RequestInfo) -> Response:
        resource = info.resource
        written = options.write_options(request, options.UPDATE)
        tree = bodies.read_object(request.body, request.content_type, resource)
        warnings = bodies.field_warnings(self.state, request, resource, tree)
        _set_identity(tree, info)
        is_new = self.state.store.entry(resource, info.name, info.namespace) is None
        entry = update.update_object(self.state, resource, tree, info.subresource, written)
        return _with_warnings(
            responses.object_response(self.state, request, resource, entry, 201 if is_new else 200), warnings
        )

    def _patch(self, request: Request, info: RequestInfo) -> Response:
        kind = PATCHES.get(request.content_type.partition(";")[0].strip())
        if kind is None:
            raise errors.unsupported_media_type("415: Unsupported Media Type", {})
        written = options.apply_options(request) if kind == "apply" else options.patch_options(request)
        where = PatchTarget(info.resource, info.name, info.namespace, info.subresource)
        patched = patch.patch_object(self.state, where, Patch(kind, request.body), written)
        if info.subresource == "scale":
            return self._scale_of(request, info.resource, trees.decoded(patched.entry.data))
        return responses.object_response(
            self.state, request, info.resource, patched.entry, 201 if patched.is_new else 200
        )

    def _delete(self, request: Request, info: RequestInfo) -> Response:
        resource = info.resource
        deleted = delete.delete_object(self.state, resource, info.name, info.namespace, options.delete_options(request))
        if not deleted.is_gone or resource.group_resource in strategy.SHOWN_WHEN_DELETED:
            return responses.object_response(self.state, request, resource, deleted.entry)
        uid = trees.decoded(deleted.entry.data)["metadata"]["uid"]
        details = errors.details(resource, info.name) | {"uid": uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return requests.json_response(status)

    def _delete_all(self, request: Request, info: RequestInfo) -> Response:
        wanted, page = options.delete_options(request), self._page(request, info)
        for entry in page.entries:
            delete.delete_object(self.state, info.resource, entry.name, entry.namespace, wanted)
        return responses.list_response(self.state, request, info.resource, page)

    def _bind(self, request: Request, info: RequestInfo) -> Response:
        written = options.write_options(request, options.CREATE)
        tree = bodies.read_object(request.body, request.content_type, BINDING)
        pod = info.name or trees.text(tree, "metadata", "name")
        subresources.bind(self.state, subresources.read_binding(tree, pod, info.namespace), dry_run=written.dry_run)
        return Response(201, DONE)

    def _evict(self, request: Request, info: RequestInfo) -> Response:
        written = options.write_options(request, options.CREATE)
        tree = bodies.read_object(request.body, request.content_type, EVICTION)
        if trees.text(tree, "metadata", "name") not in ("", info.name):
            raise errors.bad_request("name in URL does not match name in Eviction object")
        asked = dict(tree.get("deleteOptions") or {})
        if written.dry_run:
            asked["dryRun"] = ["All"]
        subresources.evict(self.state, info.name, info.namespace, options.read_delete_options(asked))
        return Response(201, DONE)

    def _get_subresource(self, request: Request, info: RequestInfo) -> Response:
        return responses.object_response(
            self.state, request, info.resource, self.state.entry(info.resource, info.name, info.namespace)
        )

    def _get_scale(self, request: Request, info: RequestInfo) -> Response:
        entry = self.state.entry(info.resource, info.name, info.namespace)
        return self._scale_of(request, info.resource, trees.decoded(entry.data))

    def _put_scale(self, request: Request, info: RequestInfo) -> Response:
        tree = bodies.read_object(request.body, request.content_type, subresources.SCALE)
        _set_identity(tree, info)
        entry = subresources.update_scale(
            self.state, info.resource, tree, options.write_options(request, options.UPDATE)
        )
        return self._scale_of(request, info.resource, trees.decoded(entry.data))

    def _scale_of(self, request: Request, resource: Resource, tree: Tree) -> Response:
        return responses.scale_response(self.state, request, subresources.scale_of(self.state.registry, resource, tree))


Verb = Callable[[Router, Request, RequestInfo], Response]
OBJECT_VERBS: Final[dict[str, Verb]] = {"PUT": Router._update, "PATCH": Router._patch, "DELETE": Router._delete}
SUBRESOURCE_VERBS: Final[dict[tuple[str, str], Verb]] = {
    ("status", "GET"): Router._get_subresource,
    ("status", "PUT"): Router._update,
    ("status", "PATCH"): Router._patch,
    ("scale", "GET"): Router._get_scale,
    ("scale", "PUT"): Router._put_scale,
    ("scale", "PATCH"): Router._patch,
    ("finalize", "PUT"): Router._update,
}


def _set_identity(tree: Tree, info: RequestInfo) -> None:
    """Sets namespace and name from the path; raises StatusError if the object names others."""
    metadata = tree.get("metadata")
    if metadata is None:
        metadata = tree["metadata"] = {}
    if metadata.get("namespace") and info.namespace and metadata["namespace"] != info.namespace:
        raise errors.bad_request(patch.WRONG_NAMESPACE)
    if info.name and metadata.get("name") and metadata["name"] != info.name:
        raise patch.wrong_name(metadata["name"], info.name)
    if info.namespace:
        metadata["namespace"] = info.namespace
    if info.name:
        metadata["name"] = info.name


def _with_warnings(answer: Response, warnings: list[str]) -> Response:
    if warnings:
        quoted = (warning.replace("\\", "\\\\").replace('"', '\\"') for warning in warnings)
        answer.headers += tuple(("Warning", f'299 - "{each}"') for each in quoted)
    return answer
