"""Real kubelets on made-up machines: what they report, what they admit, what they remember."""

from __future__ import annotations

from pathlib import Path

import pytest

from numalign.api.objects import resourcenames
from numalign.kubelet import predicates
from numalign.kubelet.cpu import topology
from numalign.kubelet.topologymanager import mask as masks
from tests.lab import books
from tests.lab import live as lives
from tests.lab.fleet import PLAIN, PODWISE
from tests.lab.live import Live


@pytest.mark.parametrize("name", [PLAIN, PODWISE])
def test_a_node_offers_what_the_model_says(live: Live, name: str) -> None:
    modelled = live.node(name).spec.modelled
    offered = live.node_object(name).allocatable
    expected = predicates.allocatable(modelled, modelled.initial())
    found = {each: offered[each].milli if each == resourcenames.CPU else offered[each].value for each in expected}
    assert found == expected


def test_two_pods_get_a_zone_each_and_a_third_that_needs_both_is_turned_away(cluster: Live) -> None:
    node = cluster.node(PLAIN)
    for number in range(3):
        cluster.create(lives.guaranteed(f"web-{number}", 10, nodeName=PLAIN))
    first, second, third = (cluster.settled(f"web-{number}") for number in range(3))
    held = books.cpus(node)
    zones = topology.discover(node.spec.machine).zones
    found = [masks.of(zone for zone, members in zones.items() if cpus & members) for cpus in held.values()]
    assert sorted(found) == [0b01, 0b10]
    assert {uid for uid, _ in held} == {first.metadata.uid, second.metadata.uid}
    assert (third.status.phase, third.status.reason) == ("Failed", "TopologyAffinityError")


def test_the_stock_scheduler_sends_a_pod_to_a_node_that_turns_it_away(cluster: Live) -> None:
    """It counts CPUs of the whole node: twelve are free, six in each zone."""
    cluster.create(*(lives.guaranteed(f"half-{number}", 10, nodeName=PLAIN) for number in range(2)))
    for number in range(2):
        cluster.settled(f"half-{number}")
    cluster.create(lives.guaranteed("blind", 8, nodeSelector={"kubernetes.io/hostname": PLAIN}))
    assert cluster.settled("blind").status.reason == "TopologyAffinityError"


def test_a_kubelet_that_is_started_again_keeps_what_pods_hold(cluster: Live) -> None:
    node = cluster.node(PODWISE)
    cluster.create(lives.guaranteed("kept", 4, nodeName=PODWISE))
    cluster.settled("kept")
    before = books.cpus(node)
    node.kubelet.restart()
    cluster.create(lives.guaranteed("after", 4, nodeName=PODWISE))
    cluster.settled("after")
    after = books.cpus(node)
    assert before
    assert {key: after[key] for key in before} == before
    assert len(after) == 2


def test_a_kubelet_works_in_a_folder_where_it_can_do_no_harm(cluster: Live) -> None:
    """When a container of the fake runtime goes, a kubelet removes whatever is in its working folder."""
    node = cluster.node(PLAIN)
    workplace = Path(f"/proc/{node.kubelet.pid}/cwd").readlink()
    bystander = workplace / "bystander"
    bystander.touch()
    cluster.create(lives.guaranteed("gone", 1, nodeName=PLAIN))
    cluster.settled("gone")
    cluster.clear()

    async def removed() -> bool:
        return not bystander.exists()

    assert workplace.is_relative_to(cluster.lab.place)
    assert cluster.awaited(removed, "nothing was removed: the reason for a folder of its own is gone")
