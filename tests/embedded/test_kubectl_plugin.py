"""`kubectl numalign`: kubectl finds the command and its completions, also where no scheduler of ours runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import conftest
from tests.embedded import clusters, kubectl
from tests.embedded import schedulerstories as stories

PODS = "/api/v1/namespaces/default/pods"
INSTALLED = Path(sys.executable).parent


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clusters.Up]:
    """A cluster that only a stock scheduler serves."""
    with clusters.up(tmp_path_factory.mktemp("plugin"), "--nodes 2") as up:
        up.call("POST", PODS, stories.pod("large", 9999))
        yield up


def typed(up: clusters.Up, *words: str) -> subprocess.CompletedProcess[str]:
    program = kubectl.program("kubectl")
    conftest.require(program, "Go, to build kubectl")
    environment = {
        **os.environ,
        "KUBECONFIG": str(up.kubeconfig),
        "PATH": f"{INSTALLED}:{os.environ['PATH']}",
        "NUMALIGN_CLUSTERS": str(up.kubeconfig.parent.parent),
    }
    return subprocess.run([str(program), *words], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "line, code, said",
    [
        ("nodes -o name", 0, "node/node-0\nnode/node-1\n"),
        ("topology --context tested -o wide", 0, "single-numa-node"),
        ("topology node-0 -o json", 0, '"name": "node-0"'),
        ("why large", 1, "none of 2 nodes can take the pod, even when empty"),
        ("why -A -o yaml", 1, "name: large"),
        ("capacity --requests cpu=4", 0, "PODS   COUNT  NODES"),
        ("doctor", 0, "check"),
    ],
)
def test_each_command_reads_a_cluster_without_our_scheduler(line: str, code: int, said: str, up: clusters.Up) -> None:
    ran = typed(up, "numalign", *line.split())
    assert said in ran.stdout, ran.stderr
    assert ran.returncode == code


def test_the_state_of_a_scheduler_that_does_not_run_says_so(up: clusters.Up) -> None:
    ran = typed(up, "numalign", "state")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "runs no numalign scheduler that has pages; start it with --with-scheduler" in " ".join(ran.stderr.split())


def test_kubectl_completes_commands_and_choices(up: clusters.Up) -> None:
    assert "topology" in typed(up, "__complete", "numalign", "topo").stdout.splitlines()
    assert "wide" in typed(up, "__complete", "numalign", "nodes", "-o", "").stdout.splitlines()
