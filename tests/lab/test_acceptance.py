"""A third of the acceptance scenarios, on real kubelets: at least one for every kind of behaviour.

The scenarios themselves, and all others, are in tests/embedded/acceptance. One lab has our scheduler beside a
kube-scheduler that asks our extender, which are two of the settings; in another one our scheduler is the only one.
test_acceptance_settings.py plays a few of them in the settings that are slow here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.embedded.acceptance import site as sites
from tests.embedded.acceptance import test_accounting, test_bursts, test_matrix, test_waiting
from tests.embedded.acceptance.site import Setting, Site
from tests.embedded.acceptance.test_accounting import (  # noqa: F401
    test_a_guaranteed_pod_waits_while_a_burstable_one_has_the_node,
    test_a_pod_waits_for_a_zone_and_runs_in_the_one_that_becomes_free,
    test_fractions_of_cpus_need_no_zone_as_for_the_kubelet,
    test_one_container_with_equal_requests_and_limits_does_not_make_a_pod_guaranteed,
    test_the_overhead_of_a_runtime_class_is_not_taken_from_a_zone,
)
from tests.embedded.acceptance.test_bursts import (  # noqa: F401
    test_a_burst_of_a_pod_per_zone_runs,
    test_the_pod_that_waits_for_such_a_zone_runs_once_another_ends,
)
from tests.embedded.acceptance.test_matrix import Refused, Row, rows
from tests.embedded.acceptance.test_placement import (  # noqa: F401
    test_a_deployment_moves_only_when_its_node_has_no_zone_for_it,
    test_every_zone_of_every_node_is_used,
    test_two_replicas_that_fill_a_zone_each_share_a_node,
)
from tests.embedded.acceptance.test_removal import (  # noqa: F401
    Crowd,
    crowd,
    test_exactly_the_pod_is_evicted_that_makes_room_in_a_zone,
    test_nothing_is_evicted_where_the_node_would_have_room_but_no_zone,
    test_without_the_scheduler_pods_run_on_and_new_ones_wait_until_it_is_back,
)
from tests.embedded.acceptance.test_waiting import (  # noqa: F401
    test_of_a_daemon_set_exactly_the_pod_whose_node_has_a_zone_runs,
    test_of_one_replica_more_than_zones_all_but_one_run_once_they_are_small_enough,
)
from tests.lab import acceptance
from tests.lab.labs import Labs

FITS = ("50158", "50157", "47575", "47577", "85003", "54021", "85006", "54016", "55431", "54024")
WAITS = ("85007", "85011", "74257", "54017", "54022")


def slow(setting: Setting) -> Any:
    return pytest.param(setting, marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=["second", slow("extender"), slow("only")])
def cluster(request: pytest.FixtureRequest, labs: Labs) -> Iterator[Site]:
    with acceptance.running(labs, request.param) as site:
        yield site


@pytest.fixture
def site(cluster: Site) -> Iterator[Site]:
    """Without pods, before and after."""
    yield cluster
    cluster.clear()


@rows([row for row in test_matrix.FITS if row.id in FITS])
def test_the_pod_runs_on_the_only_node_whose_zones_hold_it(site: Site, row: Row) -> None:
    test_matrix.test_the_pod_runs_on_the_only_node_whose_zones_hold_it(site, row)


@rows([row for row in test_matrix.WAITS if row.id in WAITS])
def test_a_pod_that_no_zone_holds_waits_with_the_reason(site: Site, row: Refused) -> None:
    test_matrix.test_a_pod_that_no_zone_holds_waits_with_the_reason(site, row)


def test_a_workload_larger_than_every_free_zone_waits_and_the_scheduler_says_so(site: Site) -> None:
    """48962"""
    test_waiting.test_a_workload_larger_than_every_free_zone_waits_and_the_scheduler_says_so(site, "DaemonSet", 2)


def test_a_burstable_pod_larger_than_a_zone_takes_nothing_from_it(site: Site) -> None:
    """48686"""
    test_accounting.test_a_burstable_pod_larger_than_a_zone_takes_nothing_from_it(site, "Pod")


def test_ephemeral_storage_is_not_taken_from_a_zone(site: Site) -> None:
    """74250"""
    test_accounting.test_ephemeral_storage_is_not_taken_from_a_zone(site, "74250")


@pytest.mark.slow
def test_pods_of_others_that_end_do_not_stall_a_burst(site: Site) -> None:
    """83865"""
    test_bursts.test_pods_of_others_that_end_do_not_stall_a_burst(site, "83865")


@pytest.mark.slow
def test_pods_of_others_of_which_one_container_ends_do_not_stall_a_burst(site: Site) -> None:
    """83867. Containers of an embedded node end together, so it has no such test."""
    inner = sites.spec("100m/256Mi", "100m/256Mi", restartPolicy="Never")
    test_bursts.noise(site, inner, {"numalign.io/lab-seconds": "main-0=0.1"})
    test_bursts.burst(site, 30, "2/256Mi")
    site.all_run("new", 30)


def test_completed_jobs_do_not_stall_a_pod_per_zone(site: Site) -> None:
    """85783"""
    test_bursts.test_completed_jobs_do_not_stall_a_pod_per_zone(site, "85783")


def test_a_full_zone_is_cleared_only_for_a_pod_of_higher_priority(crowd: Crowd) -> None:  # noqa: F811
    """PRE-5"""
    crowd.fill("filler-0", "low", "23/20Gi")
    crowd.fill("filler-1", "low", "23/20Gi")
    before = crowd.uids()
    crowd.create("new", "medium", "23/20Gi")
    assert len(crowd.evicted(before)) == 1
