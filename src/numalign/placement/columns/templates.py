"""What pods of one shape hold once it is settled which zone each container gets.

Made once per shape, kind of node and choice of zones; thousands of replicas share the entries. Only pods of which
every container has one zone have a template: their entries are exact."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from numalign.api.objects.pod import Container, Pod
from numalign.kubelet import demand as demands
from numalign.placement.columns.holdings import Aligned, ContainerZones, Entry, Holding, Source
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU

Names = tuple[str, ...]
Key = tuple[int, ...]
Placed = tuple[tuple[ContainerZones, ...], tuple[Aligned, ...]]
"""Containers with their zones, by position and by real ids."""
MASKS_PER_KEY: Final = 7
"""As many as a number takes without becoming negative."""
NO_MASKS: Final[Key] = (0,)


class Template:
    """Entries and zones, waiting for a pod's names."""

    def __init__(self, rules: NodeRules, program: Program, masks: tuple[int, ...], shape: int) -> None:
        self._rules = rules
        self._program = program
        self._masks = masks
        self.shape = shape
        self._named: dict[Names, Placed] = {}
        self._last: tuple[tuple[Container, ...], tuple[Container, ...], Placed] | None = None
        """The latest containers, init containers and what they got: mostly one object each for all of a kind."""

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Made when the ledger asks, as many a pod of its own shape is placed before that."""
        return _entries(self._program, self._masks, self._rules)

    def holding(self, pod: Pod) -> Holding:
        """What the pod holds."""
        return Holding(
            uid=demands.identity(pod),
            name=pod.metadata.full_name,
            source=Source.PREDICTED,
            entries=self.entries,
            containers=self._of(pod)[0],
            shape=self.shape,
        )

    def placement(self, pod: Pod) -> tuple[Aligned, ...]:
        """The zones of its containers by real ids."""
        return self._of(pod)[1]

    def _of(self, pod: Pod) -> Placed:
        containers, inits, last = pod.spec.containers, pod.spec.init_containers, self._last
        if last is None or last[0] is not containers or last[1] is not inits:
            last = self._last = containers, inits, self._by_name(pod)
        return last[2]

    def _by_name(self, pod: Pod) -> Placed:
        names = tuple([container.name for container in pod.in_admission_order()])
        found = self._named.get(names)
        if found is None:
            each = zip(names, self._program.steps, self._masks, strict=True)
            containers = tuple(
                ContainerZones(name, (mask,) if mask and _asks(step.ask) else ()) for name, step, mask in each
            )
            found = self._named[names] = containers, aligned(containers, self._rules)
        return found


class Templates(dict[Key, Template]):
    """A shape's templates on nodes of one kind; made when they are looked up."""

    def __init__(self, rules: NodeRules, program: Program, shape: int) -> None:
        super().__init__()
        self._rules = rules
        self._program = program
        self._shape = shape

    def __missing__(self, key: Key) -> Template:
        masks = [number >> 8 * place & 0xFF for number in key for place in range(MASKS_PER_KEY)]
        made = Template(self._rules, self._program, tuple(masks[: len(self._program.steps)]), self._shape)
        self[key] = made
        return made


def key(masks: Sequence[int]) -> Key:
    """Masks packed into numbers: what templates are looked up by."""
    parts = [masks[first : first + MASKS_PER_KEY] for first in range(0, len(masks), MASKS_PER_KEY)]
    return tuple([sum([mask << 8 * place for place, mask in enumerate(part)]) for part in parts]) or NO_MASKS


def aligned(containers: Sequence[ContainerZones], rules: NodeRules) -> tuple[Aligned, ...]:
    """The same in real zone ids."""
    return tuple(Aligned(each.container, tuple(map(rules.real, each.possible))) for each in containers)


def _asks(ask: Ask) -> bool:
    return bool(ask.cpus or ask.memory or ask.devices)


def _entries(program: Program, masks: tuple[int, ...], rules: NodeRules) -> tuple[Entry, ...]:
    amounts: dict[tuple[int, int], int] = {}
    for step, mask in zip(program.steps, masks, strict=True):
        zones = mask or rules.every_zone
        for column, amount in ((CPU, step.ask.cpus), *(step.ask.memory or ()), *step.ask.devices):
            if amount:
                amounts[column, zones] = amounts.get((column, zones), 0) + amount
    return tuple(Entry(column, amount, zones) for (column, zones), amount in sorted(amounts.items()))
