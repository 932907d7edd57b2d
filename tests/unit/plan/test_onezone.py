from __future__ import annotations

import csv
import lzma
import os
from collections import defaultdict
from pathlib import Path
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.plan import onezone, packing, trace
from numalign.plan.onezone import POLICIES
from tests.unit.plan import traces

EVERY_POLICY = pytest.mark.parametrize("policy", POLICIES)
BESIDE = Path(__file__).parents[4] / "shared" / "trace"
TRACE = Path(os.environ.get("NUMALIGN_TRACE") or BESIDE)
"""The folder with the folders `openb` and `openb-expected` of the public trace, which the repository does not carry."""
PUBLISHED = TRACE / "openb-expected" / "analysis_allo_discrete.csv.xz"
with_the_trace = pytest.mark.skipif(not PUBLISHED.is_file(), reason="NUMALIGN_TRACE names no folder of the trace")


@EVERY_POLICY
def test_machine_code_and_plain_python_agree(policy: str) -> None:
    made = traces.small(nodes=6, pods=20)
    assert onezone.pack(made, policy, 42) == onezone.pack(made, policy, 42, compiled=False)


@EVERY_POLICY
@settings(max_examples=8)
@given(seed=st.integers(0, 1000))
def test_no_gpu_is_given_out_twice(policy: str, seed: int) -> None:
    made = traces.small(nodes=5, pods=20, seed=seed)
    packed = onezone.pack(made, policy, seed, compiled=False)
    assert 0 <= packed.allocated_100 <= 100
    assert 0 <= packed.allocated_130 <= 100
    assert packed.fragmented_130 <= 100 - packed.allocated_130 + 1e-9
    assert 0 <= packed.dropped <= packed.pods


def test_a_node_of_which_no_typical_shape_can_use_anything_is_all_fragment() -> None:
    gpus, weights = np.array([1000, 300], np.int64), np.ones(1)
    eight = np.array([[1000, 0, 1000, 8, 0]], np.int64)
    one = np.array([[1000, 0, 1000, 1, 0]], np.int64)
    without = np.array([[1000, 0, 0, 0, 0]], np.int64)
    assert packing.fragment(8000, gpus, 2, 0, eight, weights) == 1300
    assert packing.fragment(8000, gpus, 2, 0, one, weights) == 300
    assert packing.fragment(500, gpus, 2, 0, one, weights) == 1300
    assert packing.fragment(8000, gpus, 2, 0, without, weights) == 1300


def test_fgd_keeps_whole_gpus_for_those_who_need_them() -> None:
    made = traces.small(nodes=30, pods=200)
    assert onezone.pack(made, "fgd", 42).allocated_130 > onezone.pack(made, "random", 42).allocated_130


def published() -> dict[tuple[str, str], dict[int, tuple[float, float]]]:
    """By list and policy, then by seed, what was allocated at 100 and at 130 % of demand."""
    found = defaultdict[tuple[str, str], dict[int, tuple[float, float]]](dict)
    with lzma.open(PUBLISHED, "rt") as lines:
        for row in csv.DictReader(lines):
            name, policy = row["workload"].removeprefix("openb_pod_list_"), row["sc_policy"][3:].lower()
            if row["100"] and row["130"]:
                found[name, policy][int(row["seed"])] = float(row["100"]), float(row["130"])
    return found


@with_the_trace
@pytest.mark.parametrize("name", ["default", "multigpu50"])
@pytest.mark.parametrize("policy", ["bestfit", "gpupacking"])
def test_a_published_run_is_repeated_to_the_last_digit(name: str, policy: str) -> None:
    expected = published()[name, policy][42]
    packed = onezone.pack(trace.read(TRACE / "openb", name), policy, 42)
    assert (packed.allocated_100, packed.allocated_130) == pytest.approx(expected, abs=0.011)


@pytest.mark.slow
@with_the_trace
@EVERY_POLICY
def test_published_means_are_met_on_every_list(policy: str) -> None:
    for (name, other), by_seed in published().items():
        if other == policy:
            made = trace.read(TRACE / "openb", name)
            packed = [onezone.pack(made, policy, seed) for seed in by_seed]
            ours = mean(each.allocated_100 for each in packed), mean(each.allocated_130 for each in packed)
            theirs = tuple(mean(values) for values in zip(*by_seed.values(), strict=True))
            # Random draws other numbers than the published program.
            assert ours == pytest.approx(theirs, abs=0.5 if policy == "random" else 0.2), name
