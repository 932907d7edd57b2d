"""`numalign scheduler run` as people type it, over HTTP: pods get nodes, pages tell, a signal ends it in order."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator

import pytest

from tests.embedded import clusters
from tests.embedded import schedulerstories as stories
from tests.embedded.clusters import Up

PODS = "/api/v1/namespaces/default/pods"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/numalign"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with clusters.up(tmp_path_factory.mktemp("clusters"), "--nodes 2") as found:
        # A node without a report takes pods too, but nobody can say where on it.
        clusters.awaited(lambda: len(found.call("GET", REPORTS)[1]["items"]) == 2)
        yield found


@contextlib.contextmanager
def scheduler(up: Up, options: str = "--port 0") -> Iterator[subprocess.Popen[str]]:
    with clusters.running(up, f"scheduler run {options}") as process:
        yield process


def node_of(up: Up, name: str) -> str:
    return str(up.call("GET", f"{PODS}/{name}")[1]["spec"].get("nodeName", ""))


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def page(port: int, path: str, tls: ssl.SSLContext | None = None) -> str:
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        if tls is not None:
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=60, context=tls)
        with contextlib.closing(connection):
            connection.request("GET", path)
            return connection.getresponse().read().decode()
    except OSError:
        return ""


def unwary() -> ssl.SSLContext:
    """As Prometheus with `insecure_skip_verify`."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def test_pods_get_nodes_and_forecasts_and_a_signal_ends_it_in_order(up: Up) -> None:
    with scheduler(up) as process:
        up.call("POST", PODS, stories.pod("first", 4))
        clusters.awaited(lambda: bool(node_of(up, "first")))
        process.send_signal(signal.SIGTERM)
        assert process.wait(clusters.PATIENCE) == 0
    annotations = up.call("GET", f"{PODS}/first")[1]["metadata"]["annotations"]
    assert annotations["numalign.io/placement"] in ("v1;main=0", "v1;main=1")
    assert up.call("GET", LEASE)[1]["spec"].get("holderIdentity", "") == ""


def test_its_pages_are_served(up: Up) -> None:
    port = free_port()
    with scheduler(up, f"--port {port}"):
        clusters.awaited(lambda: page(port, "/readyz") == "ok")
        assert "scheduler_pending_pods" in page(port, "/metrics")


@pytest.mark.parametrize("options", ["--bind-address 0.0.0.0", "--tls-self-signed"])
def test_where_others_reach_it_they_are_served_with_a_certificate_of_its_own(up: Up, options: str) -> None:
    port, client = free_port(), unwary()
    with scheduler(up, f"--port {port} {options}"):
        clusters.awaited(lambda: page(port, "/readyz", client) == "ok")
        assert 'cannot get path \\"/metrics\\"' in page(port, "/metrics", client)


@pytest.mark.parametrize(
    "options, words",
    [
        ("--config no-such-file", "no-such-file"),
        ("--tls-certificate no-such-file", "no-such-file, --tls-certificate: cannot be read"),
        ("--tls-key no-such-file", "--tls-key: is of no use alone"),
    ],
)
def test_what_cannot_start_says_why(up: Up, options: str, words: str) -> None:
    with scheduler(up, options) as process:
        assert words in process.communicate(timeout=clusters.PATIENCE)[1]
        assert process.returncode == 2


def test_a_port_that_is_taken_is_named(up: Up) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with scheduler(up, f"--port {taken.getsockname()[1]}") as process:
            assert "cannot be served" in process.communicate(timeout=clusters.PATIENCE)[1]
