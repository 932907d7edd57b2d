"""Requests without sockets, and a server with one object of every sort to ask about."""

from typing import Any

import msgspec

from numalign.process.http.messages import Request, Response
from numalign.simulator import trees
from numalign.simulator.apiserver.http.routes import Router
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, CUSTOMRESOURCEDEFINITIONS, DEPLOYMENTS, PODS
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import definitions, doors

JSON = "application/json"
PLACE = "/api/v1/namespaces/default"


def ask(api: Api, method: str, target: str, body: Any = b"", **headers: str) -> Response:
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    heard = {"accept": JSON, "content-type": JSON} | {name.replace("_", "-"): value for name, value in headers.items()}
    found = Router(api.state).answer(Request(method, target.encode(), heard, data))
    assert isinstance(found, Response)
    return found


def tree(answer: Response) -> Tree:
    return trees.decoded(answer.body)


def furnished() -> Api:
    api = doors.door()
    api.create(PODS, doors.pod("a"))
    api.create(CONFIGMAPS, doors.named("c", labels={"app": "red"}))
    api.create(DEPLOYMENTS, doors.deployment("d"))
    api.create(CUSTOMRESOURCEDEFINITIONS, definitions.widgets())
    return api
