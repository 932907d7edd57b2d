"""Labs whose nodes run containers: pods are processes, with a network, an account and the CPUs that were promised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab import reals
from tests.lab.live import Live


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Two nodes, kube-scheduler, and the probe's image on both."""
    with reals.running(nodes=2, stock_scheduler=True) as live:
        assert reals.load(live, reals.probe_archive(tmp_path_factory.mktemp("probe"))) == reals.PROBE
        yield live


@pytest.fixture
def clean(real: Live) -> Iterator[Live]:
    """Without pods afterwards."""
    yield real
    real.clear()


def pod(name: str, *args: str, **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": reals.PROBE, "args": args or ("wait",)}
    container |= spec.pop("container", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def guaranteed(cpu: int, memory: str = "64Mi") -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": memory}
    return {"resources": {"requests": amounts, "limits": amounts}}


def probed(live: Live, name: str, *words: str) -> str:
    return reals.kubectl(live, "exec", name, "--", "/probe", *words).strip()


def test_a_pod_is_a_process_with_logs_and_commands(clean: Live) -> None:
    clean.create(pod("one", "wait", "a while"))
    assert clean.settled("one").status.phase == "Running"
    assert reals.kubectl(clean, "logs", "one") == "[hello from one a while]\n"
    assert probed(clean, "one", "cat", "/proc/1/comm") == "probe"


def test_a_pod_reaches_the_api_server_with_its_own_account(clean: Live) -> None:
    clean.create(pod("client"))
    clean.settled("client")
    assert probed(clean, "client", "api", "/version").startswith("200 ")
    own = probed(clean, "client", "api", "/api/v1/namespaces/default/pods")
    assert own.startswith("403 ")
    assert "system:serviceaccount:default:default" in own


def test_pods_of_both_nodes_answer_under_the_address_of_their_service(clean: Live) -> None:
    servers = [pod(f"server-{number}", "serve", ":80", nodeName=f"node-{number}") for number in range(2)]
    for each in servers:
        each["metadata"]["labels"] = {"app": "server"}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 80}]},
    }
    reals.kubectl(clean, "apply", "-f", "-", stdin=json.dumps(service))
    clean.create(*servers, pod("client", nodeName="node-0"))
    for name in ("server-0", "server-1", "client"):
        clean.settled(name)
    address = reals.kubectl(clean, "get", "service", "server", "-o", "jsonpath={.spec.clusterIP}")
    answers = set()

    async def both() -> bool:
        done = reals.tried_kubectl(clean, "exec", "client", "--", "/probe", "get", f"http://{address}")
        answers.add(done.stdout.strip())
        return answers >= {"200 server-0", "200 server-1"}

    clean.awaited(both, "not both pods answer")
    reals.kubectl(clean, "delete", "service", "server")
