"""OverReserve between two rounds: what a look-up charges, and what marks a node."""

import pytest
from msgspec import structs

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches import ledger
from numalign.placement.reference.caches.cache import Lookup
from numalign.placement.reference.caches.overreserve import Desynced
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import ForeignPodsDetect
from tests.unit.placement.reference.caches import made

BIG = made.pod("big", requests={"cpu": "40", "memory": "1Gi"})
NIC_POD = made.pod("nic", requests={"cpu": "1", made.NIC: "1"})
MIXED = structs.replace(
    made.report(zones=[{"cpu": "10"}]),
    zones=(made.zone("node-0", {"cpu": "10"}), made.zone("socket-0", {"cpu": "8", made.NIC: "1"}, kind="Socket")),
)

CHARGES = {
    "nothing": ([], made.report(), ["10", "10"]),
    "one pod in every zone": ([made.pod()], made.report(), ["8", "8"]),
    "pods add up": ([made.pod("a"), made.pod("b")], made.report(), ["6", "6"]),
    "the same pod again replaces": ([made.pod("a"), made.pod("a")], made.report(), ["8", "8"]),
    "never below nothing": ([BIG, made.pod()], made.report(), ["0", "0"]),
    "Burstable pods too": ([made.pod(guaranteed=False)], made.report(), ["8", "8"]),
    "zones of any type": ([NIC_POD], MIXED, ["9", "7"]),
}


@pytest.mark.parametrize("pods, report, cpus", CHARGES.values(), ids=CHARGES)
def test_reserved_pods_are_charged(pods: list[Pod], report: NodeResourceTopology, cpus: list[str]) -> None:
    cache = made.over_reserve(report)
    for pod in pods:
        cache.reserve("n", pod)
    assert made.free(cache) == cpus


def test_a_resource_that_a_zone_does_not_list_is_not_charged_there() -> None:
    cache = made.over_reserve(MIXED)
    cache.reserve("n", NIC_POD)
    assert made.free(cache, made.NIC) == [None, "0"]


def test_only_the_available_amount_is_charged() -> None:
    cache = made.over_reserve()
    cache.reserve("n", made.pod())
    found = cache.look_up("n").nrt
    assert found is not None
    assert found.zones is not None
    cpu = found.zones[0].resources[0]
    assert (cpu.capacity, cpu.allocatable, cpu.available) == ("10", "10", "8")


def test_unreserve_goes_by_namespace_and_name_alone() -> None:
    cache = made.over_reserve()
    cache.reserve("n", made.pod("a"))
    cache.unreserve("n", made.pod("b"))
    cache.unreserve("elsewhere", made.pod("a"))
    assert made.free(cache) == ["8", "8"]
    cache.unreserve("n", made.pod("a", requests={}, uid="another"))
    assert made.free(cache) == ["10", "10"]


def test_binding_or_deleting_a_pod_releases_nothing() -> None:
    cache = made.over_reserve()
    cache.reserve("n", made.pod())
    cache.post_bind("n", made.pod())
    cache.pod_gone(made.pod())
    assert made.free(cache) == ["8", "8"]


def test_another_report_keeps_what_is_reserved() -> None:
    cache = made.over_reserve()
    cache.reserve("n", made.pod())
    assert made.free(cache) == ["8", "8"]
    cache.ledger.put(ledger.entry(made.report(zones=[{"cpu": "5"}])))
    assert made.free(cache) == ["3"]


def test_a_node_without_a_report_takes_every_pod_and_remembers_none() -> None:
    cache = made.over_reserve()
    cache.reserve("m", made.pod())
    assert cache.look_up("m") == Lookup()
    assert cache.placement("m") is None


def test_a_refused_node_stays_as_it_is_and_waits_for_a_round() -> None:
    cache = made.over_reserve()
    cache.rejected("n")
    cache.rejected("unheard-of")
    cache.reserve("n", made.pod())
    assert cache.desynced() == Desynced(("n", "unheard-of"), ())
    assert made.free(cache) == ["8", "8"]


@pytest.mark.parametrize("gone", [False, True], ids=["seen", "gone"])
def test_a_foreign_pod_closes_its_node(gone: bool) -> None:
    cache, foreign = made.over_reserve(made.report("n"), made.report("m")), made.pod(scheduler="another")
    (cache.pod_gone if gone else cache.pod_seen)(foreign)
    assert cache.look_up("n") == Lookup(fresh=False)
    assert cache.look_up("m").fresh
    assert cache.desynced() == Desynced(("n",), ())


def test_foreign_pods_on_a_node_without_a_report_leave_it_open() -> None:
    cache = made.over_reserve(made.report("m"))
    cache.pod_seen(made.pod(scheduler="another"))
    assert cache.look_up("n") == Lookup()
    assert cache.desynced() == Desynced()


def test_without_detection_no_pod_is_foreign() -> None:
    cache = made.over_reserve(rules=Rules(detect=ForeignPodsDetect.NONE))
    cache.pod_seen(made.pod(scheduler="another"))
    assert cache.look_up("n").fresh


def test_which_devices_make_a_pod_foreign_is_up_to_the_cached_report() -> None:
    rules = Rules(detect=ForeignPodsDetect.ONLY_EXCLUSIVE)
    cache = made.over_reserve(made.report("n"), made.report("m", zones=[{made.NIC: "1"}]), rules=rules)
    for node in ("n", "m"):
        cache.pod_seen(made.pod(node=node, requests={made.NIC: "1"}, guaranteed=False))
    assert cache.desynced() == Desynced(("m",), ())
