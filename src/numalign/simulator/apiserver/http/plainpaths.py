"""The paths that are about the server itself: health, version, metrics, and what kinds there are.

`serving` asks here first. Documents about kinds are made by `presenting` from the registry and kept until it
changes."""

from typing import Final

from numalign.simulator.apiserver.http import calls
from numalign.simulator.apiserver.http.calls import Answer, Call
from numalign.simulator.apiserver.presenting import discovery, openapi
from numalign.simulator.apiserver.storage.state import State

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


class Plain:
    def __init__(self, state: State, counts: dict[tuple[str, int], int]) -> None:
        self._state = state
        self._counts = counts
        self._generation = -1
        self._documents: dict[tuple[str, str], Answer | None] = {}

    def answer(self, call: Call) -> Answer | None:
        """None where the path is about a resource, or about nothing."""
        steps = call.path.strip("/").split("/")
        first = steps[0]
        if first in ("api", "apis"):
            is_list = len(steps) <= (2 if first == "api" else 3)
            return self._document(call) if is_list and call.method == "GET" else None
        if call.method not in ("GET", "HEAD"):
            return None
        if first in HEALTH:
            return self._health(call, first)
        if first == "openapi":
            return self._document(call)
        if len(steps) > 1:
            return None
        return self._single(first)

    def _single(self, name: str) -> Answer | None:
        if name == "version":
            return calls.answer(VERSION)
        if name == "metrics":
            return Answer(200, self._metrics().encode(), METRICS)
        if name == "":
            return calls.answer(
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

    def _health(self, call: Call, name: str) -> Answer:
        return calls.text(f"[+]ping ok\n{name} check passed\n" if "verbose" in call.query else "ok")

    def _document(self, call: Call) -> Answer | None:
        registry = self._state.registry
        if self._generation != registry.generation:
            self._documents.clear()
            self._generation = registry.generation
        key = (call.path, call.accept)
        if key not in self._documents:
            self._documents[key] = self._made(call)
        found = self._documents[key]
        if found is not None and dict(found.headers).get("ETag", "-") == call.headers.get("if-none-match"):
            return Answer(304, b"", found.content_type, found.headers)
        return found

    def _made(self, call: Call) -> Answer | None:
        served = list(self._state.registry)
        if not call.path.startswith("/openapi"):
            found = discovery.document(call.path, call.accept, served)
            headers = (("ETag", found.etag), ("Vary", "Accept")) if found is not None and found.etag else ()
            return None if found is None else Answer(200, found.body, found.content_type, headers)
        steps = call.path.strip("/").split("/")
        if steps == ["openapi", "v3"]:
            return calls.answer(openapi.index(self._state.registry))
        if steps == ["openapi", "v2"]:
            return Answer(200, *openapi.older(call.accept))
        if steps[:2] != ["openapi", "v3"] or len(steps) not in (4, 5):
            return None
        group = "" if steps[2] == "api" else steps[3]
        body = openapi.document(self._state.registry, group, steps[-1])
        return None if body is None else Answer(200, body)

    def _metrics(self) -> str:
        lines = ["# TYPE apiserver_request_total counter"]
        for (method, code), count in sorted(self._counts.items()):
            lines.append(f'apiserver_request_total{{verb="{method}",code="{code}"}} {count}')
        lines += ["# TYPE apiserver_resource_objects gauge", "# TYPE apiserver_longrunning_requests gauge"]
        for resource in self._state.registry:
            shelf = self._state.store.shelf(resource)
            if shelf.entries and shelf.resource is resource:
                about = f'group="{resource.group}",resource="{resource.plural}"'
                lines.append(f"apiserver_resource_objects{{{about}}} {len(shelf.entries)}")
                lines.append(f"apiserver_longrunning_requests{{{about}}} {len(shelf.watchers)}")
        return "\n".join(lines) + "\n"
