"""Where the real kubelet spins for ever, the model says so, at once, and leaves the node as it was.

Four zones of three cores, one thread reserved in each zone: five CPUs are free everywhere. Fourteen CPUs in whole cores
are two from every zone and six more, which no two zones can give though they have six CPUs left (kubelet spec 5.7)."""

from typing import Any

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet import admission, start
from numalign.kubelet.cpu.assignment import HANGS
from numalign.kubelet.refusals import Undecided
from numalign.kubelet.start import Kubelet
from numalign.kubelet.versions import Minor
from tests.unit.kubelet import made, runs

ACROSS_NUMA, WHOLE_CORES, BY_SOCKET = "distribute-cpus-across-numa", "full-pcpus-only", "align-by-socket"
MACHINE = made.machine(4, cores=3, threads=2, sockets=2)
ASKED = made.pod("p", made.container("c", 14))


def spreading(*options: str, **chosen: Any) -> Kubelet:
    written = dict.fromkeys((ACROSS_NUMA, *options), "true")
    gates = {"CPUManagerPolicyAlphaOptions": True} | chosen.pop("feature_gates", {})
    chosen = {"policy": "none", "reserved_cpus": "0,3,6,9"} | chosen
    return made.kubelet(MACHINE, cpu_options=written, feature_gates=gates, **chosen)


@pytest.mark.parametrize("minor", [Minor(1, minor) for minor in range(34, 39)], ids=str)
def test_a_kubelet_that_never_returns_gives_no_verdict_in_any_minor(minor: Minor) -> None:
    outcome = runs.answer(spreading(WHOLE_CORES, minor=minor), ASKED)
    assert (outcome.verdict, outcome.reason, outcome.message) == ("undecided", "", HANGS)


def test_aligning_by_socket_does_not_help() -> None:
    assert runs.answer(spreading(WHOLE_CORES, BY_SOCKET), ASKED).message == HANGS


def test_the_node_stays_as_it_was() -> None:
    kubelet = spreading(WHOLE_CORES)
    before = runs.admitted(kubelet, made.pod("q", made.container(burstable=True, nic=1)))
    after, outcome = admission.admit(kubelet, before, ASKED)
    assert (outcome.verdict, after) == ("undecided", before)


def test_the_next_pod_is_answered_as_if_nothing_had_happened() -> None:
    kubelet = spreading(WHOLE_CORES)
    state, _ = admission.admit(kubelet, kubelet.initial(), ASKED)
    assert runs.answer(kubelet, made.pod("q"), state) == runs.answer(kubelet, made.pod("q"))


ANSWERED: dict[str, tuple[Kubelet, int]] = {
    "two fewer": (spreading(WHOLE_CORES), 12),
    "two more, which do not go evenly": (spreading(WHOLE_CORES), 16),
    "single threads": (spreading(), 14),
    "whole cores reserved": (spreading(WHOLE_CORES, reserved_cpus="0,12,3,15"), 14),
    "three zones to align to, which cannot be shared evenly": (spreading(WHOLE_CORES, policy="restricted"), 14),
}


@pytest.mark.parametrize("kubelet, cpus", ANSWERED.values(), ids=ANSWERED)
def test_neighbouring_requests_are_answered(kubelet: Kubelet, cpus: int) -> None:
    placed = runs.answer(kubelet, made.pod("p", made.container("c", cpus))).placement["c"]
    assert (placed.cpus or 0).bit_count() == cpus


def test_packed_picking_never_hangs() -> None:
    packed = made.kubelet(MACHINE, policy="none", reserved_cpus="0,3,6,9", cpu_options={WHOLE_CORES: "true"})
    assert runs.answer(packed, ASKED).admitted


def test_not_even_the_pods_earlier_containers_keep_their_cpus() -> None:
    kubelet = spreading(WHOLE_CORES)
    pod = made.pod("p", made.container("first", 2), made.container("c", 14))
    state, outcome = admission.admit(kubelet, kubelet.initial(), pod)
    assert (outcome.message, state) == (HANGS, kubelet.initial())


def test_a_pod_that_holds_its_cpus_is_admitted_again_without_picking() -> None:
    plain, spread = made.kubelet(MACHINE, policy="none", reserved_cpus="0,3,6,9"), spreading(WHOLE_CORES)
    state = start.restart(spread, runs.admitted(plain, ASKED))
    again = admission.align(spread, state, ASKED)[0]
    assert again.cpu is not None
    assert state.cpu is not None
    assert cpuset.text(again.cpu.assignments["p"]["c"]) == cpuset.text(state.cpu.assignments["p"]["c"])


def test_the_livelock_is_an_exception_of_the_picker_itself() -> None:
    kubelet = spreading(WHOLE_CORES)
    assert kubelet.cpu is not None
    with pytest.raises(Undecided, match="the kubelet never returns") as hanging:
        kubelet.cpu.take(kubelet.cpu.allocatable, 14)
    assert hanging.value.count is None
