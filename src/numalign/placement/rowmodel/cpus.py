"""The CPUs of one row while a pod is evaluated on it: what the CPU manager would offer, and what it would take.

`evaluate` asks for a listing, then takes CPUs container by container. Later containers of the pod can reuse the CPUs of
plain init containers, so these stay in `have`; how many of them the picker chooses again is known between bounds only
(engine spec R4). `cpusplit` computes how a choice is split among zones; otherwise the split stays open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from numalign.kubelet import versions
from numalign.kubelet.demand import Role
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.noderules import ACROSS_ZONES, BY_SOCKET, FULL_CORES
from numalign.placement.columns.resources import CPU
from numalign.placement.rowmodel import cpusplit
from numalign.placement.rowmodel.causes import Cause, Refuses, Unsure, Want
from numalign.placement.rowmodel.cpusplit import Run
from numalign.placement.rowmodel.merge import Alignment, Listing
from numalign.placement.rowmodel.state import Amounts, RowState, by_zone, inside, smallest, total, touching, zones_with


class TakenCPUs:
    """CPUs of one container: by position what is known, and in some of the zones `where` the rest."""

    def __init__(self, zones: int) -> None:
        self.known = [0] * zones
        self.rest = 0
        self.where = 0
        self.runs: list[Run] = []


class CPUPool:
    """CPUs that a pod can have, from its first container to its last."""

    def __init__(self, row: RowState) -> None:
        self.row = row
        self.rules = row.rules
        self.size = row.size.get(CPU) or (0,) * len(row.rules.zones)
        self.domain = zones_with(self.size)
        self.had = [max(0, free) for free in row.base.get(CPU) or self.size]
        self.have = list(self.had)
        """Free, or held by init containers of the pod that end before the next one starts."""
        self.kept_lo = [0] * len(self.have)
        self.kept_hi = [0] * len(self.have)
        """How many of `have` are held by init containers of the pod, at least and at most."""
        self.open = [entry for entry in row.entries if entry.column == CPU]
        """Taken in zones that are not known, by others and then by the pod's own containers."""
        self.others = len(self.open)
        self.full_lo, self.full_hi = row.full_core_cpus or (0, sum(self.have))
        self.full_lo -= sum(entry.amount for entry in self.open)
        self.runs: list[Run] = []
        self.is_steady = True
        """Whether everything was taken where a mask of one zone said, so that the picker had no choice of zones, and at
        no moment more had to be free than is held in the end."""

    def lo(self, mask: int) -> int:
        return total(self.have, mask) - (touching(self.open, mask) if self.open else 0)

    def hi(self, mask: int) -> int:
        return total(self.have, mask) - (inside(self.open, mask) if self.open else 0)

    # Offering

    def listing(self, need: int) -> Listing:
        must_lo, must_hi = zones_with(self.kept_lo), zones_with(self.kept_hi)

        def certain(mask: int) -> bool:
            return mask & must_hi == must_hi and self.lo(mask) >= need

        def possible(mask: int) -> bool:
            return mask & must_lo == must_lo and self.hi(mask) >= need

        zones = self._smallest(need)
        return Listing(
            wants=lambda: (self.want(need, zones),),
            domain=self.domain,
            smallest=zones,
            certain=certain,
            possible=certain if must_lo == must_hi and not self.open else possible,
            also_prefers=self._whole_sockets(zones),
            size_unknown=self._size_unknown(need, zones),
        )

    def want(self, need: int, zones: int = 0) -> Want:
        return Want(CPU, need, zones, tuple(max(0, self.lo(1 << position)) for position in range(len(self.have))))

    def _smallest(self, need: int) -> int:
        return smallest(self.domain, (by_zone(self.size),), (need,))

    def _size_unknown(self, need: int, zones: int) -> bool:
        more = self.row.unknown_size.get(CPU, 0)
        return more > 0 and zones > 1 and self._smallest(need - more) < zones

    def _whole_sockets(self, zones: int) -> Callable[[int], bool] | None:
        """`align-by-socket` also prefers as few sockets as the smallest mask needs (kubelet spec 5.5)."""
        if BY_SOCKET not in self.rules.cpu_options:
            return None
        sockets = self.rules.sockets
        if not sockets:
            raise Unsure(Cause.CORES_UNKNOWN)
        per_socket = self.domain.bit_count() // max(1, _union(sockets, self.domain).bit_count())
        if not per_socket:
            return None
        return lambda mask: _union(sockets, mask).bit_count() == -(-zones // per_socket)

    # Taking

    def take(self, need: int, alignment: Alignment, role: Role) -> None:
        """Give a container its CPUs, as the CPU manager would (engine spec 5)."""
        self._require_full_cores(need)
        if not alignment.trusted:
            self._require(need, self._area(alignment))
        taken = self._split(need, alignment)
        self._count_full_cores(need)
        if role is Role.INIT:
            self._lend(taken)
        else:
            self._hand_out(taken)

    def _require_full_cores(self, need: int) -> None:
        if FULL_CORES not in self.rules.cpu_options:
            return
        # What init containers hold does not count as free, though it can be had again.
        self.is_steady = self.is_steady and not any(self.kept_hi)
        if need % self.rules.threads_per_core:
            raise Refuses(Cause.PARTIAL_CORES, (self.want(need),))
        if need > self.full_hi:
            raise Refuses(Cause.TOO_FEW_FULL_CORES, (self.want(need),))
        if need > self.full_lo:
            known = self.row.full_core_cpus is not None
            raise Unsure(Cause.UNSETTLED_PODS if known else Cause.CORES_UNKNOWN, (self.want(need),))

    def _require(self, need: int, area: int) -> None:
        if self.hi(self.domain) < need:
            # A socket or core that is full by the machine's average is taken with CPUs that are not free, so that
            # fewer free ones may do (kubelet spec 4).
            misled = self._peculiar or (area & (area - 1) and area != self.domain and self._uneven_sockets)
            raise (Unsure(Cause.CPU_IDS) if misled else Refuses(Cause.TOO_FEW_CPUS, (self.want(need),)))
        if self.lo(self.domain) < need:
            raise Unsure(Cause.UNSETTLED_PODS, (self.want(need),))

    def _count_full_cores(self, need: int) -> None:
        """CPUs beside a reserved one are on no full core, and those of init containers are not counted again."""
        beside = max(0, sum(self.have) - sum(self.kept_lo) - self.full_lo)
        self.full_lo -= need
        if not self._may_take_less:
            self.full_hi -= max(0, need - beside - sum(self.kept_hi))

    def _split(self, need: int, alignment: Alignment) -> TakenCPUs:
        taken = TakenCPUs(len(self.have))
        area = self._area(alignment)
        if self._peculiar:
            taken.rest, taken.where = need, self.domain
        elif self.open or len(alignment.masks) > 1 or not alignment.known:
            stays = alignment.trusted and not self._may_leave(area)
            taken.rest, taken.where = need, zones_with(self.have, area if stays else self.domain)
            self._settle_single_zone(taken)
        else:
            aligned = min(need, total(self.have, area))
            self._run(taken, area, aligned, self._least_zones(alignment))
            self._run(taken, self.domain & ~area, need - aligned, 0)
        if taken.rest and ACROSS_ZONES in self.rules.cpu_options:
            self._require_safe_spreading(taken.where)
        # With `align-by-socket` CPUs may come from another zone of the socket than the mask's.
        elsewhere = BY_SOCKET in self.rules.cpu_options
        one_zone = not taken.rest and not elsewhere and sum(map(bool, taken.known)) == 1
        self.is_steady = self.is_steady and one_zone and (alignment.trusted or not self.domain & (self.domain - 1))
        return taken

    def _area(self, alignment: Alignment) -> int:
        area = alignment.union if alignment.masks else self.domain
        if alignment.masks and BY_SOCKET in self.rules.cpu_options:
            touched = _union(self.rules.sockets, area)
            area = sum(1 << position for position, own in enumerate(self.rules.sockets) if own & touched)
        return area & self.domain

    @property
    def _peculiar(self) -> bool:
        """Cores of different kinds: the kubelet counts in averages and may take less than it thinks (spec 4)."""
        return bool(self.rules.sockets) and not self.rules.regular

    @property
    def _may_take_less(self) -> bool:
        """Whether CPUs in several zones may count twice, or count without being free (kubelet spec 5.6)."""
        return self._peculiar or self.rules.l3_straddles or self._uneven_sockets

    def _may_leave(self, area: int) -> bool:
        """Whether CPUs counted twice may be made up for in other zones, though there is room for all in these."""
        return self.rules.l3_straddles and area & (area - 1) != 0

    @property
    def _picks_oddly(self) -> bool:
        """Whether even a run that takes all free CPUs needs the picker."""
        return ACROSS_ZONES in self.rules.cpu_options or self._may_take_less

    @property
    def _uneven_sockets(self) -> bool:
        sizes: dict[int, int] = {}
        for own, size in zip(self.rules.sockets, self.size, strict=False):
            sizes[own] = sizes.get(own, 0) + size
        return len({size for size in sizes.values() if size}) > 1

    def _least_zones(self, alignment: Alignment) -> int:
        behaviour = versions.behaviour(versions.Minor(*self.rules.minor))
        return alignment.union.bit_count() if behaviour.distribution_keeps_affinity else 0

    def _run(self, taken: TakenCPUs, zones: int, count: int, least_zones: int) -> None:
        """One run of the picker; a single zone, or all there is, needs none."""
        if not count:
            return
        holding = zones_with(self.have, zones)
        run = Run(holding, count, least_zones)
        if holding & (holding - 1) and (count < total(self.have, holding) or self._picks_oddly):
            picked = self._picked(run)
            if picked is None:
                taken.rest += count
                taken.where |= zones_with(self.have) if self._may_leave(holding) else holding
                return
        else:
            picked = [min(count, have) if holding >> position & 1 else 0 for position, have in enumerate(self.have)]
        taken.runs.append(run)
        taken.known = [known + more for known, more in zip(taken.known, picked, strict=True)]

    def _picked(self, run: Run) -> list[int] | None:
        cores = None if self.open else cpusplit.of(self.row)
        return None if cores is None else cpusplit.split(cores, (*self.runs, run))

    def _settle_single_zone(self, taken: TakenCPUs) -> None:
        if taken.where & (taken.where - 1) == 0:
            taken.known[taken.where.bit_length() - 1] += taken.rest
            taken.rest = taken.where = 0

    def _require_safe_spreading(self, where: int) -> None:
        """Spreading may fail or never end, which only exact amounts show (kubelet spec 5.7)."""
        if self._peculiar or FULL_CORES in self.rules.cpu_options or where.bit_count() > cpusplit.SAFE_TO_SPREAD:
            raise Unsure(Cause.CPU_IDS)

    def require_parts(self, parts: Iterable[int]) -> None:
        """The budget just taken is divided with the same picker, which may fail where it spreads."""
        if not any(parts):
            return
        if self._peculiar:
            raise Unsure(Cause.CPU_IDS)
        if ACROSS_ZONES in self.rules.cpu_options and not self.is_steady:
            self._require_safe_spreading(self.domain)

    def _lend(self, taken: TakenCPUs) -> None:
        """What an init container takes stays available to the containers after it."""
        for position, count in enumerate(taken.known):
            most = count + (taken.rest if taken.where >> position & 1 else 0)
            self.kept_lo[position] = max(self.kept_lo[position], count)
            self.kept_hi[position] = min(self.have[position], self.kept_hi[position] + most)

    def _hand_out(self, taken: TakenCPUs) -> None:
        self.runs += taken.runs
        for position, count in enumerate(taken.known):
            self.have[position] -= count
            self.kept_lo[position] = max(0, self.kept_lo[position] - count - taken.rest)
            self.kept_hi[position] = min(self.kept_hi[position], self.have[position])
        if taken.rest:
            self.open.append(Entry(CPU, taken.rest, taken.where, certain=not self._may_take_less))

    # What is left

    def charges(self) -> Iterator[Entry]:
        """What the pod holds when it has been admitted; init containers keep theirs as long as the pod lives."""
        for position, had in enumerate(self.had):
            certain = had - self.have[position] + self.kept_lo[position]
            doubtful = self.kept_hi[position] - self.kept_lo[position]
            if certain:
                yield Entry(CPU, certain, 1 << position)
            if doubtful:
                yield Entry(CPU, doubtful, 1 << position, certain=False)
        yield from self.open[self.others :]

    def settled_runs(self) -> tuple[Run, ...] | None:
        """All runs of the picker, if their zones are known."""
        return None if self.open or any(self.kept_hi) else tuple(self.runs)


def _union(sockets: Amounts, mask: int) -> int:
    together = 0
    for position, own in enumerate(sockets):
        together |= own if mask >> position & 1 else 0
    return together
