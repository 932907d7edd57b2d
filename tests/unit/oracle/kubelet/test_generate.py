"""Made-up cases: repeatable, readable by the model, and never too much for the real merge."""

from math import prod

import pytest

from numalign.kubelet.versions import Minor
from numalign.oracle.harness.divergence import Case
from numalign.oracle.kubelet import vectors
from numalign.oracle.kubelet.generate import cases

NEW, OLD = Minor(1, 37), Minor(1, 35)


def drawn(seed: int, number: int) -> list[tuple[str, Case]]:
    return [cases.draw(seed, each, NEW) for each in range(number)]


def test_the_same_seed_makes_the_same_cases() -> None:
    assert drawn(3, 200) == drawn(3, 200)


def test_another_seed_makes_other_cases() -> None:
    assert drawn(3, 50) != drawn(4, 50)


def test_every_family_is_drawn() -> None:
    assert {family for family, _ in drawn(1, 1500)} == set(cases.WEIGHTS)


def test_kubelets_without_the_gate_get_no_pod_level_lives() -> None:
    assert "sequence_podlevel" not in {cases.draw(1, number, OLD)[0] for number in range(1500)}


@pytest.mark.parametrize("number", range(300))
def test_the_model_can_read_what_is_made(number: int) -> None:
    family, case = cases.draw(11, number, NEW)
    known = next(each for each in vectors.FAMILIES if each.name == family)
    assert vectors.typed(known.case, case) is not None


def test_merges_stay_small_enough_for_the_real_product() -> None:
    for _, case in ((family, case) for family, case in drawn(5, 2000) if family == "tm_merge"):
        lists = [len(hints or [0]) for provider in case["providers"] for hints in (provider or {}).values()]
        assert prod(max(1, size) for size in lists) <= max(cases.PERMUTATIONS)


def test_edges_are_among_the_machines() -> None:
    machines = [case["topology"] for family, case in drawn(2, 1500) if "topology" in case]
    ids = [[zone["id"] for zone in machine["numa"]] for machine in machines]
    assert any(zones != list(range(len(zones))) for zones in ids)
    assert any(not zone["cores"] for machine in machines for zone in machine["numa"])
    assert any(machine["num_sockets"] > len(machine["numa"]) for machine in machines)
