"""Pod-level memory: one budget for the pod, written down container by container (kubelet spec 10.4).

Containers that are not Guaranteed by themselves share what the others leave of the budget. The kubelet subtracts in
unsigned 64-bit arithmetic and does not look whether a container asks for more than the budget, so the difference may
wrap around; the records show it, hence so do we."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.kubelet.demand import PodDemand, Role
from numalign.kubelet.mask import Mask
from numalign.kubelet.memory.state import Block

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
