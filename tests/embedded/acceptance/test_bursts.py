"""Many pods at once, beside pods of others and pods that have ended (catalogue 13.5).

A zone has 24 CPUs, of which one of the first zone is reserved."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.embedded.acceptance.site import APP, DEFAULT, PODS, QoS, Site, Tree, ends, spec

LABELS = {APP: "new"}
BURSTS: dict[QoS, str] = {"guaranteed": "2/256Mi", "burstable": "cpu:2 mem:256Mi", "besteffort": ""}


def burst(site: Site, count: int, words: str, qos: QoS = "guaranteed", **more: Any) -> None:
    for number in range(count):
        site.pod(f"new-{number}", spec(words, qos=qos, **more), "container", labels=LABELS)


def foreign(site: Site, number: int, words: str, qos: QoS = "guaranteed") -> None:
    """A pod of another scheduler; where none runs beside, a pod that names its node."""
    inner = spec(words, qos=qos)
    if site.setting == "second":
        inner["schedulerName"] = DEFAULT
    else:
        nodes = site.pool("container").every
        inner["nodeName"] = nodes[number % len(nodes)]
    site.pod(f"new-{number}", inner, "container", labels=LABELS)


def test_a_burst_of_a_pod_per_zone_runs(site: Site) -> None:
    """85786"""
    burst(site, 4, "14/1Gi")
    assert sorted(Counter(site.all_run("new", 4)).values()) == [2, 2]


@pytest.mark.parametrize(
    "count, words, every, qos",
    [(8, "7/1Gi", 2, "guaranteed"), (16, "3/1Gi", 5, "burstable")],
    ids=["85787", "85788"],
)
def test_a_burst_beside_pods_of_another_scheduler_runs(
    site: Site, count: int, words: str, every: int, qos: QoS
) -> None:
    for number in range(count):
        if number % every == every - 1:
            foreign(site, number, words, qos)
        else:
            site.pod(f"new-{number}", spec(words), "container", labels=LABELS)
    site.all_run("new", count)


def waiting_for_a_device(site: Site, words: str) -> str:
    """The device is in one zone of each node; of three pods one waits: its name."""
    for name in site.pool("container").every:
        site.pad(name, "dev3:8", "dev3:0")
    burst(site, 3, words)

    def running() -> list[Tree]:
        return [each for each in site.pods_of("new") if each["status"].get("phase") == "Running"]

    found = site.until(lambda: len(running()) == 2 and running(), running)
    assert len({each["spec"]["nodeName"] for each in found}) == 2
    names = {str(each["metadata"]["name"]) for each in site.pods_of("new")}
    (left,) = names - {each["metadata"]["name"] for each in found}
    site.waits(left, "cannot align container")
    return left


def test_a_pod_waits_while_every_zone_with_its_device_lacks_cpus(site: Site) -> None:
    """85789"""
    waiting_for_a_device(site, "16/1Gi dev3:1")


def test_the_pod_that_waits_for_such_a_zone_runs_once_another_ends(site: Site) -> None:
    """85790"""
    left = waiting_for_a_device(site, "14/1Gi dev3:1")
    site.delete(next(each["metadata"]["name"] for each in site.pods_of("new") if each["metadata"]["name"] != left))
    site.runs(left)


NOISE: dict[str, tuple[dict[str, str], str]] = {
    # What ends, and the restart policy.
    "83865": (ends("init", "main"), "Never"),
    "83866": (ends("init"), "Never"),
    "83868": (ends("init", "main"), "OnFailure"),
}


def noise(site: Site, inner: Tree, lasts: dict[str, str]) -> None:
    """Two pods of others on every node."""
    for node in site.pool("container").every:
        for number in (0, 1):
            meta = {"name": f"noise-{node}-{number}", "annotations": lasts}
            site.post(PODS, {"metadata": meta, "spec": inner | {"nodeName": node}})


@pytest.mark.parametrize("id", NOISE)
def test_pods_of_others_that_end_do_not_stall_a_burst(site: Site, id: str) -> None:
    lasts, restarts = NOISE[id]
    noise(site, spec("100m/256Mi", init=("100m/256Mi",), restartPolicy=restarts), lasts)
    burst(site, 30, "2/256Mi")
    site.all_run("new", 30)


COMPLETED: dict[str, tuple[QoS, str]] = {
    "85780": ("besteffort", ""),
    "85781": ("burstable", "cpu:100m"),
    "85782": ("guaranteed", "100m/256Mi"),
    "85783": ("guaranteed", "1/256Mi"),
}


def complete(site: Site, qos: QoS, words: str) -> None:
    """A Job of two pods per node that ends; its pods stay."""
    template = {
        "metadata": {"annotations": ends("main")},
        "spec": {
            **spec(words, qos=qos, restartPolicy="Never"),
            "schedulerName": site.scheduler,
            "nodeSelector": {"example.com/scope": "container"},
        },
    }
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    site.post(jobs, {"metadata": {"name": "job"}, "spec": {"completions": 4, "parallelism": 4, "template": template}})
    site.until(lambda: site.get(f"{jobs}/job").get("status", {}).get("succeeded") == 4, lambda: site.get(f"{jobs}/job"))


@pytest.mark.parametrize("id", COMPLETED)
def test_completed_jobs_do_not_stall_a_pod_per_zone(site: Site, id: str) -> None:
    complete(site, *COMPLETED[id])
    burst(site, 4, "14/1Gi")
    site.all_run("new", 4)


@pytest.mark.parametrize("qos", ["guaranteed", "burstable"], ids=["85784", "85785"])
def test_completed_jobs_do_not_stall_a_burst(site: Site, qos: QoS) -> None:
    complete(site, "guaranteed", "1/256Mi")
    burst(site, 30, BURSTS[qos], qos)
    site.all_run("new", 30)


@pytest.mark.parametrize("qos", BURSTS, ids=["84018", "84019", "84020"])
def test_a_burst_on_a_single_node_runs(site: Site, qos: QoS) -> None:
    target = site.pool("container").target
    burst(site, 18, BURSTS[qos], qos, nodeSelector={"kubernetes.io/hostname": target})
    assert set(site.all_run("new", 18)) == {target}


@pytest.mark.parametrize("qos", BURSTS, ids=["84021", "84022", "84023"])
def test_a_burst_on_all_nodes_runs(site: Site, qos: QoS) -> None:
    burst(site, 30, BURSTS[qos], qos)
    site.all_run("new", 30)
