"""`numalign cluster` as people type it: up, status, kubectl, down, and what is said to those who mistype."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from numalign.cli import main
from numalign.cli.results import democluster
from numalign.simulator import registry as running
from numalign.simulator.scenarios import catalogue, play
from tests.embedded import clusters
from tests.embedded.kubectl import Like

Typed = Callable[[str], tuple[int, str]]


def numalign(home: Path, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        clusters.numalign(line),
        env=clusters.environment(home) | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def announced(home: Path) -> bytes:
    return (home / clusters.NAME / "cluster.json").read_bytes()


def has_ended(pid: int) -> bool:
    """Also where the first process of a container does not collect those that have ended."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def page(served: dict[str, str], path: str, *, token: bool) -> tuple[int, bytes]:
    context = ssl.create_default_context(cafile=served["certificate_authority"])
    connection = http.client.HTTPSConnection(served["pages"].removeprefix("https://"), timeout=60, context=context)
    headers = {"Authorization": f"Bearer {Path(served['token_file']).read_text()}"} if token else {}
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


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
            timeout=300,
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
            default-scheduler  sees node totals only; serves pods that name no scheduler
            ...export KUBECONFIG={tmp_path}/small/kubeconfig"""
    )
    assert typed("cluster up small --nodes 2") == (0, Like(f"...{words}"))
    assert typed("cluster status") == (0, words)
    assert typed("cluster up small") == (2, Like("...already runs; `numalign cluster down small` ends it\n"))
    assert typed("cluster down small") == (0, "small is down\n")
    assert not (tmp_path / "small").exists()
    assert typed("cluster status") == (0, "no cluster runs; `numalign cluster up` starts one\n")


def test_a_cluster_in_direct_mode_has_such_nodes(typed: Typed, tmp_path: Path) -> None:
    assert typed("cluster up direct --nodes 1 --direct-mode --policy restricted") == (
        2,
        Like("numalign: Cluster direct, --policy: no effect with --direct-mode, or ...\n"),
    )
    code, said = typed("cluster up direct --nodes 1 --direct-mode")
    assert (code, "direct: 1 node of 2x16, direct mode, at" in said) == (0, True)
    shown = numalign(tmp_path, "topology node-0", KUBECONFIG=str(tmp_path / "direct" / "kubeconfig"))
    assert "direct mode, by default policy none, scope container" in shown.stdout


def test_a_cluster_goes_up_from_a_file_beside_the_caller(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    story = "{name: mine, title: Mine, lasts: 1m, nodes: [{name: own, machine: 2x16}]}"
    (tmp_path / "mine.yaml").write_text(story)
    code, said = typed("cluster up beside --scenario mine.yaml")
    assert (code, "beside: 1 node, scenario mine, at" in said) == (0, True)


def test_the_output_can_be_evaluated_by_a_shell(tmp_path: Path) -> None:
    try:
        ran = numalign(tmp_path, "cluster up ev --nodes 1")
        assert ran.stdout == f"export KUBECONFIG={tmp_path}/ev/kubeconfig\n"
        assert "ev: 1 node of 2x16" in ran.stderr
        assert "numalign cluster down ev" in ran.stderr
    finally:
        numalign(tmp_path, "cluster down ev")


def test_a_cluster_in_the_foreground_prints_its_kubeconfig_too(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 1") as up:
        clusters.awaited(lambda: f"export KUBECONFIG={up.kubeconfig}" in (tmp_path / "said").read_text())


def test_the_scheduler_in_the_cluster_can_be_asked_by_its_kubeconfig_alone(tmp_path: Path) -> None:
    """`scheduler state`, `scheduler dump` and metrics work on the easiest set-up."""
    with clusters.up(tmp_path, "--nodes 1 --with-scheduler") as up:
        state = numalign(tmp_path, "scheduler state -o json", KUBECONFIG=str(up.kubeconfig))
        dumped = numalign(tmp_path, "scheduler dump -f -", KUBECONFIG=str(up.kubeconfig))
        (served,) = (each for each in json.loads(announced(tmp_path))["schedulers"] if each["pages"])
        assert (state.returncode, json.loads(state.stdout)["leads"]) == (0, True)
        assert (dumped.returncode, "node-0" in dumped.stdout) == (0, True)
        assert page(served, "/metrics", token=True)[0] == 200
        assert page(served, "/metrics", token=False)[0] == 401
        assert page(served, "/healthz", token=False)[0] == 200
        assert Path(served["token_file"]).stat().st_mode & 0o777 == 0o600


def test_a_cluster_without_our_scheduler_says_so_when_it_is_asked_for_its_state(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 1") as up:
        asked = numalign(tmp_path, "scheduler state", KUBECONFIG=str(up.kubeconfig))
    assert (asked.returncode, "start it with --with-scheduler" in asked.stderr) == (2, True)


def test_kubeconfigs_of_two_clusters_can_be_merged(typed: Typed, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert typed(f"cluster up {name} --nodes 1")[0] == 0
    trees = [json.loads((tmp_path / name / "kubeconfig").read_text()) for name in ("one", "two")]
    assert [tree["current-context"] for tree in trees] == ["one", "two"]
    for part in ("clusters", "users", "contexts"):
        assert [tree[part][0]["name"] for tree in trees] == ["one", "two"]


def test_an_interrupted_start_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        clusters.numalign("cluster up big --nodes 3000"),
        env=clusters.environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Tests that run in the background of a shell ignore the signal, and so would the command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The lock is there as soon as the background process has begun.
    clusters.awaited(lambda: (tmp_path / "big" / "lock").exists())
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert said.endswith("numalign: interrupted; cluster big was not started\n")
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_cluster_that_is_down_has_no_process(typed: Typed) -> None:
    typed("cluster up --nodes 1")
    (listed,) = json.loads(typed("cluster status -o json")[1])
    assert typed("cluster down")[0] == 0
    assert has_ended(listed["pid"])


def test_the_demo_leaves_the_very_cluster_that_it_showed(typed: Typed, tmp_path: Path) -> None:
    """Every pod is on the node where the demo drew it, and the waiting pod that it names waits."""
    code, said = typed("demo --keep")
    story = catalogue.scenario(democluster.STORY)
    bound = {line.name: line.node for line in play.play(story, democluster.OURS).lines if line.what == "bound"}
    kubeconfig = tmp_path / democluster.NAME / "kubeconfig"
    found = clusters.Up(kubeconfig, json.loads(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    _, pods = found.call("GET", "/api/v1/namespaces/default/pods")
    nodes = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods["items"]}
    (waiting,) = re.findall(r"explain pod (numa-test-\S+)", said)
    assert (code, f"export KUBECONFIG={kubeconfig}" in said) == (0, True)
    assert {name: node for name, node in nodes.items() if node} == bound
    assert nodes[waiting] is None
    again = typed("demo --keep")[1]
    assert "The cluster of an earlier demo is still up" in again
    assert "that you saw" not in again


def test_a_cluster_that_is_up_has_a_report_of_every_node(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 30 --machine dgx-8 --with-scheduler") as up:
        code, found = up.call("GET", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies")
    assert (code, len(found["items"])) == (200, 30)


def test_a_cluster_whose_nodes_do_not_report_comes_up(tmp_path: Path) -> None:
    with clusters.up(tmp_path, "--nodes 2 --reports none") as up:
        code, found = up.call("GET", "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies")
    assert (code, found["items"]) == (200, [])


def test_what_runs_is_told_as_json_and_its_token_to_its_owner_only(typed: Typed, tmp_path: Path) -> None:
    ran = numalign(tmp_path, "cluster up --nodes 2 --machine gpu-8 --policy restricted --scope pod -o json")
    (listed,) = json.loads(typed("cluster status -o json")[1])
    assert (ran.returncode, json.loads(ran.stdout)) == (0, listed)
    assert (listed["name"], listed["nodes"]) == ("numalign", 2)
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


NOT_WRITABLE = {
    "no folder": {"NUMALIGN_CLUSTERS": "/proc/1/x"},
    "a file": {"NUMALIGN_CLUSTERS": "", "XDG_STATE_HOME": "", "HOME": "/dev/null"},
}


@pytest.mark.parametrize("where", NOT_WRITABLE.values(), ids=NOT_WRITABLE)
def test_a_state_folder_that_cannot_be_written_is_one_sentence(where: dict[str, str], tmp_path: Path) -> None:
    ran = numalign(tmp_path, "cluster up z", **where)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1)
    assert "set NUMALIGN_CLUSTERS to a folder that you can write to" in ran.stderr
    assert numalign(tmp_path, "cluster status", **where).returncode == 0


MISTYPED = {
    "a name": ("cluster up Small", "...is not a valid name; use lower-case letters, digits and dashes, at most 63\n"),
    "a machine": ("cluster up --machine 9x9", "...9x9...\n"),
    "a policy": ("cluster up --policy sometimes", "...sometimes...\n"),
    "a scope": ("cluster up --scope half", "...half...\n"),
    "reports": ("cluster up --reports rumours", "...rumours...\n"),
    "a scenario": ("cluster up --scenario nowhere", "...nowhere...\n"),
    "a number": ("cluster up --nodes none", "...--nodes...\n"),
    "too few nodes": ("cluster up --nodes 0", "...--nodes...\n"),
    "a policy's option": ("cluster up --policy sometimes", "...Invalid value for '--policy'...single-numa-node...\n"),
    "reports' option": ("cluster up --reports rumours", "...Invalid value for '--reports'...'agent', 'rte'...\n"),
    "nodes of a scenario": (
        "cluster up s --scenario gpu-mix --nodes 5 --machine gpu-8",
        "...Cluster s, --nodes, --machine: no effect with --scenario, which has its own nodes; remove them\n",
    ),
    "a scheduler without a scenario": ("cluster up s --scheduler numalign", "...no effect without --scenario...\n"),
}


@pytest.mark.parametrize("line, text", MISTYPED.values(), ids=MISTYPED)
def test_what_is_mistyped_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, text: str) -> None:
    monkeypatch.setenv("NUMALIGN_CLUSTERS", str(tmp_path))
    ran = CliRunner().invoke(main.app, line.split())
    assert (ran.exit_code, ran.output) == (2, Like(text))
    assert list(tmp_path.iterdir()) == []


def test_a_port_in_use_is_told(typed: Typed, embedded: clusters.Up) -> None:
    port = embedded.url.rpartition(":")[2]
    assert typed(f"cluster up a --nodes 1 --port {port}") == (
        2,
        f"numalign: Cluster a, --port: port {port} cannot be served: Address already in use; 0 selects a free one\n",
    )


def test_the_log_of_a_cluster_names_pod_and_node_of_a_rejection(tmp_path: Path) -> None:
    """Structured fields are part of every line."""
    with clusters.up(tmp_path, "--nodes 1 --machine 2x16"):
        pass
    assert re.search(r"^\S+Z I numalign\.simulator\.hosting: Serving", (tmp_path / "said").read_text(), re.MULTILINE)
