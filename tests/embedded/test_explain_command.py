"""`numalign explain` and `numalign topology` as people type them, on a cluster with our scheduler in it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.embedded import clusters
from tests.embedded.clusters import Up
from tests.embedded.test_scheduler_process import PODS, REPORTS, free_port, page, scheduler

GPU = "nvidia.com/gpu"


def trainer(name: str, gpus: int, **spec: object) -> dict[str, Any]:
    limits = {"cpu": "8", "memory": "1Gi", GPU: str(gpus)}
    container = {"name": "main", "image": "a:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "numalign", "containers": [container]} | spec,
    }


def running_pods(up: Up) -> int:
    return sum(pod["status"].get("phase") == "Running" for pod in up.call("GET", PODS)[1]["items"])


def free_gpus(up: Up) -> int:
    zones = [zone for report in up.call("GET", REPORTS)[1]["items"] for zone in report["zones"]]
    amounts = [each["available"] for zone in zones for each in zone["resources"] if each["name"] == GPU]
    return sum(map(int, amounts))


def is_refused(up: Up, name: str) -> bool:
    conditions = up.call("GET", f"{PODS}/{name}")[1]["status"].get("conditions", [])
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Two nodes with one GPU left in every zone, and a pod that wants two."""
    options = "--nodes 2 --machine gpu-8 --with-scheduler"
    with clusters.up(tmp_path_factory.mktemp("clusters"), options) as found:
        clusters.awaited(lambda: len(found.call("GET", REPORTS)[1]["items"]) == 2)
        for number in range(4):
            found.call("POST", PODS, trainer(f"train-{number}", 3))
        clusters.awaited(lambda: running_pods(found) == 4 and free_gpus(found) == 4)
        found.call("POST", PODS, trainer("late", 2))
        found.call("POST", PODS, trainer("gated", 1, schedulingGates=[{"name": "example.com/quota"}]))
        clusters.awaited(lambda: is_refused(found, "late"))
        yield found


def typed(up: Up, line: str) -> tuple[int, str]:
    environment = {**os.environ, "KUBECONFIG": str(up.kubeconfig)}
    ran = subprocess.run(
        clusters.numalign(line), env=environment, capture_output=True, text=True, timeout=90, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_a_pod_that_waits_is_explained_with_what_would_help(up: Up) -> None:
    code, text = typed(up, "explain pod late")
    said = " ".join(text.split())
    assert code == 1
    assert "2 container main needs 2 nvidia.com/gpu in one NUMA zone, best zone has 1 node-0, node-1" in said
    assert "it says Unschedulable: 0/2 nodes are available:" in said
    assert "It would fit on node-0 without pod train-" in said
    assert "which holds 3 nvidia.com/gpu in zone" in said


def test_what_is_suggested_comes_true(up: Up, tmp_path: Path) -> None:
    told = json.loads(typed(up, "explain pod late -o json")[1])
    less = next(each for each in told["asked"]["suggestions"] if each["kind"] == "ask-for-less")
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(trainer("less", less["amount"])))
    assert typed(up, f"explain shape -f {file}")[0] == 0
    up.call("POST", PODS, trainer("less", less["amount"]))
    clusters.awaited(lambda: up.call("GET", f"{PODS}/less")[1]["status"].get("phase") == "Running")
    up.call("DELETE", f"{PODS}/less", {"gracePeriodSeconds": 0})
    clusters.awaited(lambda: free_gpus(up) == 4)


def test_a_pod_that_runs_is_told_with_the_zones_that_its_node_reports(up: Up) -> None:
    code, text = typed(up, "explain pod default/train-0")
    assert code == 0
    assert "train-0  running" in text
    assert "(observed)" in text


def test_a_gated_pod_is_told_to_be(up: Up) -> None:
    code, text = typed(up, "explain pod gated")
    assert code == 0
    assert "gated by     example.com/quota" in text


def test_who_published_what_and_how_long_ago(up: Up) -> None:
    code, text = typed(up, "topology")
    assert code == 0
    assert [line.split()[0] for line in text.splitlines()[1:3]] == ["node-0", "node-1"]
    assert "1+1" in text
    told = json.loads(typed(up, "topology node-0 -o json")[1])
    assert told["report"]["publisher"] == "numalign"
    assert 0 <= told["report"]["age"] < 3600
    assert {pod["source"] for pod in told["pods"]} == {"observed"}


def test_a_live_scheduler_answers_with_what_it_knows(up: Up) -> None:
    port = free_port()
    with scheduler(up, f"--port {port}"):
        clusters.awaited(lambda: page(port, "/readyz") == "ok")
        code, text = typed(up, f"explain pod late --server http://127.0.0.1:{port}")
        assert code == 1
        assert "It would fit on node-0 without pod train-" in " ".join(text.split())
        assert "zone 0" in typed(up, f"topology node-0 --server http://127.0.0.1:{port}")[1]


def test_a_pod_that_no_scheduler_serves_is_told_so_before_all_else(up: Up) -> None:
    up.call("POST", PODS, trainer("alone", 1, schedulerName="my-own"))
    try:
        code, text = typed(up, "explain pod alone")
        assert code == 1
        said = " ".join(text.split())
        assert "it has no PodScheduled condition and no event. Does a scheduler named my-own run?" in said
        assert "Pods here were scheduled under numalign" in said
    finally:
        up.call("DELETE", f"{PODS}/alone", {"gracePeriodSeconds": 0})


def test_the_pods_that_a_shape_would_preempt_are_those_that_go(up: Up, tmp_path: Path) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "prod"}, "value": 1000}
    up.call("POST", classes, kind)
    for number in range(4):
        # Pods that started in the same second are equally important, and any of them may go.
        pod = up.call("GET", f"{PODS}/train-{number}")[1]
        pod["status"]["startTime"] = f"2026-01-0{number + 1}T00:00:00Z"
        assert up.call("PUT", f"{PODS}/train-{number}/status", pod)[0] == 200
    urgent = trainer("urgent", 4, priorityClassName="prod")
    file = tmp_path / "urgent.yaml"
    file.write_text(yaml.safe_dump(urgent))
    code, text = typed(up, f"explain shape -f {file} -o json")
    (foretold,) = json.loads(text)["preemptions"]
    assert code == 0
    before = {pod["metadata"]["name"] for pod in up.call("GET", PODS)[1]["items"]}
    up.call("POST", PODS, urgent)
    clusters.awaited(lambda: up.call("GET", f"{PODS}/urgent")[1]["status"].get("phase") == "Running")
    gone = before - {pod["metadata"]["name"] for pod in up.call("GET", PODS)[1]["items"]}
    assert {f"default/{name}" for name in gone} == set(foretold["victims"])
    assert up.call("GET", f"{PODS}/urgent")[1]["spec"]["nodeName"] == foretold["node"]
