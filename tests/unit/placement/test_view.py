"""Views are plain data about one moment; later decisions do not change them."""

from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen
from numalign.placement.view import Share, Total
from tests.placing import views
from tests.unit.placement.test_engine import decided, engine, node, pod

GIB = 1 << 30


def test_a_view_shows_zones_with_every_decision_charged() -> None:
    known = engine("n")
    decided(known, pod("p", cpu=6))
    (seen,) = views(known)
    assert seen.zones == {
        0: {"cpu": Share(8, 2), "memory": Share(32 * GIB, 31 * GIB)},
        1: {"cpu": Share(8, 8), "memory": Share(32 * GIB, 32 * GIB)},
    }
    assert (seen.policy, seen.scope, seen.pods) == ("single-numa-node", "container", 1)


def test_node_totals_count_requests() -> None:
    known = engine("n")
    decided(known, pod("p", cpu=6))
    assert views(known)[0].totals["cpu"] == Total(16_000, 6_000)


def test_a_node_without_a_report_has_totals_only() -> None:
    known = Engine()
    known.apply(NodeSeen(node()))
    (seen,) = views(known)
    assert (seen.policy, seen.zones, seen.totals["cpu"].offered) == (None, {}, 16_000)


def test_a_view_does_not_change_afterwards() -> None:
    known = engine("n")
    before = views(known)
    decided(known, pod("p", cpu=6))
    assert before[0].zones[0]["cpu"].free == 8
    assert [each.name for each in views(known)] == ["n"]
