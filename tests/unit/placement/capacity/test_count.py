"""The count of a node is the number of pods that the engine places there one after the other, and that the kubelet's
managers admit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject
from numalign.api.nrt.nodetopology import Amounts, Zone
from numalign.api.objects import requests
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.placement.capacity import count
from numalign.placement.capacity.count import Bound, ShapeCount
from numalign.placement.decisions import LAST_RESORT, Code
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, PodAssumed, ReportSeen
from numalign.placement.settings import Settings
from tests import placing
from tests.placing import KERNELS
from tests.strategies import kubelet as drawn
from tests.strategies import reports
from tests.strategies.placement import Lived, lived
from tests.unit.kubelet import made
from tests.unit.placement.test_engine import GIB, NIC
from tests.unit.placement.test_engine import engine as made_engine
from tests.unit.placement.test_engine import node as made_node
from tests.unit.placement.test_engine import pod as made_pod
from tests.unit.placement.test_engine import report as made_report

MOST = 12
"""Pods that a node of these tests takes at most."""
SURE = frozenset({Code.DOES_NOT_FIT, Code.TOTALS, Code.INTENT})


class Walked(NamedTuple):
    pods: int
    is_certain: bool
    """Whether the last answer was that the next pod does not fit."""


def roomy(life: Lived) -> Node:
    """A node whose totals refuse no pod but the thirteenth."""
    node = reports.node(life.kubelet)
    names = {name for pod in life.coming for each in pod.in_admission_order() for name in each.resources.requests}
    offered = {name: quantity.of(1 << 50) for name in (*names, *node.status.capacity)} | {"pods": quantity.of(MOST)}
    return structs.replace(node, status=structs.replace(node.status, capacity=offered, allocatable=offered))


def engine_of(life: Lived, *, own: bool, pending: Sequence[Pod], compiled: bool, trust: bool) -> Engine:
    engine = Engine(Settings(trust_bind_order=trust))
    if compiled:
        assert engine.warm()
    report = reports.ours if own else reports.plain
    engine.apply(NodeSeen(roomy(life)))
    engine.apply(ReportSeen(report(life.kubelet, life.state), 0.0))
    for pod in pending:
        placed(engine, pod)
    return engine


def placed(engine: Engine, pod: Pod) -> int | None:
    """None: the pod is placed; else the code of the row that refuses it."""
    shape = engine.shape(pod)
    for _ in range(2):
        if engine.place(pod, shape, 0, 0.0) is not None:
            return None
        code = int(engine.survey(shape)[0])
        if code != LAST_RESORT:
            return code
    return Code.NOT_CERTAIN


def one_by_one(engine: Engine, pod: Pod) -> Walked:
    for number in range(MOST + 1):
        code = placed(engine, drawn.named(pod, f"walked-{number}"))
        if code is not None:
            return Walked(number, code in SURE)
    raise AssertionError("a node takes no more pods than it says")


def admitted(life: Lived, pod: Pod) -> int:
    """By the kubelet's managers, which know the ids of CPUs and devices."""
    state = life.state
    for number in range(MOST):
        state, outcome = admission.align(life.kubelet, state, drawn.named(pod, f"admitted-{number}"))
        if not outcome.admitted:
            return number
    return MOST


def agrees(found: ShapeCount, walked: Walked) -> bool:
    """A count may be certain where the engine's own walk is not: kernels know what pods of one shape leave."""
    counted, is_exact = int(found.counts[0]), found.bounds[0] == Bound.EXACT
    if is_exact and walked.is_certain:
        return counted == walked.pods
    if is_exact:
        return counted >= walked.pods
    return counted <= walked.pods if walked.is_certain else counted == walked.pods


@KERNELS
@given(life=lived(max_zones=4, uneven=False), own=st.booleans(), trust=st.booleans(), known=st.integers(0, 2))
def test_a_count_is_what_the_engine_places_one_by_one(
    compiled: bool, life: Lived, own: bool, trust: bool, known: int
) -> None:
    pending, pod = life.coming[:known], life.coming[-1]
    engine = engine_of(life, own=own, pending=pending, compiled=compiled, trust=trust)
    before = placing.views(engine)
    (found,) = count.count(engine, [engine.shape(pod)])
    assert placing.views(engine) == before
    assert int(found.spread.sum()) == int(found.counts[0])
    walked = one_by_one(engine, pod)
    assert agrees(found, walked), (int(found.counts[0]), Bound(found.bounds[0]), Code(found.codes[0]), walked)


@KERNELS
@given(life=lived(max_zones=4))
def test_the_kubelets_managers_admit_as_many_as_were_counted(compiled: bool, life: Lived) -> None:
    pod = life.coming[-1]
    # Containers of pods with resources of their own get devices when they start: an admission does not count them.
    assume(not requests.has_pod_level_resources(pod))
    engine = engine_of(life, own=True, pending=(), compiled=compiled, trust=False)
    (found,) = count.count(engine, [engine.shape(pod)])
    counted, truth = int(found.counts[0]), admitted(life, pod)
    assert counted == truth if found.bounds[0] == Bound.EXACT else counted <= truth, (counted, truth, found)


AMOUNTS = st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(0, 5))
"""CPUs, GiB and devices, of which a zone has 20, 8 and 5."""


@KERNELS
@given(zones=st.lists(AMOUNTS, min_size=1, max_size=4), asked=AMOUNTS, room=st.integers(1, MOST))
def test_pods_of_one_container_fill_zone_after_zone_as_the_engine_places_them(
    compiled: bool, zones: list[tuple[int, int, int]], asked: tuple[int, int, int], room: int
) -> None:
    engine = Engine()
    if compiled:
        assert engine.warm()
    engine.apply(NodeSeen(made_node("a", cpus=100, pods=room, memory=100 * GIB, **{NIC: 100})))
    described = tuple(
        Zone(
            id=place,
            resources={
                "cpu": Amounts(20_000, 20_000, 1000 * cpus),
                "memory": Amounts(8 * GIB, 8 * GIB, gib * GIB),
                NIC: Amounts(5, 5, devices),
            },
        )
        for place, (cpus, gib, devices) in enumerate(zones)
    )
    engine.apply(ReportSeen(structs.replace(made_report("a"), zones=described), 0.0))
    cpus, gib, devices = asked
    wanted: dict[str, Any] = {NIC: devices} if devices else {}
    pod = made.pod("x", made.container("c", cpu=max(1, cpus), memory=max(1, gib) * GIB, **wanted))
    (found,) = counted(engine, pod)
    assert agrees(found, one_by_one(engine, pod)), found
    assert found.spread[0, : len(zones)].sum() == found.total


def counted(engine: Engine, *pods: Pod) -> list[ShapeCount]:
    return count.count(engine, [engine.shape(pod) for pod in pods])


def test_equal_nodes_and_others_are_counted_each_by_its_own_numbers() -> None:
    """Two zones of 8 CPUs: two pods of 6, or four of 4; a pod of 10 in no zone."""
    engine = made_engine("a", "b", "c")
    assert engine.place(made_pod("there", cpu=6), engine.shape(made_pod("there", cpu=6)), 1, 0.0) is not None
    six, four, ten = counted(engine, made_pod("x"), made_pod("y", cpu=4), made_pod("z", cpu=10))
    assert six.counts.tolist() == [2, 1, 2]
    assert four.counts.tolist()[::2] == [4, 4]
    assert (ten.total, ten.bound) == (0, Bound.EXACT)
    assert set(ten.codes.tolist()) == {Code.DOES_NOT_FIT}


def test_zones_are_said_by_position() -> None:
    (found,) = counted(made_engine("a"), made_pod("x", cpu=4))
    assert found.spread[0].tolist() == [2, 2, 0, 0, 0, 0, 0, 0, 0]


def test_a_node_without_a_report_admits_at_most_what_its_totals_have() -> None:
    engine = Engine()
    engine.apply(NodeSeen(made_node("a", cpus=16)))
    (found,) = counted(engine, made_pod("x", cpu=4))
    assert (found.total, found.bound) == (4, Bound.AT_MOST)


def test_pods_on_their_way_whose_order_counts_make_the_count_a_lower_bound() -> None:
    engine = made_engine("a", strategy="MostAllocated")
    assert placed(engine, made_pod("large", cpu=6)) is None
    (found,) = counted(engine, made_pod("small", cpu=4))
    assert (found.total, found.bound) in {(1, Bound.AT_LEAST), (2, Bound.EXACT)}


def test_rows_that_only_the_row_model_decides_are_not_walked_without_end() -> None:
    engine = made_engine("a", strategy="MostAllocated")
    assert placed(engine, made_pod("large", cpu=6)) is None
    (found,) = count.count(engine, [engine.shape(made_pod("x", cpu=2))], most_walked=1)
    assert (found.total, found.bound) == (1, Bound.AT_LEAST)


def test_the_reference_flavour_says_that_it_cannot_count() -> None:
    with pytest.raises(BadObject, match="flavour exact"):
        counted(made_engine("a", flavour="reference"), made_pod("x"))


@KERNELS
def test_huge_requests_and_full_nodes_count_nothing(compiled: bool) -> None:
    engine = made_engine("a")
    if compiled:
        assert engine.warm()
    engine.apply(NodeSeen(made_node("b", cpus=16, pods=0)))
    engine.apply(ReportSeen(made_report("b"), 0.0))
    huge, small = counted(engine, made_pod("x", cpu=1 << 60), made_pod("y", cpu=1))
    assert (huge.total, huge.bound) == (0, Bound.EXACT)
    assert small.counts.tolist() == [16, 0]


def test_a_pod_that_others_hold_is_counted_out() -> None:
    engine = made_engine("a")
    elsewhere = structs.replace(made_pod("p"), spec=structs.replace(made_pod("p").spec, node_name="a"))
    before = counted(engine, made_pod("x"))[0].total
    engine.apply(PodAssumed(elsewhere, 0.0))
    assert counted(engine, made_pod("x"))[0].total == before - 1


def test_counting_many_shapes_keeps_the_answers_of_pods_that_are_being_scheduled() -> None:
    engine = made_engine("a", live_shapes=4)
    kept = [engine.follow(engine.shape(made_pod("p", cpu=cpu))) for cpu in range(1, 5)]
    counted(engine, *(made_pod("p", cpu=cpu) for cpu in range(1, 9)))
    assert [engine.follow(each.shape) for each in kept if each is not None] == kept
