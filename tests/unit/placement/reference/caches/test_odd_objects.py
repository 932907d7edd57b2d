"""Odd reports and pods never break a cache, and never keep a node from its next good report."""

from typing import Any

import pytest

from numalign.api.decode import decode, structs
from numalign.api.errors import BadObject
from numalign.api.nrt import wire as nrtwire
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches.overreserve import Desynced
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import ForeignPodsDetect
from tests.strategies import hostile
from tests.unit.placement.reference.caches import made

FAST, CAMPAIGN = 150, 5_000
TIERS = pytest.mark.parametrize("count", [FAST, pytest.param(CAMPAIGN, marks=pytest.mark.slow)])
RULES = Rules(detect=ForeignPodsDetect.ONLY_EXCLUSIVE, keeps_records=True)
PODS = [made.pod("a", node="worker-7")]
GOOD = made.signed(made.report("worker-7"), PODS)


def odd_reports(count: int) -> list[NodeResourceTopology]:
    template: dict[str, Any] = decode.PLAIN.decode(structs.encode(GOOD))
    found = []
    for raw in hostile.objects(template, count, seed=7, absurd=hostile.ABSURD):
        try:
            found.append(nrtwire.decode(raw))
        except BadObject:
            continue
    return found


def odd_pods(count: int) -> list[Pod]:
    found = []
    for raw in hostile.objects(hostile.POD, count, seed=8, absurd=hostile.ABSURD):
        try:
            found.append(decode.decode(Pod, raw))
        except BadObject:
            continue
    return found


@TIERS
def test_an_odd_report_is_forgotten_with_the_next_good_one(count: int) -> None:
    for odd in odd_reports(count):
        cache = made.over_reserve(odd, rules=RULES)
        cache.reserve(odd.metadata.name, PODS[0])
        cache.rejected(odd.metadata.name)
        cache.look_up(odd.metadata.name)
        cache.placement(odd.metadata.name)
        cache.resync({odd.metadata.name: odd, "worker-7": GOOD}, PODS, now=0.0)
        cache.rejected("worker-7")
        cache.resync({"worker-7": GOOD}, PODS, now=0.0)
        assert cache.look_up("worker-7").nrt == GOOD


@TIERS
def test_an_odd_pod_holds_up_a_node_no_longer_than_it_is_there(count: int) -> None:
    cache = made.over_reserve(made.report("worker-7"), rules=RULES)
    for odd in odd_pods(count):
        cache.pod_seen(odd)
        cache.reserve("worker-7", odd)
        cache.rejected("worker-7")
        cache.look_up("worker-7")
        cache.resync({"worker-7": GOOD}, [*PODS, odd], now=0.0)
    cache.resync({"worker-7": GOOD}, PODS, now=0.0)
    assert cache.look_up("worker-7").nrt == GOOD
    assert cache.desynced() == Desynced()
