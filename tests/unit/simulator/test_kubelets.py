"""Simulated kubelets do what the planner says: its counts against the model on ids."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.placement import kernels
from numalign.placement.capacity.contenders import CONTENDERS
from numalign.plan import agreement, machines, trace, zoned
from numalign.plan.agreement import Agreement, PredictedBinding
from numalign.plan.trace import Trace, TraceNode
from numalign.plan.workload import Shape
from numalign.plan.zoned import Setup
from numalign.simulator import kubelets
from tests.unit.plan import traces
from tests.unit.plan.test_onezone import TRACE, with_the_trace

BLIND = [name for name, each in CONTENDERS.items() if not each.has_filter]


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels as plain Python: small clusters need no machine code."""
    monkeypatch.setattr(kernels, "load", lambda: None)


def said(made: Trace, contender: str, seed: int, setup: Setup) -> list[PredictedBinding]:
    bindings: list[PredictedBinding] = []
    zoned.pack(made, contender, seed, setup, bindings.append)
    return bindings


def compared(made: Trace, setup: Setup, bindings: list[PredictedBinding]) -> Agreement:
    return agreement.compare(bindings, kubelets.ask(made.nodes, setup.zones, setup.policy, bindings))


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("contender", CONTENDERS)
@settings(max_examples=6)
@given(seed=st.integers(0, 100), zones=st.sampled_from([1, 2, 4]), pinned=st.booleans(), policy=st.sampled_from(
    ["restricted", "best-effort", "single-numa-node"]
))  # fmt: skip
def test_every_pod_is_admitted_and_rejected_as_the_replay_says(
    contender: str, seed: int, zones: int, pinned: bool, policy: Any
) -> None:
    made, setup = traces.small(nodes=6, pods=30, seed=seed, shares=False), Setup(zones=zones, policy=policy)
    setup = structs.replace(setup, pinned=pinned)
    bindings = said(made, contender, seed, setup)
    found = compared(made, setup, bindings)
    assert found.contradictions == ()
    assert found.bindings == len(bindings)
    assert found.admitted > 0


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize("contender", BLIND)
def test_rejections_of_blind_contenders_are_real(contender: str) -> None:
    made, setup = traces.small(nodes=9, pods=60, seed=2, shares=False), Setup(zones=2, pinned=True)
    assert compared(made, setup, said(made, contender, 42, setup)).rejected > 0


@pytest.mark.usefixtures("plain")
def test_what_is_said_wrongly_is_found() -> None:
    """The first pod of two zones is said to be in the other one, or to be rejected."""
    made, setup = traces.small(nodes=6, pods=30, shares=False), Setup(zones=2, pinned=True)
    bindings = said(made, "zone-fgd", 42, setup)
    servers = {node.name for node in made.nodes if node.gpus > 1}
    place = next(place for place, each in enumerate(bindings) if each.node in servers and len(each.taken) == 2)
    pod = bindings[place]
    moved = tuple(structs.replace(each, zones=(1 - each.zones[0],)) for each in pod.taken)
    for wrong in (structs.replace(pod, taken=moved), structs.replace(pod, is_admitted=False)):
        found = compared(made, setup, [*bindings[:place], wrong, *bindings[place + 1 :]])
        assert len(found.contradictions) == 1
        assert f"pod {pod.pod} on node {pod.node}" in found.contradictions[0]


@pytest.mark.parametrize("is_certain", [True, False])
def test_a_pod_that_the_replay_is_not_certain_of_leaves_when_it_is_given_up(is_certain: bool) -> None:
    """Counts do not say how 65 CPUs lie in two zones. The third pod fits beside them, but not twice."""
    server = TraceNode("server", 96_000, 393_216, 8, "G2")

    def binding(name: str, cpus: int, gpus: int, **said: Any) -> PredictedBinding:
        shape = Shape(1000 * cpus, 1000 if gpus else 0, gpus, (), 1024)
        return PredictedBinding(
            pod=name, spec=machines.spec(shape, pinned=True), node="server", **{"is_admitted": True, **said}
        )

    unsure = binding("third", 16, 0, is_admitted=False, is_certain=is_certain)
    bindings = [binding("first", 8, 0), binding("second", 65, 8), unsure, binding("fourth", 16, 0)]
    answers = kubelets.ask([server], 2, "restricted", bindings)
    assert [bool(each.why) for each in answers] == [False, False, False, is_certain]
    assert agreement.compare(bindings, answers).given_up == (0 if is_certain else 1)


@pytest.mark.slow
@with_the_trace
@pytest.mark.parametrize("pinned", [True, False], ids=["guaranteed", "listed"])
@pytest.mark.parametrize("contender", ["zone-fgd", "fgd", "least-blind"])
def test_all_machines_of_the_public_trace_do_what_the_replay_says(contender: str, pinned: bool) -> None:
    made, setup = trace.read(TRACE / "openb", "default"), Setup(zones=2, pinned=pinned)
    found = compared(made, setup, said(made, contender, 42, setup))
    assert found.contradictions == ()
    assert found.admitted > 1000
    assert (found.rejected > 0) == (pinned and contender in BLIND)
