"""The engine for a caller that chooses nodes by more than zones: survey all of them, place on one."""

from __future__ import annotations

from numalign.placement import facts
from numalign.placement.decisions import Code
from numalign.placement.engine import Engine
from tests.unit.scheduler.servers import Servers, trainer


def engine(*nodes: str) -> Engine:
    return Servers(*nodes).cluster.engine


def test_a_pod_is_placed_on_the_row_that_is_asked_for_and_charged_there() -> None:
    known = engine("a", "b")
    pod = trainer("p", gpus=3)
    shape, row = known.shape(pod), known.columns.rows["b"]
    for number in range(2):
        decision = known.place(trainer(f"p{number}", gpus=3), shape, row, 0.0)
        assert decision is not None
        assert (decision.node, [each.zones for each in decision.placement]) == ("b", [((number,),)])
    assert known.survey(shape)[row] == Code.TOTALS
    assert known.place(trainer("p2", gpus=3), shape, row, 0.0) is None


def test_a_pod_placed_again_gives_back_what_it_had() -> None:
    known = engine("a", "b")
    pod = trainer("p", gpus=4)
    shape = known.shape(pod)
    before = known.survey(shape).copy()
    for name in ("a", "b", "a", "b"):
        assert known.place(pod, shape, known.columns.rows[name], 0.0) is not None
    known.apply(facts.BindFailed(pod.metadata.uid))
    assert known.survey(shape).tolist() == before.tolist()
