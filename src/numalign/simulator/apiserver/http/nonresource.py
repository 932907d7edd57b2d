"""The paths that are not resources (health, version, metrics, discovery, OpenAPI) and access reviews.

`routes` tries these paths first. Documents made from the registry are cached until it changes.

`review` answers what `kubectl auth can-i`, `whoami` and similar commands post: yes, except for anonymous users. Roles
are stored and not enforced; reviews are not stored."""

from typing import Final

from numalign.process.http.messages import Request, Response
from numalign.simulator.apiserver.http import discovery, openapi, requests
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.verbs.state import ServerState
from numalign.simulator.trees import Tree

HEALTH: Final = frozenset({"healthz", "livez", "readyz"})
VERSION: Final = {
    "major": "1",
    "minor": "37",
    "gitVersion": "v1.37.1+numalign-embedded",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "linux/amd64",
}
METRICS: Final = "text/plain; version=0.0.4; charset=utf-8"
USER: Final = {"username": "admin", "uid": "admin", "groups": ["system:masters", "system:authenticated"]}
ANONYMOUS: Final = "system:anonymous"
TOKEN: Final = "admin"
EVERYTHING: Final = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


class NonResourcePaths:
    def __init__(self, state: ServerState, counts: dict[tuple[str, int], int]) -> None:
        self._state = state
        self._counts = counts
        self._generation = -1
        self._documents: dict[tuple[str, str, bool], Response] = {}

    def answer(self, request: Request) -> Response | None:
        """None for the path of a resource and for an unknown path."""
        steps = request.path.strip("/").split("/")
        first = steps[0]
        if first in ("api", "apis"):
            is_list = len(steps) <= (2 if first == "api" else 3)
            return self._document(request) if is_list and request.method == "GET" else None
        if request.method not in ("GET", "HEAD"):
            return None
        if first in HEALTH:
            return self._health(request, first)
        if first == "openapi":
            return self._document(request)
        if len(steps) > 1:
            return None
        return self._single(first)

    def _single(self, name: str) -> Response | None:
        if name == "version":
            return requests.json_response(VERSION)
        if name == "metrics":
            return Response(200, self._metrics().encode(), METRICS)
        if name == "":
            return requests.json_response(
                {
                    "paths": [
                        "/api",
                        "/apis",
                        "/healthz",
                        "/livez",
                        "/metrics",
                        "/openapi/v2",
                        "/openapi/v3",
                        "/readyz",
                        "/version",
                    ]
                }
            )
        return None

    def _health(self, request: Request, name: str) -> Response:
        return requests.text_response(f"[+]ping ok\n{name} check passed\n" if "verbose" in request.query else "ok")

    def _document(self, request: Request) -> Response | None:
        registry = self._state.registry
        if self._generation != registry.generation:
            self._documents.clear()
            self._generation = registry.generation
        # Few forms of a document exist, however many Accept headers ask for them.
        key = (request.path.strip("/"), discovery.aggregation(request.accept), openapi.is_protobuf(request.accept))
        found = self._documents.get(key) or self._made(request)
        if found is not None:
            self._documents[key] = found
        if found is not None and dict(found.headers).get("ETag", "-") == request.headers.get("if-none-match"):
            return Response(304, b"", found.content_type, found.headers)
        return found

    def _made(self, request: Request) -> Response | None:
        served = list(self._state.registry)
        if not request.path.startswith("/openapi"):
            found = discovery.document(request.path, request.accept, served)
            headers = (("ETag", found.etag), ("Vary", "Accept")) if found is not None and found.etag else ()
            return None if found is None else Response(200, found.body, found.content_type, headers)
        steps = request.path.strip("/").split("/")
        if steps == ["openapi", "v3"]:
            return requests.json_response(openapi.index(self._state.registry))
        if steps == ["openapi", "v2"]:
            return Response(200, *openapi.older(request.accept))
        if steps[:2] != ["openapi", "v3"] or len(steps) not in (4, 5):
            return None
        group = "" if steps[2] == "api" else steps[3]
        body = openapi.document(self._state.registry, group, steps[-1])
        return None if body is None else Response(200, body)

    def _metrics(self) -> str:
        lines = ["# TYPE apiserver_request_total counter"]
        for (method, code), count in sorted(self._counts.items()):
            lines.append(f'apiserver_request_total{{verb="{method}",code="{code}"}} {count}')
        lines += ["# TYPE apiserver_resource_objects gauge", "# TYPE apiserver_longrunning_requests gauge"]
        for resource in self._state.registry:
            collection = self._state.store.collection(resource)
            if collection.entries and collection.resource is resource:
                about = f'group="{resource.group}",resource="{resource.plural}"'
                lines.append(f"apiserver_resource_objects{{{about}}} {len(collection.entries)}")
                lines.append(f"apiserver_longrunning_requests{{{about}}} {len(collection.watchers)}")
        return "\n".join(lines) + "\n"


def review(resource: Resource, tree: Tree, now: str) -> Tree:
    head: Tree = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": {}}
    if resource is resources.SELFSUBJECTREVIEWS:
        return head | {"metadata": {"creationTimestamp": now}, "status": {"userInfo": USER}}
    spec = tree.get("spec") or {}
    return head | {"spec": spec, "status": _status(resource, spec)}


def _status(resource: Resource, spec: Tree) -> Tree:
    if resource is resources.SELFSUBJECTRULESREVIEWS:
        return EVERYTHING
    if resource is resources.TOKENREVIEWS:
        # There is one user, and requests are not authenticated as anyone else, so one token is valid.
        return {"authenticated": True, "user": USER} if spec.get("token") == TOKEN else {}
    return {"allowed": spec.get("user") != ANONYMOUS}
