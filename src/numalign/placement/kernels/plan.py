"""A pod's requests and a node's rules as plain numbers: the input of the row kernels.

`verdicts.evaluation` makes one plan per shape, kind of node and scoring, and keeps it. Resources are numbered anew:
place 0 is cpu, then come the memory types and devices that the requests name. An ask is a container (a step) or, as the
last one, the pod as a whole. `Scoring` is the configured strategy; `scoring` has its arithmetic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from msgspec import Struct, structs

from numalign.kubelet import versions
from numalign.kubelet.demand import Role
from numalign.placement.columns.noderules import ACROSS_CORES, ACROSS_ZONES, BY_L3, BY_SOCKET, FULL_CORES, NodeRules
from numalign.placement.columns.requests import Ask, Program, Step
from numalign.placement.columns.resources import CPU
from numalign.placement.kernels import ranks
from numalign.placement.referenceargs import Strategy

KINDS: Final = (
    Strategy.LEAST_ALLOCATED,
    Strategy.MOST_ALLOCATED,
    Strategy.BALANCED_ALLOCATION,
    Strategy.LEAST_NUMA_NODES,
)
LEAST, MOST, BALANCED, FEWEST_ZONES = range(4)
"""Their numbers in a plan."""
HEAVIEST: Final = 1 << 20
"""Weights are cut to this: sums of weighted scores stay small."""


class Scoring(Struct, frozen=True):
    """A strategy with its weights as (column, weight); 1 where nothing is said."""

    strategy: Strategy = Strategy.LEAST_ALLOCATED
    weights: tuple[tuple[int, int], ...] = ()

    def weights_of(self, columns: Sequence[int]) -> list[int]:
        if not self.weights:
            return [1] * len(columns)
        known = dict(self.weights)
        return [min(max(0, known.get(column, 1)), HEAVIEST) for column in columns]


NONE, BEST_EFFORT, RESTRICTED, SINGLE = range(4)
POLICIES: Final = {"none": NONE, "best-effort": BEST_EFFORT, "restricted": RESTRICTED, "single-numa-node": SINGLE}

ZONES: Final = 8
"""Places per resource in a row's tables, however many zones there are."""
MASKS: Final = 1 << ZONES
MOST_PLACES, MOST_STEPS, MOST_ITEMS = 16, 32, 128
"""Larger programs go to the row model."""
MOST_AMOUNT: Final = 1 << 56
"""More than any sum over zones; larger requests are cut to it."""

ROW_MODEL, REFUSED, KERNEL = range(3)
"""Whether the row model decides, or every node of this kind refuses the program, or the kernel decides."""

SPLIT_BY_IDS: Final = frozenset({ACROSS_CORES, ACROSS_ZONES, BY_L3})


class Plan(Struct, frozen=True, kw_only=True, dict=True):
    """Never changed; `compiled` keeps its own form of it beside."""

    standing: int
    policy: int
    as_a_whole: int
    zones: int
    every: int
    steps: int
    places: int
    full_cores: int
    """Threads per core where only whole cores are given out, else 0."""
    threads: int
    plain: int
    """Whether containers take what they ask for and hand nothing on, under a policy that aligns them."""
    in_one_zone: int
    """Whether `singlezone` may try it: zones with room say everything, as no device stands alone, which could lie in no
    zone, and no cores have to be whole."""
    zones_per_socket: int
    """With `align-by-socket`, else 0."""
    spread_over_zones: int
    countable: int
    """Whether counts per zone tell how CPUs are divided among zones, as long as cores are whole."""
    numa_first: int
    device_zones_only: int
    """Whether device hints range over zones with devices; until 1.35 over all zones (kubelet spec 7.2)."""
    strategy: int
    columns: list[int]
    """By place; the kernel's caller leaves places without a column empty."""
    weights: list[int]
    cpus: list[int]
    """By ask."""
    memory: list[int]
    """By ask: where its memory starts among the items; the devices follow."""
    devices: list[int]
    """By ask: where its devices start; they end where the next ask's memory starts."""
    places_asked: list[int]
    """By item."""
    amounts: list[int]
    init: list[int]
    """By step: whether it is a plain init container, which hands on what it got."""
    cpus_later: list[int]
    """By step: whether a later one asks for CPUs."""
    zone_order: list[int]
    """Single zones, best first."""
    ranked: list[int]
    narrowest: list[int]
    starts: list[int]
    count: list[int]
    sockets: list[int]
    area: list[int]
    socket_of: list[int]
    """By zone: the mask of its sockets; 0: not known."""


LENGTHS: Final[Mapping[str, int]] = {
    "columns": MOST_PLACES,
    "weights": MOST_PLACES,
    "cpus": MOST_STEPS + 1,
    "memory": MOST_STEPS + 2,
    "devices": MOST_STEPS + 1,
    "places_asked": MOST_ITEMS,
    "amounts": MOST_ITEMS,
    "init": MOST_STEPS,
    "cpus_later": MOST_STEPS,
    "zone_order": ZONES,
    "ranked": MASKS,
    "narrowest": MASKS,
    "starts": ZONES + 2,
    "count": MASKS,
    "sockets": MASKS,
    "area": MASKS,
    "socket_of": ZONES,
}
"""How many numbers each table has at most."""
_ONE_ZONE: Final = NodeRules(zones=(0,))


class Ground(Struct, frozen=True, dict=True):
    """The part of a plan that does not hang on the program, as fields; `compiled` keeps its own form of it beside."""

    fields: Mapping[str, Any]


@lru_cache(maxsize=1024)
def plan(rules: NodeRules, program: Program, scoring: Scoring) -> Plan:
    asks = [step.ask for step in program.steps] + ([program.whole] if program.whole is not None else [])
    memory, devices, items = _items(asks)
    standing = _standing(rules, program, items)
    if standing != KERNEL:
        nothing = plan(_ONE_ZONE, Program(()), scoring)
        return structs.replace(nothing, standing=standing, steps=len(program.steps), zones=0, every=0)
    columns = [CPU, *sorted({column for column, _ in items})]
    places = {column: place for place, column in enumerate(columns)}
    cpus = [min(ask.cpus, MOST_AMOUNT) for ask in asks]
    steps, ground, is_plain = len(program.steps), _ground(rules, scoring), _is_plain(rules, program)
    made = Plan(
        **ground.fields,
        standing=standing,
        as_a_whole=int(program.whole is not None),
        steps=steps,
        places=len(columns),
        plain=int(is_plain),
        in_one_zone=int(is_plain and not ground.fields["full_cores"] and _has_zones(program)),
        columns=columns,
        weights=scoring.weights_of(columns),
        cpus=cpus,
        memory=memory,
        devices=devices,
        places_asked=[places[column] for column, _ in items],
        amounts=[min(amount, MOST_AMOUNT) for _, amount in items],
        init=[int(step.role is Role.INIT) for step in program.steps],
        cpus_later=[int(any(cpus[number + 1 : steps])) for number in range(steps)],
    )
    made.__dict__["ground"] = ground
    return made


@lru_cache(maxsize=1024)
def counting(rules: NodeRules, program: Program, scoring: Scoring) -> Plan:
    """The plan for `counting`, which admits pod after pod: one more container that asks for nothing comes last, so that
    kernels charge what the pod's own last container takes, too."""
    alone = plan(rules, program, scoring)
    handed_on = any(step.role is Role.INIT and step.ask != Ask() for step in program.steps)
    if alone.standing == KERNEL and (handed_on or len(program.steps) == MOST_STEPS):
        # What init containers leave is free for the rest of their own pod, and not for the next one.
        return structs.replace(alone, standing=ROW_MODEL)
    if alone.standing != KERNEL:
        return alone
    steps = (*program.steps, Step(Role.APP, Ask()))
    made = plan(rules, structs.replace(program, steps=steps, pinned=False), scoring)
    found = structs.replace(made, cpus_later=[int(any(alone.cpus))] * alone.steps)
    found.__dict__["ground"] = made.__dict__["ground"]
    return found


@lru_cache(maxsize=1024)
def _ground(rules: NodeRules, scoring: Scoring) -> Ground:
    order = ranks.of(rules)
    fields = {
        "policy": POLICIES[rules.policy],
        "zones": len(rules.zones),
        "every": rules.every_zone,
        "full_cores": rules.threads_per_core if FULL_CORES in rules.cpu_options else 0,
        "threads": max(1, rules.threads_per_core),
        "zones_per_socket": _zones_per_socket(rules),
        "spread_over_zones": int(ACROSS_ZONES in rules.cpu_options),
        "countable": int(_countable(rules)),
        "numa_first": int(len(_sockets(rules)) >= _zones_with_cpus(rules)),
        "device_zones_only": int(versions.behaviour(versions.Minor(*rules.minor)).device_hints_over_device_zones),
        "strategy": KINDS.index(scoring.strategy),
        "zone_order": [mask.bit_length() - 1 for mask in order.ranked[: len(rules.zones)]],
        "ranked": list(order.ranked),
        "narrowest": list(order.narrowest),
        "starts": list(order.starts),
        "count": list(order.count),
        "sockets": list(order.sockets),
        "area": list(order.area),
        "socket_of": [*rules.sockets, *[0] * len(rules.zones)][: len(rules.zones)],
    }
    return Ground(fields)


def _items(asks: Sequence[Ask]) -> tuple[list[int], list[int], list[tuple[int, int]]]:
    """Where each ask's memory and devices start, and all of them in a row; one start more for the end."""
    memory, devices, items = [], [], list[tuple[int, int]]()
    for ask in asks:
        memory.append(len(items))
        items += ask.memory or ()
        devices.append(len(items))
        items += ask.devices
    return [*memory, len(items)], devices, items


def _standing(rules: NodeRules, program: Program, items: Sequence[tuple[int, int]]) -> int:
    if not rules.zones or not rules.fits_arrays or program.budget is not None or rules.direct is not None:
        return ROW_MODEL
    if BY_SOCKET in rules.cpu_options and not _sockets(rules):
        return ROW_MODEL
    odd = rules.l3_straddles or (rules.sockets and not rules.regular)
    if odd and any(step.ask.cpus for step in program.steps):
        # Cores of different kinds are counted in averages, and may be taken without being free (kubelet spec 4); L3s of
        # two zones are counted twice (5.6).
        return ROW_MODEL
    if _checks_empty_requests(rules, program):
        return ROW_MODEL
    if len(program.steps) > MOST_STEPS or len(items) > MOST_ITEMS or len(dict(items)) >= MOST_PLACES:
        return ROW_MODEL
    # Bytes that are not whole are refused by every static memory manager, whatever is free.
    return REFUSED if any(step.ask.memory is None for step in program.steps) else KERNEL


def _checks_empty_requests(rules: NodeRules, program: Program) -> bool:
    """Until 1.36 a container that asks for no memory goes through some checks all the same (kubelet spec 6.2)."""
    if not rules.static_memory or not program.pinned or all(step.ask.memory != () for step in program.steps):
        return False
    return not versions.behaviour(versions.Minor(*rules.minor)).memory_skips_empty_requests


def _is_plain(rules: NodeRules, program: Program) -> bool:
    """No init container leaves anything to the others, no device is named without a number, no option interferes."""
    handed_on = any(step.role is Role.INIT and step.ask != Ask() for step in program.steps)
    asks = [step.ask for step in program.steps] + ([program.whole] if program.whole is not None else [])
    by_zone = rules.policy != "none" and BY_SOCKET not in rules.cpu_options
    return by_zone and not handed_on and all(n > 0 for ask in asks for _, n in ask.devices)


def _has_zones(program: Program) -> bool:
    """Containers are aligned one by one, and each that asks for devices asks for CPUs or memory, too."""
    return program.whole is None and all(
        step.ask.cpus or step.ask.memory or not step.ask.devices for step in program.steps
    )


def _sockets(rules: NodeRules) -> set[int]:
    return {bit for own in rules.sockets for bit in range(own.bit_length()) if own >> bit & 1}


def _zones_with_cpus(rules: NodeRules) -> int:
    return sum(own > 0 for own in rules.sockets)


def _zones_per_socket(rules: NodeRules) -> int:
    sockets = len(_sockets(rules))
    return _zones_with_cpus(rules) // sockets if BY_SOCKET in rules.cpu_options and sockets else 0


def _countable(rules: NodeRules) -> bool:
    """Engine spec 5; a zone of several sockets would need counts per socket."""
    one_socket_each = bool(rules.sockets) and all(own.bit_count() <= 1 for own in rules.sockets)
    return rules.regular and one_socket_each and not rules.cpu_options & SPLIT_BY_IDS
