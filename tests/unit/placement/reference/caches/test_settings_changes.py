"""A node whose Topology Manager settings change is refreshed at the next round, without a fingerprint."""

from collections.abc import Mapping

import pytest
from msgspec import structs

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.placement.reference.caches.overreserve import Desynced
from numalign.placement.reference.caches.rules import Rules
from tests.unit.placement.reference.caches import made

POD_SCOPE = {made.SCOPE: "pod"}
OLD = structs.replace(made.report(), attributes=(), topology_policies=("SingleNUMANodeContainerLevel",))

CHANGES = {
    "scope": (made.report(), made.report(attributes=POD_SCOPE), True),
    "policy": (made.report(), made.report(attributes={made.POLICY: "restricted"}), True),
    "limit of zones": (made.report(), made.report(attributes={"topologyManagerMaxNUMANodes": "16"}), True),
    "deprecated policies": (OLD, structs.replace(OLD, topology_policies=("RestrictedPodLevel",)), True),
    "from policies to attributes": (OLD, made.report(), False),
    "an attribute of somebody else": (made.report(), made.report(attributes={"a": "b"}), False),
    "an invalid value": (made.report(), made.report(attributes={made.SCOPE: "Pod"}), False),
    "amounts": (made.report(), made.report(zones=[{"cpu": "1"}]), False),
}


@pytest.mark.parametrize("old, new, marks", CHANGES.values(), ids=CHANGES)
def test_only_the_settings_count(old: NodeResourceTopology, new: NodeResourceTopology, marks: bool) -> None:
    cache = made.over_reserve(old)
    cache.nrt_changed(new)
    assert cache.desynced() == Desynced((), ("n",) if marks else ())


def test_it_is_compared_with_the_cached_report_until_that_is_replaced() -> None:
    cache, new = made.over_reserve(), made.report(attributes=POD_SCOPE)
    cache.nrt_changed(new)
    cache.nrt_changed(new)
    assert made.round_of(cache, [new], []) == ("n",)
    cache.nrt_changed(new)
    assert cache.desynced() == Desynced()


def test_the_refresh_asks_for_no_fingerprint_and_clears_everything() -> None:
    cache, new = made.over_reserve(), made.report(attributes=POD_SCOPE, zones=[{"cpu": "7"}])
    cache.reserve("n", made.pod("deleted-since"))
    cache.has_foreign_pods("n")
    cache.nrt_changed(new)
    assert made.round_of(cache, [new], []) == ("n",)
    assert (cache.desynced(), made.free(cache), cache.generation) == (Desynced(), ["7"], 1)


@pytest.mark.parametrize("reports", [{}, {"m": made.report("m")}], ids=["nothing", "another node"])
def test_the_mark_stays_while_the_report_cannot_be_read(reports: Mapping[str, NodeResourceTopology]) -> None:
    cache = made.over_reserve()
    cache.nrt_changed(made.report(attributes=POD_SCOPE))
    assert cache.resync(reports, [], now=0.0) == ()
    assert cache.desynced() == Desynced((), ("n",))


def test_an_added_report_is_not_compared_before_the_next_round() -> None:
    cache, new = made.over_reserve(), made.report(attributes=POD_SCOPE)
    cache.nrt_added(new)
    assert cache.desynced() == Desynced()
    assert made.round_of(cache, [new], []) == ("n",)


def test_with_scope_only_resources_nothing_of_this_happens() -> None:
    cache, new = made.over_reserve(rules=Rules(follows_settings=False)), made.report(attributes=POD_SCOPE)
    cache.nrt_changed(new)
    assert made.round_of(cache, [new], []) == ()
    assert cache.look_up("n").nrt == made.report()
