"""A cluster without its scheduler, and pods that have to make room (catalogue 13.6)."""

from __future__ import annotations

import pytest

from tests.embedded.acceptance.site import APP, Site, Tree, spec

PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
WORTH = {"low": 100, "medium": 200, "high": 300}
CRITICAL = "system-node-critical"


def test_without_the_scheduler_pods_run_on_and_new_ones_wait_until_it_is_back(site: Site) -> None:
    """47593, 49093 and 48069"""
    site.workload("Deployment", "before", spec("4/4Gi"), "container")
    site.all_run("before", 1)
    (running,) = site.pods_of("before")
    with site.without_scheduler():
        site.workload("Deployment", "during", spec("4/4Gi"), "container")
        (waiting,) = site.until(lambda: site.pods_of("during"), lambda: "no pod")
        # A pod that names its node runs meanwhile, so the cluster goes on.
        site.pod("named", spec("", nodeName=site.pool("container").target))
        site.runs("named")
        assert not site.get_pod(waiting["metadata"]["name"])["spec"].get("nodeName")
        assert [each["metadata"]["uid"] for each in site.pods_of("before")] == [running["metadata"]["uid"]]
    site.all_run("during", 1)
    assert [each["metadata"]["uid"] for each in site.pods_of("before")] == [running["metadata"]["uid"]]


@pytest.fixture
def crowd(site: Site) -> Crowd:
    return Crowd(site)


class Crowd:
    """Pods of several priorities on one node, none of which goes by itself."""

    def __init__(self, site: Site) -> None:
        self.site, self.node = site, site.pool("container").target
        for name, value in WORTH.items():
            site.post(PRIORITIES, {"metadata": {"name": name}, "value": value})

    def create(self, name: str, worth: str, *containers: str) -> None:
        priority: Tree = {"priorityClassName": worth} if worth != "default" else {}
        inner = spec(*containers, nodeSelector={"kubernetes.io/hostname": self.node}, **priority)
        self.site.pod(name, inner, "container", labels={APP: "crowd"})

    def fill(self, name: str, worth: str, *containers: str) -> None:
        self.create(name, worth, *containers)
        self.site.runs(name, self.node)

    def uids(self) -> dict[str, str]:
        """Of the pods that nobody has asked to leave."""
        pods = [each for each in self.site.pods_of("crowd") if "deletionTimestamp" not in each["metadata"]]
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in pods}

    def waits_for_good(self, before: dict[str, str]) -> None:
        """The message says that preemption does not help, and all others are still there."""
        message = self.site.waits("new", "preemption: ")
        assert any(text in message for text in ("No preemption victims found", "not helpful", "no candidate node"))
        conditions = self.site.get_pod("new")["status"]["conditions"]
        assert [(each["type"], each["status"]) for each in conditions] == [("PodScheduled", "False")]
        now = self.uids()
        del now["new"]
        assert now == before

    def evicted(self, before: dict[str, str]) -> set[str]:
        """The names of those that had to go for the new pod, which runs."""
        self.site.runs("new", self.node)
        now = self.uids()
        assert now.items() - before.items() == {("new", now["new"])}
        return before.keys() - now.keys()


@pytest.mark.parametrize(
    "there, new, makes_room",
    [
        ("default", "default", False),
        ("default", CRITICAL, True),
        (CRITICAL, "default", False),
        (CRITICAL, CRITICAL, False),
        ("low", "medium", True),
        ("medium", "low", False),
    ],
    ids=[f"PRE-{number}" for number in range(1, 7)],
)
def test_a_full_zone_is_cleared_only_for_a_pod_of_higher_priority(
    crowd: Crowd, there: str, new: str, makes_room: bool
) -> None:
    crowd.fill("filler-0", there, "23/20Gi")
    crowd.fill("filler-1", there, "23/20Gi")
    before = crowd.uids()
    crowd.create("new", new, "23/20Gi")
    if makes_room:
        assert len(crowd.evicted(before)) == 1
    else:
        crowd.waits_for_good(before)


def mixed(crowd: Crowd) -> dict[str, str]:
    """In each zone a pod of two containers without priority, and one of medium priority that takes the rest."""
    for zone, rest in enumerate((19, 20)):
        crowd.fill(f"medium-{zone}", "medium", f"{rest}/8Gi")
        crowd.fill(f"default-{zone}", "default", "2/1Gi", "2/1Gi")
    crowd.site.reports(crowd.node, {0: {"cpu": 0}, 1: {"cpu": 0}})
    return crowd.uids()


def test_nothing_is_evicted_where_the_node_would_have_room_but_no_zone(crowd: Crowd) -> None:
    """PRE-7"""
    before = mixed(crowd)
    crowd.create("new", "low", "8/2Gi")
    crowd.waits_for_good(before)


def test_exactly_the_pod_is_evicted_that_makes_room_in_a_zone(crowd: Crowd) -> None:
    """PRE-8"""
    before = mixed(crowd)
    crowd.create("new", "high", "8/2Gi")
    assert crowd.evicted(before) in ({"medium-0"}, {"medium-1"})


def test_a_burst_that_fills_the_node_evicts_nothing(crowd: Crowd) -> None:
    """PRE-9"""
    for number in range(23):
        crowd.create(f"burst-{number}", "high" if number >= 21 else "low", "2/1Gi")
    created = crowd.uids()
    crowd.site.all_run("crowd", 23)
    assert crowd.uids() == created
