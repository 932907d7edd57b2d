from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.placement.capacity import waste
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.referenceargs import Strategy
from numalign.placement.settings import Settings
from numalign.placement.verdicts.fragmentation import Fragmentation
from numalign.plan import machines
from numalign.plan.machines import GPU
from numalign.plan.trace import WHOLE, TraceNode
from numalign.plan.workload import Shape

SERVER = TraceNode("", 96_000, 393_216, 8, "G2")
SMALL = TraceNode("", 8_000, 32_768, 1, "V100")
SIZES = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.sampled_from([2_000, 12_000, 30_000])), max_size=10)


def shape(gpus: int, cpu: int) -> Shape:
    return Shape(cpu, WHOLE if gpus else 0, gpus, (), 1024)


TYPICAL = [(machines.pod(shape(gpus, 10_000 * max(1, gpus)), pinned=True), 0.25) for gpus in (0, 1, 2, 4)]


def cluster(strategy: Strategy, *, typical: bool = True) -> tuple[Engine, ExactFlavour]:
    settings = Settings(strategy=strategy, trust_bind_order=True, typical=tuple(TYPICAL) if typical else ())
    engine = Engine(settings)
    listed = [TraceNode(f"node-{number}", *kind) for number, kind in enumerate(map(_kind, (SERVER, SERVER, SMALL)))]
    for place in machines.nodes(listed, 2, "restricted"):
        engine.apply(NodeSeen(place.node))
        engine.apply(ReportSeen(place.topology, 0.0))
    flavour = waste.exact(engine)
    flavour.refresh()
    return engine, flavour


def _kind(node: TraceNode) -> tuple[int, int, int, str]:
    return node.cpu_milli, node.memory_mib, node.gpus, node.model


def place(engine: Engine, number: int, gpus: int, cpu: int, row: int | None = None) -> bool:
    pod = machines.named(machines.pod(shape(gpus, cpu), pinned=True), f"pod-{number}")
    own = engine.shape(pod)
    chosen = int(engine.survey(own).argmax()) if row is None else row
    return engine.place(pod, own, chosen, 0.0) is not None


def scarce() -> list[tuple[Pod, float]]:
    """The typical pods with their weights over the square of the part of all GPUs that they could use when empty."""
    engine, _ = cluster(Strategy.LEAST_ALLOCATED)
    gpus = [8, 8, 1]
    found = []
    for pod, weight in TYPICAL:
        fits = engine.survey(engine.shape(pod)) > 0
        part = sum(number for number, has_room in zip(gpus, fits, strict=False) if has_room) / sum(gpus)
        found.append((pod, weight / part**2 if GPU in engine.shape(pod).totals else weight))
    total = sum(weight for _, weight in found)
    return [(pod, weight / total) for pod, weight in found]


def by_survey(engine: Engine, row: int, typical: Sequence[tuple[Pod, float]] = TYPICAL) -> float:
    """What is expected to be useless, by one answer of the engine for every typical pod."""
    columns = engine.columns
    idle = int(np.maximum(columns.free[row, :, columns.column(GPU)], 0).sum())
    return sum(
        weight * idle
        for pod, weight in typical
        if GPU not in engine.shape(pod).totals or engine.survey(engine.shape(pod))[row] < 0
    )


@settings(max_examples=25, deadline=None)
@given(sizes=SIZES)
def test_what_is_useless_is_what_no_kubelet_would_give_to_typical_pods(sizes: list[tuple[int, int]]) -> None:
    engine, flavour = cluster(Strategy.LEAST_ALLOCATED)
    for number, (gpus, cpu) in enumerate(sizes):
        place(engine, number, gpus, cpu)
    flavour.refresh()
    measure = Fragmentation(engine.columns, flavour.evaluation)
    measure.set_typical([(engine.shape(pod), weight) for pod, weight in TYPICAL])
    for row in range(engine.height):
        kind = int(engine.columns.kind[row])
        found = measure.expected(kind, np.array([row], np.int32))
        assert found[0] == pytest.approx(by_survey(engine, row))


@settings(max_examples=25, deadline=None)
@given(sizes=SIZES, newcomer=st.tuples(st.sampled_from([0, 1, 2, 4, 8]), st.sampled_from([3_000, 20_000])))
def test_the_score_says_what_the_pod_would_make_useless(
    sizes: list[tuple[int, int]], newcomer: tuple[int, int]
) -> None:
    engine, _ = cluster(Strategy.LEAST_FRAGMENTATION)
    typical = scarce()
    for number, (gpus, cpu) in enumerate(sizes):
        place(engine, number, gpus, cpu)
    own = engine.shape(machines.pod(shape(*newcomer), pinned=True))
    row = int(engine.survey(own).argmax())
    score, before = int(engine.survey(own)[row]), by_survey(engine, row, typical)
    if score > 0:
        assert place(engine, 99, *newcomer, row=row)
        grown = by_survey(engine, row, typical) - before
        assert score == pytest.approx(max(1, math.floor(100 / (1 + math.exp(grown)))), abs=1)


def test_the_last_zone_with_room_for_four_stays_whole() -> None:
    """One server has a zone left, the other one two: a pod with one GPU goes to the second."""
    engine, packing = cluster(Strategy.LEAST_FRAGMENTATION)[0], cluster(Strategy.MOST_ALLOCATED)[0]
    for each in (engine, packing):
        assert place(each, 0, 4, 8_000, row=0)
    single = machines.pod(shape(1, 2_000), pinned=True)
    codes, packed = engine.survey(engine.shape(single)), packing.survey(packing.shape(single))
    assert codes[1] > codes[0]
    assert packed[1] <= packed[0]


def test_a_rare_machine_is_kept_for_the_pods_that_need_it() -> None:
    """Few pods ask for 100 CPUs, which one machine of four has. More of them ask for 65, which its kubelet refuses: one
    zone has as many, so that two are not preferred. Each machine alone would say that the rare one is the worse."""
    large = TraceNode("", 128_000, 786_432, 8, "G3")
    typical = [(shape(8, 65_000), 0.04), (shape(8, 100_000), 0.02), (shape(1, 4_000), 0.94)]
    pods = tuple((machines.pod(each, pinned=True), part) for each, part in typical)
    engine = Engine(Settings(strategy=Strategy.LEAST_FRAGMENTATION, trust_bind_order=True, typical=pods))
    kinds = [large, SERVER, SERVER, SERVER]
    for number, kind in enumerate(kinds):
        (there,) = machines.nodes([TraceNode(f"node-{number}", *_kind(kind))], 2, "restricted")
        engine.apply(NodeSeen(there.node))
        engine.apply(ReportSeen(there.topology, 0.0))
    assert [engine.survey(engine.shape(pod))[0] > 0 for pod, _ in pods] == [False, True, True]
    common = engine.survey(engine.shape(machines.pod(shape(8, 88_000), pinned=True)))
    assert common[0] < common[1], "others leave it alone"
    measure = Fragmentation(engine.columns, waste.exact(engine).evaluation)
    measure.set_typical([(engine.shape(pod), part) for pod, part in pods])
    alone = [measure.expected(int(engine.columns.kind[row]), np.array([row], np.int32))[0] for row in (0, 1)]
    assert alone[0] > alone[1], "without scarcity it would come first"


def test_a_shape_that_fits_no_node_does_not_count() -> None:
    pods = ((machines.pod(shape(8, 500_000), pinned=True), 0.5), *TYPICAL)
    engine, _ = cluster(Strategy.LEAST_FRAGMENTATION)
    with_it = Engine(Settings(strategy=Strategy.LEAST_FRAGMENTATION, trust_bind_order=True, typical=pods))
    for place_ in machines.nodes([TraceNode("node-0", *_kind(SERVER)), TraceNode("node-1", *_kind(SMALL))], 2, "none"):
        with_it.apply(NodeSeen(place_.node))
        with_it.apply(ReportSeen(place_.topology, 0.0))
    assert place(engine, 0, 4, 8_000)
    assert place(with_it, 0, 4, 8_000)
    single = machines.pod(shape(1, 2_000), pinned=True)
    assert len({int(code) for code in with_it.survey(with_it.shape(single))[:2]}) == 2


def test_without_typical_pods_the_engine_packs_and_then_learns() -> None:
    engine, flavour = cluster(Strategy.LEAST_FRAGMENTATION, typical=False)
    packing, _ = cluster(Strategy.MOST_ALLOCATED)
    own = machines.pod(shape(2, 4_000), pinned=True)
    assert (engine.survey(engine.shape(own)) == packing.survey(packing.shape(own))).all()
    for number in range(3):
        assert place(engine, number, 2, 4_000)
    assert flavour.evaluation.fragmentation is not None
    measure = flavour.evaluation.fragmentation.expected(int(engine.columns.kind[0]), np.array([0], np.int32))
    assert measure[0] >= 0
    assert (engine.survey(engine.shape(own)) != packing.survey(packing.shape(own))).any()


def test_the_reference_flavour_refuses_the_strategy() -> None:
    with pytest.raises(BadObject, match="the plugin does not have it"):
        Engine(Settings(flavour="reference", strategy=Strategy.LEAST_FRAGMENTATION))
