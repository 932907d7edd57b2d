"""One node as the ledger has it."""

from __future__ import annotations

from numalign.placement.engine import Engine
from numalign.placement.explain import nodeview
from numalign.placement.explain.nodeview import Cell
from numalign.placement.settings import Settings
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import GPU, Servers, on, trainer
from tests.unit.scheduler.towns import Town


def test_zones_have_what_is_free_and_pods_what_they_hold() -> None:
    town = Town(tenants=[("a", 3, 10, True), ("a", 2, 20, False)])
    found = nodeview.of(town.cluster.engine, "a")
    assert found is not None
    assert found.resources[GPU] == (Cell((0,), 4, 1, size=4), Cell((1,), 4, 2, size=4))
    assert [(each.name, each.is_pending, each.zones) for each in found.tenants] == [
        ("default/p0", False, (0,)),
        ("default/p1", True, (1,)),
    ]
    assert found.holders(GPU, (0,)) == {"uid-p0": 3}
    assert found.holders("cpu", (0, 1)) == {"uid-p0": 10, "uid-p1": 20}


def test_a_pod_that_was_deleted_is_there_until_it_has_surely_ended() -> None:
    town = Town(tenants=[("a", 3, 10, True)])
    town.cluster.pod_gone(on(trainer("p0", gpus=3, cpu="10"), "a", phase="Running"), 2.0)
    found = nodeview.of(town.cluster.engine, "a")
    assert found is not None
    assert [each.is_leaving for each in found.tenants] == [True]
    town.cluster.tick(1000.0)
    gone = nodeview.of(town.cluster.engine, "a")
    assert gone is not None
    assert gone.tenants == ()


def test_nothing_is_known_of_nodes_without_a_report() -> None:
    cluster = Servers("a", reports=False).cluster
    assert nodeview.of(cluster.engine, "a") is None
    assert nodeview.of(cluster.engine, "nowhere") is None


def test_the_reference_flavour_keeps_no_ledger() -> None:
    assert nodeview.of(Engine(Settings(flavour="reference")), servers.node("a").metadata.name) is None
