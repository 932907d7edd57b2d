"""Why a pod waits, in the sentence that people know."""

from __future__ import annotations

from typing import Any

import pytest

from numalign.api.objects.node import Taint
from numalign.placement.explain import wording
from numalign.scheduler.choose import messages
from numalign.scheduler.choose.choose import NoNode
from numalign.scheduler.choose.messages import Refusal
from numalign.scheduler.profiles import ZONES
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import Servers, trainer


def refused(cluster: Servers, pod: Any, **more: Any) -> Refusal:
    found = cluster.choose(pod, **more)
    assert isinstance(found, NoNode)
    return messages.refusal(found, pod, cluster.cluster.engine.shape(pod), cluster.cluster.engine)


def busy(*nodes: str) -> Servers:
    """Each node has five GPUs left, of which four are in one zone."""
    cluster = Servers(*nodes)
    for name in nodes:
        cluster.cluster.pod(servers.on(trainer(f"on-{name}", gpus=3), name, phase="Running"), 0.0)
        cluster.cluster.pod(servers.on(trainer(f"beside-{name}", gpus=2), name, phase="Running"), 0.0)
    return cluster


@pytest.mark.parametrize(
    "nodes, counts, sentence",
    [
        (3, {"Insufficient cpu": 3}, "0/3 nodes are available: 3 Insufficient cpu."),
        (
            100,
            {"Insufficient cpu": 9, "Insufficient memory": 10, "Too many pods": 81},
            "0/100 nodes are available: 10 Insufficient memory, 81 Too many pods, 9 Insufficient cpu.",
        ),
        (3, {}, "0/3 nodes are available:"),
        (0, {}, "no nodes available to schedule pods"),
    ],
)
def test_entries_are_sorted_as_text(nodes: int, counts: dict[str, int], sentence: str) -> None:
    assert wording.unavailable(nodes, counts) == sentence


def test_nodes_count_for_the_first_rule_that_refuses_them() -> None:
    cluster = Servers("a", "b", "c")
    cluster.cluster.node(servers.node("a", cordoned=True))
    cluster.cluster.node(servers.node("b", taints=(Taint(key="x", effect="NoSchedule"),)))
    told = refused(cluster, trainer("p", gpus=99))
    assert told.message == (
        "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable. "
        "The pod fits on no node, even when empty: the pod needs 99 nvidia.com/gpu, a node has at most 8."
    )


def test_a_pod_that_is_too_large_for_every_zone_says_so_although_totals_refuse_it_first() -> None:
    told = refused(busy("a", "b"), trainer("p", gpus=8))
    assert told.message == (
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu. The pod fits on no node, even when empty: "
        "container main needs 8 nvidia.com/gpu in one NUMA zone, best zone has 4."
    )


def test_where_one_node_could_take_the_pod_when_empty_nothing_is_said_of_never() -> None:
    pod = trainer("p", gpus=4)
    assert "even when empty" not in refused(busy("a"), pod).message


def test_a_pod_that_waits_for_first_reports_says_so_and_is_woken_by_them() -> None:
    cluster = Servers("a", "b", "c", reports=False)
    cluster.cluster.node(servers.node("c", cordoned=True))
    told = refused(cluster, trainer("p"))
    assert told.message == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) had no topology report yet. "
        "The pod waits for the first topology report of 2 nodes."
    )
    assert told.rejection.zones_of == {"a", "b"}
    assert ZONES in told.rejection.plugins


def test_a_full_node_that_the_pod_is_kept_off_counts_as_full_and_wakes_the_pod_when_that_ends() -> None:
    cluster = Servers("a", "b", "c")
    cluster.cluster.node(servers.node("c", cordoned=True))
    for n in range(4):
        cluster.place(trainer(f"p{n}", gpus=4))
    kept_off = dict.fromkeys(cluster.cluster.world.rows.values(), "why")
    told = refused(cluster, trainer("late", gpus=2), kept_off=kept_off)
    assert told.message == "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient nvidia.com/gpu."
    # Without it, others might be evicted from these two; from the third in no case.
    assert (told.rejection.zones_of, told.rejection.reasons[ZONES]) == ({"a", "b"}, ("why",))


def test_where_zones_are_in_the_way_the_plugin_s_text_is_followed_by_ours() -> None:
    cluster = Servers("a", "b")
    for n in range(4):
        cluster.place(trainer(f"p{n}", gpus=3))
    told = refused(cluster, trainer("late", gpus=2))
    assert told.message == (
        "0/2 nodes are available: 2 cannot align container "
        "(container main needs 2 nvidia.com/gpu in one NUMA zone, best zone has 1)."
    )
    assert told.rejection.zones_of == {"a", "b"}
    assert list(told.rejection.reasons) == ["NodeResourceTopologyMatch"]


def test_a_rule_that_refuses_the_pod_as_such_speaks_alone() -> None:
    pod = waitingpods.pod("p", {"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]})
    told = refused(Servers("a", "b"), pod)
    assert told.message.startswith("0/2 nodes are available: pod uses resource claims, which this scheduler")
    assert list(told.rejection.reasons) == ["DynamicResources"]


def test_without_nodes_there_is_nobody_to_refuse_so_it_is_an_error_to_the_queue() -> None:
    told = refused(Servers(), trainer("p"))
    assert told.message == "no nodes available to schedule pods"
    assert told.rejection.is_error
