"""Questions about nodes as they would be: answered as the kubelet would, and without leaving a trace."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet import demand as demands
from numalign.kubelet.report import report
from numalign.kubelet.state import KubeletState
from numalign.placement import facts
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.explain import whatif
from tests import ledgers
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import KUBELET, trainer


class Node:
    """One server of two zones with four GPUs each, and its engine."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.engine.apply(facts.NodeSeen(servers.node("n")))
        self.state: KubeletState = KUBELET.initial()
        self.report()

    def report(self) -> None:
        topology = normalise.normalise(normalise.encode(report.of("n", KUBELET, self.state)))
        self.engine.apply(facts.ReportSeen(topology, 0.0))

    @property
    def row(self) -> int:
        return self.engine.columns.rows["n"]

    def run(self, pod: Pod) -> bool:
        """Whether there was room; then the engine and the kubelet have it."""
        shape = self.engine.shape(pod)
        placed = self.engine.survey(shape)[self.row] >= 0 and self.engine.place(pod, shape, self.row, 0.0)
        if placed:
            self.state, outcome = admission.admit(KUBELET, self.state, pod)
            assert outcome.admitted
            self.engine.apply(facts.PodSeen(servers.on(pod, "n", phase="Running"), 0.0))
        return bool(placed)

    def admitted(self, pod: Pod, without: Collection[str]) -> bool:
        """By the kubelet itself."""
        state = self.state
        for uid in without:
            state = state.without_pod(uid)
        return admission.admit(KUBELET, state, pod)[1].admitted

    def whatif(self, pod: Pod) -> whatif.WhatIf:
        return whatif.of(self.engine, pod, self.engine.shape(pod))

    def said(self, pod: Pod, without: Collection[str], beside: Any = ()) -> bool:
        asked = self.whatif(pod)
        return asked.has_totals(self.row, without, beside) and asked.admits(self.row, without, beside)

    def ledger_state(self) -> object:
        flavour = self.engine.flavour
        assert isinstance(flavour, ExactFlavour)
        node_ledger = flavour.mirror.ledger.node("n")
        assert node_ledger is not None
        row = flavour.mirror.row(self.row)
        assert node_ledger.sums == ledgers.recomputed(node_ledger)
        return row.free, row.settled, row.entries, [each.uid for each in row.pending]


def filled(*gpus: int) -> Node:
    node = Node()
    for number, count in enumerate(gpus):
        assert node.run(trainer(f"p{number}", gpus=count, cpu="2"))
    return node


@pytest.mark.parametrize(
    "without, expected",
    [((), False), (("uid-p0",), False), (("uid-p0", "uid-p2"), False), (("uid-p0", "uid-p1"), True)],
)
def test_a_pod_is_admitted_once_a_zone_is_free(without: tuple[str, ...], expected: bool) -> None:
    node = filled(2, 2, 2, 2)
    pod = trainer("big", gpus=4, cpu="2")
    assert node.said(pod, without) is node.admitted(pod, without) is expected


def test_others_that_are_to_come_take_their_room_first() -> None:
    node = filled(4, 4)
    pod, other = trainer("big", gpus=3), trainer("other", gpus=2)
    assert node.said(pod, ["uid-p0"])
    assert not node.said(pod, ["uid-p0"], [other])
    assert node.said(pod, ["uid-p0", "uid-p1"], [other])


def test_a_nominated_pod_is_left_enough_of_its_zone() -> None:
    node, small = filled(4, 2), trainer("p", gpus=1)
    assert not node.whatif(small).leaves_room(node.row, ["uid-p1"], [trainer("promised", gpus=4)])
    # There is room for both; but once the first zone is free, it is where the small one may end up.
    assert not node.whatif(small).leaves_room(node.row, ["uid-p0"], [trainer("promised", gpus=4)])
    assert node.whatif(small).leaves_room(node.row, ["uid-p0"], [trainer("promised", gpus=3)])


def test_a_promise_that_cannot_be_kept_anyway_keeps_no_pod_out() -> None:
    node = filled(4, 2)
    assert node.whatif(trainer("p", gpus=1)).leaves_room(node.row, [], [trainer("promised", gpus=4)])


def test_a_pod_that_no_zone_of_the_machine_can_hold_is_not_possible() -> None:
    node = filled(4, 4)
    assert [node.whatif(trainer("p", gpus=count)).is_possible(node.row) for count in (4, 5)] == [True, False]


def test_holders_are_known_by_their_zones() -> None:
    assert filled(4, 1, 1).whatif(trainer("p")).holders(0) == {"uid-p0": 1, "uid-p1": 2, "uid-p2": 2}


def test_pods_that_kubelets_do_not_align_ask_zones_nothing() -> None:
    node = filled(4, 4)
    plain = waitingpods.pod("plain", waitingpods.asking(cpu="1"))
    assert node.whatif(plain).holders(node.row) == {}
    assert node.said(plain, ())


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 8)), max_size=6), st.data())
def test_the_kubelet_agrees_and_nothing_is_left_behind(pods: list[tuple[int, int]], data: st.DataObject) -> None:
    node = Node()
    there = [f"uid-p{n}" for n, (gpus, cpus) in enumerate(pods) if node.run(trainer(f"p{n}", gpus=gpus, cpu=str(cpus)))]
    if data.draw(st.booleans()):
        node.report()
    before = node.ledger_state()
    without = data.draw(st.sets(st.sampled_from(there))) if there else set[str]()
    pod = trainer("new", gpus=data.draw(st.integers(0, 5)), cpu=str(data.draw(st.integers(1, 30))))
    # Where pods that run are in no report yet, it may be too early to be certain; never too late.
    if node.said(pod, without):
        assert node.admitted(pod, without)
    assert node.ledger_state() == before
    assert demands.identity(pod) not in node.state.active
