"""An installation by Helm on real containers: agents report, pods are aligned, and what dies comes back.

The tests run in order and share the installation; the last one removes it."""

from __future__ import annotations

import json
import os
import signal
import sys
from functools import partial
from pathlib import Path

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet.machine import presets
from numalign.lab import spec
from tests import walks
from tests.lab import reals
from tests.lab.installed import CONTAINER, SPACE, Installed, deployment

CHART = Path(__file__).parents[2] / "charts/numalign"
ZONE_CPUS = 16
PAGE = "docs/use/first-pod.md"


def test_the_page_about_the_first_pod_shows_what_its_commands_print(installed: Installed, tmp_path: Path) -> None:
    """The page installs and uninstalls; what follows here installs again."""
    programs = {"kubectl": installed.live.lab.tools / "kubectl", "helm": installed.program}
    programs["numalign"] = Path(sys.executable).parent / "numalign"
    with walks.shell(tmp_path, programs, KUBECONFIG=str(installed.live.lab.kubeconfig)) as shell:
        assert walks.walk(walks.ROOT / PAGE, shell) > 0
    installed.helm("install", "numalign", str(CHART), "--wait", "--timeout", "180s")


def test_every_node_has_reported_when_the_installation_is_ready(installed: Installed) -> None:
    for node in ("node-0", "node-1"):
        zones = installed.report(node)["zones"]
        assert [each["name"] for each in zones] == ["node-0", "node-1"]


def test_an_aligned_pod_runs_and_checkpoint_and_report_agree_with_the_prediction(clean: Installed) -> None:
    clean.create("train", 8)
    clean.runs("train")
    pod = clean.tree("pod", "train")
    node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
    state = json.loads(clean.live.node(node).cpu_state.read_text())
    pinned = cpuset.parse(state["entries"][uid][CONTAINER])
    zone = _zone_of(pinned)
    assert pod["metadata"]["annotations"]["numalign.io/placement"] == f"v1;{CONTAINER}={zone}"
    clean.until(lambda: cpuset.text(pinned) in json.dumps(clean.report(node)), "the report does not have the pod")


def _zone_of(cpus: int) -> int:
    """The zone of the machine that has all of these CPUs."""
    (found,) = [
        zone.id
        for zone in presets.machine(reals.MACHINE).zones
        if not cpus & ~cpuset.of(cpu for core in zone.cores for cpu in core.cpus)
    ]
    return found


def test_a_deployment_that_cannot_be_aligned_waits_and_describe_names_container_zone_resource_and_shortfall(
    clean: Installed,
) -> None:
    """By totals every node has room for it: 30 CPUs are free on each."""
    clean.kubectl("apply", "-f", "-", stdin=deployment("large", 2, ZONE_CPUS + 4))

    wanted = f"cannot align container (container {CONTAINER} needs {ZONE_CPUS + 4} CPUs in one NUMA zone, best zone has"

    def told() -> bool:
        pods = clean.kubectl("get", "pods", "-l", "app=large", "-o", "name").split()
        return len(pods) == 2 and all(wanted in clean.kubectl("describe", each) for each in pods)

    clean.until(told, "no event says why")
    assert {each["status"]["phase"] for each in clean.tree("pods", "-l", "app=large")["items"]} == {"Pending"}


def test_another_process_leads_when_the_leader_is_killed(clean: Installed) -> None:
    # The lease of an installation that was removed names its last leader until it expires.
    clean.until(lambda: bool(_processes(clean.leader())), "there is no leader")
    before = clean.leader()
    (process,) = _processes(before)
    os.kill(process, signal.SIGKILL)
    clean.until(lambda: clean.leader() != before, "there is no other leader")
    clean.create("after", 4)
    clean.runs("after")


def _processes(leader: str) -> list[int]:
    """Schedulers of the leader's pod, by their number on this machine."""
    found, pod = [], leader.rpartition("_")[0]
    for folder in Path("/proc").iterdir():
        try:
            runs = folder.name.isdecimal() and b"scheduler\0run" in (folder / "cmdline").read_bytes()
            if runs and f"HOSTNAME={pod}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("part", ["kubelet", "containerd"])
def test_pods_survive_a_restart_of_their_node_s_programs_and_more_are_aligned(clean: Installed, part: str) -> None:
    clean.create("before", 4, nodeSelector={"kubernetes.io/hostname": "node-0"})
    clean.runs("before")
    uid = clean.tree("pod", "before")["metadata"]["uid"]
    clean.live.node("node-0").parts[part].restart()
    clean.create("later", 4, nodeSelector={"kubernetes.io/hostname": "node-0"})
    clean.runs("later")
    clean.runs("before")
    assert clean.tree("pod", "before")["metadata"]["uid"] == uid


def test_a_node_that_joins_takes_no_pod_blindly_and_its_report_goes_with_it(clean: Installed) -> None:
    clean.kubectl("apply", "-f", "-", stdin=deployment("large", 1, ZONE_CPUS + 4))
    clean.create("here", 4, nodeSelector={"kubernetes.io/hostname": "extra"})
    reals.add_node(clean.live, spec.node("extra", presets.machine(reals.MACHINE)))
    clean.runs("here")
    (large,) = clean.tree("pods", "-l", "app=large")["items"]
    assert (large["status"]["phase"], large["spec"].get("nodeName")) == ("Pending", None)
    reals.remove_node(clean.live, "extra")
    names = partial(clean.tree, "noderesourcetopologies")
    clean.until(lambda: "extra" not in json.dumps(names()["items"]), "the report of the node stays")


def test_an_upgrade_under_load_loses_no_pod_and_lets_none_bounce(clean: Installed) -> None:
    """Pods of one deployment come while agents and schedulers are replaced: two fit into each of four zones."""
    clean.kubectl("apply", "-f", "-", stdin=deployment("load", 2, 7))
    changed = "agent.verbosity=4,scheduler.verbosity=4"
    upgrade = clean.begun("upgrade", "numalign", str(CHART), "--reuse-values", "--set", changed, "--wait")
    for replicas in range(3, 9):
        clean.kubectl("scale", "deployment", "load", f"--replicas={replicas}")
        clean.until(partial(_has, clean, replicas - 1), "pods do not come")
    clean.ended(upgrade)
    clean.until(partial(_has, clean, 8), "not all pods run")
    pods = clean.tree("pods", "-l", "app=load")["items"]
    assert {each["status"]["phase"] for each in pods} == {"Running"}
    assert len(pods) == 8


def _has(installed: Installed, pods: int) -> bool:
    """Whether so many pods of the load are ready."""
    return int(installed.tree("deployment", "load")["status"].get("readyReplicas", 0)) >= pods


def test_what_was_uninstalled_leaves_nothing_but_the_definition_and_its_reports(installed: Installed) -> None:
    installed.helm("uninstall", "numalign", "--wait")
    kinds = "deployments,daemonsets,services,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets"
    left = installed.kubectl("get", kinds, "-n", SPACE, "-o", "name").split()
    assert sorted(left) == ["configmap/kube-root-ca.crt", "serviceaccount/default"]
    kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings"
    assert "numalign" not in installed.kubectl("get", kinds, "-o", "name", "-l", "app.kubernetes.io/name=numalign")
    assert len(installed.tree("noderesourcetopologies")["items"]) == 2
