"""Decisions about pods on nodes in direct mode, and the scores and reasons of such nodes.

`nodes` calls it. An answer depends on the pod's shape, the machine and what is free there, and on nothing else, so it
is kept for all nodes that are alike: a burst of equal pods on equal nodes asks `scope` a few times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from numalign.api.attributes import directresult
from numalign.api.attributes.directresult import ContainerResult, DeviceGrant, DirectResult, ZoneAmounts
from numalign.api.caches import BoundedCache
from numalign.api.decode import cpuset, quantity
from numalign.api.decode.quantity import Format
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.placement.columns.directmachine import MILLI, DirectMachine, FreeState, positions
from numalign.placement.columns.holdings import Aligned
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shape
from numalign.placement.direct import asks, scope
from numalign.placement.direct.asks import PodAsk
from numalign.placement.direct.scope import Assignment, Unplaced
from numalign.placement.direct.share import amounts as sharing
from numalign.placement.direct.share import choosing
from numalign.placement.direct.taking import Grant
from numalign.placement.referenceargs import Strategy
from numalign.placement.rowmodel.causes import Cause, Shortfall, Want

MOST: Final = 1 << 14
"""Answers that are kept."""
LEAST_SCORE: Final = 2
HIGHEST: Final = 100
"""Lower scores say that a node has no report, or that amounts do not decide."""


class Placed(Struct, frozen=True, dict=True):
    """An answer that the pod fits."""

    assignment: Assignment
    score: int


Answer = Placed | Unplaced
Devices = Mapping[str, tuple[DeviceGrant, ...]]
Parts = tuple[tuple[ContainerResult, ...], str, tuple[ZoneAmounts, ...], Devices]
"""Of a result: containers, CPUs, amounts by zone and shared devices."""


class Decider:
    def __init__(self, strategy: Strategy) -> None:
        self._strategy = strategy
        self._asks: BoundedCache[tuple[int, DirectMachine], PodAsk] = BoundedCache(MOST)
        self._answers: BoundedCache[tuple[int, DirectMachine, FreeState], Answer] = BoundedCache(MOST)

    def ask(self, shape: Shape, machine: DirectMachine) -> PodAsk:
        key = shape.number, machine
        found = self._asks.get(key)
        if found is None:
            found = self._asks.keep(key, asks.of(shape.pod, shape.intent, machine))
        return found

    def answer(self, shape: Shape, machine: DirectMachine, free: FreeState) -> Answer:
        key = shape.number, machine, free
        found = self._answers.get(key)
        if found is None:
            found = self._answers.keep(key, self._found(shape, machine, free))
        return found

    def _found(self, shape: Shape, machine: DirectMachine, free: FreeState) -> Answer:
        found = scope.assign(machine, free, self.ask(shape, machine))
        if isinstance(found, Unplaced):
            return found
        return Placed(found, self._score(machine, found))

    def _score(self, machine: DirectMachine, found: Assignment) -> int:
        """By what is left in the zones that the pod uses, as a mean over its aligned containers; best where nothing is
        aligned."""
        scores = [self._zone_score(machine, found.after, grant.zones) for grant in found.grants if grant.zones]
        return max(LEAST_SCORE, min(HIGHEST, sum(scores) // len(scores))) if scores else HIGHEST

    def _zone_score(self, machine: DirectMachine, after: FreeState, mask: int) -> int:
        if self._strategy is Strategy.LEAST_NUMA_NODES:
            return HIGHEST - HIGHEST * (mask.bit_count() - 1) // len(machine.zones)
        inside = machine.of_mask[mask]
        left = [(after.cpus & inside).bit_count() * HIGHEST // max(1, inside.bit_count())]
        for kind, (name, sizes) in enumerate(machine.memory):
            if name == resourcenames.MEMORY:
                there = sum(sizes[place] for place in positions(mask))
                left.append(sum(after.memory[kind][place] for place in positions(mask)) * HIGHEST // max(1, there))
        if self._strategy is Strategy.BALANCED_ALLOCATION:
            return HIGHEST - (max(left) - min(left))
        mean = sum(left) // len(left)
        return HIGHEST - mean if self._strategy is Strategy.MOST_ALLOCATED else mean


# Results


def result(
    pod: Pod, node: str, asked: PodAsk, machine: DirectMachine, before: FreeState, found: Placed
) -> DirectResult:
    """The decision as the pod's annotation has it."""
    names = tuple(container.name for container in pod.in_admission_order())
    enforced = asked.enforce_memory
    known: dict[object, Parts]
    known = found.__dict__.setdefault("_results", {})
    parts = known.get(names)
    if parts is None:
        grants, after = found.assignment.grants, found.assignment.after
        kept = sharing.less(before.shares, after.shares)
        containers = tuple(
            _container(name, grant, machine, enforced=enforced) for name, grant in zip(names, grants, strict=True)
        )
        cpus = before.cpus & ~after.cpus
        parts = known[names] = (
            containers,
            cpuset.text(cpus),
            tuple(_amounts(machine, before, after)),
            sharing.grants(machine.stock, kept),
        )
    return DirectResult(
        version=directresult.VERSION,
        uid=pod.metadata.uid,
        node=node,
        scope=asked.scope,
        policy=asked.policy,
        containers=parts[0],
        cpuset=parts[1],
        numa_node_resources=parts[2],
        devices=parts[3],
        exclusion="" if asked.exclusion == "None" else asked.exclusion,
    )


def aligned(pod: Pod, machine: DirectMachine, found: Placed) -> tuple[Aligned, ...]:
    """The zones of its containers."""
    names = [container.name for container in pod.in_admission_order()]
    return tuple(
        Aligned(name, (machine.ids(grant.zones),) if grant.zones else ())
        for name, grant in zip(names, found.assignment.grants, strict=True)
    )


def _container(name: str, grant: Grant, machine: DirectMachine, *, enforced: bool) -> ContainerResult:
    zones = machine.ids(grant.zones)
    return ContainerResult(
        name=name,
        cpuset=cpuset.text(grant.cpus),
        zones=zones,
        mems=cpuset.text(cpuset.of(zones)) if enforced else "",
        resources={str(each.node): each.resources for each in _held(machine, grant)} if grant.zones else {},
        devices={
            resource: tuple(map(DeviceGrant, cpuset.members(minors)))
            for (resource, _, _), minors in zip(machine.devices, grant.devices, strict=False)
            if minors
        }
        | (sharing.grants(machine.stock, grant.shares) if grant.shares.parts else {}),
    )


def _held(machine: DirectMachine, grant: Grant) -> Iterable[ZoneAmounts]:
    for place in positions(grant.zones):
        milli = (grant.cpus & machine.cpus[place]).bit_count() * MILLI + (grant.shared[place] if grant.shared else 0)
        yield _zone(machine, place, milli, [amounts[place] for amounts in grant.memory])


def _amounts(machine: DirectMachine, before: FreeState, after: FreeState) -> Iterable[ZoneAmounts]:
    """What the pod as a whole keeps from others, zone by zone."""
    for place in range(len(machine.zones)):
        own = (before.cpus & ~after.cpus & machine.cpus[place]).bit_count() * MILLI
        memory = [had[place] - has[place] for had, has in zip(before.memory, after.memory, strict=True)]
        found = _zone(machine, place, own + after.shared[place] - before.shared[place], memory)
        if found.resources:
            yield found


def _zone(machine: DirectMachine, place: int, milli: int, memory: Sequence[int]) -> ZoneAmounts:
    amounts = {resourcenames.CPU: str(quantity.of_milli(milli))} if milli else {}
    for (name, _), amount in zip(machine.memory, memory, strict=False):
        if amount:
            amounts[name] = str(quantity.of(amount, Format.BINARY_SI))
    return ZoneAmounts(machine.zones[place], amounts)


# Reasons


def shortfall(
    asked: PodAsk, machine: DirectMachine, free: FreeState, found: Unplaced, resources: Resources
) -> Shortfall:
    """The refusal in the words of the row model: what the container needs, and what each zone has of it."""
    container = asked.containers[found.container] if found.container >= 0 else scope.summed(asked.containers)
    wants = tuple(_wants(container, machine, free, found.width, resources))
    return Shortfall(cause=_cause(wants, found, resources), step=found.container, wants=wants)


def _cause(wants: Sequence[Want], found: Unplaced, resources: Resources) -> Cause:
    if found.partial_cores:
        return Cause.PARTIAL_CORES
    if found.is_exclusive:
        return Cause.KEPT_APART
    if found.is_connected:
        return Cause.NOT_CONNECTED
    if found.width:
        return Cause.NO_COMMON_ZONES
    short = [want.column for want in wants if sum(want.free) < want.need]
    if not short or CPU in short:
        return Cause.TOO_FEW_CPUS
    return Cause.TOO_LITTLE_MEMORY if short[0] in resources.memory else Cause.TOO_FEW_DEVICES


def _wants(
    asked: asks.ContainerAsk, machine: DirectMachine, free: FreeState, width: int, resources: Resources
) -> Iterable[Want]:
    places = range(len(machine.zones))
    if asked.cpus or asked.milli:
        left = [max(0, free.poolable(machine, place)) for place in places]
        yield Want(CPU, asked.cpus or -(-asked.milli // MILLI), width, tuple(left))
    for (name, _), amount, amounts in zip(machine.memory, asked.memory, free.memory, strict=False):
        if amount:
            yield Want(resources.column(name), amount, width, amounts)
    for (name, by_zone, _), count, minors in zip(machine.devices, asked.devices, free.devices, strict=False):
        if count:
            yield Want(resources.column(name), count, width, tuple((minors & own).bit_count() for own in by_zone))
    for each in asked.shares.types if asked.shares is not None else ():
        name, amount, by_position = choosing.room(machine.stock, free.shares, each)
        yield Want(resources.column(name), each.count * amount, width, tuple(by_position.get(at, 0) for at in places))
