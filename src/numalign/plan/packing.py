"""Places pods on nodes of one zone one after the other, by the rules of six published policies.

`replay` calls `run`, which runs the functions of this module as machine code where numba is installed and as plain
Python elsewhere, with equal results. GPUs can be shared: what is free on each counts in thousandths. A score of a shape
on a node holds until the node changes, so that a decision evaluates few nodes. The functions are written in the part of
Python that numba compiles."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from numalign.plan.curve import PERCENTS

RANDOM, DOTPROD, CLUSTERING, PACKING, BESTFIT, FGD = range(6)
FIRST_GPU, RANDOM_GPU, LEAST_FRAGMENTING = range(3)

GPUS: Final = 16
WHOLE: Final = 1000
MOST_CPU, MOST_GPU = 128_000, 8_000
"""By which the published scores divide: thousandths of the largest node's."""
MOST_SCORE: Final = 100
UNFIT: Final = -1
CPU, MEMORY, MILLI, COUNT, MODELS = range(5)
"""Columns of shapes and typical shapes; models are bits."""
KINDS: Final = GPUS + 1
"""Of pods by GPUs that they ask for: a part of one, then whole ones by number."""

Numbers = NDArray[np.int64]
Curve = NDArray[np.float64]


def replay(
    policy: int,
    cpu: Any,
    memory: Any,
    gpus: Any,
    model: Any,
    counts: Any,
    shapes: Any,
    pods: Any,
    typical: Any,
    weights: Any,
    ties: Any,
    picks: Any,
    curve: Any,
) -> int:
    """How many pods found no node. Everything free is charged in place.

    `gpus`: what is free by node and GPU, `counts`: GPUs by node; `ties`, `picks`: a random number from 0 to 1 by pod.
    `curve`: by percent of arrived demand the sums of allocated and fragmented thousandths, and how many pods."""
    nodes, total = len(cpu), 0
    for node in range(nodes):
        total += WHOLE * counts[node]
    scores = np.full((len(shapes), nodes), UNFIT, np.int16)
    seen = np.full(len(shapes), -1, np.int64)
    log, changed = np.zeros(len(pods), np.int64), np.full(nodes, -1, np.int64)
    mixes = np.zeros((nodes, KINDS), np.int64)
    fragments, fragmented = np.zeros(nodes), 0.0
    for node in range(nodes):
        fragments[node] = fragment(cpu[node], gpus[node], counts[node], model[node], typical, weights)
        fragmented += fragments[node]
    length, arrived, used, dropped = 0, 0, 0, 0
    left = np.zeros(GPUS, np.int64)
    for number in range(len(pods)):
        shape = pods[number]
        asked = shapes[shape]
        first = seen[shape]
        for place in range(nodes if first < 0 else length - first):
            node = place if first < 0 else log[first + place]
            if first < 0 or changed[node] == first + place:
                scores[shape, node] = score(
                    policy, asked, cpu[node], memory[node], gpus[node], counts[node], model[node], mixes[node],
                    typical, weights, fragments[node], left,
                )  # fmt: skip
        seen[shape] = length
        arrived += asked[MILLI] * asked[COUNT]
        node = best(scores[shape], ties[number])
        if node < 0:
            dropped += 1
        else:
            take(policy, asked, node, cpu, memory, gpus[node], counts[node], model[node], typical, weights,
                 fragments[node], picks[number], left)  # fmt: skip
            if asked[COUNT] > 0:
                mixes[node, 0 if asked[MILLI] < WHOLE else asked[COUNT]] += 1
            used += asked[MILLI] * asked[COUNT]
            now = fragment(cpu[node], gpus[node], counts[node], model[node], typical, weights)
            fragmented += now - fragments[node]
            fragments[node] = now
            log[length] = node
            changed[node] = length
            length += 1
        percent = min(PERCENTS - 1, int(arrived * 100.0 / total + 0.5))
        curve[percent, 0] += used
        curve[percent, 1] += fragmented
        curve[percent, 2] += 1.0
    return dropped


def best(scores: Any, tie: float) -> int:
    """A node with the best score, one of them at random; -1: none fits."""
    most, equal = UNFIT, 0
    for node in range(len(scores)):
        if scores[node] > most:
            most, equal = scores[node], 0
        equal += scores[node] == most
    if most == UNFIT:
        return -1
    chosen = int(tie * equal)
    for node in range(len(scores)):
        if scores[node] == most:
            if chosen == 0:
                return node
            chosen -= 1
    return -1


def has_room(asked: Any, cpu: int, memory: int, gpus: Any, count: int, model: int) -> bool:
    if asked[CPU] > cpu or asked[MEMORY] > memory:
        return False
    return has_gpus(asked, gpus, count, model)


def has_gpus(asked: Any, gpus: Any, count: int, model: int) -> bool:
    if asked[COUNT] == 0:
        return True
    if asked[MODELS] != 0 and asked[MODELS] >> model & 1 == 0:
        return False
    enough = 0
    for gpu in range(count):
        enough += gpus[gpu] >= asked[MILLI]
    return bool(enough >= asked[COUNT])


def fragment(cpu: int, gpus: Any, count: int, model: int, typical: Any, weights: Any) -> float:
    """The free thousandths of GPUs that a typical shape cannot use, as expected over these shapes."""
    free = 0
    for gpu in range(count):
        free += gpus[gpu]
    if free == 0:
        return 0.0
    expected = 0.0
    for each in range(len(typical)):
        asked = typical[each]
        lost = free
        # As published, a shape without GPUs can use none of them, whether or not it fits.
        if asked[COUNT] > 0 and cpu >= asked[CPU] and has_gpus(asked, gpus, count, model):
            lost = 0
            for gpu in range(count):
                lost += gpus[gpu] if gpus[gpu] < asked[MILLI] else 0
        expected += weights[each] * lost
    return expected


def score(
    policy: int,
    asked: Any,
    cpu: int,
    memory: int,
    gpus: Any,
    count: int,
    model: int,
    mix: Any,
    typical: Any,
    weights: Any,
    fragmented: float,
    left: Any,
) -> int:
    if not has_room(asked, cpu, memory, gpus, count, model):
        return UNFIT
    free = 0
    for gpu in range(count):
        free += gpus[gpu]
    if policy == DOTPROD:
        product = cpu / MOST_CPU * (asked[CPU] / MOST_CPU)
        product += free / MOST_GPU * (asked[MILLI] * asked[COUNT] / MOST_GPU)
        return int(MOST_SCORE * (1.0 - product / 2.0))
    if policy == BESTFIT:
        spare = (cpu - asked[CPU]) / MOST_CPU * 0.5
        spare += (free - asked[MILLI] * asked[COUNT]) / MOST_GPU * 0.5
        return int((1.0 - spare) * MOST_SCORE)
    if policy == FGD:
        best_gpu = least_fragmenting(asked, cpu, gpus, count, model, typical, weights, fragmented, left)
        return by_fragments(asked, cpu, gpus, count, model, typical, weights, fragmented, left, best_gpu)
    if policy == RANDOM or asked[COUNT] == 0:
        return 0
    if policy == CLUSTERING:
        return clustering(asked, free, mix)
    return packing(asked, gpus, count)


def clustering(asked: Any, free: int, mix: Any) -> int:
    """Nodes with pods of the same number of GPUs come first, of these the fullest."""
    kinds = 0
    for kind in range(KINDS):
        kinds += mix[kind] > 0
    quarter = MOST_SCORE // 4
    found = quarter * (MOST_GPU - free) // MOST_GPU
    if mix[0 if asked[MILLI] < WHOLE else asked[COUNT]] > 0:
        return found + quarter * (3 if kinds == 1 else 2)
    return int(found + (quarter if kinds == 0 else 0))


def packing(asked: Any, gpus: Any, count: int) -> int:
    """GPUs in use come first, then nodes in use, then those with few GPUs."""
    idle = 0
    for gpu in range(count):
        idle += gpus[gpu] == WHOLE
    if idle == count:
        return max(MOST_SCORE // 3 - idle, idle)
    # The fullest GPUs with room, of which as many are idle as no other has room.
    shared, spare, last, wanted = 0, 0, -1, asked[COUNT]
    while shared < wanted:
        fullest, at = WHOLE, -1
        for gpu in range(count):
            later = gpus[gpu] > spare or (gpus[gpu] == spare and gpu > last)
            if asked[MILLI] <= gpus[gpu] < fullest and later:
                fullest, at = gpus[gpu], gpu
        if at < 0:
            return int(max(MOST_SCORE // 2 - (wanted - shared), MOST_SCORE // 3))
        shared, spare, last = shared + 1, fullest, at
    return int(max(MOST_SCORE - spare * 100 // WHOLE // 10, MOST_SCORE // 2))


def by_fragments(
    asked: Any,
    cpu: int,
    gpus: Any,
    count: int,
    model: int,
    typical: Any,
    weights: Any,
    fragmented: float,
    left: Any,
    gpu: int,
) -> int:
    """The score of a pod that takes this GPU, or idle ones if it is -1."""
    for each in range(count):
        left[each] = gpus[each]
    if gpu >= 0:
        left[gpu] -= asked[MILLI]
    else:
        take_idle(left, count, asked[COUNT])
    grown = fragment(cpu - asked[CPU], left, count, model, typical, weights) - fragmented
    return int(MOST_SCORE / (1.0 + math.exp(grown / WHOLE)))


def least_fragmenting(
    asked: Any, cpu: int, gpus: Any, count: int, model: int, typical: Any, weights: Any, fragmented: float, left: Any
) -> int:
    """The first of the best GPUs for a pod that asks for a part of one, else -1."""
    if asked[COUNT] != 1 or asked[MILLI] == WHOLE:
        return -1
    found, most = -1, -1
    for gpu in range(count):
        if gpus[gpu] < asked[MILLI] or is_repeated(gpus, gpu):
            continue
        own = by_fragments(asked, cpu, gpus, count, model, typical, weights, fragmented, left, gpu)
        if own > most:
            found, most = gpu, own
    return found


def is_repeated(gpus: Any, gpu: int) -> bool:
    """Whether an earlier GPU has as much left."""
    for earlier in range(gpu):  # noqa: SIM110 (numba knows no generators)
        if gpus[earlier] == gpus[gpu]:
            return True
    return False


def take(
    policy: int,
    asked: Any,
    node: int,
    cpu: Any,
    memory: Any,
    gpus: Any,
    count: int,
    model: int,
    typical: Any,
    weights: Any,
    fragmented: float,
    pick: float,
    left: Any,
) -> None:
    """Charges a pod. The GPU to share is the fullest one with room, unless the policy has its own rule."""
    if asked[COUNT] == 1 and asked[MILLI] < WHOLE:
        gpu = -1
        if policy == FGD:
            gpu = least_fragmenting(asked, cpu[node], gpus, count, model, typical, weights, fragmented, left)
        elif policy == RANDOM:
            gpu = any_gpu(asked, gpus, count, pick)
        else:
            for each in range(count):
                if gpus[each] >= asked[MILLI] and (gpu < 0 or gpus[each] < gpus[gpu]):
                    gpu = each
        gpus[gpu] -= asked[MILLI]
    else:
        take_idle(gpus, count, asked[COUNT])
    cpu[node] -= asked[CPU]
    memory[node] -= asked[MEMORY]


def take_idle(gpus: Any, count: int, wanted: int) -> None:
    for gpu in range(count):
        if wanted > 0 and gpus[gpu] == WHOLE:
            gpus[gpu] = 0
            wanted -= 1


def any_gpu(asked: Any, gpus: Any, count: int, pick: float) -> int:
    """One of the GPUs with room."""
    fitting = 0
    for gpu in range(count):
        fitting += gpus[gpu] >= asked[MILLI]
    chosen = int(pick * fitting)
    for gpu in range(count):
        if gpus[gpu] >= asked[MILLI]:
            if chosen == 0:
                return gpu
            chosen -= 1
    return -1
