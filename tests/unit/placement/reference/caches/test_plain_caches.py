"""Passthrough and DiscardReserved: the latest report, and a node that is closed while a pod is on its way there."""

import pytest

from numalign.placement.reference.caches.cache import Cache, Lookup
from numalign.placement.reference.caches.discardreserved import DiscardReserved
from numalign.placement.reference.caches.passthrough import Passthrough
from tests.unit.placement.reference.caches import made

BOTH = pytest.mark.parametrize("kind", [Passthrough, DiscardReserved])


@BOTH
def test_a_look_up_is_the_latest_report(kind: type[Passthrough]) -> None:
    cache, newer = kind([made.report()]), made.report(zones=[{"cpu": "3"}])
    assert cache.look_up("n") == Lookup(made.report())
    cache.nrt_changed(newer)
    assert cache.look_up("n") == Lookup(newer)


@BOTH
def test_a_late_report_counts_at_once_and_a_deleted_one_no_more(kind: type[Passthrough]) -> None:
    cache = kind()
    assert cache.look_up("n") == Lookup()
    cache.nrt_added(made.report())
    assert cache.look_up("n").nrt == made.report()
    cache.nrt_gone("n")
    cache.nrt_gone("n")
    assert cache.look_up("n") == Lookup()


@BOTH
def test_nothing_else_makes_a_difference(kind: type[Passthrough]) -> None:
    cache = kind([made.report()])
    cache.rejected("n")
    cache.pod_seen(made.pod(scheduler="another"))
    cache.pod_gone(made.pod(scheduler="another"))
    assert cache.resync({}, [], now=0.0) == ()
    assert cache.look_up("n") == Lookup(made.report())
    assert (cache.due(), cache.placement("n")) == (None, None)


def test_passthrough_takes_no_notice_of_our_own_pods() -> None:
    cache = Passthrough([made.report()])
    cache.reserve("n", made.pod())
    assert cache.look_up("n") == Lookup(made.report())


@pytest.mark.parametrize("end", [DiscardReserved.unreserve, DiscardReserved.post_bind])
def test_a_node_is_closed_until_the_last_pod_has_arrived_or_turned_back(end: object) -> None:
    cache, first, second = DiscardReserved([made.report()]), made.pod("a"), made.pod("b")
    cache.reserve("n", first)
    cache.reserve("n", second)
    DiscardReserved.unreserve(cache, "n", first)
    assert cache.look_up("n") == Lookup(fresh=False)
    assert callable(end)
    end(cache, "n", second)
    assert cache.look_up("n") == Lookup(made.report())


def test_a_closed_node_needs_no_report_and_leaves_the_others_open() -> None:
    cache = DiscardReserved([made.report("m")])
    cache.reserve("n", made.pod())
    assert not cache.look_up("n").fresh
    assert cache.look_up("m").fresh


def test_releasing_a_pod_that_was_never_reserved_is_harmless() -> None:
    cache = DiscardReserved([made.report()])
    cache.unreserve("n", made.pod())
    cache.post_bind("elsewhere", made.pod())
    assert cache.look_up("n").fresh


def test_a_cache_that_knows_nothing_forbids_nothing() -> None:
    assert Cache().look_up("n") == Lookup(nrt=None, fresh=True, generation=0)
