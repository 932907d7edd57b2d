"""Replays a workload on machines of one zone, with GPUs that can be shared: the control of every other replay.

`replay` calls `pack`. It turns a trace into arrays for `packing`, and what comes back into percents of GPUs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

import numpy as np

from numalign.plan import packing, workload
from numalign.plan.curve import PERCENTS, Packed
from numalign.plan.trace import WHOLE, Trace
from numalign.plan.workload import Shape

POLICIES: Final[Mapping[str, int]] = {
    "random": packing.RANDOM,
    "dotprod": packing.DOTPROD,
    "gpuclustering": packing.CLUSTERING,
    "gpupacking": packing.PACKING,
    "bestfit": packing.BESTFIT,
    "fgd": packing.FGD,
}


def pack(trace: Trace, policy: str, seed: int, *, compiled: bool = True) -> Packed:
    """One run. `compiled` False: as plain Python even where numba is installed."""
    arrived, typical = workload.arrivals(trace, seed), workload.typical(trace)
    models = {model: number for number, model in enumerate(trace.models)}
    nodes = [trace.nodes[number] for number in arrived.nodes]
    gpus = np.zeros((len(nodes), packing.GPUS), np.int64)
    for row, node in enumerate(nodes):
        gpus[row, : node.gpus] = WHOLE
    random, pods = np.random.default_rng(seed), np.array(arrived.pods, np.int64)
    # Only the random policy chooses among equals: the others take the first one.
    ties = random.random(len(pods)) if policy == "random" else np.zeros(len(pods))
    curve = np.zeros((PERCENTS, 3))
    dropped = _replay(compiled=compiled)(
        POLICIES[policy],
        np.array([node.cpu_milli for node in nodes], np.int64),
        np.array([node.memory_mib for node in nodes], np.int64),
        gpus,
        np.array([models[node.model] for node in nodes], np.int64),
        np.array([node.gpus for node in nodes], np.int64),
        _rows(arrived.shapes, models),
        pods,
        _rows([shape for shape, _ in typical], models),
        np.array([weight for _, weight in typical]),
        ties,
        random.random(len(pods)),
        curve,
    )
    at_100, at_130 = (mean(curve, percent) / (trace.gpus * WHOLE / 100) for percent in (100, 130))
    return Packed(
        allocated_100=float(at_100[0]),
        allocated_130=float(at_130[0]),
        fragmented_130=float(at_130[1]),
        unallocated_gpus=float(100 - at_130[0]) * trace.gpus / 100,
        pods=len(pods),
        dropped=dropped,
    )


def mean(curve: packing.Curve, percent: int) -> packing.Curve:
    """The means of a percent, or of the last one before it at which a pod arrived."""
    there = np.flatnonzero(curve[: percent + 1, -1])
    last = curve[there[-1]] if len(there) else curve[percent]
    return np.asarray(last[:-1] / max(1.0, float(last[-1])))


def _replay(*, compiled: bool) -> Callable[..., int]:
    if not compiled or find_spec("numba") is None:
        return packing.replay
    from numalign.plan import machinecode

    found: Callable[..., int] = machinecode.replay
    return found


def _rows(shapes: Sequence[Shape], models: Mapping[str, int]) -> packing.Numbers:
    rows = [
        (each.cpu_milli, each.memory_mib, each.gpu_milli, each.gpus, sum(1 << models[model] for model in each.models))
        for each in shapes
    ]
    return np.array(rows, np.int64).reshape(-1, 5)
