"""What a row says to a program, case by case: the rules of engine spec 3 to 6 in small numbers."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from numalign.kubelet.demand import Role
from numalign.placement.columns.nodefacts import Groups
from numalign.placement.columns.noderules import ACROSS_ZONES, BY_SOCKET, FULL_CORES, NodeRules
from numalign.placement.columns.requests import Ask, Program, Step
from numalign.placement.kernels import scalar
from numalign.placement.kernels.block import ASK, UNFIT, RowBlock
from numalign.placement.kernels.plan import Scoring
from tests.unit.placement.kernels.blocks import CPU, GPU, MEMORY, NIC, asks, block_of, evaluated

SINGLE = NodeRules(zones=(0, 1), policy="single-numa-node", static_cpus=True, static_memory=True, sockets=(1, 2))
RESTRICTED = structs.replace(SINGLE, policy="restricted")
BEST_EFFORT = structs.replace(SINGLE, policy="best-effort")
NONE = structs.replace(SINGLE, policy="none")
SPREAD = structs.replace(NONE, cpu_options=frozenset({ACROSS_ZONES, FULL_CORES}), zones=(0, 1, 2, 3, 4))
FULL = structs.replace(SINGLE, cpu_options=frozenset({FULL_CORES}), threads_per_core=2)
SOCKETS = structs.replace(RESTRICTED, cpu_options=frozenset({BY_SOCKET}), sockets=(1, 1))
ONE = structs.replace(SINGLE, zones=(0,), sockets=(1,))
TWO_BOUND = Groups((0b11, 0b11), 0b11)
FOUR_CPUS = asks(Ask(cpus=4))
SIX_CPUS = asks(Ask(cpus=6))
GPU_AND_CPUS = asks(Ask(cpus=2, devices=((GPU, 1),)))

Masks = tuple[int, ...]


def answer(block: RowBlock, program: Program) -> tuple[int, Masks]:
    """The code, 0 standing for every score, and the masks."""
    outcomes = evaluated(scalar, block, np.zeros(1, np.int32), program, Scoring())
    code, masks = outcomes.code_or_score.item(), tuple(outcomes.masks[0].tolist())
    return min(code, 0), masks


FITTING: dict[str, tuple[RowBlock, Program, Masks]] = {
    "the lowest zone with room": (block_of(SINGLE, {CPU: (8, 8)}), FOUR_CPUS, (0b01,)),
    "a zone that is too full is passed over": (block_of(SINGLE, {CPU: (3, 8)}), FOUR_CPUS, (0b10,)),
    "a zone has to have everything": (block_of(SINGLE, {CPU: (8, 8), GPU: (0, 1)}), GPU_AND_CPUS, (0b10,)),
    "the whole machine is any zone": (block_of(ONE, {CPU: (8,)}), FOUR_CPUS, (0,)),
    "nothing asked, nothing aligned": (block_of(SINGLE, {CPU: (0, 0)}), asks(Ask()), (0,)),
    "restricted, nothing asked: all zones": (block_of(RESTRICTED, {CPU: (0, 0)}), asks(Ask()), (0b11,)),
    "what one container takes the next one misses": (
        block_of(SINGLE, {CPU: (5, 8)}),
        asks(Ask(cpus=4), Ask(cpus=4)),
        (0b01, 0b10),
    ),
    "restricted: as many zones as the size needs": (
        block_of(RESTRICTED, {CPU: (4, 4)}, size={CPU: (4, 4)}),
        SIX_CPUS,
        (0b11,),
    ),
    "best effort: any zones, if it must be": (
        block_of(BEST_EFFORT, {CPU: (3, 3)}, size={CPU: (8, 8)}),
        FOUR_CPUS,
        (0b11,),
    ),
    "by socket, a wider mask in one socket is as good": (
        block_of(SOCKETS, {CPU: (3, 3)}, size={CPU: (8, 8)}),
        FOUR_CPUS,
        (0b11,),
    ),
    "devices in no zone go with every zone": (
        block_of(SINGLE, {CPU: (1, 8)}, homeless={NIC: (1, 1)}),
        asks(Ask(cpus=2, devices=((NIC, 1),))),
        (0b10,),
    ),
    "a limit that no device plugin serves": (
        block_of(SINGLE, {CPU: (8, 8)}),
        asks(Ask(cpus=2, devices=((NIC, 99),))),
        (0b01,),
    ),
    "memory of an idle group may be bound together": (
        block_of(RESTRICTED, {MEMORY: (4, 4)}),
        asks(Ask(memory=((MEMORY, 6),))),
        (0b11,),
    ),
    "memory in a group goes to the group": (
        block_of(RESTRICTED, {MEMORY: (4, 4)}, groups=TWO_BOUND),
        asks(Ask(memory=((MEMORY, 6),))),
        (0b11,),
    ),
    "a container takes over what an init container had": (
        block_of(SINGLE, {CPU: (2, 8), MEMORY: (8, 8)}),
        Program((Step(Role.INIT, Ask(6, ((MEMORY, 8),))), Step(Role.APP, Ask(8, ((MEMORY, 8),))))),
        (0b10, 0b10),
    ),
    "memory in a single zone of a broken group": (
        block_of(SINGLE, {MEMORY: (2, 4), GPU: (0, 1)}, groups=Groups((0b01, 0b11), 0b11)),
        asks(Ask(memory=((MEMORY, 3),), devices=((GPU, 1),))),
        (0b10,),
    ),
    "none: the node as a whole": (block_of(NONE, {CPU: (3, 3)}), SIX_CPUS, (0,)),
    "memory that fits nowhere together is aligned to nothing": (
        block_of(SINGLE, {MEMORY: (4, 4)}, groups=Groups((1, 2), 0b11)),
        Program(asks(Ask(memory=((MEMORY, 3),)), Ask(memory=((MEMORY, 3),))).steps, Ask(memory=((MEMORY, 6),))),
        (0, 0),
    ),
}


@pytest.mark.parametrize("block, program, masks", FITTING.values(), ids=FITTING)
def test_it_fits_with_these_zones(block: RowBlock, program: Program, masks: Masks) -> None:
    assert answer(block, program) == (0, masks)


REFUSED: dict[str, tuple[RowBlock, Program]] = {
    "room in two zones is no room in one": (block_of(SINGLE, {CPU: (3, 3)}), FOUR_CPUS),
    "restricted: one zone would be large enough, but none has room": (
        block_of(RESTRICTED, {CPU: (3, 3)}, size={CPU: (8, 8)}),
        FOUR_CPUS,
    ),
    "reserved CPUs count for size: eight of them need one zone": (
        block_of(RESTRICTED, {CPU: (7, 7)}, size={CPU: (8, 8)}),
        asks(Ask(cpus=8)),
    ),
    "restricted: cpu needs two zones, the device one": (
        block_of(RESTRICTED, {CPU: (4, 4), GPU: (1, 1)}),
        asks(Ask(cpus=6, devices=((GPU, 1),))),
    ),
    "a zone in a group has no memory of its own": (
        block_of(SINGLE, {MEMORY: (4, 4)}, groups=TWO_BOUND),
        asks(Ask(memory=((MEMORY, 2),))),
    ),
    "half a core": (block_of(FULL, {CPU: (8, 8)}), asks(Ask(cpus=3))),
    "not whole bytes": (block_of(SINGLE, {CPU: (8, 8)}), asks(Ask(memory=None))),
    "devices in no zone run out": (
        block_of(SINGLE, {CPU: (8, 8)}, homeless={NIC: (1, 2)}),
        asks(Ask(devices=((NIC, 1),)), Ask(devices=((NIC, 1),))),
    ),
    "no device is healthy": (
        block_of(SINGLE, {CPU: (8, 8), GPU: (0, 0)}, size={GPU: (0, 0)}, homeless={GPU: (0, 1)}),
        GPU_AND_CPUS,
    ),
    "none: the node is too small": (block_of(NONE, {CPU: (3, 2)}), SIX_CPUS),
    "memory of a type that no row has": (block_of(SINGLE, {CPU: (8, 8)}), asks(Ask(memory=((99, 1),)))),
}


@pytest.mark.parametrize("block, program", REFUSED.values(), ids=REFUSED)
def test_it_does_not_fit(block: RowBlock, program: Program) -> None:
    assert answer(block, program) == (UNFIT, (0,) * len(program.steps))


UNDECIDED: dict[str, tuple[RowBlock, Program]] = {
    "more zones than masks have bits": (
        block_of(structs.replace(SINGLE, zones=tuple(range(9))), {CPU: (8,) * 9}),
        FOUR_CPUS,
    ),
    "cores of different kinds": (block_of(structs.replace(SINGLE, regular=False), {CPU: (8, 8)}), FOUR_CPUS),
    "a pod-level budget": (
        block_of(structs.replace(SINGLE, scope="pod"), {CPU: (8, 8)}),
        Program((Step(Role.APP, Ask(cpus=4)),), Ask(cpus=4), budget=Ask(cpus=4)),
    ),
    "spreading over many zones may go wrong": (block_of(SPREAD, {CPU: (2,) * 5}), FOUR_CPUS),
    "which devices were taken is anybody's guess": (
        block_of(BEST_EFFORT, {CPU: (1, 1), GPU: (2, 2)}, size={CPU: (2, 2), GPU: (2, 2)}),
        asks(Ask(cpus=2, devices=((GPU, 3),)), Ask(devices=((GPU, 1),))),
    ),
}

# A plugin may prefer a device without a zone to one outside the mask.
UNDECIDED["devices beyond the mask, with a zone or without"] = (
    block_of(BEST_EFFORT, {GPU: (1, 3), NIC: (2, 0)}, size={GPU: (1, 4), NIC: (2, 1)}, homeless={GPU: (3, 3)}),
    asks(Ask(devices=((GPU, 2), (NIC, 2))), Ask(devices=((GPU, 2),))),
)


@pytest.mark.parametrize("block, program", UNDECIDED.values(), ids=UNDECIDED)
def test_it_is_for_the_row_model(block: RowBlock, program: Program) -> None:
    assert answer(block, program) == (ASK, (0,) * len(program.steps))


def test_spreading_within_one_zone_is_decided() -> None:
    aligned = structs.replace(SPREAD, policy="single-numa-node")
    assert answer(block_of(aligned, {CPU: (2, 2, 4, 2, 2)}), FOUR_CPUS) == (0, (0b100,))
