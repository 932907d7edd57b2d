"""The log of one pod from a running scheduler: asked for at run time, one id from the queue to the kubelet's answer."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.embedded import clusters
from tests.embedded import schedulerstories as stories

PODS = "/api/v1/namespaces/default/pods"
STORY = ["queued", "node selected", "bound", "binding confirmed", "started by the kubelet"]


def numalign(home: Path, up: clusters.Up, line: str) -> str:
    environment = {**clusters.environment(home), "KUBECONFIG": str(up.kubeconfig)}
    return subprocess.run(clusters.numalign(line), env=environment, capture_output=True, text=True, check=True).stdout


def lines_of(said: Path, pod: str) -> list[tuple[str, str]]:
    """What was logged about the pod, and under which id."""
    found = re.findall(rf"numalign\S+: (.+?) pod=default/{pod} uid=(\S+)", said.read_text())
    return [(what, uid) for what, uid in found]


def test_one_pod_is_followed_from_the_queue_to_its_kubelet_under_one_id(tmp_path: Path) -> None:
    said = tmp_path / "said"
    with clusters.up(tmp_path, "--nodes 1 --with-scheduler") as up:
        set_to = numalign(tmp_path, up, "scheduler log set -v 4 --pod default/web --for 5m")
        for name in ("web", "other"):
            up.call("POST", PODS, stories.pod(name, 1))
        clusters.awaited(lambda: "started by the kubelet" in said.read_text())
        shown = json.loads(numalign(tmp_path, up, "scheduler log show -o json"))
        clusters.awaited(
            lambda: all(
                up.call("GET", f"{PODS}/{name}")[1]["status"]["phase"] == "Running" for name in ("web", "other")
            )
        )
        numalign(tmp_path, up, "scheduler log set -v 4 --pod default/web --for 0")
        after = json.loads(numalign(tmp_path, up, "scheduler log show -o json"))
    assert set_to == "successfully set verbosity to 4 for pod=default/web for 300 s\n"
    assert (shown["verbosity"], [rule["pod"] for rule in shown["rules"]]) == (2, ["default/web"])
    assert after["rules"] == []
    logged = lines_of(said, "web")
    assert [what for what, _ in logged] == STORY
    assert len({uid for _, uid in logged}) == 1
    assert lines_of(said, "other") == []
