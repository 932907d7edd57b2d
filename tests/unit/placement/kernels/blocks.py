"""Blocks of rows and programs for tests of the kernels: made by hand, drawn at random, or taken from a kubelet.

Columns are cpu, memory, hugepages, then devices. Amounts are small numbers, so that rows are often nearly full."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from numalign.api.nrt.topologymanager import Policy
from numalign.kubelet.demand import Role
from numalign.kubelet.state import KubeletState
from numalign.placement.columns.nodefacts import Groups
from numalign.placement.columns.noderules import ACROSS_ZONES, BY_L3, BY_SOCKET, FULL_CORES, NodeRules
from numalign.placement.columns.requests import Amounts, Ask, Program, Step
from numalign.placement.kernels import plan
from numalign.placement.kernels.block import Kernel, Outcomes, RowBlock, Rows
from numalign.placement.kernels.plan import KINDS, Scoring
from numalign.placement.rowmodel.state import RowState
from tests.rows import View

CPU, MEMORY, HUGEPAGES, GPU, NIC = range(5)
WIDTH = 5
MEMORY_COLUMNS = frozenset({MEMORY, HUGEPAGES})

POLICIES: tuple[Policy, ...] = ("single-numa-node", "restricted", "best-effort", "none")

Zones = Sequence[int]


def evaluated(kernel: Kernel, block: RowBlock, rows: Rows, program: Program, scoring: Scoring) -> Outcomes:
    return kernel.evaluate(block, rows, plan.plan(block.rules, program, scoring))


def asks(*steps: Ask, role: Role = Role.APP) -> Program:
    return Program(tuple(Step(role, ask) for ask in steps), pinned=True)


def block_of(
    rules: NodeRules,
    free: Mapping[int, Zones],
    *,
    size: Mapping[int, Zones] | None = None,
    homeless: Mapping[int, tuple[int, int]] | None = None,
    groups: Groups | None = None,
) -> RowBlock:
    """One row. `homeless`: free and all devices that have no zone."""
    block = empty(rules, 1)
    for column, amounts in free.items():
        block.free[0, :, column] = amounts
        block.size[0, :, column] = block.allocatable[0, :, column] = (size or {}).get(column, amounts)
    for column, (unused, every) in (homeless or {}).items():
        block.homeless[0, column], block.homeless_size[0, column] = unused, every
    if groups is not None:
        block.cells[0], block.busy[0] = groups.cells, groups.busy
    block.full_core_cpus[0] = block.free[0, :, CPU].sum()
    return block


def empty(rules: NodeRules, rows: int, width: int = WIDTH) -> RowBlock:
    zones = len(rules.zones)
    amounts, by_column = (rows, zones, width), (rows, width)
    return RowBlock(
        rules=rules,
        free=np.zeros(amounts, np.int64),
        stock=np.arange(rows, dtype=np.int32),
        size=np.zeros(amounts, np.int64),
        allocatable=np.zeros(amounts, np.int64),
        homeless=np.zeros(by_column, np.int64),
        homeless_size=np.zeros(by_column, np.int64),
        full_core_cpus=np.zeros(rows, np.int64),
        cells=np.tile(1 << np.arange(zones), (rows, 1)).astype(np.uint8),
        busy=np.zeros(rows, np.uint8),
        split_known=np.ones(rows, np.bool_),
    )


def row_of(block: RowBlock, row: int) -> RowState:
    """The same for the row model."""
    there = [c for c in range(WIDTH) if c <= HUGEPAGES or block.size[row, :, c].any() or block.homeless_size[row, c]]
    threads, free = block.rules.threads_per_core, block.free[row, :, CPU].tolist()
    whole = bool(block.split_known[row]) and not any(each % threads for each in free)
    full = int(block.full_core_cpus[row])
    healthy = block.allocatable[row].any(axis=0) | (block.homeless_size[row] > 0)
    return RowState(
        rules=block.rules,
        size={c: tuple(block.size[row, :, c].tolist()) for c in there},
        base={c: tuple(block.free[row, :, c].tolist()) for c in there},
        homeless={c: int(block.homeless[row, c]) for c in there},
        full_core_cpus=None if full < 0 else (full, full),
        cores=tuple((0,) * (threads - 1) + (each // threads,) for each in free) if whole else None,
        groups=Groups(tuple(block.cells[row].tolist()), int(block.busy[row])),
        memory=MEMORY_COLUMNS,
        broken=frozenset(c for c in there if c > HUGEPAGES and not healthy[c]),
    )


def block_of_node(view: View, state: KubeletState) -> RowBlock | None:
    """A kubelet's books as a block; None if it has devices that kernels are not asked about."""
    row = view.row(state)
    # Amounts do not tell a plugin that has lost all its devices from none.
    lost = any(not any(row.size[column]) or row.homeless.get(column) == 0 for column in row.broken)
    if row.classes or lost:
        return None
    block = empty(view.rules, 1, len(view.resources))
    for column, amounts in row.base.items():
        block.free[0, :, column], block.size[0, :, column] = amounts, row.size[column]
        block.allocatable[0, :, column] = row.size[column]
        block.homeless[0, column] = row.homeless.get(column, 0)
    for resource, inventory in view.kubelet.devices.inventories.items():
        column = view.resources.column(resource)
        block.homeless_size[0, column] = sum(view.place(inventory, each) is None for each in inventory.by_id)
        if column in row.broken:
            block.allocatable[0, :, column] = 0
    if row.groups is not None:
        block.cells[0], block.busy[0] = row.groups.cells, row.groups.busy
    threads = view.rules.threads_per_core
    block.split_known[0] = row.cores is not None and not any(any(zone[: threads - 1]) for zone in row.cores)
    block.full_core_cpus[0] = row.full_core_cpus[0] if row.full_core_cpus else 0
    return block


# Drawing


@st.composite
def node_rules(draw: st.DrawFn) -> NodeRules:
    zones = draw(st.sampled_from((2, 1, 3, 4, 2, 8, 5)))
    policy = draw(st.sampled_from(POLICIES))
    options = draw(st.sets(st.sampled_from((FULL_CORES, BY_SOCKET, ACROSS_ZONES, BY_L3)), max_size=2))
    sockets = draw(st.sampled_from([count for count in (1, 2, 4) if count <= zones]))
    near = draw(st.lists(st.sampled_from((11, 12, 21)), min_size=zones * zones, max_size=zones * zones))
    distances = tuple(tuple(near[a * zones + b] if a != b else 10 for b in range(zones)) for a in range(zones))
    return NodeRules(
        zones=tuple(range(0, 2 * zones, 2)),
        policy=policy,
        scope=draw(st.sampled_from(("container", "pod"))),
        distances=draw(st.sampled_from((None, distances))),
        static_cpus=True,
        cpu_options=frozenset(options - ({BY_SOCKET} if policy == "single-numa-node" else set())),
        threads_per_core=draw(st.sampled_from((1, 2))),
        sockets=tuple(1 << zone * sockets // zones for zone in range(zones)),
        static_memory=True,
        minor=draw(st.sampled_from(((1, 38), (1, 35)))),
    )


@st.composite
def programs(draw: st.DrawFn, rules: NodeRules) -> Program:
    most = draw(st.sampled_from((4, 16)))
    roles = [*draw(st.lists(st.sampled_from((Role.INIT, Role.SIDECAR)), max_size=2)), Role.APP]
    roles += [Role.APP] * draw(st.integers(0, 2))
    steps = tuple(Step(role, draw(_asks(most))) for role in roles)
    whole = _whole(steps) if rules.scope == "pod" and rules.policy != "none" else None
    return Program(steps, whole, pinned=True)


@st.composite
def _asks(draw: st.DrawFn, most: int) -> Ask:
    memory: Amounts = ((MEMORY, draw(st.integers(1, most))),)
    if draw(st.booleans()):
        memory += ((HUGEPAGES, draw(st.integers(0, 3))),)
    devices = tuple((column, draw(st.integers(0, 3))) for column in (GPU, NIC, WIDTH) if draw(st.booleans()))
    return Ask(cpus=draw(st.integers(0, most)), memory=memory, devices=devices)


def _whole(steps: Sequence[Step]) -> Ask:
    """Enough for all at once; kernels do not ask how it was added up."""

    def added(part: Callable[[Ask], Amounts]) -> Amounts:
        columns = sorted({column for step in steps for column, _ in part(step.ask)})
        return tuple((column, sum(dict(part(step.ask)).get(column, 0) for step in steps)) for column in columns)

    return Ask(sum(step.ask.cpus for step in steps), added(lambda ask: ask.memory or ()), added(lambda a: a.devices))


@st.composite
def blocks(draw: st.DrawFn, rules: NodeRules, rows: int = 12) -> RowBlock:
    """Rows of one kind of hardware; amounts come from a generator of their own, as so many draws would take long."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    block = empty(rules, rows)
    shape = block.size.shape
    most = np.array([8 * rules.threads_per_core, 16, 4, 4, 4])
    block.size[:] = chance.choice([1, 1, 1, 0.5, 0], shape) * most
    block.size[:, :, CPU] = block.size[0, :, CPU]
    block.allocatable[:] = block.size
    block.free[:] = block.size * chance.choice([1, 1, 0.5, chance.random()], shape)
    block.homeless_size[:, GPU:] = chance.integers(0, 3, (rows, WIDTH - GPU))
    block.homeless[:] = block.homeless_size * chance.random((rows, WIDTH))
    threads = rules.threads_per_core
    block.split_known[:] = (block.free[:, :, CPU] % threads == 0).all(axis=1)
    block.full_core_cpus[:] = block.free[:, :, CPU].sum(axis=1) - chance.integers(0, 2, rows)
    if rules.policy != "single-numa-node":
        _group(block, chance)
    return block


def _group(block: RowBlock, chance: np.random.Generator) -> None:
    """Bind some zones of some rows together."""
    zones = len(block.rules.zones)
    for row in range(0, len(block.busy), 2):
        members = np.flatnonzero(chance.random(zones) < 0.4)
        mask = int((1 << members).sum())
        block.cells[row, members] = mask
        block.busy[row] = mask | int(chance.integers(0, 1 << zones)) & ~mask


scorings = st.builds(
    Scoring,
    st.sampled_from(KINDS),
    st.lists(st.tuples(st.integers(0, WIDTH), st.integers(0, 5)), unique_by=lambda each: each[0], max_size=2).map(
        tuple
    ),
)


@st.composite
def questions(draw: st.DrawFn) -> tuple[RowBlock, Program]:
    rules = draw(node_rules())
    return draw(blocks(rules)), draw(programs(rules))
