from __future__ import annotations

from typing import Any

import pytest

from numalign.kubelet import admission
from numalign.kubelet.start import start
from numalign.placement.view import Taken
from numalign.plan import agreement, machines
from numalign.plan.agreement import Answer, PredictedBinding
from numalign.plan.machines import GPU
from numalign.plan.trace import TraceNode
from numalign.plan.workload import Shape

ZONED = TraceNode("server", 96_000, 393_216, 8, "G2")


def binding(*taken: Taken, is_admitted: bool = True) -> PredictedBinding:
    return PredictedBinding(pod="p", spec={}, node="n", is_admitted=is_admitted, taken=taken)


CASES: dict[str, tuple[PredictedBinding, Answer, str]] = {
    "admitted, nothing pinned": (binding(), Answer(), ""),
    "admitted in its zone": (binding(Taken("cpu", 4, (1,))), Answer(held={"cpu": {1: 4}}), ""),
    "rejected": (binding(is_admitted=False), Answer(why="TopologyAffinityError"), ""),
    "in zones that are said together": (
        binding(Taken("cpu", 6, (0, 1)), Taken("cpu", 2, (1,))),
        Answer(held={"cpu": {0: 1, 1: 7}}),
        "",
    ),
    "admitted against the word": (binding(is_admitted=False), Answer(), "is rejected, and the kubelet admitted it"),
    "rejected against the word": (
        binding(),
        Answer(why="out of luck"),
        "is admitted, and the kubelet rejected it: out of luck",
    ),
    "in another zone": (
        binding(Taken("cpu", 4, (1,))),
        Answer(held={"cpu": {0: 4}}),
        "cpu is said to be 4 in zone 1, and is 4 in zone 0",
    ),
    "more than said": (
        binding(Taken("cpu", 4, (1,))),
        Answer(held={"cpu": {1: 5}}),
        "cpu is said to be 4 in zone 1, and is 5 in zone 1",
    ),
    "less in a zone than is said of it": (
        binding(Taken("cpu", 6, (0, 1)), Taken("cpu", 2, (1,))),
        Answer(held={"cpu": {0: 7, 1: 1}}),
        "cpu is said to be 6 in zone 0 or 1, 2 in zone 1, and is 7 in zone 0, 1 in zone 1",
    ),
    "pinned without a word": (
        binding(),
        Answer(held={GPU: {0: 1}}),
        "nvidia.com/gpu is said to be not pinned, and is 1 in zone 0",
    ),
    "not pinned against the word": (
        binding(Taken("cpu", 4, (1,))),
        Answer(),
        "cpu is said to be 4 in zone 1, and is not pinned",
    ),
}


@pytest.mark.parametrize("said, done, words", CASES.values(), ids=CASES)
def test_what_a_kubelet_did_is_held_against_what_was_said(said: PredictedBinding, done: Answer, words: str) -> None:
    found = agreement.compare([said], [done])
    assert found.bindings == 1
    assert found.contradictions == ((f"pod p on node n: {_beginning(words)}{words}",) if words else ())
    assert (found.admitted, found.rejected) == ((0, 0) if words else (1, 0) if said.is_admitted else (0, 1))
    assert found.pinned == bool(said.taken and not words)


def test_a_pod_that_the_replay_is_not_certain_of_is_no_contradiction_and_is_counted() -> None:
    unsure = PredictedBinding(pod="p", spec={}, node="n", is_admitted=False, is_certain=False)
    admitted, rejected = agreement.compare([unsure], [Answer()]), agreement.compare([unsure], [Answer(why="no")])
    assert (admitted.given_up, admitted.rejected, admitted.bindings, admitted.contradictions) == (1, 0, 1, ())
    assert (rejected.given_up, rejected.rejected, rejected.bindings, rejected.contradictions) == (0, 1, 1, ())


def _beginning(words: str) -> str:
    return "the replay says that it " if words.startswith("is ") else ""


@pytest.mark.parametrize("gpus, cpus, expected", [
    (0, 8, {"cpu": {0: 8}}),
    (2, 8, {"cpu": {0: 8}, GPU: {0: 2}}),
    (8, 60, {"cpu": {0: 48, 1: 12}, GPU: {0: 4, 1: 4}}),
])  # fmt: skip
def test_what_managers_hold_is_counted_by_zone(gpus: int, cpus: int, expected: Any) -> None:
    hardware = machines.hardware(ZONED, 2, "restricted")
    kubelet = start(hardware.machine, hardware.settings)
    pod = machines.pod(Shape(1000 * cpus, 1000 if gpus else 0, gpus, (), 1024), pinned=True)
    state, outcome = admission.admit(kubelet, kubelet.initial(), pod)
    assert outcome.admitted
    assert agreement.held(hardware.machine, state.cpu, state.devices, "pod") == expected
    assert agreement.held(hardware.machine, state.cpu, state.devices, "another") == {}


def test_kubelets_offer_what_the_trace_lists() -> None:
    for zones in (1, 2, 4):
        place = machines.nodes([ZONED], zones, "restricted")[0]
        offered = {name: amount.value for name, amount in place.node.allocatable.items()}
        assert offered == {"cpu": 96, "memory": 393_216 << 20, GPU: 8, "pods": machines.MOST_PODS}
        assert len(machines.hardware(ZONED, zones, "restricted").machine.zones) == zones
