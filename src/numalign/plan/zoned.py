"""Replays a workload of whole GPUs on machines with NUMA zones, where kubelets align what they give out.

`replay` calls `pack`. A contender chooses a node, the engine of the scheduler says what its kubelet does. A rejected
pod is created again and tried on the next best node, three times in all; this favours contenders that are blind: a real
scheduler may choose the same node again. Nothing of a run depends on `seen`, which gets every binding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.nrt.topologymanager import Policy
from numalign.placement.capacity import waste
from numalign.placement.capacity.contenders import CONTENDERS, Chooser
from numalign.placement.capacity.pluginrule import Published
from numalign.placement.decisions import Code, Codes, Decision
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.placement.referenceargs import Strategy
from numalign.placement.settings import Settings
from numalign.plan import machines, workload
from numalign.plan.agreement import PredictedBinding
from numalign.plan.curve import Curve, Packed
from numalign.plan.machines import GPU
from numalign.plan.trace import WHOLE, Trace

ATTEMPTS: Final = 3
ALL_SHAPES: Final = 4096
UNSURE: Final = frozenset({Code.NOT_CERTAIN, Code.NOT_DECIDED})
START: Final = 0.0


class Setup(Struct, frozen=True, kw_only=True):
    """What kubelets do, and how requests are read."""

    zones: int
    policy: Policy = "restricted"
    pinned: bool = False
    """Whether pods are Guaranteed, with CPUs rounded up to whole ones; else only devices are aligned."""


Seen = Callable[[PredictedBinding], None]


def pack(trace: Trace, contender: str, seed: int, setup: Setup, seen: Seen | None = None) -> Packed:
    """One run."""
    trace = workload.whole_gpus(trace)
    trace = workload.with_whole_cpus(trace) if setup.pinned else trace
    return _Replay(trace, contender, seed, setup, seen).packed()


class _Replay:
    def __init__(self, trace: Trace, contender: str, seed: int, setup: Setup, seen: Seen | None) -> None:
        self._seen, self._pinned = seen, setup.pinned
        self._trace, self._arrived = trace, workload.arrivals(trace, seed)
        chosen = CONTENDERS[contender]
        typical = [(machines.pod(shape, pinned=setup.pinned), part) for shape, part in workload.typical(trace)]
        self._engine = Engine(
            Settings(
                strategy=chosen.strategy or Strategy.LEAST_ALLOCATED,
                typical=tuple(typical),
                # One pod after the other: a kubelet admits it before the next one is bound.
                trust_bind_order=True,
                live_shapes=ALL_SHAPES,
            )
        )
        self._engine.warm()
        listed = [trace.nodes[number] for number in self._arrived.nodes]
        for place in machines.nodes(listed, setup.zones, setup.policy):
            self._engine.apply(NodeSeen(place.node))
            self._engine.apply(ReportSeen(place.topology, START))
        self._flavour = waste.exact(self._engine)
        self._pods = [machines.pod(shape, pinned=setup.pinned) for shape in self._arrived.shapes]
        self._shapes = [self._engine.shape(pod) for pod in self._pods]
        self._typical = [(self._engine.shape(pod), part) for pod, part in typical]
        by_row = {self._engine.rows[node.name]: node for node in listed}

        def published(row: int) -> Published:
            return machines.published(by_row[row], setup.zones, setup.policy)

        self._chooser = Chooser(self._engine, self._flavour, chosen, self._typical, published)
        self._barred = [self._rows_of_other_models(shape.models) for shape in self._arrived.shapes]

    def packed(self) -> Packed:
        curve, used, rejected = Curve(self._trace.gpus * WHOLE), 0, 0
        dropped: dict[int, int] = {}
        for name, number in enumerate(self._arrived.pods):
            bounced, is_placed = self._place(f"pod-{name}", number)
            rejected += bounced
            asked = self._arrived.shapes[number].gpus * WHOLE
            used += asked if is_placed else 0
            if not is_placed:
                dropped[number] = dropped.get(number, 0) + 1
            curve.add(asked, used)
        waiting = [(self._shapes[each], self._barred[each]) for each in dropped if self._arrived.shapes[each].gpus]
        lost = waste.fragmented(self._engine, self._typical)
        allocated = curve.mean(130)
        return Packed(
            allocated_100=curve.mean(100),
            allocated_130=allocated,
            fragmented_130=100.0 * lost / self._trace.gpus,
            unallocated_gpus=(100.0 - allocated) * self._trace.gpus / 100,
            pods=len(self._arrived.pods),
            dropped=sum(dropped.values()),
            rejected=rejected,
            stranded_gpus=waste.stranded(self._engine, GPU, waiting),
            free_sockets=waste.free_zones(self._engine, GPU),
        )

    def _place(self, name: str, number: int) -> tuple[int, bool]:
        """How often a kubelet rejected the pod, and whether one admitted it in the end."""
        shape, pod, rejected = self._shapes[number], machines.named(self._pods[number], name), 0
        tried: list[int] = []
        while rejected < ATTEMPTS:
            table = self._flavour.follow(shape)
            scores = self._open(self._chooser.scores(table), number, tried)
            row = int(scores.argmax())
            if scores[row] < 1:
                break
            decision = self._engine.place(pod, shape, row, START) if table.codes[row] > 0 else None
            if self._seen is not None:
                again = f"{name}-again-{rejected}" if rejected else name
                self._seen(self._binding(again, number, row, decision, table.codes[row] not in UNSURE))
            if decision is not None:
                return rejected, True
            # It fits no zones, or not certainly: counts do not tell how CPUs of a pod lie that has several zones.
            rejected += 1
            tried.append(row)
        return rejected, False

    def _binding(
        self, name: str, number: int, row: int, decision: Decision | None, is_certain: bool
    ) -> PredictedBinding:
        return PredictedBinding(
            pod=name,
            spec=machines.spec(self._arrived.shapes[number], pinned=self._pinned),
            node=self._engine.names[row],
            is_admitted=decision is not None,
            is_certain=is_certain,
            taken=self._engine.taken(decision) if decision is not None else (),
        )

    def _open(self, scores: Codes, number: int, tried: Sequence[int]) -> Codes:
        barred = self._barred[number]
        if barred is None and not tried:
            return scores[: self._engine.height]
        left = scores[: self._engine.height].copy()
        if barred is not None:
            left[barred] = Code.DOES_NOT_FIT
        left[list(tried)] = Code.DOES_NOT_FIT
        return left

    def _rows_of_other_models(self, models: Sequence[str]) -> NDArray[np.bool_] | None:
        if not models:
            return None
        nodes = (self._trace.nodes[number] for number in self._arrived.nodes)
        return np.array([node.model not in models for node in nodes])
