"""What pods of each QoS class take from zones, and what only from the node (catalogue 13.4)."""

from __future__ import annotations

import pytest

from tests.embedded.acceptance.site import NODES, Pool, QoS, Site, Tree, spec

ONE_ZONE = "cannot align"
TEN = ("10/10Gi", "10/10Gi")
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def others_padded(site: Site) -> Pool:
    pool = site.pool("container")
    site.pad(pool.others[0], "2/4Gi", "2/4Gi")
    return pool


def consumes(site: Site, node: str, inner: Tree, taken: str = "", kind: str = "Pod") -> None:
    """The pod runs on the node, whose zones have less by this much."""
    before = site.free(node)
    if kind == "Pod":
        site.pod("new", inner, "container")
        site.runs("new", node)
    else:
        site.workload(kind, "new", inner, "container")
        site.all_run("new", 1)
    # The report of one more pod is later than that of the pod to be judged, which may change nothing.
    site.pod("after", spec("1/1Gi", nodeSelector={"kubernetes.io/hostname": node}), "container")
    site.consumed(node, (taken, "1/1Gi"), before)


def test_a_pod_waits_for_a_zone_and_runs_in_the_one_that_becomes_free(site: Site) -> None:
    """49068"""
    pool = others_padded(site)
    site.pad(pool.target, "4/8Gi", "4/8Gi")
    site.pad(pool.target, "3/7Gi", "3/7Gi")
    site.pod("new", spec("4/8Gi"), "container")
    site.waits("new", ONE_ZONE)
    last = max(site.pods_of("pad"), key=lambda each: int(each["metadata"]["name"].rpartition("-")[2]))
    site.delete(last["metadata"]["name"])
    site.runs("new", pool.target)
    site.reports(pool.target, {0: {"cpu": 3000}, 1: {"cpu": 0}})


def test_a_best_effort_pod_takes_nothing_from_a_zone(site: Site) -> None:
    """48685"""
    consumes(site, others_padded(site).target, spec(""))


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "DaemonSet"], ids=["48686", "47618", "49071"])
def test_a_burstable_pod_larger_than_a_zone_takes_nothing_from_it(site: Site, kind: str) -> None:
    pool = site.pool("container")
    site.pad(pool.target, *TEN)
    only: Tree = {"nodeSelector": {"kubernetes.io/hostname": pool.target}}
    consumes(site, pool.target, spec("19/19Gi", qos="burstable", **only), kind=kind)


def test_one_container_with_equal_requests_and_limits_does_not_make_a_pod_guaranteed(site: Site) -> None:
    """85768"""
    pool = site.pool("container")
    site.pad(pool.target, *TEN)
    inner = spec("12/4Gi", nodeSelector={"kubernetes.io/hostname": pool.target})
    inner["containers"] += spec("cpu:1", qos="burstable")["containers"]
    inner["containers"][-1]["name"] = "beside"
    consumes(site, pool.target, inner)


def test_a_guaranteed_pod_waits_while_a_burstable_one_has_the_node(site: Site) -> None:
    """47620"""
    pool = others_padded(site)
    only: Tree = {"nodeSelector": {"kubernetes.io/hostname": pool.target}}
    site.pod("burstable", spec("40/20Gi", qos="burstable", **only), "container")
    site.runs("burstable", pool.target)
    before = site.free(pool.target)
    site.pod("new", spec("16/16Gi"), "container")
    site.waits("new", "Insufficient cpu")
    site.delete("burstable")
    site.runs("new", pool.target)
    site.consumed(pool.target, ("16/16Gi",), before)


def overhead(site: Site, cpu: str, memory: str) -> Tree:
    """The name of a new class, for the spec of a pod."""
    site.post(
        CLASSES,
        {
            "apiVersion": "node.k8s.io/v1",
            "kind": "RuntimeClass",
            "metadata": {"name": "heavy"},
            "handler": "heavy",
            "overhead": {"podFixed": {"cpu": cpu, "memory": memory}},
        },
    )
    return {"runtimeClassName": "heavy"}


def test_the_overhead_of_a_runtime_class_is_not_taken_from_a_zone(site: Site) -> None:
    """47582"""
    pool = others_padded(site)
    before = site.free(pool.target)
    site.workload("Deployment", "new", spec("6/6Gi", **overhead(site, "500m", "500Mi")), "container")
    assert site.all_run("new", 1) == [pool.target]
    site.consumed(pool.target, ("6/6Gi",), before)


def test_the_overhead_counts_for_the_node(site: Site) -> None:
    """53819"""
    pool = others_padded(site)
    site.pad(pool.target, "1/1Gi")
    before = site.free(pool.target)
    site.pod("new", spec("6/6Gi", **overhead(site, "24", "39Gi")), "container")
    site.waits("new", "Insufficient cpu")
    assert site.free(pool.target) == before


DISK: dict[str, tuple[QoS, tuple[str, ...], str]] = {
    # The QoS class, the containers, and what they take from zones: of fractions of CPUs nothing.
    "84015": ("guaranteed", ("2/1Gi eph:256Mi",), "2/1Gi"),
    "84016": ("burstable", ("cpu:2 mem:1Gi eph:256Mi",), ""),
    "84017": ("besteffort", ("eph:256Mi",), ""),
    "74249": ("guaranteed", ("2/1Gi eph:64Mi",) * 4, "8/4Gi"),
    "74250": ("guaranteed", ("2/1Gi eph:64Mi", "500m/1Gi eph:64Mi", "2/1Gi eph:64Mi", "1500m/1Gi eph:64Mi"), "4/4Gi"),
    "74251": ("burstable", ("cpu:500m eph:64Mi", "cpu:1500m eph:64Mi"), ""),
    "74252": ("besteffort", ("eph:64Mi", "eph:64Mi"), ""),
}


@pytest.mark.parametrize("id", DISK)
def test_ephemeral_storage_is_not_taken_from_a_zone(site: Site, id: str) -> None:
    qos, containers, taken = DISK[id]
    target = others_padded(site).target
    consumes(site, target, spec(*containers, qos=qos, nodeSelector={"kubernetes.io/hostname": target}), taken)
    assert site.get_pod("new")["status"]["qosClass"].lower() == qos


@pytest.mark.parametrize("qos", ["guaranteed", "burstable", "besteffort"], ids=["74253", "74254", "74255"])
def test_a_pod_waits_for_ephemeral_storage_of_the_node(site: Site, qos: QoS) -> None:
    pool = site.pool("container")
    for name in pool.every:
        disk = int(site.get(f"{NODES}/{name}")["status"]["allocatable"]["ephemeral-storage"].removesuffix("Gi"))
        left = spec(f"eph:{disk * 1024 - 255}Mi", qos="besteffort", nodeName=name)
        site.pod(f"pad-{name}", left)
        site.runs(f"pad-{name}", name)
    shares = {"guaranteed": "1/1Gi eph:128Mi", "burstable": "cpu:1 eph:128Mi", "besteffort": "eph:128Mi"}
    site.pod("new", spec(shares[qos], shares[qos], qos=qos), "container")
    site.waits("new", "2 Insufficient ephemeral-storage")


@pytest.mark.parametrize("qos", ["besteffort", "burstable", "guaranteed"], ids=["85012", "85013", "47611"])
def test_pods_run_on_a_node_whose_reports_have_stopped(site: Site, qos: QoS) -> None:
    before = site.free("frozen")
    words = {"besteffort": "", "burstable": "cpu:4 mem:4Gi", "guaranteed": "4/4Gi"}
    site.post("/api/v1/namespaces/default/pods", frozen("new", spec(words[qos], qos=qos), site))
    site.runs("new", "frozen")
    assert site.free("frozen") == before


def frozen(name: str, inner: Tree, site: Site) -> Tree:
    bound = {"schedulerName": site.scheduler, "nodeSelector": {"kubernetes.io/hostname": "frozen"}}
    return {"metadata": {"name": name}, "spec": inner | bound}


def test_fractions_of_cpus_need_no_zone_as_for_the_kubelet(site: Site) -> None:
    """74256. The reference plugin refuses such a pod; the kubelet admits it, because it has no exclusive CPUs."""
    pool = site.pool("pod")
    site.pad(pool.target, "11/8Gi", "6/8Gi")
    site.pad(pool.others[0], "1/1Gi", "1/1Gi")
    site.pod("new", spec("4300m/1Gi", "7500m/1Gi", "2500m/1Gi"), "pod")
    site.runs("new", pool.target)
    site.reports(pool.target, {0: {"cpu": 11_000}, 1: {"cpu": 6_000}})
