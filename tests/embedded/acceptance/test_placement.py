"""Where workloads run, and what becomes of them when the cluster changes (catalogue 13.1)."""

from __future__ import annotations

import pytest

from tests.embedded.acceptance.site import DEFAULT, NODES, PODS, Site, Tree, spec

HOST = "kubernetes.io/hostname"
SMALL = ("1/4Gi", "1/4Gi")


def affinity(kind: str, *nodes: str, label: str = HOST) -> Tree:
    """Of one of these nodes, required or preferred."""
    term = {"matchExpressions": [{"key": label, "operator": "In", "values": list(nodes)}]}
    if kind == "required":
        rule: object = {"nodeSelectorTerms": [term]}
    else:
        rule = [{"weight": 100, "preference": term}]
    return {"affinity": {"nodeAffinity": {f"{kind}DuringSchedulingIgnoredDuringExecution": rule}}}


def test_a_deployment_moves_only_when_its_node_has_no_zone_for_it(site: Site) -> None:
    """47591"""
    pool = site.pool("container")
    site.pad(pool.others[0], *SMALL)
    before = site.free(pool.target)
    site.workload("Deployment", "new", spec("2/100Mi", "2/100Mi"), "container")
    assert site.all_run("new", 1) == [pool.target]
    site.consumed(pool.target, ("2/100Mi", "2/100Mi"), before)
    site.roll_out("new", "3/100Mi", "3/100Mi")
    assert site.all_run("new", 1) == [pool.target]
    site.consumed(pool.target, ("3/100Mi", "3/100Mi"), before)
    for each in site.pods_of("pad"):
        site.delete(each["metadata"]["name"])
    site.reports_as_at_first(pool.others[0])
    site.pad(pool.target, *SMALL)
    site.roll_out("new", "6/100Mi", "6/100Mi")
    assert site.all_run("new", 1) == [pool.others[0]]


def test_two_replicas_that_fill_a_zone_each_share_a_node(site: Site) -> None:
    """48746"""
    pool = site.pool("container")
    site.pad(pool.others[0], *SMALL)
    filling = spec("23/30Gi")
    site.workload("Deployment", "new", filling, "container", 2, strategy={"type": "Recreate"})
    assert site.all_run("new", 2) == [pool.target] * 2
    site.reports(pool.target, {0: {"cpu": 0}, 1: {"cpu": 1000}})
    site.roll_out("new", "19/29Gi")
    site.reports(pool.target, {0: {"cpu": 4000}, 1: {"cpu": 5000}})
    assert site.all_run("new", 2) == [pool.target] * 2


@pytest.mark.parametrize("ours", [True, False], ids=["by our scheduler", "by the default scheduler"])
def test_ten_pods_of_a_replica_set_run_on_the_only_free_node(site: Site, ours: bool) -> None:
    """47627"""
    pool = site.pool("container")
    site.pad(pool.others[0], *SMALL)
    scheduler = site.scheduler if ours else DEFAULT
    site.workload("ReplicaSet", "new", spec("2/200Mi", "2/100Mi", schedulerName=scheduler), "container", 10)
    assert site.all_run("new", 10) == [pool.target] * 10
    assert {site.reporter(each["metadata"]["name"], "Scheduled") for each in site.pods_of("new")} == {scheduler}


def test_a_pod_that_tolerates_the_taint_of_all_nodes_runs_where_a_zone_is_free(site: Site) -> None:
    """47594"""
    pool = site.pool("container")
    for name in pool.every:
        site.patch(f"{NODES}/{name}", {"spec": {"taints": [{"key": "test", "effect": "NoSchedule"}]}})
    try:
        site.pad(pool.others[0], *SMALL)
        site.pod("new", spec("4/100Mi", tolerations=[{"key": "test", "operator": "Exists"}]), "container")
        site.runs("new", pool.target)
        site.pod("strange", spec("4/100Mi"), "container")
        site.waits("strange", "untolerated taint")
    finally:
        for name in pool.every:
            site.patch(f"{NODES}/{name}", {"spec": {"taints": None}})


def test_of_two_nodes_that_a_selector_allows_the_one_with_a_free_zone_is_used(site: Site) -> None:
    """47598"""
    pool = site.pool("container")
    site.pad(pool.others[0], "12/12Gi", "12/12Gi")
    site.pod("new", spec("16/16Gi", nodeSelector={"kubernetes.io/os": "linux"}), "container")
    site.runs("new", pool.target)


def test_of_two_nodes_that_an_affinity_requires_the_one_with_a_free_zone_is_used(site: Site) -> None:
    """47597"""
    pool = site.pool("container")
    site.pad(pool.others[0], "12/12Gi", "12/12Gi")
    site.workload("Deployment", "new", spec("16/16Gi", **affinity("required", *pool.every)), "container")
    assert site.all_run("new", 1) == [pool.target]


def test_a_preferred_node_without_a_free_zone_is_not_used_and_labels_may_go(site: Site) -> None:
    """49843"""
    pool, label = site.pool("container"), "example.com/kind"
    try:
        for name, value in zip(pool.every, ("good", "better"), strict=True):
            site.patch(f"{NODES}/{name}", {"metadata": {"labels": {label: value}}})
        site.pad(pool.others[0], "12/12Gi", "12/12Gi")
        wanted = affinity("preferred", "good", "better", label=label)
        site.workload("Deployment", "new", spec("16/16Gi", **wanted), "container")
        assert site.all_run("new", 1) == [pool.target]
        (before,) = site.pods_of("new")
    finally:
        for name in pool.every:
            site.patch(f"{NODES}/{name}", {"metadata": {"labels": {label: None}}})
    # A pod that the scheduler places afterwards shows that it has seen the labels go.
    site.pod("later", spec("1/1Gi"), "container")
    site.runs("later")
    assert [each["metadata"]["uid"] for each in site.pods_of("new")] == [before["metadata"]["uid"]]


def test_every_zone_of_every_node_is_used(site: Site) -> None:
    """85779"""
    pool = site.pool("container")
    site.workload("Deployment", "new", spec("13/4Gi"), "container", 4)
    assert sorted(site.all_run("new", 4)) == sorted(pool.every * 2)
    for name in pool.every:
        site.reports(name, {0: {"cpu": 10_000}, 1: {"cpu": 11_000}})


@pytest.mark.parametrize("kind", ["Pod", "Deployment"])
def test_a_pod_that_names_its_node_needs_no_scheduler(site: Site, kind: str) -> None:
    """47584 and 48964"""
    target = site.pool("container").target
    inner, before = spec("4/4Gi", nodeName=target, schedulerName="nonexistent"), site.free(target)
    if kind == "Pod":
        site.post(PODS, {"metadata": {"name": "new"}, "spec": inner})
        site.runs("new", target)
    else:
        site.workload(kind, "new", inner, "container")
        assert site.all_run("new", 1) == [target]
    site.consumed(target, ("4/4Gi",), before)


def test_what_a_deployment_held_is_free_once_it_is_deleted(site: Site) -> None:
    """47591, at its end"""
    site.workload("Deployment", "new", spec("13/4Gi"), "container", 4)
    site.all_run("new", 4)
    site.delete_workload("Deployment", "new")
    site.until(lambda: not site.pods_of("new"), lambda: site.pods_of("new"))
    site.reports_as_at_first(*site.pool("container").every)
