from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.placement import kernels
from numalign.placement.capacity.contenders import CONTENDERS
from numalign.plan import zoned
from numalign.plan.trace import WHOLE, Trace, TraceNode, TracePod
from numalign.plan.zoned import Setup
from tests.unit.plan import traces

WITH_FILTER = [name for name, each in CONTENDERS.items() if each.has_filter]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as plain Python: small clusters need no machine code."""
    monkeypatch.setattr(kernels, "load", lambda: None)


@pytest.mark.parametrize("contender", WITH_FILTER)
@settings(max_examples=4)
@given(seed=st.integers(0, 100), zones=st.sampled_from([1, 2, 4]), pinned=st.booleans(), policy=st.sampled_from(
    ["restricted", "best-effort", "single-numa-node"]
))  # fmt: skip
def test_kubelets_reject_nothing_of_those_who_ask_the_model(
    contender: str, seed: int, zones: int, pinned: bool, policy: Any
) -> None:
    trace = traces.small(nodes=6, pods=30, seed=seed, shares=False)
    packed = zoned.pack(trace, contender, seed, Setup(zones=zones, policy=policy, pinned=pinned))
    assert packed.rejected == 0
    assert 0 <= packed.allocated_130 <= 100
    assert packed.stranded_gpus <= packed.unallocated_gpus + 1e-9


def crowded(pods: int) -> Trace:
    """A server of which pods without GPUs fill the CPUs of one zone, and pods that then find its GPUs in the other."""
    nodes = (TraceNode("node-0", 96_000, 393_216, 8, "G2"),)
    fillers = tuple(TracePod(f"fill-{number}", 48_000, 1024, 0) for number in range(1))
    eight = tuple(TracePod(f"pod-{number}", 10_000, 1024, 1, WHOLE) for number in range(pods))
    return Trace("crowded", nodes, fillers + eight)


def test_a_blind_contender_is_rejected_where_only_totals_have_room() -> None:
    """48 CPUs are left in one zone: room for four pods with a GPU by CPUs there, and for none beside them."""
    setup = Setup(zones=2, pinned=True)
    blind, asking = (zoned.pack(crowded(8), each, 42, setup) for each in ("fgd", "fgd-filter"))
    assert asking.rejected == 0
    assert blind.rejected >= asking.rejected
    assert blind.allocated_130 == asking.allocated_130


def test_results_are_those_of_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    trace, setup = traces.small(nodes=6, pods=40, shares=False), Setup(zones=2, pinned=True)
    found = [zoned.pack(trace, name, 42, setup) for name in CONTENDERS]
    monkeypatch.undo()
    assert [zoned.pack(trace, name, 42, setup) for name in CONTENDERS] == found


def test_without_zones_nothing_is_stranded_or_rejected() -> None:
    trace = traces.small(nodes=6, pods=40, shares=False)
    for name in CONTENDERS:
        packed = zoned.pack(trace, name, 42, Setup(zones=1))
        assert (packed.rejected, packed.stranded_gpus, packed.free_sockets) == (0, 0, 0), name


def test_fgd_and_its_zoned_form_agree_without_zones() -> None:
    trace = traces.small(nodes=12, pods=80, shares=False)
    setup = Setup(zones=1)
    assert zoned.pack(trace, "fgd", 42, setup) == zoned.pack(trace, "zone-fgd", 42, setup)


@pytest.mark.parametrize("policy, looks", [("restricted", False), ("single-numa-node", True)])
def test_the_go_plugin_looks_at_zones_of_one_policy_only(policy: Any, looks: bool) -> None:
    """On other nodes it accepts every pod, and is as blind as NodeResourcesFit alone."""
    trace = traces.small(nodes=9, pods=60, seed=2, shares=False)
    setup = Setup(zones=2, pinned=True, policy=policy)
    plugin, blind = (zoned.pack(trace, each, 42, setup) for each in ("go-plugin", "least-blind"))
    assert blind.rejected > 0
    assert plugin.rejected == 0 if looks else plugin == blind
