"""What one container wants of a machine's shared devices: its requests, resolved against the devices that there are.

`direct.asks` calls `of`. Selectors become sets of devices, and a count that the pod leaves to the machine becomes a
number. A vendor's name such as nvidia.com/gpu means whole GPUs where no device plugin hands them out."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes.devicespec import (
    DeviceHint,
    DeviceRequest,
    DeviceSpec,
    Exclusion,
    Selector,
    Within,
)
from numalign.api.attributes.devicetable import WHOLE, Kind
from numalign.api.objects.pod import Container
from numalign.placement.columns.deviceshares import DeviceStock, Unit

VENDORS: Final = ("nvidia.com/gpu", "amd.com/gpu", "dcu.com/gpu")


class TypeAsk(Struct, frozen=True, kw_only=True):
    """Devices of one type."""

    kind: Kind
    count: int
    parts: int
    """Of each device; so the next two."""
    ratio: int = 0
    memory: int = 0
    eligible: tuple[int, ...]
    """Places in the stock."""
    functions: Selector | None = None
    within: Within | None = None
    exclusion: Exclusion | None = None

    @property
    def is_whole(self) -> bool:
        return WHOLE in (self.parts, self.ratio)

    def memory_of(self, unit: Unit) -> int:
        return self.memory or -(-unit.memory * self.ratio // WHOLE)

    def functions_of(self, unit: Unit) -> int:
        """Its virtual functions that match, as a mask."""
        wanted = self.functions
        if wanted is None:
            return 0
        return sum(1 << at for at, each in enumerate(unit.functions) if wanted.matches(dict(each.labels)))


class ShareAsk(Struct, frozen=True, kw_only=True):
    types: tuple[TypeAsk, ...]
    """Those that are chosen together come first, the primary one before the others."""
    joint: int = 0
    """How many of them are chosen together."""
    same_pcie: bool = False
    only_partitions: bool = False
    only_best: bool = False
    bandwidth: int = 0

    def unconnected(self) -> ShareAsk:
        """The same amounts of any devices."""
        types = tuple(structs.replace(each, within=None, exclusion=None) for each in self.types)
        return ShareAsk(types=types)

    def least(self, stock: DeviceStock) -> tuple[int, int]:
        """Parts and bytes that no choice of devices can do without."""
        parts = memory = 0
        for each in self.types:
            parts += each.count * each.parts
            memory += each.count * min((each.memory_of(stock.units[at]) for at in each.eligible), default=0)
        return parts, memory


def of(
    spec: DeviceSpec, place: int, container: Container, stock: DeviceStock, plugins: Collection[str]
) -> ShareAsk | None:
    """None: it wants none of these. `plugins`: resources that are handed out by minor, device by device."""
    requests = list(spec.requests[place]) if spec.requests else []
    if stock.units and not any(each.kind == "gpu" for each in requests):
        requests += _by_vendor(container, plugins)
    if not requests:
        return None
    together = [kind for kind in spec.joint if any(each.kind == kind for each in requests)]
    rank = {kind: number for number, kind in enumerate(together)}
    requests.sort(key=lambda each: rank.get(each.kind, len(rank)))
    return ShareAsk(
        types=tuple(_type(each, spec.hint(each.kind), stock) for each in requests),
        joint=len(together) if len(together) > 1 else 0,
        same_pcie=spec.same_pcie,
        only_partitions=bool(spec.partition) or stock.only_partitions,
        only_best=spec.partition == "Restricted",
        bandwidth=spec.bandwidth,
    )


def _by_vendor(container: Container, plugins: Collection[str]) -> Iterator[DeviceRequest]:
    limits = container.resources.limits
    count = sum(limits[name].value for name in VENDORS if name in limits and name not in plugins)
    if count:
        yield DeviceRequest(kind="gpu", count=count, parts=WHOLE, ratio=WHOLE)


def _type(asked: DeviceRequest, hint: DeviceHint, stock: DeviceStock) -> TypeAsk:
    eligible = tuple(at for at in stock.of_kind.get(asked.kind, ()) if hint.selector.matches(stock.units[at].labels))
    count, parts, ratio, memory = asked.count, asked.parts, asked.ratio, asked.memory
    if hint.counting is not None and asked.kind != "gpu" and asked.count == 1:
        is_count = hint.counting == "RequestsAsCount"
        # Of an empty set all devices would be none.
        count, parts = (asked.parts, 1) if is_count else (max(1, len(eligible)), asked.parts)
    if hint.exclusion == "DeviceLevel":
        parts, ratio, memory = WHOLE, WHOLE if asked.kind == "gpu" else 0, 0
    return TypeAsk(
        kind=asked.kind,
        count=count,
        parts=parts,
        ratio=ratio,
        memory=memory,
        eligible=eligible,
        functions=hint.functions,
        within=hint.within,
        exclusion=hint.exclusion,
    )
