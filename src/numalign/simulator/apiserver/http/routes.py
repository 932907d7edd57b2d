"""Which verb a request is, and what goes back: the map from methods and paths to the modules of the verbs.

`server` hands every complete request to `Serving.answer`. Paths outside the resources (health, version, discovery,
OpenAPI) are `plainpaths`; a watch comes back as `Following`, for `streams` to open."""

import logging
from collections.abc import Callable
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.http import bodies, calls, forms, options, paths, plainpaths, reviews
from numalign.simulator.apiserver.http.calls import Answer, Call, Following
from numalign.simulator.apiserver.http.paths import Located
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import PODS, REVIEWS, Resource
from numalign.simulator.apiserver.storage.state import State
from numalign.simulator.apiserver.verbs import (
    bind,
    create,
    delete,
    evict,
    fieldvalidation,
    kindrules,
    patch,
    scale,
    update,
)
from numalign.simulator.apiserver.verbs import list as pages
from numalign.simulator.apiserver.verbs.patch import Patch, PatchKind, Place
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
# Parts of objects that would need a kubelet to talk to.
OUT_OF_REACH: Final = frozenset(
    {"log", "exec", "attach", "portforward", "proxy", "token", "ephemeralcontainers", "resize"}
)


class Serving:
    def __init__(self, state: State) -> None:
        self.state = state
        self.counts: dict[tuple[str, int], int] = {}
        """Requests by verb and code, for /metrics."""
        self._plain = plainpaths.Plain(state, self.counts)
        self._places: dict[str, Located] = {}
        self._generation = -1

    def answer(self, call: Call) -> Answer | Following:
        try:
            found = self._answer(call)
        except StatusError as problem:
            found = calls.refusal(problem)
        except paths.NoSuchGroup:
            found = calls.text("404 page not found\n", 404)
        except Exception as problem:
            log.exception("%s %s", call.method, call.path)
            found = calls.refusal(errors.internal(f"{type(problem).__name__}: {problem}"))
        key = (call.method, 200 if isinstance(found, Following) else found.code)
        self.counts[key] = self.counts.get(key, 0) + 1
        return found

    def _answer(self, call: Call) -> Answer | Following:
        place = self._places.get(call.path)
        if place is None or self._generation != self.state.registry.generation:
            plain = self._plain.answer(call)
            if plain is not None:
                return plain
            place = self._located(call.path)
        if place.part:
            return self._part(call, place)
        if place.name:
            return self._object(call, place)
        return self._collection(call, place)

    def _located(self, path: str) -> Located:
        """Remembered for collections: they are few, and most writes go to one of them."""
        registry = self.state.registry
        if self._generation != registry.generation:
            self._places.clear()
            self._generation = registry.generation
        place = paths.located(registry, path)
        if not place.name and len(self._places) < MOST_PLACES:
            self._places[path] = place
        return place

    def _collection(self, call: Call, place: Located) -> Answer | Following:
        resource = place.resource
        if call.method == "GET" and "list" in resource.verbs:
            if place.follows or call.flag("watch"):
                return self._follow(call, place)
            return forms.several(self.state, call, resource, self._page(call, place))
        if call.method == "POST" and "create" in resource.verbs and (place.namespace or not resource.namespaced):
            return self._create(call, place)
        if call.method == "DELETE" and "deletecollection" in resource.verbs:
            return self._delete_all(call, place)
        raise errors.method_not_allowed()

    def _object(self, call: Call, place: Located) -> Answer | Following:
        resource = place.resource
        if resource in REVIEWS:
            raise errors.method_not_allowed()
        if call.method == "GET" and place.follows:
            return self._follow(call, place)
        if call.method == "GET":
            if version := call.query.get("resourceVersion", ""):
                pages.known(self.state.store, version)
            return forms.one(self.state, call, resource, self.state.entry(resource, place.name, place.namespace))
        verb = OBJECT_VERBS.get(call.method)
        if verb is None:
            raise errors.method_not_allowed()
        return verb(self, call, place)

    def _part(self, call: Call, place: Located) -> Answer | Following:
        resource, part = place.resource, place.part
        if (resource, part) == (PODS, "binding") and call.method == "POST":
            return self._bind(call, place)
        if (resource, part) == (PODS, "eviction") and call.method == "POST":
            return self._evict(call, place)
        if part in OUT_OF_REACH and not resource.custom:
            self.state.entry(resource, place.name, place.namespace)
            why = "nobody would check one" if part == "token" else "its nodes are simulated"
            raise errors.not_served(f"the {part} of {resource.plural}: {why}")
        if part not in resource.subresources:
            raise errors.no_such_path()
        verb = PART_VERBS.get((part, call.method))
        if verb is None:
            raise errors.method_not_allowed()
        return verb(self, call, place)

    def _page(self, call: Call, place: Located) -> pages.Page:
        return pages.listed(self.state.store, place.resource, self._chosen(call, place), options.page(call))

    def _chosen(self, call: Call, place: Located) -> pages.Selection:
        query, fields = call.query, call.query.get("fieldSelector", "")
        if place.name:
            fields = f"metadata.name={place.name}"
        return pages.selection(place.resource, place.namespace, query.get("labelSelector", ""), fields)

    def _follow(self, call: Call, place: Located) -> Following:
        following = Following(place.resource, self._chosen(call, place), options.since(call))
        following.bookmarks = call.flag("allowWatchBookmarks")
        following.seconds = float(options.whole(call.query.get("timeoutSeconds", ""))) or LONGEST_WATCH
        following.accept, following.include = call.accept, forms.include(call.query)
        return following

    def _create(self, call: Call, place: Located) -> Answer:
        resource = place.resource
        written = options.writing(call, options.CREATE)
        tree = bodies.read(call.body, call.content_type, resource)
        if resource in REVIEWS:
            return forms.tree_answer(call, reviews.answered(resource, tree, self.state.clock.rfc3339()), 201)
        warnings = fieldvalidation.warnings(self.state, call, resource, tree)
        _place(tree, place)
        entry = create.create(self.state, resource, tree, written)
        return _warned(forms.one(self.state, call, resource, entry, 201), warnings)

    def _update(self, call: Call, place: Located) -> Answer:
        resource = place.resource
        written = options.writing(call, options.UPDATE)
        tree = bodies.read(call.body, call.content_type, resource)
        warnings = fieldvalidation.warnings(self.state, call, resource, tree)
        _place(tree, place)
        is_new = self.state.store.entry(resource, place.name, place.namespace) is None
        entry = update.update(self.state, resource, tree, place.part, written)
        return _warned(forms.one(self.state, call, resource, entry, 201 if is_new else 200), warnings)

    def _patch(self, call: Call, place: Located) -> Answer:
        kind = PATCHES.get(call.content_type.partition(";")[0].strip())
        if kind is None:
            raise errors.unsupported_media_type("415: Unsupported Media Type", {})
        written = options.applying(call) if kind == "apply" else options.patching(call)
        where = Place(place.resource, place.name, place.namespace, place.part)
        patched = patch.patch(self.state, where, Patch(kind, call.body), written)
        if place.part == "scale":
            return self._scale_of(call, place.resource, trees.decoded(patched.entry.data))
        return forms.one(self.state, call, place.resource, patched.entry, 201 if patched.is_new else 200)

    def _delete(self, call: Call, place: Located) -> Answer:
        resource = place.resource
        deleted = delete.delete(self.state, resource, place.name, place.namespace, options.deleting(call))
        if not deleted.is_gone or resource.home in kindrules.SHOWN_WHEN_DELETED:
            return forms.one(self.state, call, resource, deleted.entry)
        uid = trees.decoded(deleted.entry.data)["metadata"]["uid"]
        details = errors.details(resource, place.name) | {"uid": uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return calls.answer(status)

    def _delete_all(self, call: Call, place: Located) -> Answer:
        wanted, page = options.deleting(call), self._page(call, place)
        for entry in page.entries:
            delete.delete(self.state, place.resource, entry.name, entry.namespace, wanted)
        return forms.several(self.state, call, place.resource, page)

    def _bind(self, call: Call, place: Located) -> Answer:
        written = options.writing(call, options.CREATE)
        tree = bodies.read(call.body, call.content_type, BINDING)
        pod = place.name or trees.text(tree, "metadata", "name")
        bind.bind(self.state, bind.read(tree, pod, place.namespace), dry_run=written.dry_run)
        return Answer(201, DONE)

    def _evict(self, call: Call, place: Located) -> Answer:
        written = options.writing(call, options.CREATE)
        tree = bodies.read(call.body, call.content_type, EVICTION)
        if trees.text(tree, "metadata", "name") not in ("", place.name):
            raise errors.bad_request("name in URL does not match name in Eviction object")
        asked = dict(tree.get("deleteOptions") or {})
        if written.dry_run:
            asked["dryRun"] = ["All"]
        evict.evict(self.state, place.name, place.namespace, options.deletion(asked))
        return Answer(201, DONE)

    def _get_part(self, call: Call, place: Located) -> Answer:
        return forms.one(
            self.state, call, place.resource, self.state.entry(place.resource, place.name, place.namespace)
        )

    def _get_scale(self, call: Call, place: Located) -> Answer:
        entry = self.state.entry(place.resource, place.name, place.namespace)
        return self._scale_of(call, place.resource, trees.decoded(entry.data))

    def _put_scale(self, call: Call, place: Located) -> Answer:
        tree = bodies.read(call.body, call.content_type, scale.SCALE)
        _place(tree, place)
        entry = scale.update(self.state, place.resource, tree, options.writing(call, options.UPDATE))
        return self._scale_of(call, place.resource, trees.decoded(entry.data))

    def _scale_of(self, call: Call, resource: Resource, tree: Tree) -> Answer:
        return forms.scale_answer(self.state, call, scale.shown(self.state.registry, resource, tree))


Verb = Callable[[Serving, Call, Located], Answer]
OBJECT_VERBS: Final[dict[str, Verb]] = {"PUT": Serving._update, "PATCH": Serving._patch, "DELETE": Serving._delete}
PART_VERBS: Final[dict[tuple[str, str], Verb]] = {
    ("status", "GET"): Serving._get_part,
    ("status", "PUT"): Serving._update,
    ("status", "PATCH"): Serving._patch,
    ("scale", "GET"): Serving._get_scale,
    ("scale", "PUT"): Serving._put_scale,
    ("scale", "PATCH"): Serving._patch,
    ("finalize", "PUT"): Serving._update,
}


def _place(tree: Tree, place: Located) -> None:
    """The path says where an object belongs; what the object says about it has to agree."""
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


def _warned(answer: Answer, warnings: list[str]) -> Answer:
    if warnings:
        quoted = (warning.replace("\\", "\\\\").replace('"', '\\"') for warning in warnings)
        answer.headers += tuple(("Warning", f'299 - "{each}"') for each in quoted)
    return answer
