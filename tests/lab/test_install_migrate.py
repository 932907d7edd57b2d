"""The page about the way from the Go stack and back, typed in a cluster that has it: the real topology updater
of NFD as a DaemonSet, and the real kube-scheduler with NodeResourceTopologyMatch as a Deployment."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.lab import build
from numalign.lab.containers import images
from numalign.lab.containers.images import Contents
from numalign.lab.schedulers import RESYNC, ZONES_PLUGIN
from numalign.simulator.nodes.publisher import crd
from tests import walks
from tests.lab import reals
from tests.lab.installed import SPACE, Installed

PAGE = "docs/use/migrate.md"
SCHEDULER, SCHEDULER_SPACE = "topology-aware-scheduler", "tas-scheduler"
UPDATER, UPDATER_SPACE = "nfd-topology-updater", "node-feature-discovery"
PROGRAMS = {SCHEDULER: "reference-scheduler", UPDATER: UPDATER}
"""The lab's binary by the name that it has in the cluster."""
FOLDERS = {"sys": "/sys", "kubelet": "/var/lib/kubelet"}


def image(name: str) -> str:
    return f"localhost/{name}:1"


def base(name: str, namespace: str) -> list[dict[str, Any]]:
    """A namespace, and its default account with every right."""
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def workload(kind: str, name: str, namespace: str, container: dict[str, Any], volumes: list[Any]) -> dict[str, Any]:
    labels = {"app": name}
    spec = {
        "containers": [{"name": name, "image": image(name), **container}],
        "volumes": volumes,
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


def scheduler() -> list[dict[str, Any]]:
    args = {"cacheResyncPeriodSeconds": RESYNC, "scoringStrategy": {"type": "LeastAllocated"}}
    profile = {
        "schedulerName": SCHEDULER,
        "plugins": {"multiPoint": {"enabled": [{"name": ZONES_PLUGIN}]}},
        "pluginConfig": [{"name": ZONES_PLUGIN, "args": args}],
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    about = {"name": "config", "namespace": SCHEDULER_SPACE}
    container = {
        "command": [PROGRAMS[SCHEDULER], "--config=/config/scheduler.json", "--secure-port=0"],
        "volumeMounts": [{"name": "config", "mountPath": "/config"}],
    }
    volume = {"name": "config", "configMap": {"name": "config"}}
    return [
        *base(SCHEDULER, SCHEDULER_SPACE),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"scheduler.json": json.dumps(config)}},
        workload("Deployment", SCHEDULER, SCHEDULER_SPACE, container, [volume]),
    ]


def updater() -> dict[str, Any]:
    container = {
        "command": [
            UPDATER,
            "-kubelet-config-uri=file:///var/lib/kubelet/config.yaml",
            "-sleep-interval=3s",
            "-port=-1",
        ],
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "KUBERNETES_NAMESPACE", "value": UPDATER_SPACE},
        ],
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in FOLDERS.items()],
        "securityContext": {"runAsUser": 0},
    }
    volumes = [{"name": name, "hostPath": {"path": path}} for name, path in FOLDERS.items()]
    return workload("DaemonSet", UPDATER, UPDATER_SPACE, container, volumes)


@pytest.fixture
def go_stack(installed: Installed, tmp_path: Path) -> Iterator[Installed]:
    """Both programs run, and every node has a report of NFD."""
    for name, program in PROGRAMS.items():
        (built,) = build.build(build.chosen([program]), lambda _: None)
        contents = Contents(name=image(name), entrypoint=(), programs={f"bin/{program}": built.path.read_bytes()})
        archive = tmp_path / f"{name}.tar"
        archive.write_bytes(images.archive(contents))
        reals.load(installed.live, archive)
    # Reports of an earlier installation would hide that NFD writes none.
    if "noderesourcetopologies" in installed.kubectl("get", "crds", "-o", "name"):
        installed.kubectl("delete", "noderesourcetopologies", "--all")
    else:
        apply(installed, crd.crd())
    apply(installed, *scheduler(), *base(UPDATER, UPDATER_SPACE), updater())
    installed.until(lambda: len(installed.tree("noderesourcetopologies")["items"]) == 2, "NFD does not report")
    yield installed
    installed.helm("uninstall", "numalign", "--ignore-not-found", "--wait")
    spaces = (SCHEDULER_SPACE, UPDATER_SPACE, SPACE)
    installed.kubectl("delete", "namespace", *spaces, "--ignore-not-found")
    installed.kubectl("delete", "clusterrolebinding", *PROGRAMS)


def apply(cluster: Installed, *trees: dict[str, Any]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": trees})
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=text)


def test_the_page_about_migration_shows_what_its_commands_print(go_stack: Installed, tmp_path: Path) -> None:
    programs = {"kubectl": go_stack.live.lab.tools / "kubectl", "helm": go_stack.program}
    programs["numalign"] = Path(sys.executable).parent / "numalign"
    home = tmp_path / "home"
    home.mkdir()
    (home / f"{UPDATER}.yaml").write_text(json.dumps(updater()))
    with walks.shell(home, programs, KUBECONFIG=str(go_stack.live.lab.kubeconfig)) as shell:
        assert walks.walk(walks.ROOT / PAGE, shell) > 0
