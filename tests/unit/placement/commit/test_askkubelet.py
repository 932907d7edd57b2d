"""Pods asked of the kubelet's own managers, where amounts do not decide."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.kubelet.state import KubeletState
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.resources import CPU, MEMORY
from numalign.placement.commit import askkubelet
from numalign.placement.commit.askkubelet import AdmissionQuestion
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause
from numalign.placement.rowmodel.evaluate import RowVerdict, Verdict
from tests import nodes
from tests.campaigns import holds_for
from tests.nodes import NIC, Node, guaranteed, pod, simple
from tests.rows import View, choosing
from tests.strategies.placement import Lived, lived
from tests.unit.placement.agreement import Asked

GIB = 1 << 30


def answered(view: View, state: KubeletState, newcomer: Pod, *pending: Pod) -> RowVerdict:
    question = AdmissionQuestion(
        kubelet=view.kubelet,
        state=state,
        pending=pending,
        pod=newcomer,
        program=view.program(newcomer),
        row=view.row(state),
        resources=view.resources,
    )
    return askkubelet.answer(question)


def asked(node: Node, newcomer: Pod, *pending: Pod) -> RowVerdict:
    return answered(View(node.kubelet), node.state, newcomer, *pending)


@holds_for(lived(coming=2), st.randoms(use_true_random=False), examples=40)
def test_its_answers_hold_with_any_choice_of_devices(life: Lived, rng: Random) -> None:
    real = View(choosing(life.kubelet, rng), life.view.resources)
    for newcomer in life.coming:
        verdict = answered(life.view, life.state, newcomer)
        assert not Asked(real, life.state, newcomer).contradicts(verdict), verdict


@holds_for(lived(coming=3), examples=40)
def test_it_decides_whatever_hangs_on_cpu_ids_alone(life: Lived) -> None:
    for newcomer in life.coming:
        by_amounts = evaluate.evaluate(life.view.row(life.state), life.view.program(newcomer))
        if by_amounts.shortfall and by_amounts.shortfall.cause is Cause.CPU_IDS:
            verdict = answered(life.view, life.state, newcomer)
            devices = any(step.ask.devices for step in life.view.program(newcomer).steps)
            assert devices or verdict.code in (Verdict.FITS, Verdict.DOES_NOT_FIT, Verdict.NOT_DECIDED)


def test_a_pod_is_charged_with_what_the_managers_gave_it() -> None:
    node = Node(nodes.machine(cores=8), "single-numa-node")
    verdict = asked(node, pod("p", guaranteed("app", 3, "1Gi"), init=[guaranteed("init", 2, "2Gi")]))
    assert (verdict.code, verdict.possible) == (Verdict.FITS, ((1,), (1,)))
    assert set(verdict.entries) == {Entry(CPU, 3, 1), Entry(MEMORY, GIB, 1, span=1)}
    assert verdict.passing == (Entry(MEMORY, GIB, 1, span=1),)


def test_pending_pods_are_admitted_first() -> None:
    node = Node(nodes.machine(), "single-numa-node")
    assert asked(node, simple("p", 3), simple("a", 2)).possible == ((2,),)


def test_a_pending_pod_that_is_refused_makes_the_answer_uncertain() -> None:
    verdict = asked(Node(nodes.machine(), "single-numa-node"), simple("p", 1), simple("a", 9))
    assert verdict.code is Verdict.NOT_CERTAIN


@pytest.mark.parametrize("count, code", [(1, Verdict.FITS), (2, Verdict.NOT_CERTAIN)], ids=["once", "twice"])
def test_devices_that_differ_may_be_asked_for_only_once(count: int, code: Verdict) -> None:
    node = Node(nodes.machine(devices={NIC: nodes.plugin((0, 1), 0, 1)}), "single-numa-node")
    containers = (guaranteed(f"c{number}", 1, nic=1) for number in range(count))
    assert asked(node, pod("p", *containers)).code is code


def test_a_pod_that_the_managers_refuse_does_not_fit() -> None:
    assert asked(Node(nodes.machine(), "single-numa-node"), simple("p", 9)).code is Verdict.DOES_NOT_FIT
