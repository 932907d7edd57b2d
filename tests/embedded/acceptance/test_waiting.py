"""Pods for which no zone is large enough, although totals of nodes are (catalogue 13.3, below its table)."""

from __future__ import annotations

import pytest

from tests.embedded.acceptance.site import DEFAULT, Site, Tree, spec

ALIGN = "cannot align"
TWELVE = ("12/12Gi", "12/12Gi")


def pending(site: Site, kind: str, inner: Tree, count: int = 1) -> list[str]:
    """Create the pods of such an object; the names of those, once there are this many."""
    if kind == "Pod":
        return [site.pod("new", inner, "container")]
    site.workload(kind, "new", inner, "container", count)
    site.until(lambda: len(site.pods_of("new")) >= count, lambda: site.pods_of("new"))
    return [each["metadata"]["name"] for each in site.pods_of("new")]


@pytest.mark.parametrize(
    "kind, count", [("Pod", 1), ("Deployment", 1), ("DaemonSet", 2)], ids=["47617", "48963", "48962"]
)
def test_a_workload_larger_than_every_free_zone_waits_and_the_scheduler_says_so(
    site: Site, kind: str, count: int
) -> None:
    for name in site.pool("container").every:
        site.pad(name, *TWELVE)
    for name in pending(site, kind, spec("16/16Gi"), count):
        site.waits(name, ALIGN)
        assert site.reporter(name, "FailedScheduling") == site.scheduler


def test_the_default_scheduler_binds_such_a_pod_and_its_kubelet_rejects_it(site: Site) -> None:
    """47619, which shows the problem"""
    if site.setting != "second":
        pytest.skip("no scheduler that knows only totals runs beside")
    for name in site.pool("container").every:
        site.pad(name, *TWELVE)
    site.pod("new", spec("16/16Gi", schedulerName=DEFAULT), "container")
    status = site.until(
        lambda: (found := site.get_pod("new")["status"]).get("phase") == "Failed" and found, lambda: site.get_pod("new")
    )
    assert status["reason"] == "TopologyAffinityError"


def test_of_a_daemon_set_exactly_the_pod_whose_node_has_a_zone_runs(site: Site) -> None:
    """47592"""
    pool = site.pool("container")
    site.pad(pool.others[0], *TWELVE)
    before = site.free(pool.target)
    names = pending(site, "DaemonSet", spec("16/16Gi"), 2)
    wanted = {name: site.get_pod(name)["spec"]["affinity"] for name in names}
    here = next(name for name in names if pool.target in str(wanted[name]))
    site.runs(here, pool.target)
    site.waits(next(name for name in names if name != here), ALIGN)
    site.consumed(pool.target, ("16/16Gi",), before)


def test_containers_that_fit_zones_one_by_one_but_not_together_wait_under_pod_scope(site: Site) -> None:
    """47616"""
    pool = site.pool("pod")
    for name in pool.every:
        site.pad(name, "6/6Gi", "6/6Gi")
    before = {name: site.free(name) for name in pool.every}
    site.pod("new", spec("4/4Gi", "5/5Gi"), "pod")
    site.waits("new", "cannot align pod")
    assert {name: site.free(name) for name in pool.every} == before


def test_of_one_replica_more_than_zones_all_but_one_run_once_they_are_small_enough(site: Site) -> None:
    """47615"""
    pool = site.pool("container")
    for name in pool.every:
        site.pad(name, *TWELVE)
    for name in pending(site, "Deployment", spec("16/16Gi"), 5):
        site.waits(name, ALIGN)
    site.change("Deployment", "new", {"spec": {"replicas": 0}})
    site.until(lambda: not site.pods_of("new"), lambda: site.pods_of("new"))
    smaller = spec("10/10Gi")["containers"]
    site.change("Deployment", "new", {"spec": {"replicas": 5, "template": {"spec": {"containers": smaller}}}})

    def running() -> list[Tree]:
        return [each for each in site.pods_of("new") if each["status"].get("phase") == "Running"]

    site.until(lambda: len(running()) == 4, running)
    (left,) = [each for each in site.pods_of("new") if each["status"].get("phase") == "Pending"]
    site.waits(left["metadata"]["name"], ALIGN, "Insufficient cpu")


@pytest.mark.parametrize("kind", ["Pod", "Deployment", "DaemonSet"], ids=["pod", "deployment", "daemon set"])
def test_a_request_for_all_of_a_node_waits(site: Site, kind: str) -> None:
    """47614"""
    site.pad(site.pool("container").others[0], *TWELVE)
    count = 2 if kind == "DaemonSet" else 1
    for name in pending(site, kind, spec("47/77Gi"), count):
        site.waits(name, ALIGN, "Insufficient")


def test_a_request_above_the_largest_zone_waits_on_empty_nodes(site: Site) -> None:
    """47613"""
    site.pod("new", spec("25/4Gi"), "container")
    site.waits("new", ALIGN)
