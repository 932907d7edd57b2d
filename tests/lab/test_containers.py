"""Labs whose nodes run containers: pods are processes, with a network, an account and the CPUs that were promised."""

from __future__ import annotations

import http
import json
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import checkpoints, sysfs
from numalign.agent.sources.podresources import PodResources, PodResourcesClient
from numalign.api.decode import cpuset
from numalign.kube import errors
from numalign.kube.resources import NODES, PODS
from numalign.lab import spec as specs
from numalign.lab import up
from numalign.lab.containers import images
from numalign.lab.containers.images import Contents
from numalign.lab.node import LabNode
from tests.lab import reals, sockets
from tests.lab.labs import Labs
from tests.lab.live import NAMESPACE, Live


@pytest.fixture(scope="module")
def real(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """Two nodes, kube-scheduler, and the probe's image on both; a test adds a third node."""
    with reals.running(labs, nodes=2, later=1, stock_scheduler=True) as live:
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


def test_an_image_is_loaded_whatever_the_folder_of_the_caller(
    real: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also below /tmp, of which a node has its own."""
    archive = tmp_path / "empty.tar"
    archive.write_bytes(images.archive(Contents(name="localhost/empty:1", entrypoint=(), programs={"none": b""})))
    monkeypatch.chdir(tmp_path)
    assert reals.load(real, archive) == "localhost/empty:1"


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


async def listed(node: LabNode) -> dict[str, PodResources]:
    client = PodResourcesClient(node.podresources)
    try:
        return {pod.name: pod for pod in await client.list()}
    finally:
        await client.close()


def pinned(live: Live, node: LabNode, name: str) -> str:
    """The CPUs that the kubelet wrote down for a pod's container; podresources says the same."""
    uid = live.pod(name).metadata.uid
    held = checkpoints.cpu(node.cpu_state.read_bytes()).state.assignments[uid]["main"]
    (container,) = live.run(listed(node))[name].containers
    assert sum(1 << cpu for cpu in container.cpus) == held
    return cpuset.text(held)


def test_a_guaranteed_pod_has_the_cpus_that_kubelet_and_podresources_tell(clean: Live) -> None:
    """They are of a machine that does not exist; its memory limit is real."""
    clean.create(pod("aligned", container=guaranteed(10)))
    where = clean.settled("aligned")
    assert where.status.phase == "Running"
    assert pinned(clean, clean.node(where.spec.node_name), "aligned") == "1-10"
    limit = probed(clean, "aligned", "cat", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    assert limit == str(64 << 20)


def test_a_node_can_be_added_that_shows_the_real_machine_and_removed_again(clean: Live) -> None:
    """There a pod reads its own CPUs."""
    machine = sysfs.survey(Path("/"), "host").machine
    added = reals.add_node(clean, specs.node("own", machine, real=True))

    async def ready() -> bool:
        try:
            return up.is_ready(await clean.client.get(NODES.at("own")))
        except errors.NotFound:
            return False

    clean.awaited(ready, "the added node is not Ready")
    clean.create(pod("real", nodeName="own", container=guaranteed(1)))
    assert clean.settled("real").status.phase == "Running"
    status = probed(clean, "real", "cat", "/proc/self/status")
    allowed = next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
    assert allowed == pinned(clean, added, "real")
    reals.remove_node(clean, "own")
    assert "own" not in reals.kubectl(clean, "get", "nodes", "-o", "name")
    assert not added.kubelet.runs


def test_containers_outlive_a_restart_of_containerd_and_kubelet(clean: Live) -> None:
    clean.create(pod("lasting", nodeName="node-0"))
    began = clean.settled("lasting").status.container_statuses[0]
    node = clean.node("node-0")
    for name in ("containerd", "kubelet"):
        node.parts[name].restart()
    clean.create(pod("later", nodeName="node-0"))
    assert clean.settled("later").status.phase == "Running"
    assert clean.pod("lasting").status.container_statuses[0].restart_count == began.restart_count == 0
    assert probed(clean, "lasting", "cat", "/proc/1/comm") == "probe"


@pytest.mark.slow
def test_a_node_whose_first_process_is_killed_comes_back_with_its_pods(clean: Live) -> None:
    """As after a power failure: the kernel ends everything on the node, and images and pods are still there."""
    clean.create(pod("again", nodeName="node-1"))
    assert clean.settled("again").status.phase == "Running"
    home = clean.node("node-1").home
    assert home is not None
    home.signal(signal.SIGKILL)

    async def restarted() -> bool:
        (status,) = (await clean.client.get(PODS.at("again", NAMESPACE))).status.container_statuses
        return status.restart_count > 0 and status.ready

    clean.awaited(restarted, "the pod does not run again")
    assert probed(clean, "again", "cat", "/proc/1/comm") == "probe"


def test_nothing_answers_a_stranger(real: Live) -> None:
    """On the real machine only the API server can be reached, and within the lab only with credentials."""
    host = real.lab.url.split("//")[1].split(":")[0]
    listening = {each.port for part in real.lab.every_part() for each in sockets.of(part)}
    assert {port for port in listening if connects(host, port)} == {6443}
    for path in ("/version", "/readyz", "/metrics", "/api/v1/nodes"):
        assert sockets.answer(6443, path, tls=sockets.unverified(), host=host) == http.HTTPStatus.UNAUTHORIZED
    kubelets = [sockets.of(node.kubelet) for node in real.lab.nodes.values()]
    assert [[each.port for each in ports] for ports in kubelets] == [[10250], [10250]]


def connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


def test_a_pod_reaches_kubelets_without_rights_and_the_real_machine_not_at_all(clean: Live) -> None:
    clean.create(pod("curious"))
    clean.settled("curious")
    assert clean.lab.containers is not None
    outside = clean.lab.containers.network.host_address
    with socket.create_server((outside, 0)) as server:
        port = server.getsockname()[1]
        assert connects(outside, port)
        tried = reals.tried_kubectl(clean, "exec", "curious", "--", "/probe", "connect", f"{outside}:{port}")
        assert tried.returncode != 0
    assert probed(clean, "curious", "connect", "10.251.0.10:10250") == "connected"
    refused = reals.tried_kubectl(clean, "exec", "curious", "--", "/probe", "get", "http://10.251.0.10:10250/pods")
    assert "400" in refused.stdout


def test_a_pod_cannot_change_the_real_machine(clean: Live) -> None:
    """Only the folder of its node can be written, and privileged pods are refused."""
    container = {"volumeMounts": [{"name": "host", "mountPath": "/host"}]}
    shown = Path(sys.prefix)
    volume = {"name": "host", "hostPath": {"path": str(shown), "type": "Directory"}}
    clean.create(pod("writer", volumes=[volume], container=container))
    assert clean.settled("writer").status.phase == "Running"
    tried = reals.tried_kubectl(clean, "exec", "writer", "--", "/probe", "write", "/host/written")
    assert "read-only file system" in tried.stderr
    assert not (shown / "written").exists()
    with pytest.raises(errors.Invalid, match="privileged"):
        clean.create(pod("privileged", container={"securityContext": {"privileged": True}}))
