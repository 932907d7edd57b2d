"""Real processes over sockets: replicas that are killed in the middle of a burst leave nothing but their work."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.embedded import clusters
from tests.embedded import schedulerstories as stories
from tests.embedded.clusters import Up

PODS = "/api/v1/namespaces/default/pods"
REPORTS = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies"
NODES, BURSTS, PODS_AT_ONCE = 3, 3, 4
CPUS = 7
"""Of each pod: two fit a zone, four a node, and all of them just the cluster."""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaseDuration: 2s, renewDeadline: 1500ms, retryPeriod: 300ms}
"""


@contextlib.contextmanager
def replicas(up: Up, config: Path) -> Iterator[Replicas]:
    started = Replicas(up, config)
    try:
        yield started
    finally:
        for process in started.running:
            process.kill()
            process.wait()


class Replicas:
    """The one that has run for longest first."""

    def __init__(self, up: Up, config: Path) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig)}
        self._command = clusters.numalign(f"scheduler run --port 0 --config {config}")
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        nowhere = subprocess.DEVNULL
        self.running.append(subprocess.Popen(self._command, env=self._environment, stdout=nowhere, stderr=nowhere))

    def kill(self) -> None:
        killed = self.running.pop(0)
        killed.kill()
        killed.wait()


def pods(up: Up) -> list[Any]:
    return list(up.call("GET", PODS)[1]["items"])


def bound(up: Up) -> int:
    return sum(bool(pod["spec"].get("nodeName")) for pod in pods(up))


def test_leaders_that_are_killed_leave_every_pod_bound_and_none_turned_away(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(CONFIG)
    options = f"--nodes {NODES} --machine 2x16 --policy single-numa-node"
    with clusters.up(tmp_path, options) as up, replicas(up, config) as started:
        clusters.awaited(lambda: len(up.call("GET", REPORTS)[1]["items"]) == NODES)
        started.start()
        for burst in range(BURSTS):
            started.start()
            for number in range(PODS_AT_ONCE):
                up.call("POST", PODS, stories.pod(f"p-{burst}-{number}", CPUS))
            clusters.awaited(lambda: bound(up) > burst * PODS_AT_ONCE)  # noqa: B023
            started.kill()
        clusters.awaited(lambda: all(pod["status"]["phase"] != "Pending" for pod in pods(up)))
        assert {pod["status"]["phase"] for pod in pods(up)} == {"Running"}
        assert bound(up) == BURSTS * PODS_AT_ONCE
