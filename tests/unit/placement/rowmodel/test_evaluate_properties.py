"""The row model against the kubelet: nodes, pasts and pods drawn at random."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from numalign.kubelet import admission
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause
from numalign.placement.rowmodel.evaluate import Verdict
from tests import nodes
from tests.campaigns import holds_for
from tests.nodes import Node, simple
from tests.rows import View
from tests.strategies import kubelet as drawn
from tests.strategies.placement import Lived, lived, loosened
from tests.unit.placement import agreement
from tests.unit.placement.agreement import Asked


@holds_for(lived(coming=4), examples=60)
def test_a_pod_gets_the_verdict_and_the_zones_that_the_kubelet_gives_it(life: Lived) -> None:
    state = life.state
    for pod in life.coming:
        asked = Asked(life.view, state, pod)
        verdict = evaluate.evaluate(life.view.row(state), asked.program)
        assert not asked.contradicts(verdict), verdict
        state = asked.after


@holds_for(lived(coming=4), examples=40)
def test_a_row_after_a_pod_is_the_row_that_the_kubelet_would_report(life: Lived) -> None:
    state = life.state
    for pod in life.coming:
        asked, row = Asked(life.view, state, pod), life.view.row(state)
        verdict = evaluate.evaluate(row, asked.program)
        after = verdict.after(row)
        if verdict.fits and not after.entries and asked.program.budget is None:
            assert not agreement.differs(after, life.view.row(asked.after)), verdict
        state = asked.after


@holds_for(lived(coming=1, uneven=False), examples=60)
def test_amounts_decide_every_pod_of_one_container_on_a_regular_machine(life: Lived) -> None:
    (pod,) = life.coming
    asked = Asked(life.view, life.state, pod)
    verdict = evaluate.evaluate(life.view.row(life.state), asked.program)
    exceptions = {Cause.CPU_IDS} if _has_uneven_sockets(life.view) else set[Cause]()
    if "distribute-cpus-across-numa" in life.view.rules.cpu_options:
        exceptions |= {Cause.NEVER_ENDS, Cause.CPU_IDS}
    if len(asked.program.steps) == 1:
        assert verdict.code in agreement.EXPECTED or (verdict.shortfall and verdict.shortfall.cause in exceptions)


def _has_uneven_sockets(view: View) -> bool:
    """Where the kubelet takes a socket for a free one by the size of the others, and CPUs that are not free with it."""
    return len({cpus.bit_count() for cpus in view.cores.topology.sockets.values()}) > 1


@holds_for(st.data(), examples=60)
def test_a_verdict_on_vague_amounts_holds_for_what_is_really_there(data: st.DataObject) -> None:
    life = data.draw(lived(max_zones=4, coming=2))
    row = data.draw(loosened(life))
    for pod in life.coming:
        asked = Asked(life.view, life.state, pod)
        verdict = evaluate.evaluate(row, asked.program)
        assert not asked.contradicts(verdict), verdict


@holds_for(lived(coming=3), examples=30)
def test_what_the_kubelet_cannot_answer_is_never_said_to_fit(life: Lived) -> None:
    for pod in life.coming:
        asked = Asked(life.view, life.state, pod)
        if asked.outcome.verdict == "undecided":
            verdict = evaluate.evaluate(life.view.row(life.state), asked.program)
            assert verdict.code in (Verdict.NOT_DECIDED, Verdict.NOT_CERTAIN)


@holds_for(lived(coming=2), examples=30)
def test_evaluating_leaves_the_row_as_it_was(life: Lived) -> None:
    row = life.view.row(life.state)
    for pod in life.coming:
        program = life.view.program(pod)
        assert evaluate.evaluate(row, program) == evaluate.evaluate(row, program)
    assert row == life.view.row(admission.collect(life.kubelet, life.state))


BY_L3: dict[str, Any] = {
    "cpu_options": {"prefer-align-cpus-by-uncorecache": "true"},
    "memory_policy": "None",
    "reserved_memory": (),
}
SIZES = st.lists(st.integers(1, 12), min_size=3, max_size=8)


@holds_for(st.integers(4, 7), st.integers(3, 5), st.sampled_from(("restricted", "best-effort")), SIZES, examples=40)
def test_an_l3_of_two_zones_gives_cpus_where_they_are_said_to_be(
    cores: int, l3: int, policy: str, sizes: list[int]
) -> None:
    node = Node(nodes.with_l3s(nodes.machine(zones=4, cores=cores), l3), policy, **BY_L3)
    view = View(node.kubelet)
    for number, cpus in enumerate(sizes):
        asked = Asked(view, node.state, simple(f"p{number}", cpus))
        verdict = evaluate.evaluate(view.row(node.state), asked.program)
        assert not asked.contradicts(verdict), verdict
        node.state = asked.after
        if number % 3 == 1:
            node.end(f"p{number - 1}")


MANY = {"topology_options": {"max-allowable-numa-nodes": "16"}, "minor": drawn.MINORS[-1]}


@holds_for(lived(max_zones=12, coming=3, uneven=False, **MANY), examples=15)
def test_on_machines_of_many_zones_what_is_decided_is_right(life: Lived) -> None:
    for pod in life.coming:
        asked = Asked(life.view, life.state, pod)
        verdict = evaluate.evaluate(life.view.row(life.state), asked.program)
        assert not asked.contradicts(verdict), verdict
