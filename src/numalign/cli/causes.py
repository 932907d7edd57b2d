"""What a refusal comes down to: the one thing, or the few, that would have to be different.

`explaining` hands in what was asked, what was free and what the managers offered; out comes a name for the cause and
its sentence. The kubelet says only that resources cannot be aligned, so this is read off the offers by the policy's
own rules (kubelet spec 3.5): a resource that nobody can place, or resources that cannot agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Literal, NamedTuple

from msgspec import Struct

from numalign.api import resourcenames
from numalign.cli import wording
from numalign.kubelet import mask as masks
from numalign.kubelet.hints import HintList
from numalign.kubelet.mask import Mask
from numalign.kubelet.merge import Hints
from numalign.kubelet.refusals import Undecided
from numalign.kubelet.settings import TopologyPolicy

Name = Literal[
    "exhausted", "grouped", "too-large", "fragmented", "different-widths", "disagreement", "node-exhausted", "manager"
]


class Cause(NamedTuple):
    name: Name
    text: str


MANAGER = Cause("manager", "")
"""Nothing to add to the kubelet's own message."""


class Request(Struct, frozen=True):
    """One resource as it was asked for. `free` is by zone set; hints None: its manager has no say in the alignment."""

    resource: str
    need: int
    free: Mapping[Mask, int]
    hints: Hints | None

    @property
    def free_in_zones(self) -> int:
        return sum(amount for zones, amount in self.free.items() if zones)

    @property
    def is_memory(self) -> bool:
        return resourcenames.is_bytes(self.resource)

    @property
    def fits_nowhere(self) -> bool:
        return self.hints is not None and self.hints.count == 0


def unaligned(requests: Sequence[Request], policy: TopologyPolicy) -> Cause:
    """Why the merge found nothing that the policy accepts."""
    lacking = [_lacking(request) for request in requests if request.fits_nowhere]
    if lacking:
        return _together(lacking)
    hinted = {request.resource: request.hints for request in requests if request.hints is not None}
    accepted = {resource: _accepted(hints, policy) for resource, hints in hinted.items()}
    misfits = [_misfit(request, policy) for request in requests if accepted.get(request.resource) == ()]
    if misfits:
        return _together(misfits)
    return _conflict(accepted) or _different_widths({resource: _width(hints) for resource, hints in hinted.items()})


def unallocated(requests: Sequence[Request]) -> Cause:
    """Why a manager could not hand out what was aligned, as far as amounts tell."""
    short = [_lacking(each) for each in requests if each.fits_nowhere or each.need > sum(each.free.values())]
    return _together(short) if short else MANAGER


def no_memory(requests: Sequence[Request]) -> Cause:
    """Why no set of zones was left for a request for memory; all its types have to be in the same zones."""
    short = [_lacking(each) for each in requests if each.need > each.free_in_zones]
    tightest = max(requests, key=lambda each: each.need - max(each.free.values(), default=0))
    return _together(short or [_lacking(tightest)])


def _together(found: Sequence[Cause]) -> Cause:
    return Cause(found[0].name, "; ".join(cause.text for cause in found))


def _lacking(request: Request) -> Cause:
    if request.need <= request.free_in_zones:
        return Cause("grouped", wording.grouped(request.resource, request.need))
    return Cause("exhausted", wording.exhausted(request.resource, request.need, request.free_in_zones))


def _accepted(hints: Hints, policy: TopologyPolicy) -> tuple[Mask, ...] | None:
    """The zone sets that the policy would take; None where there are too many to list."""
    single = policy == "single-numa-node"
    if isinstance(hints, HintList):
        return tuple(mask for mask in hints.masks if hints.prefers(mask) and not (single and mask.bit_count() > 1))
    if not single and _width(hints) != 1:
        return None
    return tuple(1 << zone for zone in hints.room.zones if hints.prefers(1 << zone))


def _misfit(request: Request, policy: TopologyPolicy) -> Cause:
    """Why nothing of what is offered is accepted: too wide by nature, or only because of what is in use."""
    offered = request.hints.masks if isinstance(request.hints, HintList) else ()
    width = _width(request.hints) if request.hints else 0
    if policy == "single-numa-node" and width > 1:
        return Cause("too-large", wording.too_large(request.resource, width))
    roomy = [zones for zones, free in request.free.items() if free >= request.need and zones not in offered]
    if request.is_memory and roomy:
        return Cause("grouped", wording.grouped(request.resource, request.need))
    return Cause("fragmented", wording.fragmented(request.resource, request.need, _narrowest(offered), policy))


def _width(hints: Hints) -> int:
    """Zones that an empty machine needs; 0 where that cannot be read off."""
    if isinstance(hints, HintList):
        return min((mask.bit_count() for mask in hints.preferred), default=0)
    try:
        return hints.room.smallest
    except Undecided:
        return 0


def _narrowest(offered: Sequence[Mask]) -> list[tuple[int, ...]]:
    width = min((mask.bit_count() for mask in offered), default=0)
    return [masks.members(mask) for mask in offered if mask.bit_count() == width]


def _conflict(accepted: Mapping[str, tuple[Mask, ...] | None]) -> Cause | None:
    """The resources that cannot agree, two of them if two do not."""
    listed = {resource: sets for resource, sets in accepted.items() if sets is not None}
    for resources in (*combinations(listed, 2), tuple(listed)):
        among = {resource: listed[resource] for resource in resources}
        if among and not set.intersection(*(set(sets) for sets in among.values())):
            return _disagreement(among)
    return None


def _disagreement(among: Mapping[str, tuple[Mask, ...]]) -> Cause:
    widths = {resource: min(mask.bit_count() for mask in sets) for resource, sets in among.items()}
    if len(set(widths.values())) > 1:
        return _different_widths(widths)
    fits = {resource: [masks.members(mask) for mask in sets] for resource, sets in among.items()}
    return Cause("disagreement", wording.disagreement(fits))


def _different_widths(widths: Mapping[str, int]) -> Cause:
    known = {resource: width for resource, width in widths.items() if width}
    if len(set(known.values())) > 1:
        return Cause("different-widths", wording.different_widths(known))
    return MANAGER
