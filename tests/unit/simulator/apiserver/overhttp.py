"""The machine's target over HTTP, in plain synchronous calls: our server or a real one, by address and token."""

import http.client
import json
import queue
import ssl
import threading
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver.inprocess import patch_of, seen_of, thing_of, tree_of
from tests.unit.simulator.apiserver.machine import Change, Seen, Thing, Written

MERGE = "application/merge-patch+json"
PATIENCE = 20.0
"""Seconds to wait for an event before it counts as missed."""


@dataclass
class OverHttp:
    """In a namespace of its own, so that one server serves many histories."""

    url: str
    namespace: str
    token: str = ""

    def __post_init__(self) -> None:
        self._connection = connected(self.url)
        self._call("POST", "/api/v1/namespaces", {"metadata": {"name": self.namespace}})

    def create(self, thing: Thing) -> Written:
        return self._written("POST", "", tree_of(thing, self.namespace))

    def update(self, thing: Thing, version: str) -> Written:
        tree = tree_of(thing, self.namespace)
        tree["metadata"]["resourceVersion"] = version
        return self._written("PUT", thing.name, tree)

    def patch(self, name: str, change: Change) -> Written:
        return self._written("PATCH", name, patch_of(change))

    def delete(self, name: str) -> Written:
        return self._written("DELETE", name)

    def list(self, app: str) -> tuple[list[Thing], str]:
        query = {"labelSelector": f"app={app}"} if app else {"labelSelector": "app"}
        _, found = self._call("GET", self.path(query=query))
        return [thing_of(tree) for tree in found["items"]], found["metadata"]["resourceVersion"]

    def watch(self, version: str, app: str) -> "Reader":
        query = {"watch": "1", "resourceVersion": version, "labelSelector": f"app={app}" if app else "app"}
        return Reader(connected(self.url), self.path(query=query), self.headers())

    def close(self) -> None:
        self._connection.close()

    def path(self, name: str = "", query: dict[str, str] | None = None) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/configmaps" + (f"/{quote(name)}" if name else "")
        return f"{path}?{urlencode(query)}" if query else path

    def headers(self, media: str = "application/json") -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}", "Content-Type": media}

    def _written(self, method: str, name: str, body: Tree | None = None) -> Written:
        code, answer = self._call(method, self.path(name), body)
        return Written(200, answer["metadata"].get("resourceVersion", "")) if code < 300 else Written(code)

    def _call(self, method: str, path: str, body: Tree | None = None) -> tuple[int, Tree]:
        sent = json.dumps(body) if body is not None else None
        media = MERGE if method == "PATCH" else "application/json"
        self._connection.request(method, path, sent, self.headers(media))
        answer = self._connection.getresponse()
        found: Tree = json.loads(answer.read())
        return answer.status, found


class Reader:
    """A thread that reads a watch, line by line, until its connection is shut."""

    def __init__(self, connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> None:
        self._connection = connection
        self._seen: list[Seen] = []
        self._news: queue.Queue[Seen] = queue.Queue()
        connection.request("GET", path, headers=headers)
        self._answer = connection.getresponse()
        assert self._answer.status == 200
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def seen(self, count: int) -> list[Seen]:
        while len(self._seen) < count or not self._news.empty():
            self._seen.append(self._news.get(timeout=PATIENCE))
        return self._seen

    def close(self) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(2)
        self._thread.join(PATIENCE)
        self._answer.close()
        self._connection.close()

    def _read(self) -> None:
        try:
            for line in self._answer:
                event = json.loads(line)
                self._news.put(seen_of(event["type"], event["object"]))
        except (OSError, http.client.HTTPException, ValueError):
            return


def connected(url: str) -> http.client.HTTPConnection:
    place = urlsplit(url)
    host, port = place.hostname or "", place.port or 0
    if place.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=PATIENCE)
    context = ssl.create_default_context()
    # A server that was started for a test makes up its certificate.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(host, port, context=context, timeout=PATIENCE)
