"""Capacity requests are answered with counts, zones and reasons, and change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import structs

from numalign.api.decode import decode
from numalign.api.decode.structs import encode
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise
from numalign.api.objects.node import NodeSpec, Taint
from numalign.placement.capacity import gang
from numalign.scheduler import main
from numalign.scheduler.capacity import service
from numalign.scheduler.capacity.messages import CapacityRequest, CapacityResponse
from numalign.scheduler.capacity.service import LIMITED, MOST_SHAPES, CapacityLimits, CapacityService
from tests import placing
from tests.placing import Placing
from tests.unit.placement.test_engine import node, report

GUARANTEED = {"cpu": "6", "memory": "1Gi"}


def cluster(**nodes: int) -> Placing:
    """Nodes of two zones with so many CPUs each, and totals to match."""
    made = Placing()
    for name, cpus in nodes.items():
        made.node(node(name, cpus=2 * cpus))
        made.report(report(name, cpus=(cpus, cpus)))
    return made


def asked(known: Placing, limits: CapacityLimits | None = None, **request: Any) -> CapacityResponse:
    config = main.defaults()
    counting = CapacityService(known.cluster, {known.profile.name: known.profile}, config, limits)
    return asyncio.run(counting.answer(decode.decode(CapacityRequest, request)))


def test_counts_with_zones_and_reasons_for_groups_of_equal_nodes() -> None:
    known = cluster(a=8, b=8, c=16)
    before = placing.views(known.engine)
    (found,) = asked(known, shapes=[{"name": "six", "requests": GUARANTEED}]).shapes
    assert (found.count, found.bound) == (8, "exact")
    small, large = found.nodes
    assert (small.nodes, small.count) == (("a", "b"), 2)
    assert [(zone.zone, zone.pods) for zone in large.zones] == [(0, 2), (1, 2)]
    assert large.reason == "container container needs 6 CPUs in one NUMA zone, best zone has 4"
    assert placing.views(known.engine) == before


def test_nodes_by_name_and_label() -> None:
    known = cluster(a=8, b=8)
    (found,) = asked(known, shapes=[{"requests": GUARANTEED}], nodes={"names": ["b"]}).shapes
    assert [each.nodes for each in found.nodes] == [("b",)]
    (none,) = asked(known, shapes=[{"requests": GUARANTEED}], nodes={"selector": {"matchLabels": {"x": "y"}}}).shapes
    assert (none.count, none.nodes) == (0, ())
    with pytest.raises(BadObject, match="nowhere not known"):
        asked(known, shapes=[{"requests": GUARANTEED}], nodes={"names": ["nowhere"]})


def test_plugins_that_refuse_a_node_leave_nothing_there() -> None:
    pod = {
        "spec": {"nodeSelector": {"disk": "ssd"}, "containers": [{"name": "c", "resources": {"limits": GUARANTEED}}]}
    }
    (found,) = asked(cluster(a=8), shapes=[{"pod": pod}]).shapes
    assert found.count == 0
    assert found.nodes[0].reason == "node(s) didn't match Pod's node affinity/selector"


def tainted(**taints: str) -> Placing:
    """Nodes by name, each with one NoSchedule taint of this key; none where the key is empty."""
    made = Placing()
    for name, key in taints.items():
        own = (Taint(key=key, effect="NoSchedule"), Taint(key="soft", effect="PreferNoSchedule")) if key else ()
        made.node(structs.replace(node(name, cpus=16), spec=NodeSpec(taints=own)))
        made.report(report(name, cpus=(8, 8)))
    return made


def test_reasons_name_the_taints_and_nodes_with_other_taints_are_other_groups() -> None:
    known = tainted(a="gpu", b="infra", c="gpu", d="")
    (found,) = asked(known, shapes=[{"requests": GUARANTEED}]).shapes
    assert {each.nodes: each.reason for each in found.nodes if not each.count} == {
        ("a", "c"): "untolerated taint gpu:NoSchedule",
        ("b",): "untolerated taint infra:NoSchedule",
    }
    assert found.count == 2


def test_nodes_that_each_have_a_taint_of_their_own_remain_one_group() -> None:
    known = tainted(**{f"n{each}": f"of-{each}" for each in range(service.MOST_TAINTS + 1)})
    (found,) = asked(known, shapes=[{"requests": GUARANTEED}]).shapes
    (group,) = found.nodes
    assert (len(group.nodes), group.reason) == (service.MOST_TAINTS + 1, "node(s) had untolerated taint(s)")


def test_reasons_of_plugins_take_no_place_among_those_that_are_limited() -> None:
    known = tainted(a="gpu", b="infra", c="", d="")
    answer = asked(known, CapacityLimits(reasons=1, listed=100), shapes=[{"requests": GUARANTEED}])
    assert all(each.reason for each in answer.shapes[0].nodes)
    assert answer.notes == ()


def test_pods_that_keep_others_away_are_counted_as_an_upper_bound() -> None:
    container = {"name": "c", "resources": {"limits": GUARANTEED}, "ports": [{"containerPort": 80, "hostPort": 80}]}
    (found,) = asked(cluster(a=8), shapes=[{"spec": {"containers": [container]}}]).shapes
    assert (found.count, found.bound) == (2, "at-most")


def test_machines_and_reports_as_templates() -> None:
    static = {
        "topologyManagerPolicy": "single-numa-node",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
    }
    answer = asked(
        cluster(a=8),
        shapes=[{"requests": GUARANTEED}],
        templates=[
            {"machine": "2x16", "kubelet": static},
            {"name": "mine", "topology": _plain(normalise.encode(report("t")))},
        ],
    )
    (found,) = answer.shapes
    assert (found.count, found.nodes) == (0, ())
    assert {each.nodes[0]: each.count for each in found.templates} == {"template-0": 4, "mine": 2}


def _plain(thing: Any) -> Any:
    return msgspec.json.decode(encode(thing))


def test_an_instance_type_is_learnt_from_a_node_as_if_it_were_empty() -> None:
    known = Placing()
    labelled = node("a", cpus=16)
    labels = {"node.kubernetes.io/instance-type": "m.large"}
    known.node(structs.replace(labelled, metadata=structs.replace(labelled.metadata, labels=labels)))
    known.report(report("a", cpus=(8, 8)))
    answer = asked(known, shapes=[{"requests": GUARANTEED}], templates=[{"instanceType": "m.large"}])
    assert answer.shapes[0].templates[0].count == 2
    assert answer.notes == ("zones of instance type m.large as node a has them",)
    with pytest.raises(BadObject, match="no node with a report has the label"):
        asked(known, shapes=[{"requests": GUARANTEED}], templates=[{"instanceType": "unheard-of"}])


@pytest.mark.parametrize("replicas, fits", [(4, "yes"), (5, "no")])
def test_all_or_nothing(replicas: int, fits: str) -> None:
    shape = {"name": "six", "requests": GUARANTEED, "replicas": replicas}
    found = asked(cluster(a=8, b=8), shapes=[shape], allOrNothing=True).all_or_nothing
    assert found is not None
    assert found.fits == fits
    assert sum(each.pods for each in found.placed) == (replicas if fits == "yes" else 0)


BAD = {
    "no shapes": ({"shapes": []}, "is empty"),
    "two forms": ({"shapes": [{"requests": GUARANTEED, "pod": {"spec": {}}}]}, "exactly one of pod, spec and requests"),
    "negative": ({"shapes": [{"requests": {"cpu": "-1"}}]}, "is negative"),
    "too many shapes": ({"shapes": [{"requests": GUARANTEED}] * (MOST_SHAPES + 1)}, "split the request"),
    "a template of nothing": ({"shapes": [{"requests": GUARANTEED}], "templates": [{}]}, "exactly one of machine"),
    "an unknown machine": ({"shapes": [{"requests": GUARANTEED}], "templates": [{"machine": "x"}]}, "known are 2x16"),
    "one name twice": (
        {"shapes": [{"requests": GUARANTEED}], "templates": [{"name": "t", "machine": "2x16"}] * 2},
        "is the name of an earlier one",
    ),
    "replicas": ({"shapes": [{"requests": GUARANTEED, "replicas": -1}]}, "replicas"),
}


@pytest.mark.parametrize("request_, why", BAD.values(), ids=BAD)
def test_bad_requests_say_what_is_wrong(request_: dict[str, Any], why: str) -> None:
    with pytest.raises(BadObject, match=why):
        asked(cluster(a=8), **request_)


def test_huge_amounts_fit_nowhere() -> None:
    (found,) = asked(cluster(a=8), shapes=[{"requests": {"cpu": "9E", "memory": "9E"}}]).shapes
    assert (found.count, found.bound) == (0, "exact")


def test_a_scheduler_that_serves_gives_the_reasons_of_the_largest_groups_of_nodes_and_says_so() -> None:
    known = cluster(a=7, b=8, c=16, d=16)
    few = CapacityLimits(reasons=1, listed=100)
    shape = {"name": "six", "requests": GUARANTEED}
    answer = asked(known, few, shapes=[shape])
    (found,) = answer.shapes
    assert [(each.nodes, bool(each.reason)) for each in found.nodes] == [
        (("a",), False),
        (("b",), False),
        (("c", "d"), True),
    ]
    assert (found.count, answer.notes) == (12, (LIMITED.format(groups=1),))
    named = asked(known, few, shapes=[shape], nodes={"names": ["a"]})
    assert (bool(named.shapes[0].nodes[0].reason), named.notes) == (True, ())


def test_a_response_that_would_be_too_large_is_refused_unless_a_summary_is_asked_for() -> None:
    known, few = cluster(a=8, b=8), CapacityLimits(reasons=1, listed=3)
    shapes = [{"requests": GUARANTEED}] * 2
    with pytest.raises(BadObject, match="asks for 4 answers of single nodes, and 3 are given"):
        asked(known, few, shapes=shapes)
    assert [each.count for each in asked(known, few, shapes=shapes, summary=True).shapes] == [4, 4]


def test_a_large_request_is_answered_some_shapes_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scheduler decides about pods in between."""
    monkeypatch.setattr(service, "LISTED_AT_ONCE", 4)
    known, turns = cluster(a=8, b=8), list[int]()
    shapes = [{"requests": GUARANTEED}] * 8

    async def answered() -> int:
        config = main.defaults()
        counting = CapacityService(known.cluster, {known.profile.name: known.profile}, config)
        answering = asyncio.ensure_future(counting.answer(decode.decode(CapacityRequest, {"shapes": shapes})))
        while not answering.done():
            turns.append(1)
            await asyncio.sleep(0)
        return len(answering.result().shapes)

    assert asyncio.run(answered()) == 8
    assert len(turns) >= 4


def sizes(number: int) -> list[dict[str, Any]]:
    return [{"name": f"s{each}", "requests": {"cpu": "1", "memory": f"{each + 1}Mi"}} for each in range(number)]


@pytest.mark.parametrize(
    "request_",
    [
        {"shapes": sizes(12), "allOrNothing": True},
        {
            "shapes": sizes(1),
            "templates": [
                {"name": f"t{each}", "machine": "2x16", "kubelet": {"maxPods": each}} for each in range(1, 13)
            ],
        },
    ],
    ids=["all or nothing", "templates"],
)
def test_while_a_large_request_is_answered_no_other_task_waits_for_all_of_it(request_: dict[str, Any]) -> None:
    known, turns = cluster(a=8, b=8), list[int]()

    async def answered() -> CapacityResponse:
        counting = CapacityService(known.cluster, {known.profile.name: known.profile}, main.defaults())
        answering = asyncio.ensure_future(counting.answer(decode.decode(CapacityRequest, request_)))
        while not answering.done():
            turns.append(1)
            await asyncio.sleep(0)
        return answering.result()

    assert asyncio.run(answered()).shapes
    assert len(turns) > 12


def test_where_nodes_change_during_every_search_the_answer_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    searches = []

    def overtaken(*_: object) -> Iterator[None]:
        searches.append(1)
        yield

    monkeypatch.setattr(gang, "fitting", overtaken)
    found = asked(cluster(a=8), shapes=sizes(3), allOrNothing=True).all_or_nothing
    assert found is not None
    assert (found.fits, found.message, len(searches)) == ("unknown", service.CHANGED, service.SEARCHES)
