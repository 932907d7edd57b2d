"""`numalign operator run` as people type it, over HTTP: two custom resources become agents and a scheduler, drift is
repaired, pages tell, and deleting everything does not wait."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.deploy.operator import crds, kinds
from tests.embedded import clusters
from tests.embedded import operatorstories as stories
from tests.embedded.clusters import Up
from tests.embedded.realserver import RealServer
from tests.embedded.test_scheduler_process import free_port, page

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OPERATORS = f"/apis/{kinds.API_VERSION}/{kinds.OPERATORS.plural}"
SCHEDULERS = f"/apis/{kinds.API_VERSION}/{kinds.SCHEDULERS.plural}"
IN = f"namespaces/{stories.NAMESPACE}"
DAEMONSET = f"/apis/apps/v1/{IN}/daemonsets/numalign-agent-all"
DEPLOYMENT = f"/apis/apps/v1/{IN}/deployments/numalign-scheduler"
ALL = {"name": "all", "nodeSelector": {"matchLabels": {"kubernetes.io/os": "linux"}}}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with clusters.up(tmp_path_factory.mktemp("clusters"), "--nodes 2") as found:
        yield found


@contextlib.contextmanager
def operator(up: Up, options: str = "") -> Iterator[subprocess.Popen[str]]:
    with clusters.running(up, f"operator run {options}") as process:
        yield process


def printed(command: str) -> list[Any]:
    found = subprocess.run(clusters.numalign(f"{command} -o json"), capture_output=True, check=True)
    items: list[Any] = json.loads(found.stdout)["items"]
    return items


def is_available(up: Up, path: str) -> bool:
    status = up.call("GET", path)[1].get("status", {})
    return any(each["type"] == "Available" and each["status"] == "True" for each in status.get("conditions", ()))


def test_from_the_printed_objects_to_agents_and_a_scheduler_and_back_to_nothing(up: Up) -> None:
    port = free_port()
    with operator(up, f"--port {port}") as process:
        assert process.stderr is not None
        assert any("numalign operator crds | kubectl apply" in line for line in process.stderr)
        for tree in printed("operator render"):
            if tree["kind"] in ("Namespace", "CustomResourceDefinition"):
                path = "/api/v1/namespaces" if tree["kind"] == "Namespace" else DEFINITIONS
                assert up.call("POST", path, tree)[0] == 201
        clusters.awaited(lambda: page(port, "/readyz") == "ok\n")
        up.call("POST", OPERATORS, stories.operator(ALL))
        up.call("POST", SCHEDULERS, stories.scheduler())
        clusters.awaited(lambda: is_available(up, f"{OPERATORS}/{kinds.OPERATOR_NAME}"))
        clusters.awaited(lambda: is_available(up, f"{SCHEDULERS}/{kinds.SCHEDULER_NAME}"))
        assert up.call("GET", DAEMONSET)[1]["status"]["numberReady"] == 2
        # An operand is deleted, and another one is there a moment later.
        uid = up.call("GET", DEPLOYMENT)[1]["metadata"]["uid"]
        assert up.call("DELETE", DEPLOYMENT)[0] == 200
        clusters.awaited(lambda: up.call("GET", DEPLOYMENT)[1]["metadata"].get("uid", uid) != uid)
        assert 'numalign_operator_group_ready{group="all"} 2' in page(port, "/metrics")
        process.send_signal(signal.SIGTERM)
        assert process.wait(clusters.PATIENCE) == 0
    # The operator is gone: nothing waits for it.
    for path in (f"{OPERATORS}/{kinds.OPERATOR_NAME}", f"{SCHEDULERS}/{kinds.SCHEDULER_NAME}"):
        up.call("DELETE", path)
        clusters.awaited(lambda path=path: up.call("GET", path)[0] == 404)  # type: ignore[misc]
    clusters.awaited(lambda: up.call("GET", DAEMONSET)[0] == 404)
    clusters.awaited(lambda: up.call("GET", DEPLOYMENT)[0] == 404)
    assert up.call("DELETE", f"/api/v1/{IN}")[0] == 200
    clusters.awaited(lambda: up.call("GET", f"/api/v1/{IN}")[0] == 404)


def test_what_cannot_start_says_why(up: Up, tmp_path: Path) -> None:
    wrong = tmp_path / "values.yaml"
    wrong.write_text("fullnameOverride: other\n")
    for options, words in {
        f"--values {wrong}": "fullnameOverride",
        "--agent-image NOT_AN_IMAGE!": "is not an image reference",
        "--values no-such-file": "no-such-file",
        "--namespace Bad_Name": "is not a name of small letters",
        "--trusted-digests sha256:12": '"sha256:12" is not a digest',
    }.items():
        with operator(up, options) as process:
            assert words in process.communicate(timeout=clusters.PATIENCE)[1]
            assert process.returncode == 2


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two specifiers": ({"nodeGroups": [{"poolName": "a", **ALL}]}, "exactly one of poolName"),
    "none": ({"nodeGroups": [{}]}, "exactly one of poolName"),
    "a name for a pool": ({"nodeGroups": [{"poolName": "a", "name": "b"}]}, "name goes with nodeSelector"),
    "a negative period": (
        {"nodeGroups": [{"poolName": "a", "config": {"infoRefreshPeriod": "-5s"}}]},
        "must not be negative",
    ),
    "an unknown level": ({"logLevel": "Loud"}, "Unsupported value"),
}


def test_a_real_server_accepts_the_definitions_and_their_rules_refuse_what_makes_no_sense(
    real_server: RealServer,
) -> None:
    for definition in crds.definitions():
        assert real_server.call("POST", DEFINITIONS, definition)[0] == 201
    real_server.until(lambda: real_server.call("GET", OPERATORS)[0] == 200)
    real_server.until(lambda: real_server.call("GET", SCHEDULERS)[0] == 200)
    assert real_server.call("POST", f"{OPERATORS}?dryRun=All", stories.operator(ALL))[0] == 201
    for spec, words in REFUSED.values():
        code, said = real_server.call("POST", f"{OPERATORS}?dryRun=All", stories.operator(spec=spec))
        assert code == 422
        assert words in said["message"]
    assert real_server.call("POST", f"{OPERATORS}?dryRun=All", stories.operator(name="other"))[0] == 422
    code, said = real_server.call("POST", f"{SCHEDULERS}?dryRun=All", stories.scheduler(replicas=-1))
    assert code == 422
    assert real_server.call("POST", f"{SCHEDULERS}?dryRun=All", stories.scheduler(cacheResyncPeriod="5s"))[0] == 201
