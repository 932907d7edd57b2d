"""Which node a pod goes to: all rules agree, the best score wins, and only a node that is certain to take it."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.api.objects.node import Taint
from numalign.placement.decisions import Code
from numalign.scheduler.choose import scoring
from numalign.scheduler.choose.choose import Chosen, NoNode
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers, trainer


def test_pods_fill_zones_until_none_has_room_for_another() -> None:
    cluster = Servers("a", "b")
    nodes = [cluster.place(trainer(f"p{n}", gpus=3)) for n in range(5)]
    assert sorted(nodes) == ["", "a", "a", "b", "b"]


def test_what_was_chosen_is_charged_and_what_was_forgotten_is_free_again() -> None:
    cluster = Servers("a")
    first, second = trainer("p0", gpus=4), trainer("p1", gpus=4)
    assert cluster.place(first) == cluster.place(second) == "a"
    assert cluster.place(trainer("p2", gpus=4)) == ""
    cluster.cluster.forget(first.metadata.uid)
    assert cluster.place(trainer("p2", gpus=4)) == "a"


def test_a_pod_that_is_chosen_twice_is_charged_once() -> None:
    cluster = Servers("a")
    for _ in range(5):
        assert isinstance(cluster.choose(trainer("p", gpus=4)), Chosen)


@pytest.mark.parametrize("change", [{"cordoned": True}, {"taints": (Taint(key="a", effect="NoSchedule"),)}])
def test_a_rule_that_refuses_a_node_keeps_the_pod_off(change: dict[str, object]) -> None:
    cluster = Servers("a", "b")
    cluster.cluster.node(servers.node("a", **change))  # type: ignore[arg-type]
    assert {cluster.place(trainer(f"p{n}")) for n in range(4)} == {"b"}


def test_scores_of_all_rules_count() -> None:
    """The empty node is better, by what is left of it."""
    cluster = Servers("a", "b")
    cluster.place(trainer("p0"), seed=1)
    taken = cluster.cluster.world.pods["uid-p0"].row
    other = next(name for name, row in cluster.cluster.world.rows.items() if row != taken)
    assert {cluster.choose(trainer("p1"), seed).decision.node for seed in range(8)} == {other}  # type: ignore[union-attr]


def test_equal_nodes_are_chosen_among_by_chance() -> None:
    cluster = Servers("a", "b", "c")
    found = {cluster.choose(trainer("p"), seed).decision.node for seed in range(40)}  # type: ignore[union-attr]
    assert found == {"a", "b", "c"}


def test_a_nominated_node_is_tried_first() -> None:
    cluster = Servers("a", "b", "c")
    found = {cluster.choose(trainer("p"), seed, nominated="b") for seed in range(10)}
    assert {each.decision.node for each in found if isinstance(each, Chosen)} == {"b"}


def test_room_that_is_promised_to_another_is_left_to_it() -> None:
    cluster = Servers("a")
    promised = {cluster.cluster.world.rows["a"]: (trainer("preemptor", gpus=8),)}
    found = cluster.choose(trainer("p", gpus=1), promised=promised)
    assert isinstance(found, NoNode)
    assert [refusal.reasons for _, refusal, _ in found.tallies()] == [(f"Insufficient {servers.GPU}",)]


def test_nodes_that_turned_the_shape_away_are_left_out_and_told() -> None:
    cluster = Servers("a", "b")
    row = cluster.cluster.world.rows["a"]
    assert {cluster.choose(trainer("p"), seed, kept_off={row: "why"}).decision.node for seed in range(8)} == {"b"}  # type: ignore[union-attr]


def test_an_aligned_pod_goes_to_a_node_without_report_only_when_no_other_takes_it() -> None:
    cluster = Servers("a")
    cluster.cluster.node(servers.node("unreported"))
    assert [cluster.place(trainer(f"p{n}", gpus=4)) for n in range(3)] == ["a", "a", ""]
    cluster.cluster.graces_ended(60.0)
    assert cluster.place(trainer("late", gpus=4)) == "unreported"


def test_where_only_zones_are_in_the_way_they_are_named() -> None:
    cluster = Servers("a", "b")
    for n in range(4):
        cluster.place(trainer(f"p{n}", gpus=3))
    found = cluster.choose(trainer("late", gpus=2))
    assert isinstance(found, NoNode)
    assert sorted(found.zones.tolist()) == sorted(cluster.cluster.world.rows.values())
    assert set(cluster.cluster.engine.survey(cluster.cluster.engine.shape(trainer("late", gpus=2)))[found.zones]) == {
        Code.DOES_NOT_FIT
    }


def test_with_a_percentage_only_so_many_nodes_are_scored() -> None:
    cluster = Servers(*(f"n{n}" for n in range(150)), reports=False)
    cluster.cluster.graces_ended(60.0)
    cluster.profile = structs.replace(cluster.profile, percentage=10)
    found = cluster.choose(trainer("p"))
    assert isinstance(found, Chosen)
    assert (found.looked_at, found.fitting) == (100, 100)


def test_with_a_percentage_the_next_search_begins_where_the_last_one_ended() -> None:
    cluster = Servers(*(f"n{n}" for n in range(150)), reports=False)
    cluster.cluster.graces_ended(60.0)
    cluster.profile = structs.replace(cluster.profile, percentage=10)
    for gone in ("n3", "n120"):
        cluster.cluster.node_gone(gone)
    # Of nodes that refuse it is enough to know that.
    cluster.cluster.node(servers.node("n20", cordoned=True))
    start, looked_at, nodes = 0, [], set()
    for number in range(12):
        found = cluster.choose(trainer(f"p{number}"), number, start=start % 148)
        assert isinstance(found, Chosen)
        start += found.looked_at
        looked_at.append(found.looked_at)
        nodes.add(found.decision.node)
    # 148 nodes, one of which is cordoned: whoever passes it looks at one more.
    assert looked_at[:3] == [101, 101, 100]
    assert any(int(str(node)[1:]) > 101 for node in nodes)


@pytest.mark.parametrize(
    "nodes, sought",
    {50: 50, 100: 100, 250: 120, 500: 230, 1000: 420, 2000: 680, 5000: 500, 6000: 300, 15000: 750}.items(),
)
def test_how_many_nodes_are_enough_when_it_adapts(nodes: int, sought: int) -> None:
    assert scoring.sought(nodes, 0) == sought
    assert scoring.sought(nodes, 100) == nodes


def zoned() -> Servers:
    """One zone of `a` has no CPU left, the other three GPUs and a pod that is about to leave."""
    cluster = Servers("a")
    for name, cpu in (("full", "94"), ("leaving", "4")):
        pod = trainer(name, cpu=cpu)
        assert cluster.place(pod) == "a"
        cluster.cluster.pod(servers.on(pod, "a", phase="Running"), 0.0)
    return cluster


@pytest.mark.parametrize("wanted, kept", [(4, True), (3, False)])
def test_a_zone_that_a_nominated_pod_needs_is_left_to_it(wanted: int, kept: bool) -> None:
    cluster = zoned()
    row = cluster.cluster.world.rows["a"]
    promised, leaving = {row: (trainer("nominated", gpus=wanted),)}, {row: ("uid-leaving",)}
    found = cluster.choose(trainer("p", gpus=1), promised=promised, leaving=leaving)
    assert isinstance(found, NoNode) is kept
    if isinstance(found, NoNode):
        assert (found.promised.tolist(), found.zones.tolist()) == ([row], [])


def test_the_node_that_was_picked_for_a_pod_is_tried_alone() -> None:
    cluster = Servers("a", "b", "c")
    for seed in range(6):
        found = cluster.choose(trainer(f"p{seed}"), seed, nominated="b")
        assert isinstance(found, Chosen)
        assert (found.decision.node, found.fitting) == ("b", 1)


def test_and_if_it_does_not_do_all_others_are() -> None:
    cluster = Servers("a", "b")
    cluster.cluster.node(servers.node("b", cordoned=True))
    found = cluster.choose(trainer("p"), nominated="b")
    assert isinstance(found, Chosen)
    assert found.decision.node == "a"
