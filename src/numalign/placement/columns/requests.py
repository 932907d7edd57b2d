"""A shape as numbers, for nodes that follow the same rules: what kernels are asked about.

A program is made once per shape and `NodeRules`, and kept with the shape. It lists, in admission order, what each
container asks of the managers that this kind of node has; under pod scope one common alignment comes before. Which of
the devices a particular row really has is seen there from its sizes (engine spec 3)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from numalign.api.objects import resourcenames
from numalign.kubelet.demand import ContainerDemand, PodDemand, Role
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.resources import Resources
from numalign.placement.columns.shapes import Shape

Amounts = tuple[tuple[int, int], ...]
"""(column, amount), ascending by column. An amount may be 0: the resource was named."""


class Ask(Struct, frozen=True):
    """What is looked for at once. `memory` None: not whole bytes, which every static memory manager refuses."""

    cpus: int = 0
    memory: Amounts | None = ()
    devices: Amounts = ()


class Step(Struct, frozen=True):
    """One container, in admission order."""

    role: Role
    ask: Ask


class Program(Struct, frozen=True):
    """Everything the managers of one kind of node are asked for a pod of one shape."""

    steps: tuple[Step, ...]
    whole: Ask | None = None
    """Scope pod: the one alignment that all containers share."""
    budget: Ask | None = None
    """Pod-level resources served as one allocation; the containers' own CPUs and memory come out of it."""
    pinned: bool = False
    """Whether CPU and memory manager care for the pod at all."""


def program(shape: Shape, rules: NodeRules, resources: Resources) -> Program:
    known: dict[NodeRules, tuple[Resources, Program]] = shape.__dict__.setdefault("_programs", {})
    found = known.get(rules)
    if found is None or found[0] is not resources:
        found = known[rules] = resources, _program(shape, rules, resources)
    return found[1]


def _program(shape: Shape, rules: NodeRules, resources: Resources) -> Program:
    demand = shape.demand(rules.reading)
    whole = _whole(demand, rules, resources) if rules.scope == "pod" and rules.policy != "none" else None
    budget = _ask(demand.budget, rules, resources) if whole is not None and demand.budget is not None else None
    steps = tuple(Step(each.role, _ask(each, rules, resources)) for each in demand.containers)
    return Program(steps=steps, whole=whole, budget=budget, pinned=demand.pinned)


def _ask(container: ContainerDemand, rules: NodeRules, resources: Resources) -> Ask:
    return Ask(
        cpus=container.cpus if rules.static_cpus else 0,
        memory=_memory(container.memory, resources) if rules.static_memory else (),
        devices=_devices(container.limits, resources),
    )


def _whole(demand: PodDemand, rules: NodeRules, resources: Resources) -> Ask:
    return Ask(
        cpus=demand.cpus if rules.static_cpus else 0,
        memory=_memory(demand.memory, resources) if rules.static_memory else (),
        devices=_devices(demand.limits, resources),
    )


def _memory(amounts: Mapping[str, int] | None, resources: Resources) -> Amounts | None:
    if amounts is None:
        return None
    return tuple(sorted([(resources.column(name), amount) for name, amount in amounts.items()]))


def _devices(limits: Mapping[str, int], resources: Resources) -> Amounts:
    """Every limit that a device plugin could serve; a row knows which of them one does."""
    return tuple(sorted([(resources.column(name), amount) for name, amount in limits.items() if _is_device(name)]))


_is_device = lru_cache(maxsize=4096)(resourcenames.is_extended)
