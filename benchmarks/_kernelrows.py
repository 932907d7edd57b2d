"""Rows for the compiled kernels alone: machines of 8 zones and 6 resources, as arrays and nothing else.

Per zone 64 of everything, of which up to 8 are in use. A shape is picked so that a policy has to do what it is measured
for: find one zone, find two, or settle for a mask that is not preferred."""

import numpy as np
from msgspec import Struct

from benchmarks import timing
from benchmarks._cluster import MEMORY_PART, MOST_USED, PARTS, Cluster
from numalign.api.decode import quantity
from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from numalign.placement.columns import requests
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.kernels import compiled
from numalign.placement.kernels import plan as plans
from numalign.placement.kernels.block import RowBlock
from numalign.placement.kernels.plan import Scoring

ZONES, RESOURCES = 8, 6


class Question(Struct, frozen=True, kw_only=True):
    """A policy and how many parts of 64 a pod asks for of everything."""

    policy: Policy
    parts: int


ONE_ZONE, TWO_ZONES = 4, 80
NOT_PREFERRED = PARTS
"""Fits the size of a zone, but no zone is free: every one has something in use."""


def seconds(question: Question, rows: int) -> float:
    """For one row."""
    rules = NodeRules(
        zones=tuple(range(ZONES)),
        policy=question.policy,
        static_cpus=True,
        static_memory=True,
        sockets=tuple(1 << zone // 2 for zone in range(ZONES)),
    )
    resources = Resources()
    program = requests.program(Shapes().intern(_pod(question.parts)), rules, resources)
    block, every = _block(rules, rows, resources), np.arange(rows, dtype=np.int32)
    plan = plans.plan(rules, program, Scoring())
    if not (compiled.evaluate(block, every, plan).code_or_score > 0).all():
        raise RuntimeError(f"{question}: rows that do not fit measure nothing")
    return timing.best_of(lambda: compiled.evaluate(block, every, plan)) / rows


def _pod(parts: int) -> Pod:
    asked = {
        name: quantity.of(parts * (MEMORY_PART if name == "memory" else 1))
        for name in Cluster(resources=RESOURCES).names
    }
    container = Container(name="c", resources=ResourceRequirements(requests=asked, limits=asked))
    return Pod(metadata=ObjectMeta(name="p", uid="p"), spec=PodSpec(containers=(container,)))


def _block(rules: NodeRules, rows: int, resources: Resources) -> RowBlock:
    width = len(resources)
    unit = np.ones(width, np.int64)
    unit[resources.column("memory")] = MEMORY_PART
    size = np.full((rows, ZONES, width), PARTS, np.int64) * unit
    used = np.random.default_rng(1).integers(1, MOST_USED, size.shape, endpoint=True)
    nothing = np.zeros((rows, width), np.int64)
    return RowBlock(
        rules=rules,
        free=size - used * unit,
        stock=np.zeros(rows, np.int32),
        size=size[:1],
        allocatable=size[:1],
        homeless=nothing,
        homeless_size=nothing[:1],
        full_core_cpus=np.full(rows, -1, np.int64),
        cells=np.tile(np.uint8(1) << np.arange(ZONES, dtype=np.uint8), (rows, 1)),
        busy=np.zeros(rows, np.uint8),
        split_known=np.ones(rows, np.bool_),
    )
