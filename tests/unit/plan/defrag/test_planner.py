"""A plan moves only pods that may move, to places where they certainly are admitted, and proves what is impossible."""

from __future__ import annotations

from typing import Any, cast

import pytest
from msgspec import structs

from numalign.api.decode import yamltext
from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.api.objects.node import Taint
from numalign.placement.engine import Engine
from numalign.placement.settings import Settings
from numalign.plan.defrag import movable
from numalign.plan.defrag.messages import DefragPlan
from numalign.plan.defrag.planner import Wanted
from numalign.plan.defrag.rowstates import RowState, RowStates
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.snapshot.restore import Restored
from tests.unit.plan.defrag.towns import DIRECT, Tenant, planned, pod, town, wanted_pods

NODES = ("a", "b")
CROWDED = (Tenant("left", "a", 4), Tenant("gap", "a", 4, ended=True), Tenant("right", "a", 4))
"""Node a has a pod in either zone, so that no zone of it is whole."""


def moves(plan: DefragPlan) -> list[tuple[str, str, str]]:
    return [(each.pod.split("/")[1], each.source, each.lands.node) for step in plan.steps for each in step.pods]


def test_the_pod_in_the_way_moves_to_where_it_fits() -> None:
    plan = planned(town(NODES, [*CROWDED, Tenant("other", "b", 2, owner="")]), wanted_pods(2, 8))
    assert plan.verdict == "found"
    assert moves(plan) in ([("left", "a", "b")], [("right", "a", "b")])
    (step,) = plan.steps
    assert step.pods[0].lands.containers[0].zones == ((0,),)
    assert step.because == "a has room for 1 of the pods then"
    assert (plan.gain.before, plan.gain.after, plan.cost.pods, plan.cost.at_least) == (1, 2, 1, 1)
    assert {each.node for each in plan.lands} == {"a", "b"}
    assert yamltext.documents(encode(plan).decode(), "plan")


def test_a_pod_may_move_to_the_other_zone_of_its_node() -> None:
    plan = planned(town(("a",), CROWDED), wanted_pods(1, 8))
    assert plan.verdict == "found"
    assert [(source, lands) for _, source, lands in moves(plan)] == [("a", "a")]


def test_nothing_moves_where_the_goal_is_there() -> None:
    plan = planned(town(NODES, CROWDED), wanted_pods(2, 8))
    assert (plan.verdict, plan.steps) == ("nothing-to-do", ())


def test_more_than_all_nodes_have_free_is_impossible() -> None:
    plan = planned(town(NODES, CROWDED), wanted_pods(4, 8))
    assert plan.verdict == "impossible"
    assert plan.why == "all nodes together have 24 of cpu free; 32 are wanted"


def test_more_than_rows_have_without_all_pods_is_impossible() -> None:
    plan = planned(town(NODES, CROWDED), wanted_pods(2, 9))
    assert (plan.verdict, plan.why) == ("impossible", "without all pods that may move, 0 such pods fit; 2 are wanted")


def test_where_every_sequence_of_moves_was_tried_that_is_said() -> None:
    """Three pods of 6 CPUs leave one whole zone of four, however they are moved."""
    tenants = [Tenant("one", "a", 6), Tenant("two", "a", 6), Tenant("three", "b", 6)]
    plan = planned(town(NODES, tenants), wanted_pods(2, 7))
    assert (plan.verdict, plan.why) == ("impossible", "every sequence of moves was tried")


@pytest.mark.parametrize(
    "more, why",
    [
        ({"owner": "DaemonSet"}, "belongs to its node (a DaemonSet or a static pod)"),
        ({"owner": ""}, "has no controller that would create it again"),
        ({"priority": 2_000_001_000}, "is critical for the system"),
        ({"priority": 7}, "has a priority above 0"),
        (
            {"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}},
            "is protected by the annotation cluster-autoscaler.kubernetes.io/safe-to-evict",
        ),
        (
            {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}},
            "is protected by the annotation descheduler.alpha.kubernetes.io/prefer-no-eviction",
        ),
        ({"labels": {"app": "guarded"}}, "a PodDisruptionBudget does not allow its eviction now"),
    ],
)
def test_pods_that_may_not_move_stay_and_the_plan_says_why(more: dict[str, Any], why: str) -> None:
    tenants = [structs.replace(each, **({} if each.ended else more)) for each in CROWDED]
    plan = planned(town(("a",), tenants, allowed={"guarded": 0}), wanted_pods(1, 8))
    assert (plan.verdict, plan.steps) == ("impossible", ())
    assert [(each.why, each.pods) for each in plan.kept] == [(why, 2)]


def test_a_pod_whose_annotations_were_edited_until_they_make_no_sense_stays() -> None:
    found = town(("a",), CROWDED)()
    for each in found.world.pods.values():
        cast(Any, each.pod.metadata.annotations)["numalign.io/numa-topology-spec"] = '{"polcy": "None"}'
    assert set(movable.read(found, 0).why_kept.values()) == {"has annotations for which no node takes it again"}


def test_a_higher_priority_is_moved_where_that_is_asked_for() -> None:
    tenants = [structs.replace(each, priority=7) for each in CROWDED]
    assert planned(town(("a",), tenants), wanted_pods(1, 8, most_priority=7)).verdict == "found"


def test_of_equal_moves_the_less_important_pod_is_chosen() -> None:
    left, gap, right = CROWDED
    plan = planned(town(NODES, [structs.replace(left, priority=5), gap, right]), wanted_pods(3, 8, most_priority=9))
    assert [pod for pod, _, _ in moves(plan)] == ["right"]


def test_a_step_names_the_budgets_that_have_to_allow_it() -> None:
    tenants = [structs.replace(each, labels={"app": "guarded"}) for each in CROWDED]
    plan = planned(town(NODES, tenants, allowed={"guarded": 1}), wanted_pods(3, 8))
    assert [each.budgets for step in plan.steps for each in step.pods] == [("default/guarded",)]
    assert any("default/guarded" in each for each in plan.invalidated_by)


@pytest.mark.parametrize(
    "more",
    [
        {"labels": {"scheduling.x-k8s.io/pod-group": "gang"}},
        {"owner": "PyTorchJob", "group": "gang"},
        {"owner": "Job", "group": "gang", "annotations": {"batch.kubernetes.io/job-completion-index": "0"}},
    ],
)
def test_members_of_a_group_move_together(more: dict[str, Any]) -> None:
    tenants = [structs.replace(each, **({} if each.ended else more)) for each in CROWDED]
    plan = planned(town(NODES, [*tenants, Tenant("other", "b", 2, owner="")]), wanted_pods(2, 8))
    (step,) = plan.steps
    assert {each.pod for each in step.pods} == {"default/left", "default/right"}
    assert "gang" in step.group
    assert (plan.cost.pods, plan.cost.groups) == (2, 1)


def test_a_group_of_which_one_pod_stays_stays() -> None:
    more: dict[str, Any] = {"owner": "PyTorchJob", "group": "gang"}
    left, gap, right = CROWDED
    protected = structs.replace(left, **more, annotations={"karpenter.sh/do-not-disrupt": "true"})
    plan = planned(town(NODES, [protected, gap, structs.replace(right, **more)]), wanted_pods(3, 8))
    assert plan.verdict == "impossible"
    assert "its group stays: is protected by the annotation karpenter.sh/do-not-disrupt" in {
        each.why for each in plan.kept
    }


def test_pods_do_not_land_where_filters_refuse_them() -> None:
    def tainted() -> Restored:
        found = town(NODES, [*CROWDED, Tenant("other", "b", 2)])()
        node = found.cluster.node_named("b")
        assert node is not None
        spec = structs.replace(node.spec, taints=(Taint(key="reserved", effect="NoSchedule"),))
        found.cluster.node(structs.replace(node, spec=spec))
        return found

    plan = planned(tainted, wanted_pods(1, 8))
    assert [lands for _, _, lands in moves(plan)] == ["a"]


def test_zones_become_free() -> None:
    plan = planned(town(NODES, CROWDED), Wanted(text="3 zones", zones=3))
    assert (plan.gain.before, plan.gain.after, plan.cost.pods) == (2, 3, 1)
    assert plan.steps[0].because == "a has a free zone then"
    assert planned(town(NODES, CROWDED), Wanted(text="4 zones", zones=4)).verdict == "impossible"


def test_a_node_becomes_empty_but_for_pods_that_belong_to_it() -> None:
    plan = planned(town(NODES, [*CROWDED, Tenant("agent", "a", 1, owner="DaemonSet")]), Wanted(text="", node="a"))
    assert plan.verdict == "found"
    assert sorted(moves(plan)) == [("left", "a", "b"), ("right", "a", "b")]
    assert {step.because for step in plan.steps} == {"a is to be empty"}


def test_a_node_with_a_pod_that_stays_cannot_become_empty() -> None:
    plan = planned(town(NODES, [Tenant("alone", "a", 1, owner="")]), Wanted(text="", node="a"))
    assert plan.why == "1 pods of the node stay; the first one has no controller that would create it again"


def test_a_pod_moves_first_to_make_room_for_another_one() -> None:
    """The pod of 5 CPUs fits nowhere before the pod of 4 CPUs has left the zone that it is to get."""
    tenants = [
        Tenant("big", "a", 5),
        Tenant("fixed", "a", 4, owner=""),
        Tenant("first", "b", 4),
        Tenant("low", "b", 1, owner=""),
        Tenant("high", "b", 7, owner=""),
    ]
    plan = planned(town(NODES, tenants), wanted_pods(1, 8))
    assert moves(plan) == [("first", "b", "a"), ("big", "a", "b")]
    assert [step.needs for step in plan.steps] == [(), (1,)]
    assert plan.steps[0].because == "makes room for the pods of step 2"
    assert plan.cost.at_least == 2


def test_a_node_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadObject, match="is not there; write the name of a node"):
        planned(town(NODES, CROWDED), Wanted(text="", node="nowhere"))


def test_the_reference_flavour_is_refused() -> None:
    def cluster() -> Restored:
        found = town(NODES, CROWDED)()
        return structs.replace(found, cluster=Cluster(Engine(Settings(flavour="reference")), found.world))

    with pytest.raises(BadObject, match="predicts no zones, so that moves cannot be planned"):
        planned(cluster, wanted_pods(1, 8))


def test_the_same_cluster_gives_the_same_plan() -> None:
    found = [planned(town(NODES, [*CROWDED, Tenant("other", "b", 2)]), wanted_pods(2, 8)) for _ in range(2)]
    assert found[0] == found[1]
    other = planned(town(NODES, CROWDED), wanted_pods(2, 8))
    assert other.snapshot != found[0].snapshot


# Nodes in direct mode


def test_a_zone_of_which_decisions_count_nothing_is_free() -> None:
    cluster = town(("a",), [Tenant("left", "a", 4)], DIRECT)
    plan = planned(cluster, Wanted(text="1 free zone", zones=1))
    assert (plan.verdict, plan.gain.before) == ("nothing-to-do", 1)


@pytest.mark.parametrize("wanted", [Wanted(text="1 free zone", zones=1), wanted_pods(1, 8)])
def test_a_pod_moves_to_the_other_zone_of_its_node_in_direct_mode(wanted: Wanted) -> None:
    plan = planned(town(("a",), CROWDED, DIRECT), wanted)
    assert (plan.verdict, plan.cost.pods, plan.cost.at_least) == ("found", 1, 1)
    (step,) = plan.steps
    assert [(source, lands) for _, source, lands in moves(plan)] == [("a", "a")]
    assert step.pods[0].lands.containers[0].zones in (((0,),), ((1,),))
    assert step.pods[0].lands.certainty == "certain"


def test_a_pod_stays_whose_successor_would_come_to_another_zone_while_it_ends() -> None:
    """Beside the left pod, its successor would go to the same zone; the right one's goes to the other in any case."""
    plan = planned(town(("a",), CROWDED, DIRECT), wanted_pods(1, 8))
    assert moves(plan) == [("right", "a", "a")]
    left, gap, right = CROWDED
    alone = planned(town(("a",), (left, gap, structs.replace(right, owner="")), DIRECT), wanted_pods(1, 8))
    assert (alone.verdict, alone.steps) == ("not-found", ()), "nothing is proven: the pod may end in time"


def test_a_pod_that_landed_in_direct_mode_keeps_its_zone_when_others_leave() -> None:
    """Made anew, its decision would be for zone 0."""
    cluster = town(("a",), [Tenant("left", "a", 5), Tenant("right", "a", 5)], DIRECT)
    made = cluster()
    states, row = RowStates(made), made.engine.rows["a"]
    five, eight = states.add_kind(pod(Tenant("five", "", 5))), states.add_kind(pod(Tenant("eight", "", 8)))
    landed = states.takes(row, RowState(frozenset({"right"})), five)
    assert landed is not None
    assert states.free_zones(row, landed) == 0
    alone = landed.without("left")
    assert (states.free_zones(row, alone), states.counted(row, alone, eight)) == (1, 1)
    first = states.takes(row, RowState(frozenset({"left", "right"})), five)
    assert first is not None
    assert states.looks(row, alone) != states.looks(row, first)
