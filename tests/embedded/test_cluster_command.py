"""`numalign cluster` as people type it: up, status, kubectl, down, and what is said to those who mistype."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numalign.cli import main
from numalign.simulator import registry as running
from tests.embedded import clusters
from tests.embedded.kubectl import Like

Typed = Callable[[str], tuple[int, str]]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Typed]:
    """A shell whose clusters are the test's own; those still up afterwards are ended."""

    def run(line: str) -> tuple[int, str]:
        ran = subprocess.run(
            clusters.numalign(line),
            env=clusters.environment(tmp_path),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            check=False,
        )
        return ran.returncode, ran.stdout

    yield run
    monkeypatch.setenv("NUMALIGN_CLUSTERS", str(tmp_path))
    for each in running.every():
        running.end(each.name)


def test_a_cluster_goes_up_is_listed_and_goes_down(typed: Typed, tmp_path: Path) -> None:
    words = Like(
        f"""small: 2 nodes of 2x16, single-numa-node, scope container, at https://127.0.0.1:...
            export KUBECONFIG={tmp_path}/small/kubeconfig"""
    )
    assert typed("cluster up small --nodes 2") == (0, words)
    assert typed("cluster status") == (0, words)
    assert typed("cluster up small") == (2, Like("...already runs; `numalign cluster down small` ends it\n"))
    assert typed("cluster down small") == (0, "small is down\n")
    assert not (tmp_path / "small").exists()
    assert typed("cluster status") == (0, "no cluster runs; `numalign cluster up` starts one\n")


def test_a_cluster_that_is_up_has_a_report_of_every_node(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 30 --machine dgx-8 --with-scheduler") as up:
        code, found = up.call("GET", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies")
    assert (code, len(found["items"])) == (200, 30)


def test_a_cluster_whose_nodes_do_not_report_comes_up(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 2 --reports none") as up:
        code, found = up.call("GET", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies")
    assert (code, found["items"]) == (200, [])


def test_what_runs_is_told_as_json_and_its_token_to_its_owner_only(typed: Typed) -> None:
    code, text = typed("cluster up --nodes 2 --machine gpu-8 --policy restricted --scope pod -o json")
    (listed,) = json.loads(typed("cluster status -o json")[1])
    assert (code, json.loads(text), listed["name"], listed["nodes"]) == (0, listed, "numalign", 2)
    assert listed["words"] == "2 nodes of gpu-8, restricted, scope pod"
    file = Path(listed["kubeconfig"])
    tree = json.loads(file.read_text())
    assert tree["clusters"][0]["cluster"]["server"] == listed["url"] == Like("https://127.0.0.1:...")
    assert (len(tree["users"][0]["user"]["token"]) > 20, file.stat().st_mode & 0o777) == (True, 0o600)


def test_a_cluster_without_tls_has_no_token_because_kubectl_would_not_send_it(typed: Typed) -> None:
    typed("cluster up --nodes 1 --no-tls")
    (listed,) = json.loads(typed("cluster status -o json")[1])
    tree = json.loads(Path(listed["kubeconfig"]).read_text())
    assert (listed["url"], tree["users"][0]["user"]) == (Like("http://127.0.0.1:..."), {})


def test_nothing_stays_when_its_process_is_gone(typed: Typed) -> None:
    typed("cluster up --nodes 1")
    (listed,) = json.loads(typed("cluster status -o json")[1])
    os.kill(listed["pid"], 9)
    clusters.awaited(lambda: typed("cluster down") == (1, Like("...no cluster numalign runs...\n")))
    assert typed("cluster up --nodes 1")[0] == 0


MISTYPED = {
    "a name": ("cluster up Small", "...is not a valid name; use lower-case letters, digits and dashes, at most 63\n"),
    "a machine": ("cluster up --machine 9x9", "...9x9...\n"),
    "a policy": ("cluster up --policy sometimes", "...sometimes...\n"),
    "a scope": ("cluster up --scope half", "...half...\n"),
    "reports": ("cluster up --reports rumours", "...rumours...\n"),
    "a scenario": ("cluster up --scenario nowhere", "...nowhere...\n"),
    "a number": ("cluster up --nodes none", "...--nodes...\n"),
    "too few nodes": ("cluster up --nodes 0", "...--nodes...\n"),
}


@pytest.mark.parametrize("line, text", MISTYPED.values(), ids=MISTYPED)
def test_what_is_mistyped_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, text: str) -> None:
    monkeypatch.setenv("NUMALIGN_CLUSTERS", str(tmp_path))
    ran = CliRunner().invoke(main.app, line.split())
    assert (ran.exit_code, ran.output) == (2, Like(text))
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_told(typed: Typed, embedded: clusters.Up) -> None:
    port = embedded.url.rpartition(":")[2]
    code, said = typed(f"cluster up --nodes 1 --port {port}")
    assert (code, f"port {port} cannot be served" in said) == (2, True)
