"""The forms in which recordings write hints, memory blocks and the state of zones.

Every family reads its inputs and writes its answers in these forms, so that an answer can be compared with the
recording field by field. A value that a recording omits is UNSET here, never None."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from numalign.api.attributes import cpuset
from numalign.kubelet import hints as topologyhints
from numalign.kubelet import mask as masks
from numalign.kubelet.memory import state as memorystate
from numalign.kubelet.merge import HintMap, Hints
from numalign.kubelet.refusals import Undecided

T = TypeVar("T")
A = TypeVar("A", bound=Struct)

# The kubelet keeps zone ids in a 64-bit word (kubelet spec, notation).
ZoneId = Annotated[int, Meta(ge=0, le=63)]
Zones = tuple[ZoneId, ...]


class Hint(Struct, frozen=True):
    mask: Zones | None
    preferred: bool

    @property
    def model(self) -> topologyhints.Hint:
        return topologyhints.Hint(None if self.mask is None else masks.of(self.mask), self.preferred)


RecordedHints = dict[str, tuple[Hint, ...] | None]

NO_HINT = Hint(None, False)
"""The topology manager's answer for a container without a stored hint."""


class Block(Struct, frozen=True):
    numa: Zones
    type: str
    size: int


class ZoneState(Struct, frozen=True):
    assignments: int
    cells: Zones
    free: dict[str, int]


def completed(answer: type[A], given: Struct, **answers: Any) -> A:
    """The recorded inputs, completed with the model's answers."""
    return answer(**{**structs.asdict(given), **answers})


def unless_empty(value: T) -> T | UnsetType:
    """Recordings omit empty texts, lists and objects in most places."""
    return value if value else UNSET


def hint(model: topologyhints.Hint) -> Hint:
    return _written(*model)


# Cached: a large answer repeats the same few hundred hints.
@lru_cache(maxsize=1 << 12)
def _written(mask: masks.Mask | None, preferred: bool) -> Hint:
    return Hint(None if mask is None else masks.members(mask), preferred)


def hint_map(model: HintMap | None) -> RecordedHints | None:
    if model is None:
        return None
    return {resource: None if hints is None else _listed(hints) for resource, hints in model.items()}


def _listed(hints: Hints) -> tuple[Hint, ...]:
    if isinstance(hints, topologyhints.HintList):
        preferred = map(hints.preferred.__contains__, hints.masks)
        return (*map(_written, hints.masks, preferred), *(_written(None, each) for each in sorted(hints.nil)))
    raise Undecided("hints over so many zones are not listed one by one", hints.count)


def cpus(model: int | None) -> str | None:
    return None if model is None else cpuset.text(model)


def blocks(model: Iterable[memorystate.Block]) -> tuple[Block, ...]:
    """Sorted by memory type."""
    return tuple(Block(masks.members(each.zones), each.kind, each.size) for each in sorted(model))


def zone_states(model: memorystate.MemoryState) -> dict[str, ZoneState]:
    return {str(zone): _zone_state(memory) for zone, memory in model.zones.items()}


def _zone_state(memory: memorystate.ZoneMemory) -> ZoneState:
    free = {kind: table.free for kind, table in memory.tables.items()}
    return ZoneState(memory.assignments, masks.members(memory.cells), free)


def totals(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """The sum over all zones by memory type: the amount that the node must reserve."""
    summed: dict[str, int] = {}
    for each in amounts:
        for kind, amount in each.items():
            summed[kind] = summed.get(kind, 0) + amount
    return summed
