"""Placing pods beside others that are on their way: which order matters, and what is known then."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kubelet.machine.presets import GIB
from numalign.placement.columns.holdings import ContainerZones, Entry, Holding, Source
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import CPU
from numalign.placement.commit import askkubelet
from numalign.placement.commit import place as commit
from numalign.placement.commit.askkubelet import AdmissionQuestion
from numalign.placement.commit.place import Newcomer, Path, Placement
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from tests import nodes
from tests.nodes import Node, guaranteed, pod, simple
from tests.rows import View


class Row:
    """A row and the pods placed on it; none is reported."""

    def __init__(self, node: Node, **changes: Any) -> None:
        self.view = View(node.kubelet)
        self.state = node.state
        self.settled = structs.replace(self.view.row(node.state), **changes)
        self.programs: dict[int, Program] = {}
        self.pending: list[Holding] = []
        self.pods: list[Pod] = []

    def place(self, newcomer: Pod, **how: Any) -> Placement:
        shape = self.view.shape(newcomer)
        self.programs[shape] = self.view.program(newcomer)
        placement = commit.place(self.settled, self.pending, Newcomer(shape, **how), self.programs.get)
        if placement.verdict.fits:
            self._take(newcomer, shape, placement)
        return placement

    def _take(self, newcomer: Pod, shape: int, placement: Placement) -> None:
        revised = {each.uid: each for each in placement.revised}
        names = [container.name for container in newcomer.in_admission_order()]
        holding = Holding(
            uid=newcomer.metadata.uid,
            name=newcomer.metadata.name,
            source=Source.PREDICTED,
            entries=placement.verdict.everything,
            containers=tuple(map(ContainerZones, names, placement.verdict.possible)),
            shape=shape,
            interchangeable=placement.interchangeable,
        )
        self.pending = [*(revised.get(each.uid, each) for each in self.pending), holding]
        self.pods.append(newcomer)

    def cpus(self, uid: str) -> list[Entry]:
        (holding,) = [each for each in self.pending if each.uid == uid]
        return [entry for entry in holding.entries if entry.column == CPU]


@pytest.fixture
def row() -> Row:
    """Two zones with 7 and 8 CPUs."""
    return Row(Node(nodes.machine(cores=8), "single-numa-node"))


def test_a_pod_alone_goes_where_the_row_model_says(row: Row) -> None:
    placement = row.place(simple("a", 4))
    assert (placement.path, placement.verdict.possible) == (Path.ALONE, ((1,),))


def test_equal_pods_change_places_only_with_each_other(row: Row) -> None:
    placements = [row.place(simple(uid, 4)) for uid in "abc"]
    assert [each.path for each in placements] == [Path.ALONE, Path.SAME_SHAPE, Path.SAME_SHAPE]
    assert [each.verdict.possible for each in placements] == [((1,),), ((2,),), ((2,),)]
    assert all(each.interchangeable for each in row.pending)


def test_equal_pods_in_one_zone_have_nothing_to_change(row: Row) -> None:
    assert not row.place(simple("a", 2)).interchangeable
    assert not row.place(simple("b", 2)).interchangeable


def test_a_pod_that_gets_the_same_zone_first_or_last_is_fixed(row: Row) -> None:
    row.place(simple("a", 2))
    placement = row.place(simple("b", 3))
    assert (placement.path, placement.verdict.possible) == (Path.EITHER_WAY, ((1,),))
    assert not placement.revised


def test_a_pod_whose_zone_hangs_on_the_order_may_be_in_each(row: Row) -> None:
    row.place(simple("a", 4))
    placement = row.place(simple("b", 5))
    assert placement.path is Path.ANY_ORDER
    assert placement.verdict.possible == ((1, 2),)
    assert row.cpus("b") == [Entry(CPU, 5, 3)]


def test_pods_that_it_may_push_elsewhere_are_revised(row: Row) -> None:
    row.place(simple("a", 4))
    row.place(simple("b", 5))
    assert row.cpus("a") == [Entry(CPU, 4, 3)]
    assert row.pending[0].containers == (ContainerZones("app", (1, 2)),)


def test_a_pod_that_some_order_would_refuse_is_not_placed_now(row: Row) -> None:
    row.place(simple("a", 4))
    row.place(simple("b", 5))
    placement = row.place(simple("c", 6))
    assert placement.verdict.code is Verdict.NOT_CERTAIN
    assert len(row.pending) == 2


def test_whole_cores_that_an_init_container_needs_for_a_moment_are_left_for_it() -> None:
    node = Node(
        nodes.machine(cores=2, threads=2),
        "single-numa-node",
        "pod",
        cpu_options={"full-pcpus-only": "true"},
        reserved_cpus=0b11,
        reserved={"cpu": 2000, "memory": 2 * GIB},
    )
    large, small = pod("large", guaranteed("app", 4), init=[guaranteed("prepare", 2)]), simple("small", 2)
    row = Row(node)
    assert row.place(large).verdict.fits
    assert not row.place(small).verdict.fits
    node.placed(small)
    assert node.admit(large).reason == "SMTAlignmentError"


def test_many_pods_may_each_be_wherever_the_others_leave_room() -> None:
    row = Row(Node(nodes.machine(cores=16), "single-numa-node"))
    for uid, cpus in enumerate((2, 3, 2, 3)):
        row.place(simple(str(uid), cpus))
    placement = row.place(simple("last", 6))
    assert (placement.path, placement.verdict.possible) == (Path.ANY_ORDER, ((1, 2),))


def test_trusting_the_bind_order_looks_at_no_other(row: Row) -> None:
    row.place(simple("a", 4))
    newcomer = simple("b", 5)
    shape = row.view.shape(newcomer)
    row.programs[shape] = row.view.program(newcomer)
    placement = commit.place(row.settled, row.pending, Newcomer(shape), row.programs.get, trust_bind_order=True)
    assert (placement.path, placement.verdict.possible) == (Path.BIND_ORDER, ((2,),))


def test_a_pod_of_unknown_kind_stays_where_it_may_be(row: Row) -> None:
    stranger = Holding(uid="s", name="s", source=Source.UNKNOWN, entries=(Entry(CPU, 4, 3),), shape=-1)
    row.pending.append(stranger)
    placement = row.place(simple("a", 3))
    assert (placement.path, placement.verdict.possible) == (Path.ANY_ORDER, ((1,),))
    assert row.place(simple("b", 6)).verdict.code is Verdict.NOT_CERTAIN
    assert row.pending[0] == stranger


def test_pods_that_ask_for_nothing_disturb_no_other(row: Row) -> None:
    row.place(pod("a", nodes.burstable("app")))
    assert row.place(simple("b", 4)).path is Path.EITHER_WAY


def test_without_alignment_the_order_decides_which_cpus_are_taken() -> None:
    row = Row(Node(nodes.machine(cores=8), "none"))
    row.place(simple("a", 4))
    placement = row.place(simple("b", 5))
    assert placement.path is Path.ANY_ORDER
    assert row.cpus("b") == [Entry(CPU, 5, 3)]


def test_a_pod_that_would_not_even_fit_alone_does_not_fit(row: Row) -> None:
    assert row.place(simple("a", 9)).verdict.code is Verdict.DOES_NOT_FIT
    row.place(simple("b", 1))
    assert row.place(simple("a", 9)).verdict.code is Verdict.DOES_NOT_FIT


# Where ids decide

INITIAL = pod("a", guaranteed("one", 3), guaranteed("two", 6), init=[guaranteed("init", 2)])
"""Whether the second container may leave the first zone hangs on which CPUs the first one took over."""


def question(row: Row, newcomer: Pod) -> AdmissionQuestion:
    return AdmissionQuestion(
        kubelet=row.view.kubelet,
        state=row.state,
        pending=tuple(row.pods),
        pod=newcomer,
        program=row.view.program(newcomer),
        row=row.settled,
        resources=row.view.resources,
    )


def test_where_amounts_do_not_decide_the_kubelet_model_is_asked(row: Row) -> None:
    assert row.place(INITIAL).verdict.code is Verdict.NOT_DECIDED
    placement = row.place(INITIAL, ask=lambda: askkubelet.answer(question(row, INITIAL)))
    assert placement.path is Path.KUBELET_MODEL
    assert placement.verdict.fits


def test_the_kubelet_model_is_not_asked_about_a_row_that_is_known_vaguely() -> None:
    def never() -> RowVerdict:
        raise AssertionError("asked")

    vague = Row(Node(nodes.machine(cores=8), "single-numa-node"), entries=(Entry(CPU, 1, 3),))
    assert vague.place(INITIAL, ask=never).path is Path.ALONE
