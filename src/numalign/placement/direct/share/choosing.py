"""Chooses devices for one container inside given zones: near each other, and near those of other types.

`taking` calls `allocate`. Devices of a container are on one PCIe root if possible, else in one zone, else anywhere in
the given zones, on as few roots as possible; roots and devices that are in use already come first, or last where the
pod spreads. What init containers of the same pod have left is used first. Ways to choose are tried in this order until
all types fit together, at most `MOST_WAYS` for each type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, islice
from typing import Final

from numalign.api.attributes.devicetable import MEMORY, PARTS, RATIO
from numalign.placement.columns.deviceshares import LOOSE, DeviceStock, Shares
from numalign.placement.direct.share import amounts, partitions
from numalign.placement.direct.share.asks import ShareAsk, TypeAsk

MOST_WAYS: Final = 1 << 10
MOST_NEAR: Final = 64
"""The same where other types need not be on the same roots: all ways would do, and the nearest one is wanted."""

Chosen = tuple[int, ...]


def allocate(
    stock: DeviceStock, free: Shares, left: Shares, asked: ShareAsk, mask: int, *, fill: bool
) -> Shares | None:
    """What the container gets of each device; None: there is no way. `left`: by init containers of the same pod."""
    return _Choice(stock, free, left, asked, mask, fill=fill).found()


class _Choice:
    def __init__(
        self, stock: DeviceStock, free: Shares, left: Shares, asked: ShareAsk, mask: int, *, fill: bool
    ) -> None:
        self._stock, self._asked, self._mask, self._left = stock, asked, mask, left
        self._sign = 1 if fill else -1
        self._open = amounts.added(free, left)

    def found(self) -> Shares | None:
        types, joint = self._asked.types, self._asked.joint
        chosen: dict[int, Chosen] = {}
        if joint:
            together = self._together(types[:joint])
            if together is None:
                return None
            chosen = dict(enumerate(together))
        for number, each in enumerate(types):
            if number not in chosen:
                alone = next(self._ways(each, self._fitting(each)), None)
                if alone is None:
                    return None
                chosen[number] = alone
        return self._taken(chosen)

    # Several types together

    def _together(self, types: Sequence[TypeAsk]) -> tuple[Chosen, ...] | None:
        """On the same PCIe roots; if they need not be, in the same zones as far as possible."""
        found = self._on_same_roots(types)
        if found is not None or self._asked.same_pcie:
            return found
        primary, *others = types
        best: tuple[tuple[int, int], tuple[Chosen, ...]] | None = None
        for way in islice(self._ways(primary, self._fitting(primary)), MOST_NEAR):
            beside = [self._near(each, way) for each in others]
            picked = (way, *(each for each in beside if each is not None))
            if len(picked) < len(types):
                continue
            far = self._distance(picked)
            if best is None or far < best[0]:
                best = far, picked
            if best[0] <= (0, 0):
                break
        return best[1] if best is not None else None

    def _on_same_roots(self, types: Sequence[TypeAsk]) -> tuple[Chosen, ...] | None:
        primary, *others = types
        fitting = [self._fitting(each) for each in types]
        roots = [{self._root(at) for at in each if self._stock.units[at].knows_root} for each in fitting]
        common = frozenset.intersection(*map(frozenset, roots))
        candidates = [at for at in fitting[0] if self._root(at) in common]
        for way in islice(self._ways(primary, candidates), MOST_WAYS):
            used = sorted({self._root(at) for at in way})
            beside = [self._on_each(each, own, used) for each, own in zip(others, fitting[1:], strict=True)]
            picked = (way, *(each for each in beside if each is not None))
            if len(picked) == len(types):
                return picked
        return None

    def _on_each(self, asked: TypeAsk, fitting: Sequence[int], roots: Sequence[int]) -> Chosen | None:
        """Devices on each of these roots and no other, as many as are asked for, and at least one on each."""
        on = [iter(self._ordered(asked, (at for at in fitting if self._root(at) == root))) for root in roots]
        picked = list[int]()
        need = max(asked.count, len(roots))
        while len(picked) < need:
            turn = [at for at in (next(each, None) for each in on) if at is not None]
            if not turn or (not picked and len(turn) < len(roots)):
                return None
            picked += turn[: need - len(picked)]
        return tuple(picked) if self._keeps_within(asked, picked) else None

    def _near(self, asked: TypeAsk, primary: Chosen) -> Chosen | None:
        """Devices on the roots of these, else in their zones, else any."""
        roots = {self._root(at) for at in primary if self._stock.units[at].knows_root}
        zones = {self._stock.units[at].position for at in primary}
        ordered = self._ordered(asked, self._fitting(asked))
        ordered.sort(key=lambda at: (self._root(at) not in roots, self._stock.units[at].position not in zones))
        picked = tuple(ordered[: asked.count])
        if len(picked) == asked.count and self._keeps_within(asked, picked):
            return picked
        return next(self._ways(asked, self._fitting(asked)), None)

    def _distance(self, picked: Iterable[Chosen]) -> tuple[int, int]:
        """Zones and roots beyond one."""
        units = [self._stock.units[at] for each in picked for at in each]
        return len({unit.position for unit in units}) - 1, len({unit.root for unit in units}) - 1

    # One type

    def _fitting(self, asked: TypeAsk) -> list[int]:
        busy = self._busy_roots(asked)
        return [at for at in asked.eligible if self._fits(asked, at) and self._root(at) not in busy]

    def _fits(self, asked: TypeAsk, at: int) -> bool:
        unit, (parts, memory, functions) = self._stock.units[at], self._open
        if unit.position != LOOSE and not self._mask >> unit.position & 1:
            return False
        if not unit.parts or parts[at] < asked.parts or memory[at] < asked.memory_of(unit):
            return False
        return asked.functions is None or bool(asked.functions_of(unit) & functions[at])

    def _busy_roots(self, asked: TypeAsk) -> frozenset[int]:
        """Roots on which a device of this type is in use, where the pod wants none of these."""
        if asked.exclusion != "PCIeLevel":
            return frozenset()
        units, own = self._stock.units, self._stock.of_kind.get(asked.kind, ())
        return frozenset(
            units[at].root
            for at in own
            if self._open.parts[at] < units[at].parts or self._open.memory[at] < units[at].memory
        )

    def _ways(self, asked: TypeAsk, fitting: Sequence[int]) -> Iterator[Chosen]:
        if asked.kind == "gpu" and asked.is_whole:
            yield from self._partitions(asked, fitting)
            if self._asked.only_partitions:
                return
        if len(fitting) < asked.count:
            return
        if asked.count == 1:
            yield from ((at,) for at in self._ordered(asked, fitting))
        else:
            yield from self._by_closeness(asked, fitting)

    def _partitions(self, asked: TypeAsk, fitting: Sequence[int]) -> Iterator[Chosen]:
        units, of_kind = self._stock.units, self._stock.of_kind.get("gpu", ())
        parts, memory, _ = self._open
        free = [at for at in of_kind if parts[at] >= units[at].parts > 0 and memory[at] >= units[at].memory]
        found = partitions.ways(
            self._stock,
            frozenset(fitting),
            free,
            asked.count,
            bandwidth=self._asked.bandwidth,
            only_best=self._asked.only_best,
        )
        yield from (way for way in found if self._keeps_within(asked, way))

    def _by_closeness(self, asked: TypeAsk, fitting: Sequence[int]) -> Iterator[Chosen]:
        """Sets of devices: on one root, then on roots of one zone, and so on; on few roots before many."""
        on: dict[int, list[int]] = {}
        for at in self._ordered(asked, fitting):
            on.setdefault(self._root(at), []).append(at)
        zone = {root: self._stock.units[own[0]].position for root, own in on.items()}
        zones, most = sorted(set(zone.values()), key=lambda each: (each == LOOSE, each)), asked.count
        for width in range(1, len(zones) + 1):
            for inside in combinations(zones, width):
                roots = sorted(
                    (root for root in on if zone[root] in inside), key=lambda root: self._root_rank(on, root)
                )
                largest = sorted((len(on[root]) for root in roots), reverse=True)
                for size in range(width, min(most, len(roots)) + 1):
                    if sum(largest[:size]) < most:
                        continue
                    for some in islice(combinations(roots, size), MOST_WAYS):
                        if len({zone[root] for root in some}) == width and sum(len(on[root]) for root in some) >= most:
                            way = _one_of_each(on, some, most)
                            if self._keeps_within(asked, way):
                                yield way

    def _root_rank(self, on: Mapping[int, Sequence[int]], root: int) -> tuple[int, int, int]:
        reused = sum(bool(self._left.parts[at]) for at in on[root])
        return -reused, self._sign * len(on[root]), root

    def _ordered(self, asked: TypeAsk, fitting: Iterable[int]) -> list[int]:
        """Those that an init container left, then those in use or unused, and those without a zone last."""
        fitting = list(fitting)
        crowd = dict[int, int]()
        for at in fitting:
            crowd[self._root(at)] = crowd.get(self._root(at), 0) + 1

        def key(at: int) -> tuple[int, ...]:
            reused = self._left.parts[at] or self._left.memory[at]
            loose = self._stock.units[at].position == LOOSE
            open_parts, sign = self._open.parts[at] + self._share(at), self._sign
            return not reused, loose, sign * open_parts, sign * crowd[self._root(at)], at

        return sorted(fitting, key=key)

    def _share(self, at: int) -> int:
        """Free memory in hundredths."""
        return 100 * self._open.memory[at] // max(1, self._stock.units[at].memory)

    def _keeps_within(self, asked: TypeAsk, way: Sequence[int]) -> bool:
        units = [self._stock.units[at] for at in way]
        match asked.within:
            case "Device":
                return len(way) == 1
            case "PCIe":
                return len({unit.root for unit in units}) == 1
            case "NUMANode":
                return len({unit.position for unit in units}) == 1
        return True

    def _root(self, at: int) -> int:
        return self._stock.units[at].root

    def _taken(self, chosen: Mapping[int, Chosen]) -> Shares:
        parts, memory, functions = (list(each) for each in self._stock.nothing)
        for number, way in chosen.items():
            asked = self._asked.types[number]
            for at in way:
                unit = self._stock.units[at]
                parts[at], memory[at] = asked.parts, asked.memory_of(unit)
                functions[at] = self._function(asked, at)
        return Shares(tuple(parts), tuple(memory), tuple(functions))

    def _function(self, asked: TypeAsk, at: int) -> int:
        """One that an init container left, else the one with the lowest address."""
        matching = asked.functions_of(self._stock.units[at]) & self._open.functions[at]
        first = matching & self._left.functions[at] or matching
        return first & -first


def room(stock: DeviceStock, free: Shares, asked: TypeAsk) -> tuple[str, int, dict[int, int]]:
    """For a refusal: the resource, how much of it one device has to give, and by position what such devices have."""
    if asked.parts:
        name, amount = PARTS[asked.kind], asked.parts
    else:
        name, amount = (MEMORY, asked.memory) if asked.memory else (RATIO, asked.ratio)
    found: dict[int, int] = {}
    for at in asked.eligible:
        unit = stock.units[at]
        if unit.parts and free.parts[at] >= asked.parts and free.memory[at] >= asked.memory_of(unit):
            found[unit.position] = found.get(unit.position, 0) + amount
    return name, amount, found


def _one_of_each(on: Mapping[int, Sequence[int]], roots: Sequence[int], count: int) -> Chosen:
    """So many devices, at least one on each root."""
    picked, need = list[int](), count
    for number, root in enumerate(sorted(roots, key=lambda each: (len(on[each]), each))):
        behind = len(roots) - number - 1
        some = on[root][: need - behind]
        picked += some
        need -= len(some)
    return tuple(sorted(picked))
