"""The other ways to install, on real containers: the deployer, the static pod of a control-plane host, the operator.

The tests run in order. Agents of the deployer report while numalign takes the place of kube-scheduler on a node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign import __version__
from numalign.deploy.hosts.staticpod import Places
from numalign.lab.containers import images
from numalign.lab.containers.images import Contents
from numalign.lab.node import LabNode
from tests import walks
from tests.lab import reals
from tests.lab.installed import SPACE, Installed
from tests.unit.deploy.test_staticpod import STOCK

PAGE = "docs/use/operator.md"
DEFINITION = "noderesourcetopologies.topology.node.k8s.io"
HOST = "node-0"
"""The node that is the control-plane host."""
MIRROR = f"kube-scheduler-{HOST}"
KUBE_SCHEDULER = "localhost/kube-scheduler:1"


@pytest.fixture(scope="module")
def bare(installed: Installed) -> Installed:
    """Without anything that another way left."""
    installed.kubectl("delete", "namespace", SPACE, "--ignore-not-found")
    installed.kubectl("delete", "crd", DEFINITION, "--ignore-not-found")
    return installed


def summary(cluster: Installed, line: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.numalign(f"deploy {line} -o json"))["summary"]
    return found


def test_the_deployer_returns_when_every_node_has_reported_and_a_second_run_changes_nothing(bare: Installed) -> None:
    bare.numalign("deploy status", ends=2)
    first = summary(bare, "apply")
    assert first.keys() == {"created"}
    assert len(bare.tree("noderesourcetopologies")["items"]) == 2
    bare.numalign("deploy wait")
    bare.numalign("deploy status")
    assert summary(bare, "apply") == {"unchanged": first["created"]}


def test_the_deployer_shows_drift_and_repairs_it(bare: Installed) -> None:
    bare.numalign("deploy diff")
    bare.kubectl("scale", "deployment/numalign-scheduler", "-n", SPACE, "--replicas=1")
    assert "spec.replicas: 1 -> 2" in bare.numalign("deploy diff", ends=2)
    assert summary(bare, "apply")["configured"] == 1
    bare.numalign("deploy diff")


def test_the_deployer_names_the_image_that_no_node_has(bare: Installed) -> None:
    bare.numalign("deploy apply --no-wait --set scheduler.image.tag=missing")
    wanted = "container scheduler has no image localhost/numalign/scheduler:missing: "
    bare.until(lambda: wanted in bare.numalign("deploy status -o json", ends=2), "no status says so")
    assert summary(bare, "apply")["configured"] == 1


def test_pods_are_aligned_under_the_deployer_s_installation(clean: Installed) -> None:
    clean.create("deployed", 8)
    clean.runs("deployed")
    assert "numalign.io/placement" in clean.tree("pod", "deployed")["metadata"]["annotations"]


def test_agents_that_write_as_nfd_does_serve_as_well(clean: Installed) -> None:
    """DP-09 of the acceptance list of the reference deployer."""
    assert summary(clean, "apply --set agent.mode=nfd")["configured"] == 1
    for report in clean.tree("noderesourcetopologies")["items"]:
        assert all("cpu" in {each["name"] for each in zone["resources"]} for zone in report["zones"])
        assert "nodeTopologyPodsFingerprint" in {each["name"] for each in report["attributes"]}
    clean.create("beside-nfd", 8)
    clean.runs("beside-nfd")
    summary(clean, "apply")


class ControlPlaneHost:
    """A node whose kubelet runs static pods, kube-scheduler among them, with the folders of kubeadm in the node's own
    folder, which has the same path on the node and here."""

    def __init__(self, cluster: Installed) -> None:
        self.cluster = cluster
        self.node: LabNode = cluster.live.node(HOST)
        self.place = self.node.place.folder
        self.places = Places(str(self.place / "manifests"), str(self.place / "numalign"))
        text = STOCK.decode().replace("/etc/kubernetes/scheduler.conf", str(self.place / "scheduler.conf"))
        self.original = text.replace("registry.k8s.io/kube-scheduler:v1.37.1", KUBE_SCHEDULER).encode()
        self._config = self.node.place.root / "config.yaml"
        self._usual = self._config.read_bytes()

    def prepare(self) -> None:
        """As `kubeadm init` leaves a host."""
        login = self.cluster.live.lab.place / "control" / "kube-scheduler.kubeconfig"
        (self.place / "scheduler.conf").write_bytes(login.read_bytes())
        (self.place / "scheduler.conf").chmod(0o600)
        self.places.manifest.parent.mkdir()
        self.places.manifest.write_bytes(self.original)
        self._configure(json.dumps(json.loads(self._usual) | {"staticPodPath": self.places.manifests}).encode())

    def release(self) -> None:
        self.places.manifest.unlink()
        self.cluster.until(lambda: not self.mirrors(), "the static pod stays")
        self._configure(self._usual)

    def _configure(self, config: bytes) -> None:
        self._config.write_bytes(config)
        self.node.kubelet.restart()

    def mirrors(self) -> list[Any]:
        found: list[Any] = self.cluster.tree("pods", "-n", "kube-system", "-l", "component=kube-scheduler")["items"]
        return found

    def runs(self, image: str) -> None:
        """Wait until the static pod has this image and its probes succeed."""

        def ready() -> bool:
            return any(
                each["spec"]["containers"][0]["image"].endswith(image)
                and {"type": "Ready", "status": "True"}.items() <= condition.items()
                for each in self.mirrors()
                for condition in each["status"].get("conditions", ())
            )

        self.cluster.until(ready, f"{image} is not ready: {json.dumps(self.mirrors())}")

    def numalign(self, line: str) -> str:
        places = f"--manifests {self.places.manifests} --folder {self.places.folder}"
        return self.cluster.numalign(f"deploy static-pod {line} {places}")

    def asked(self, path: str, token: str = "") -> int:
        """The status code of the scheduler's page, on the loopback of the node."""
        assert self.node.home is not None
        enter = ("nsenter", "--target", str(self.node.home.pid), "--net")
        words = (sys.executable, "-c", ASKS, f"https://127.0.0.1:10259{path}", token)
        done = subprocess.run((*enter, *words), capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)


ASKS = """
import ssl, sys, urllib.error, urllib.request
asked = urllib.request.Request(sys.argv[1], headers={"Authorization": f"Bearer {sys.argv[2]}"} if sys.argv[2] else {})
try:
    print(urllib.request.urlopen(asked, context=ssl._create_unverified_context()).status)
except urllib.error.HTTPError as refused:
    print(refused.code)
"""


@pytest.fixture(scope="module")
def host(bare: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlaneHost]:
    lab = bare.live.lab
    assert lab.containers is not None
    program = lab.containers.found["kube-scheduler"].read_bytes()
    contents = Contents(name=KUBE_SCHEDULER, entrypoint=(), programs={"bin/kube-scheduler": program})
    archive = tmp_path_factory.mktemp("stock") / "kube-scheduler.tar"
    archive.write_bytes(images.archive(contents))
    reals.load(bare.live, archive)
    lab.parts["kube-scheduler"].stop()
    made = ControlPlaneHost(bare)
    made.prepare()
    yield made
    made.release()
    lab.parts["kube-scheduler"].start()


def test_numalign_takes_the_place_of_kube_scheduler_s_static_pod(clean: Installed, host: ControlPlaneHost) -> None:
    host.runs(KUBE_SCHEDULER)
    clean.create("by-stock", 4, schedulerName="default-scheduler")
    clean.runs("by-stock")
    assert "numalign.io/placement" not in json.dumps(clean.tree("pod", "by-stock")["metadata"])
    assert host.numalign("install").startswith("installed")
    assert host.numalign("install").startswith("unchanged")
    host.runs(f"numalign/scheduler:{__version__}")
    # A pod that names no scheduler.
    clean.create("by-numalign", 4, schedulerName="default-scheduler")
    clean.runs("by-numalign")
    assert "numalign.io/placement" in clean.tree("pod", "by-numalign")["metadata"]["annotations"]


def test_its_pages_are_served_by_tls_on_the_loopback_and_ask_for_a_token(host: ControlPlaneHost) -> None:
    cluster = host.cluster
    assert (host.asked("/livez"), host.asked("/readyz")) == (200, 200)
    assert host.asked("/metrics") in (401, 403)
    assert host.asked("/metrics", "wrong") == 401
    cluster.kubectl("create", "serviceaccount", "prometheus")
    token = cluster.kubectl("create", "token", "prometheus").strip()
    assert host.asked("/metrics", token) == 403
    cluster.kubectl("create", "clusterrole", "metrics", "--verb=get", "--non-resource-url=/metrics")
    cluster.kubectl(
        "create", "clusterrolebinding", "metrics", "--clusterrole=metrics", "--serviceaccount=default:prometheus"
    )
    cluster.until(lambda: host.asked("/metrics", token) == 200, "the token is not accepted")


def test_restore_brings_kube_scheduler_back_to_the_byte(clean: Installed, host: ControlPlaneHost) -> None:
    assert "numalign is in place" in host.numalign("status")
    assert host.numalign("restore").startswith("restored")
    assert host.places.manifest.read_bytes() == host.original
    assert not Path(host.places.folder).exists()
    host.runs(KUBE_SCHEDULER)
    clean.create("again-by-stock", 4, schedulerName="default-scheduler")
    clean.runs("again-by-stock")
    assert "numalign.io/placement" not in json.dumps(clean.tree("pod", "again-by-stock")["metadata"])


def test_remove_leaves_nothing_but_the_definition_and_its_reports(bare: Installed) -> None:
    bare.numalign("deploy remove")
    bare.numalign("deploy status", ends=2)
    assert SPACE not in bare.kubectl("get", "namespaces", "-o", "name")
    kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
    assert "numalign" not in bare.kubectl("get", kinds, "-o", "name", "-l", "app.kubernetes.io/name=numalign")
    assert len(bare.tree("noderesourcetopologies")["items"]) == 2


def test_the_page_about_the_operator_shows_what_its_commands_print(bare: Installed, tmp_path: Path) -> None:
    programs = {"kubectl": bare.live.lab.tools / "kubectl", "numalign": Path(sys.executable).parent / "numalign"}
    with walks.shell(tmp_path, programs, KUBECONFIG=str(bare.live.lab.kubeconfig)) as shell:
        assert walks.walk(walks.ROOT / PAGE, shell) > 0
