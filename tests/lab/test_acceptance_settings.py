"""A few of the acceptance scenarios on real kubelets, with our scheduler as the only one and through the extender."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.embedded.acceptance import test_matrix
from tests.embedded.acceptance.site import Site
from tests.embedded.acceptance.test_accounting import (  # noqa: F401
    test_a_pod_waits_for_a_zone_and_runs_in_the_one_that_becomes_free,
)
from tests.embedded.acceptance.test_bursts import test_a_burst_of_a_pod_per_zone_runs  # noqa: F401
from tests.embedded.acceptance.test_matrix import Refused, Row, rows
from tests.embedded.acceptance.test_removal import (  # noqa: F401
    crowd,
    test_exactly_the_pod_is_evicted_that_makes_room_in_a_zone,
    test_without_the_scheduler_pods_run_on_and_new_ones_wait_until_it_is_back,
)
from tests.embedded.acceptance.test_waiting import (  # noqa: F401
    test_of_a_daemon_set_exactly_the_pod_whose_node_has_a_zone_runs,
)
from tests.lab import acceptance
from tests.lab.labs import Labs

FITS, WAITS = ("47575", "47577", "54024"), ("85007", "54017")


@pytest.fixture(scope="module", params=["extender", "only"])
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
