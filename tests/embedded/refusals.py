"""The answers to bad requests: of any server, of the real one, and the recorded ones.

Those of the real server are in data/refusals.json; run this module to record them again."""

from __future__ import annotations

import http.client
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from numalign.simulator.nodes.publisher import crd
from tests.embedded import badrequests, realserver
from tests.embedded.badrequests import JSON, Request

RECORDED: Final = Path(__file__).parent / "data" / "refusals.json"
CHANGING: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=in record \()[0-9]+")


def sent(connection: http.client.HTTPConnection, request: Request, token: str = "") -> tuple[int, Any]:
    data = request.body if isinstance(request.body, str) else json.dumps(request.body)
    headers = {"Accept": JSON, "Content-Type": request.media} | ({"Authorization": f"Bearer {token}"} if token else {})
    connection.request(request.verb, request.path, data.encode(), headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    return answer.status, json.loads(text) if text.startswith("{") else text


def furnish(connection: http.client.HTTPConnection, token: str = "") -> None:
    for each in badrequests.FURNITURE:
        code, said = sent(connection, each, token)
        assert code in (200, 201), said


def answers(connection: http.client.HTTPConnection, token: str = "") -> dict[str, list[Any]]:
    """The code and the Status of every request, without what is different from one run to the next."""
    return {name: steady(*sent(connection, each, token)) for name, each in badrequests.REQUESTS.items()}


def steady(code: int, said: Any) -> list[Any]:
    return [code, json.loads(CHANGING.sub("...", json.dumps(said)))]


def recorded() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = json.loads(RECORDED.read_text())
    return found


def asked_of_the_real_server() -> dict[str, list[Any]]:
    found = realserver.programs()
    assert found is not None, "numalign lab build etcd kube-apiserver"
    with tempfile.TemporaryDirectory() as folder, realserver.running(Path(folder), *found) as real:
        define(real)
        furnish(real.connection, real.token)
        return answers(real.connection, real.token)


def record() -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(each)}" for name, each in asked_of_the_real_server().items())
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def define(real: realserver.RealServer) -> None:
    code, said = real.call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd.crd())
    assert code in (201, 409), said
    while real.call("GET", badrequests.REPORTS)[0] != 200:
        pass


if __name__ == "__main__":
    record()
