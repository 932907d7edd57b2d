"""The static memory policy: start, hints and allocation of memory and hugepages (policy_static.go).

`start` starts it: it checks the reservations by zone and accepts or refuses a checkpoint. Hints follow from the tables
and groups of the zones. Allocation starts from the merged affinity, widens it where too little is free, and refuses
what would break a group (kubelet spec 6.3 to 6.6). A request that fits nowhere yields no hint, so the merge ignores it
and allocation refuses it. Pod-level memory is one budget, recorded by container (kubelet spec 10.4); the kubelet
subtracts with unsigned 64-bit arithmetic, which may wrap around, and so does the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, reduce

from msgspec import Struct, structs

from numalign.api.decode import quantity
from numalign.api.objects import resourcenames
from numalign.kubelet.demand import ContainerDemand, PodDemand, Role
from numalign.kubelet.machine.machine import Machine, Zone
from numalign.kubelet.memory.state import Block, MemoryState, ReusableMemory, Table, ZoneMemory, Zones, charge, release
from numalign.kubelet.refusals import EMPTY_POD_SHARED_POOL, Refusal, StartRefusal, Undecided
from numalign.kubelet.settings import Settings
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager.hints import Groups, Hint, HintList, Room, Supply, UnlistedHints, best_for_memory
from numalign.kubelet.topologymanager.mask import Mask
from numalign.kubelet.topologymanager.merge import HintMap
from numalign.kubelet.versions import Behaviour, behaviour

_UINT64 = 1 << 64
NOT_WHOLE = "[memorymanager] failed to represent quantity as int64"


def empty_shared_pool(pod: PodDemand, budget: Mapping[str, int]) -> str | None:
    """Why containers without memory of their own would find the pod's budget used up."""
    if any(container.memory is None for container in pod.containers):
        return NOT_WHOLE
    exclusive = dict.fromkeys(budget, 0)
    sharing = False
    for container in pod.containers:
        if container.role is Role.INIT:
            kind = _exhausted(exclusive, budget) if not container.memory else None
            if kind is not None:
                return f"pod rejected, pod has shared init containers but no {kind} available for them"
            continue
        sharing = sharing or not container.memory
        for kind, size in (container.memory or {}).items():
            exclusive[kind] = exclusive.get(kind, 0) + size
    kind = _exhausted(exclusive, budget) if sharing else None
    if kind is None:
        return None
    return (
        f"pod rejected, sum of exclusive container {kind} requests equals pod budget, "
        "leaving no memory for shared containers"
    )


def divided(pod: PodDemand, budget: Mapping[str, int], zones: Mask) -> dict[str, tuple[Block, ...]]:
    """Every container's blocks: its own request, what sidecars left it while it initialises, or the shared rest."""
    pool = dict(budget)
    blocks: dict[str, tuple[Block, ...]] = {}
    for container in pod.containers:
        if container.memory:
            blocks[container.name] = _blocks(container.memory, zones)
            # What a sidecar takes is only looked up for kinds of the budget, what an app takes is subtracted as it is.
            taken = {
                kind: size for kind, size in container.memory.items() if kind in budget or container.role is Role.APP
            }
            if container.role is not Role.INIT:
                pool |= {kind: (pool.get(kind, 0) - size) % _UINT64 for kind, size in taken.items()}
        elif container.role is Role.INIT:
            blocks[container.name] = _blocks({kind: pool[kind] for kind in budget}, zones)
    shared = _blocks(pool, zones)
    return {container.name: blocks.get(container.name, shared) for container in pod.containers}


def _blocks(amounts: Mapping[str, int], zones: Mask) -> tuple[Block, ...]:
    return tuple(Block(kind, zones, size) for kind, size in amounts.items() if size > 0)


def _exhausted(exclusive: Mapping[str, int], budget: Mapping[str, int]) -> str | None:
    return next((kind for kind, size in budget.items() if exclusive[kind] >= size), None)


Request = Mapping[str, int]
"""Bytes by memory type."""


class StaticMemory(Struct, frozen=True, dict=True):
    """The policy of one kubelet process: what each zone can ever give. State is passed in and out."""

    allocatable: Mapping[int, Mapping[str, int]]
    """Zone id to bytes by memory type."""
    behaviour: Behaviour

    def initial(self) -> MemoryState:
        return MemoryState(zones={zone: empty(zone, amounts) for zone, amounts in self.allocatable.items()})

    # Hints

    def container_hints(self, state: MemoryState, pod: PodDemand, container: ContainerDemand) -> HintMap | None:
        if not container.memory:
            return None
        held = state.held(pod.uid, container.name)
        if held is not None:
            return regenerated(held, container.memory)
        return self._hints(state, pod, container.memory)

    def pod_hints(self, state: MemoryState, pod: PodDemand) -> HintMap | None:
        request = pod.memory
        if not request:
            return None
        if pod.budget is not None and empty_shared_pool(pod, request) is not None:
            return dict.fromkeys(request, HintList())
        for container in pod.containers:
            held = state.held(pod.uid, container.name)
            if held is not None:
                return regenerated(held, request)
        return self._hints(state, pod, request)

    def _hints(self, state: MemoryState, pod: PodDemand, request: Request) -> HintMap:
        """The same list for every type, or nothing at all where no mask has room."""
        hints = self._suiting(state, pod, request)
        return {} if hints.is_empty else dict.fromkeys(request, hints)

    def _suiting(self, state: MemoryState, pod: PodDemand, request: Request) -> HintList | UnlistedHints:
        self._require_known_types(request)
        reuse = state.reuse.amounts if state.reuse.uid == pod.uid else {}
        supplies = tuple(
            Supply(
                need=need,
                size=self._sizes[kind],
                free={1 << zone: memory.tables[kind].free for zone, memory in state.zones.items()},
                reusable={mask: amount for (mask, held), amount in reuse.items() if held == kind},
            )
            for kind, need in request.items()
        )
        return Room(tuple(sorted(self.allocatable)), supplies, groups=_groups(state)).hints()

    @cached_property
    def _sizes(self) -> Mapping[str, Mapping[Mask, int]]:
        kinds = {kind for amounts in self.allocatable.values() for kind in amounts}
        return {
            kind: {1 << zone: amounts[kind] for zone, amounts in self.allocatable.items() if kind in amounts}
            for kind in kinds
        }

    def _require_known_types(self, request: Request) -> None:
        for kind in request:
            if any(kind not in amounts for amounts in self.allocatable.values()):
                raise Undecided(f"the kubelet crashes on a request for {kind}, which some zone does not report")

    # Allocation

    def allocate(
        self, state: MemoryState, pod: PodDemand, container: ContainerDemand, affinity: Hint
    ) -> tuple[MemoryState, Refusal | None]:
        if not pod.pinned:
            return state, None
        request = container.memory
        if request is None:
            return state, Refusal(NOT_WHOLE)
        if not request and self.behaviour.memory_skips_empty_requests:
            return state, None
        try:
            return self._allocated(state, pod, container, affinity), None
        except Refusal as refusal:
            return state, refusal

    def _allocated(self, state: MemoryState, pod: PodDemand, container: ContainerDemand, affinity: Hint) -> MemoryState:
        held = state.held(pod.uid, container.name)
        if held is None:
            request = container.memory or {}
            zones = self._placed(state, pod, request, affinity)
            held = tuple(Block(kind, zones, size) for kind, size in request.items())
            tables = state.zones
            for block in held:
                tables = charge(tables, block, max(0, block.size - state.reusable(pod.uid, zones, block.kind)))
            state = structs.replace(state, zones=tables).with_blocks(pod.uid, {container.name: held})
            state = _shrink_init_blocks(state, pod, container, held)
        return structs.replace(state, reuse=_reuse_after(state, pod, container, held))

    def allocate_pod(self, state: MemoryState, pod: PodDemand, affinity: Hint) -> tuple[MemoryState, Refusal | None]:
        """Allocates the memory of a pod with pod-level resources at once, and records each container's part."""
        request = pod.memory
        if not pod.pinned or request is None:
            return state, None
        try:
            emptied = empty_shared_pool(pod, request)
            if emptied is not None:
                raise Refusal(emptied, EMPTY_POD_SHARED_POOL)
            zones = self._placed(state, pod, request, affinity)
        except Refusal as refusal:
            return state, refusal
        whole = tuple(Block(kind, zones, size) for kind, size in request.items())
        tables = state.zones
        for block in whole:
            tables = charge(tables, block, block.size)
        state = structs.replace(state, zones=tables, pods={**state.pods, pod.uid: whole})
        return state.with_blocks(pod.uid, divided(pod, request, zones)), None

    def _placed(self, state: MemoryState, pod: PodDemand, request: Request, affinity: Hint) -> Mask:
        """The zones that will hold the memory, found from the affinity (kubelet spec 6.4, steps 2 to 4)."""
        mask, preferred = affinity
        if mask is None:
            best = self._best(state, pod, request)
            if best is None:
                raise Refusal(
                    "[memorymanager] failed to get the default NUMA affinity, "
                    "no NUMA nodes with enough memory is available"
                )
            if preferred and not best.preferred:
                raise Refusal("[memorymanager] failed to find the default preferred hint")
            mask, preferred = best.mask or 0, best.preferred
        if not _has_room(state, mask, request):
            best = self._best(state, pod, request, including=mask)
            if best is None:
                raise Refusal("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
            if preferred and not best.preferred:
                raise Refusal("[memorymanager] failed to find the extended preferred hint")
            mask = best.mask or 0
        if mask.bit_count() > 1 and not _groups(state).coherent(mask):
            raise Refusal("[memorymanager] preferred hint violates NUMA node allocation")
        return mask

    def _best(self, state: MemoryState, pod: PodDemand, request: Request, including: Mask = 0) -> Hint | None:
        if not request:
            return None
        if resourcenames.MEMORY not in request:
            raise Undecided("the kubelet crashes on a container that requests hugepages and no memory")
        return best_for_memory(self._suiting(state, pod, request), including)

    # Release and collection

    def remove(self, state: MemoryState, uid: str, container: str) -> MemoryState:
        held = state.held(uid, container)
        state = state.without_container(uid, container)
        if uid not in state.pods:
            return structs.replace(state, zones=release(state.zones, held or ()))
        # A pod served as a whole gives everything back with its last container.
        if uid in state.blocks:
            return state
        pods = {other: blocks for other, blocks in state.pods.items() if other != uid}
        return structs.replace(state, zones=release(state.zones, state.pods[uid]), pods=pods)

    def started(self, state: MemoryState, pod: PodDemand, container: str) -> MemoryState:
        """Releases the memory of init containers that ended before this container started."""
        for earlier in pod.containers:
            if earlier.name == container or earlier.role is Role.APP:
                break
            if earlier.role is Role.INIT:
                state = self.remove(state, pod.uid, earlier.name)
        return state

    def collect(self, state: MemoryState, active: Mapping[str, Iterable[str]]) -> MemoryState:
        """Drop what belongs to no container of an active pod; `active` is pod uid to container names."""
        for uid, held in state.blocks.items():
            for name in held:
                if name not in active.get(uid, ()):
                    state = self.remove(state, uid, name)
        return state


def empty(zone: int, amounts: Mapping[str, int]) -> ZoneMemory:
    """An unused zone."""
    return ZoneMemory(cells=1 << zone, tables={kind: Table(amount) for kind, amount in amounts.items()})


def regenerated(held: tuple[Block, ...], request: Request) -> HintMap | None:
    """Hints for what a container already holds; nothing where that is not what it asks for (kubelet spec 6.3)."""
    if {block.kind: block.size for block in held} != dict(request):
        return None
    return {block.kind: HintList((block.zones,), frozenset({block.zones})) for block in held}


def _has_room(state: MemoryState, mask: Mask, request: Request) -> bool:
    zones = [state.zones[zone] for zone in masks.members(mask)]
    return all(sum(zone.tables[kind].free for zone in zones) >= need for kind, need in request.items())


def _groups(state: MemoryState) -> Groups:
    return Groups(
        busy=sum(1 << zone for zone, memory in state.zones.items() if memory.assignments > 0),
        cells={zone: memory.cells for zone, memory in state.zones.items()},
    )


def _reuse_after(
    state: MemoryState, pod: PodDemand, container: ContainerDemand, held: tuple[Block, ...]
) -> ReusableMemory:
    amounts = dict(state.reuse.amounts) if state.reuse.uid == pod.uid else {}
    for block in held:
        key = block.zones, block.kind
        before = amounts.get(key, 0)
        amounts[key] = max(before, block.size) if container.role is Role.INIT else max(0, before - block.size)
    return ReusableMemory(pod.uid, amounts)


def _shrink_init_blocks(
    state: MemoryState, pod: PodDemand, container: ContainerDemand, taken: tuple[Block, ...]
) -> MemoryState:
    """Subtracts what a container reuses from the blocks of earlier init containers (kubelet spec 6.5)."""
    unclaimed = {(block.kind, block.zones): block.size for block in taken}
    for earlier in pod.containers:
        if earlier.name == container.name or earlier.role is Role.APP:
            break
        held = state.held(pod.uid, earlier.name)
        if earlier.role is not Role.INIT or not held:
            continue
        kept = []
        for block in held:
            claimed = min(block.size, unclaimed.get((block.kind, block.zones), 0))
            if claimed:
                unclaimed[block.kind, block.zones] -= claimed
            kept.append(structs.replace(block, size=block.size - claimed))
        state = state.with_blocks(pod.uid, {earlier.name: tuple(kept)})
    return state


MANAGER = "memorymanager"
MEMORY = "memory"


def start_memory_manager(machine: Machine, settings: Settings) -> StaticMemory | None:
    """The static policy of a kubelet that starts on this machine; None for the policy that does nothing."""
    if settings.memory_policy == "None":
        return None
    _require_sums_to_match(machine, settings)
    reserved = {each.zone: each.limits for each in settings.reserved_memory}
    if sum(limits.get(MEMORY, 0) for limits in reserved.values()) <= 0:
        raise StartRefusal(MANAGER, "[memorymanager] you should specify the system reserved memory")
    allocatable = {zone.id: _allocatable(zone, reserved.get(zone.id, {})) for zone in machine.zones}
    return StaticMemory(allocatable, behaviour(settings.minor))


def restart_memory_manager(policy: StaticMemory, checkpoint: MemoryState) -> MemoryState:
    """The state that a new process takes over, if it follows from the recorded blocks (kubelet spec 6.8)."""
    if not checkpoint.zones:
        if checkpoint.blocks:
            raise StartRefusal(MANAGER, "[memorymanager] machine state can not be empty when it has memory assignments")
        return policy.initial()
    expected = policy.initial().zones
    for uid, containers in checkpoint.blocks.items():
        whole = checkpoint.pods.get(uid)
        for name, blocks in {"": whole}.items() if whole else containers.items():
            for block in blocks:
                _require_known(block, expected, f"[memorymanager] (pod: {uid}, container: {name})")
                expected = charge(expected, block, block.size)
    same_zones = checkpoint.zones.keys() == expected.keys()
    if not same_zones or not all(_agrees(zone, checkpoint.zones, expected) for zone in expected):
        raise StartRefusal(MANAGER, "[memorymanager] the expected machine state is different from the real one")
    return structs.replace(checkpoint, reuse=ReusableMemory())


def _require_known(block: Block, zones: Zones, who: str) -> None:
    for zone in masks.members(block.zones):
        if zone not in zones:
            raise StartRefusal(MANAGER, f"{who} the memory assignment uses the NUMA that does not exist")
        if block.kind not in zones[zone].tables:
            raise StartRefusal(MANAGER, f"{who} the memory assignment uses memory resource that does not exist")


def _agrees(zone: int, real: Zones, expected: Zones) -> bool:
    """Counters, groups and kinds must match; amounts only summed over the group, as draining depends on history."""
    one, other = real[zone], expected[zone]
    if (one.assignments, one.cells) != (other.assignments, other.cells) or one.tables.keys() != other.tables.keys():
        return False
    group = masks.members(one.cells)
    return all(_sums(real, group, kind) == _sums(expected, group, kind) for kind in one.tables)


def _sums(zones: Zones, group: tuple[int, ...], kind: str) -> tuple[int, int]:
    tables = [zones[zone].tables[kind] for zone in group if kind in zones[zone].tables]
    return sum(table.free for table in tables), sum(table.reserved for table in tables)


def _allocatable(zone: Zone, reserved: Mapping[str, int]) -> dict[str, int]:
    pages = {page.resource: page.total_bytes - reserved.get(page.resource, 0) for page in zone.hugepages}
    ordinary = zone.memory - reserved.get(MEMORY, 0) - sum(page.total_bytes for page in zone.hugepages)
    return {**pages, MEMORY: ordinary}


def _require_sums_to_match(machine: Machine, settings: Settings) -> None:
    totals: dict[str, int] = {}
    for reservation in settings.reserved_memory:
        if reservation.zone not in machine.zone_ids:
            raise StartRefusal(
                MANAGER,
                f"the reserved memory configuration references a NUMA node {reservation.zone} "
                "that does not exist on this machine",
            )
        totals = reduce(_added, reservation.limits.items(), totals)
    kinds = {*totals, *(kind for kind in machine.memory_types if settings.withheld(kind))}
    for kind in sorted(kinds):
        configured, withheld = totals.get(kind, 0), settings.withheld(kind)
        if configured != withheld:
            raise StartRefusal(
                MANAGER,
                f'the total amount "{_text(configured)}" of type "{kind}" is not equal to the value '
                f'"{_text(withheld)}" determined by Node Allocatable feature',
            )


def _added(totals: dict[str, int], item: tuple[str, int]) -> dict[str, int]:
    kind, amount = item
    return {**totals, kind: totals.get(kind, 0) + amount}


def _text(amount: int) -> str:
    return str(quantity.of(amount, quantity.Format.BINARY_SI))
