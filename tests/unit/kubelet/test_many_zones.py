"""Nodes of 34 zones, of which the kubelet enumerates 2^34 sets: answered without, or undecided with a count."""

from typing import Any

import pytest

from numalign.api.objects.pod import Pod
from numalign.kubelet.admission import Outcome
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.start import Kubelet
from numalign.kubelet.topologymanager.mask import members
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made, runs

SETS = 2**34 - 1
ALLOWED = {"max-allowable-numa-nodes": "34"}
SUPERCHIP = presets.machine("superchip-34")
"""72 cores, 480 GiB and two GPUs in zones 0 and 1; 186 GiB in zones 2, 10, 18 and 26; nothing in the others."""
EVERYWHERE = made.machine(34, cores=2, devices={made.NIC: tuple(range(34))})
"""Two CPUs, 8 GiB and a NIC in every zone; CPU 0 and 1 GiB of zone 0 are reserved."""

UNALIGNED = "TopologyAffinityError"
NO_ROOM = "UnexpectedAdmissionError"
ENUMERATES = "the kubelet would enumerate every set of zones (about 1.7e+10 steps)"
MERGES = "the kubelet would merge every set of zones (about 3e+20 steps)"


def kubelet(on: Machine, policy: TopologyPolicy, **chosen: Any) -> Kubelet:
    return made.kubelet(on, **{"policy": policy, "memory": True, "topology_options": ALLOWED} | chosen)


def pod(cpu: int, memory: str, **devices: Any) -> Pod:
    return made.pod("p", made.container("c", cpu, memory, **devices))


def result(outcome: Outcome) -> object:
    """Affinity and memory zones of an admitted pod, else the reason or why there is none."""
    if not outcome.admitted:
        return outcome.reason or outcome.message
    placed = outcome.placement["c"]
    blocks = [members(block.zones) for block in placed.memory]
    return None if placed.affinity.mask is None else members(placed.affinity.mask), *blocks


@pytest.mark.parametrize("on", [SUPERCHIP, EVERYWHERE], ids=["superchip", "memory everywhere"])
def test_such_a_machine_needs_a_higher_limit(on: Machine) -> None:
    with pytest.raises(StartRefusal, match="unsupported on machines with more than 8 NUMA Nodes"):
        kubelet(on, "restricted", topology_options={})
    assert kubelet(on, "none", topology_options={}).rules.policy == "none"


Answers = tuple[object, object, object, object]
"""Under restricted, single-numa-node, best-effort and none."""

POLICIES: tuple[TopologyPolicy, ...] = ("restricted", "single-numa-node", "best-effort", "none")
ZERO, ONE, TWO, ALL = ((0,), (0,)), ((1,), (1,)), ((0, 1), (0, 1)), (tuple(range(34)), tuple(range(34)))

ON_SUPERCHIP: dict[str, tuple[Pod, Answers]] = {
    "fits one zone": (pod(10, "10Gi", **{presets.GPU: 1}), (ZERO, ZERO, ZERO, (None, (0,)))),
    "all that a zone has": (pod(72, "480Gi"), (ONE, ONE, ONE, (None, (1,)))),
    "memory of two zones, cpus of one": (pod(10, "600Gi"), (UNALIGNED, UNALIGNED, TWO, (None, (0, 1)))),
    "both of two zones": (pod(100, "600Gi"), (TWO, UNALIGNED, TWO, (None, (0, 1)))),
    "and devices of two": (pod(100, "600Gi", **{presets.GPU: 3}), (TWO, UNALIGNED, TWO, (None, (0, 1)))),
    "memory of the GPUs as well": (
        pod(10, "1300Gi"),
        (UNALIGNED, UNALIGNED, ((0, 1), (0, 1, 2, 10)), (None, (0, 1, 2, 10))),
    ),
    "more memory than there is": (pod(10, "5000Gi"), (NO_ROOM, NO_ROOM, NO_ROOM, NO_ROOM)),
    "more cpus than there are": (pod(200, "10Gi"), (UNALIGNED, UNALIGNED, ENUMERATES, NO_ROOM)),
}
ON_EVERYWHERE: dict[str, tuple[Pod, Answers]] = {
    "fits one zone": (pod(2, "1Gi", nic=1), (ONE, ONE, ONE, (None, (0,)))),
    "fits two": (pod(3, "10Gi", nic=2), (TWO, UNALIGNED, TWO, (None, (0, 1)))),
    "cpus of two zones, memory of one": (pod(3, "1Gi"), (UNALIGNED, UNALIGNED, ENUMERATES, (None, (0,)))),
    "memory of many zones, cpus of one": (pod(2, "100Gi"), (UNALIGNED, UNALIGNED, ENUMERATES, ENUMERATES)),
    "cpus of many zones, memory of one": (pod(66, "1Gi"), (UNALIGNED, UNALIGNED, ENUMERATES, (None, (0,)))),
    "half of everything": (pod(34, "130Gi"), (MERGES, UNALIGNED, MERGES, ENUMERATES)),
    "all of everything": (pod(67, "271Gi"), (ALL, UNALIGNED, ALL, ENUMERATES)),
    "more memory than there is": (pod(2, "300Gi"), (NO_ROOM, NO_ROOM, NO_ROOM, NO_ROOM)),
}


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize("asked, answers", ON_SUPERCHIP.values(), ids=ON_SUPERCHIP)
def test_a_superchip(asked: Pod, answers: Answers, scope: str) -> None:
    given = [result(runs.answer(kubelet(SUPERCHIP, policy, scope=scope), asked)) for policy in POLICIES]
    assert given == list(answers)


@pytest.mark.parametrize("scope", ["container", "pod"])
@pytest.mark.parametrize("asked, answers", ON_EVERYWHERE.values(), ids=ON_EVERYWHERE)
def test_memory_in_every_zone(asked: Pod, answers: Answers, scope: str) -> None:
    given = [result(runs.answer(kubelet(EVERYWHERE, policy, scope=scope), asked)) for policy in POLICIES]
    assert given == list(answers)


def test_pods_after_one_another_take_zone_after_zone() -> None:
    node = kubelet(EVERYWHERE, "single-numa-node")
    pods = [made.pod(f"p{number}", made.container("c", 2, "8Gi", nic=1)) for number in range(33)]
    state = runs.admitted(node, *pods)
    assert [state.affinity(each.metadata.uid, "c").mask for each in pods] == [1 << zone for zone in range(1, 34)]
    assert runs.refusal(node, pod(2, "8Gi"), state)[0] == UNALIGNED


def test_a_group_of_zones_in_use_is_passed_over() -> None:
    node = kubelet(EVERYWHERE, "restricted")
    state = runs.admitted(node, made.pod("q", made.container("c", 3, "10Gi")))
    assert result(runs.answer(node, pod(3, "10Gi"), state)) == ((2, 3), (2, 3))


STEPS: dict[str, tuple[dict[str, Any], Pod, int]] = {
    "memory is looked for once": ({"policy": "none"}, pod(2, "1Gi"), SETS),
    "combinations of hints on top": ({}, pod(2, "1Gi"), SETS + 3 * SETS),
    "devices are in two zones only": ({"memory": False}, pod(2, "1Gi", **{presets.GPU: 1}), 9),
    "until 1.35 devices went through all zones": (
        {"memory": False, "minor": Minor(1, 35)},
        pod(2, "1Gi", **{presets.GPU: 1}),
        3 * SETS,
    ),
}


@pytest.mark.parametrize("chosen, asked, steps", STEPS.values(), ids=STEPS)
def test_what_the_kubelet_would_go_through_is_reported(chosen: dict[str, Any], asked: Pod, steps: int) -> None:
    outcome = runs.answer(kubelet(SUPERCHIP, **{"policy": "restricted"} | chosen), asked)
    assert (outcome.admitted, outcome.steps, outcome.slow) == (True, steps, steps > 9)


@pytest.mark.parametrize("minor", [Minor(1, 35), Minor(1, 36)], ids=str)
def test_devices_are_aligned_the_same_in_all_minors(minor: Minor) -> None:
    node = kubelet(SUPERCHIP, "restricted", memory=False, minor=minor)
    assert result(runs.answer(node, pod(100, "1Gi", **{presets.GPU: 3}))) == ((0, 1),)
