"""Clusters with real containers that something is installed in, for tests of every way to install.

The fixture `installed` gives the one that these tests share: two nodes with two zones of 16 CPUs each, kube-scheduler,
and our images."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numalign.lab.spec import LabSpec
from tests import images
from tests.embedded import clusters
from tests.embedded import kubectl as programs
from tests.lab import reals
from tests.lab.labs import Labs
from tests.lab.live import Live

SPACE = "numalign-system"
CONTAINER = "train"
IMAGE = "registry.example/train:1"
"""As in examples/aligned.yaml."""


class Installed:
    """A lab in which a test installs, by Helm, by kubectl or by our own commands."""

    def __init__(self, live: Live, helm: Path) -> None:
        self.live, self.program = live, helm

    def helm(self, *words: str) -> str:
        return self.ended(self.begun(*words))

    def begun(self, *words: str) -> subprocess.Popen[str]:
        """A command of Helm, which goes on beside the test."""
        environment = {**os.environ, "KUBECONFIG": str(self.live.lab.kubeconfig)}
        words = (str(self.program), *words, "-n", SPACE)
        return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def ended(self, process: subprocess.Popen[str]) -> str:
        said, _ = process.communicate(timeout=300)
        assert process.returncode == 0, said
        return said

    def numalign(self, line: str, ends: int = 0) -> str:
        """What a command of ours prints, which has to end with this code."""
        environment = {**os.environ, "KUBECONFIG": str(self.live.lab.kubeconfig)}
        done = subprocess.run(
            clusters.numalign(line), env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == ends, f"{line}: {done.stdout}{done.stderr}"
        return done.stdout

    def kubectl(self, *words: str, stdin: str = "") -> str:
        return reals.kubectl(self.live, *words, stdin=stdin)

    def tree(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def until(self, holds: Callable[[], bool], otherwise: str) -> None:
        async def look() -> bool:
            return holds()

        self.live.awaited(look, otherwise)

    def create(self, name: str, cpus: int, **pod: Any) -> None:
        self.kubectl("create", "-f", "-", stdin=json.dumps(aligned(name, cpus, **pod)))

    def phase(self, name: str) -> str:
        status = self.tree("pod", name)["status"]
        return f"{status['phase']} {status.get('reason', '')}".strip()

    def runs(self, name: str) -> None:
        self.until(lambda: self.phase(name) != "Pending", f"{name} is pending")
        assert self.phase(name) == "Running"

    def report(self, node: str) -> Any:
        return self.tree("noderesourcetopologies", node)

    def leader(self) -> str:
        """The process that holds the scheduler's lease: its pod, and a number of its own."""
        return str(self.tree("lease", "numalign-scheduler", "-n", SPACE)["spec"]["holderIdentity"])


def aligned(name: str, cpus: int, **pod: Any) -> dict[str, Any]:
    amounts = {"cpu": str(cpus), "memory": "64Mi"}
    container = {
        "name": CONTAINER,
        "image": reals.PROBE,
        "args": ["wait"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "schedulerName": "numalign",
            "containers": [container],
            "terminationGracePeriodSeconds": 0,
            **pod,
        },
    }


def deployment(name: str, replicas: int, cpus: int) -> str:
    pod = aligned(name, cpus)
    made = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": pod["metadata"], "spec": pod["spec"]},
        },
    }
    return json.dumps(made)


def shared(labs: Labs, folder: Path) -> Installed:
    """The lab that tests share, with the images that they need."""
    reals.need(labs, nodes=3)  # a test adds one
    archives = images.archives().values()
    helm = programs.program("helm3")
    assert helm is not None
    spec = LabSpec(name=f"installed-{os.getpid()}", nodes=reals.nodes_of(2), runtime="containerd", stock_scheduler=True)
    live = labs.of(spec)
    assert live.lab.containers is not None
    if not live.lab.containers.loaded:
        probe = reals.probe_archive(folder)
        for archive in (*archives, probe):
            reals.load(live, archive)
        reals.load(live, probe, IMAGE)
    return Installed(live, helm)
