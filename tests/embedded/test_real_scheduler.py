"""The real kube-scheduler finds everything it needs in an embedded cluster: it leads, places pods and tells of it."""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import require
from tests.embedded import clusters, kubectl
from tests.embedded.kubectl import Kubectl, Like

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: FILE, contentType: application/json, acceptContentTypes: application/json}
"""
# It says so of a file it was not given, and of events that it has to drop when it is told to end.
ABOUT_ITSELF = ("The manifest file is empty, ignoring.", "broadcaster already stopped")
WAYS = {"its defaults, with protobuf": "", "JSON, without TLS": "--no-tls"}


def command(folder: Path, kubeconfig: Path, *, is_plain: bool) -> list[str]:
    program = kubectl.program("kube-scheduler")
    require(program, "Go, to build kube-scheduler")
    if is_plain:
        return [str(program), f"--kubeconfig={kubeconfig}", "--secure-port=0"]
    file = folder / "scheduler.yaml"
    file.write_text(CONFIGURATION.replace("FILE", str(kubeconfig)))
    return [str(program), f"--config={file}", "--secure-port=0"]


@contextlib.contextmanager
def scheduling(folder: Path, words: list[str]) -> Iterator[Path]:
    log = folder / "scheduler.log"
    with log.open("wb") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, cwd=folder)
        try:
            yield log
        finally:
            process.terminate()
            process.wait(30)


def complaints(log: Path) -> list[str]:
    lines = [line for line in log.read_text().splitlines() if line[:1] in ("E", "W", "F")]
    return [line for line in lines if not any(known in line for known in ABOUT_ITSELF)]


@pytest.mark.parametrize("option", WAYS.values(), ids=WAYS)
def test_the_real_scheduler_places_thirty_pods_on_three_nodes(tmp_path: Path, anywhere: Kubectl, option: str) -> None:
    with clusters.up(tmp_path, f"--nodes 3 --no-blind-scheduler {option}") as found:
        client = anywhere._replace(kubeconfig=found.kubeconfig)
        client.said("create deployment many --image=a --replicas=30")
        words = command(tmp_path, found.kubeconfig, is_plain=not option)
        with scheduling(tmp_path, words) as log:
            client.said("rollout status deployment/many --timeout=170s")
            check_what_it_writes(client)
        nodes = Counter(client.said("get pods -o jsonpath={.items[*].spec.nodeName}").split())
    assert (sorted(nodes), sum(nodes.values()), complaints(log)) == (["node-0", "node-1", "node-2"], 30, [])


def check_what_it_writes(client: Kubectl) -> None:
    events = "get events --field-selector=reason=Scheduled,source=default-scheduler -o name"
    clusters.awaited(lambda: len(client.said(events).split()) == 30)
    lease = client("get lease kube-scheduler -n kube-system")
    assert lease == (0, Like("NAME HOLDER AGE\nkube-scheduler ..._...-...-... ...s\n"))


def test_a_pod_that_fits_nowhere_waits_and_is_told_why(tmp_path: Path, anywhere: Kubectl) -> None:
    with clusters.up(tmp_path, "--nodes 3 --no-blind-scheduler") as found:
        client = anywhere._replace(kubeconfig=found.kubeconfig)
        client.said("run huge --image=a --overrides='" + HUGE + "'")
        with scheduling(tmp_path, command(tmp_path, found.kubeconfig, is_plain=True)):
            client.said("wait --for=jsonpath={.status.conditions[0].reason}=Unschedulable pod/huge --timeout=170s")
            client.said("wait --for=create event --field-selector=reason=FailedScheduling --timeout=170s")
        told = client.said("get pod huge -o jsonpath={.status.conditions[0].message}")
    assert told == Like("0/3 nodes are available: 3 Insufficient cpu. ...")


HUGE = '{"spec":{"containers":[{"name":"huge","image":"a","resources":{"requests":{"cpu":"500"}}}]}}'
