"""The recorded kubelet answers are put to the placement engine's models, too: row model and kernel.

`test_replay` puts them to the kubelet model. Here every pod of a recorded sequence is put to the row model and to the
kernel, on the node as it was before; where they decide, they decide as the real kubelet did, zones included. Where they
leave it to another model, nothing is said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec

import msgspec
import pytest

from numalign.kubelet import start
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.state import KubeletState
from numalign.oracle.kubelet import forms, vectors
from numalign.oracle.kubelet.sequence import Admit, SequenceCase, SequenceReplay
from numalign.oracle.kubelet.vectors import Vector
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels import scalar
from numalign.placement.kernels.block import ASK, Kernel
from numalign.placement.kernels.plan import Scoring
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.evaluate import Verdict
from tests.conftest import require
from tests.oracle import recordings
from tests.rows import View
from tests.unit.placement.kernels.blocks import block_of_node

UNSURE = {Verdict.NOT_CERTAIN, Verdict.NOT_DECIDED}
ENOUGH = {"sequence": 1500, "sequence_podlevel": 250}
"""Pods that a model has to decide at least."""


class Admission(msgspec.Struct):
    """A pod, the node before and after, and what the real kubelet said."""

    view: View
    pod: forms.Pod
    before: KubeletState
    after: KubeletState
    admitted: bool

    def zones(self, container: str) -> int:
        """By position; 0: any zone."""
        stored = self.after.affinity(self.pod.model.metadata.uid, container).mask
        return 0 if stored is None else self.view.positions(stored)


def admissions(vector: Vector) -> Iterator[Admission]:
    case, recorded = vector.case, msgspec.json.decode(vector.recorded)
    assert isinstance(case, SequenceCase)
    machine = forms.machine(vector.origin.topology(case.topology), case.memory_nodes, case.devices)
    try:
        kubelet = start.start(machine, case.config.settings(vector.origin.minor))
    except StartRefusal:
        return
    life, view = SequenceReplay(kubelet), View(kubelet)
    for op, answer in zip(case.ops or (), recorded.get("ops") or (), strict=False):
        before = life.state
        list(life.ops((op,)))
        if isinstance(op, Admit):
            yield Admission(view, op.pod, before, life.state, answer["admit"])


def every(family: str) -> Iterator[Admission]:
    for vector in vectors.load([recordings.file(family)]):
        yield from admissions(vector)


@pytest.mark.parametrize("family", ENOUGH)
def test_the_row_model_answers_as_the_kubelet_did(family: str) -> None:
    decided: Counter[bool] = Counter()
    for each in every(family):
        verdict = evaluate.evaluate(each.view.row(each.before), each.view.program(each.pod.model))
        if verdict.code not in UNSURE:
            decided[each.admitted] += 1
            assert verdict.fits == each.admitted, (each.view.rules, each.pod)
    assert min(decided[True], decided[False]) > 0
    assert decided.total() >= ENOUGH[family]


@pytest.mark.parametrize("compiled", [False, True], ids=["plain Python", "machine code"])
def test_the_kernel_answers_as_the_kubelet_did(compiled: bool) -> None:
    kernel: Kernel = scalar
    if compiled:
        require(find_spec("numba"), "numba, as `make install` brings it")
        from numalign.placement.kernels import compiled as machine_code

        kernel = machine_code
    decided: Counter[bool] = Counter()
    for each in every("sequence"):
        program, block = each.view.program(each.pod.model), block_of_node(each.view, each.before)
        if block is None:
            continue
        code, masks = kernel.evaluate_row(block, 0, plans.plan(each.view.rules, program, Scoring()))
        if code == ASK:
            continue
        decided[each.admitted] += 1
        assert (code > 0) == each.admitted, (each.view.rules, each.pod)
        for container, mask in zip(each.pod.model.in_admission_order(), masks if code > 0 else (), strict=False):
            assert mask == each.zones(container.name), (each.view.rules, each.pod)
    assert min(decided[True], decided[False]) > 0
    assert decided.total() >= ENOUGH["sequence"]
