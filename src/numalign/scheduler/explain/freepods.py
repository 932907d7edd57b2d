"""Finds the pods that would have to be gone from a node for another pod to fit: as few as possible.

`advise` calls it for the nodes that lack least. It tries single pods, the smallest holders first; else the pods of
one zone, and then all pods of the node, and spares as many as possible, small ones first. Pods that come back by
themselves (of DaemonSets, or mirror pods) are never suggested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod
from numalign.placement.columns import shapes
from numalign.placement.explain import nodeview
from numalign.placement.explain.nodeview import Occupancy
from numalign.placement.explain.reasons import Freeing, Lack
from numalign.placement.rules.clusterstate import AssignedPod
from numalign.scheduler.explain.explanations import RejectedNodes
from numalign.scheduler.explain.trial import FitSearch

STAYING: Final = frozenset({"DaemonSet", "Node"})
MOST_SINGLES: Final = 64
MIRRORED: Final = "kubernetes.io/config.mirror"


def found(pod: Pod, node: str, answer: RejectedNodes, search: FitSearch) -> Freeing | None:
    """The pods to free; None: the node would not admit the pod even without all others, or that is not certain."""
    movable = {each.uid: each for each in search.pods_on(node) if _is_movable(each, search)}
    # Beside pending pods, only freeing all pods would be certain to help.
    if not movable or not search.is_settled(pod, node) or not search.fits_without(pod, node, movable):
        return None
    held = nodeview.of(search.cluster.engine, node)
    lack = next((lack for lack in answer.reason.named_lacks if lack.is_short), None) if answer.reason else None
    order = sorted(
        movable, key=lambda uid: (_amount(held, uid, lack, movable[uid]), movable[uid].pod.metadata.full_name)
    )
    chosen = min(_candidates(pod, node, order, held, search), key=len)
    return _freeing(node, [movable[uid] for uid in chosen], lack, held)


def _candidates(
    pod: Pod, node: str, order: Sequence[str], held: Occupancy | None, search: FitSearch
) -> Iterator[Sequence[str]]:
    """Sets of pods that suffice, at least one."""
    for uid in order[:MOST_SINGLES]:
        if search.fits_without(pod, node, {uid}):
            yield [uid]
            return
    for zone in held.zones if held is not None else ():
        inside = _inside(order, held, zone)
        if inside and len(inside) < len(order) and search.fits_without(pod, node, inside):
            yield _spared(pod, node, inside, search)
    yield _spared(pod, node, order, search)


def _spared(pod: Pod, node: str, order: Sequence[str], search: FitSearch) -> list[str]:
    """The pods that have to go; the others may stay."""
    gone = list(order)
    for uid in order:
        rest = [each for each in gone if each != uid]
        if rest and search.fits_without(pod, node, rest):
            gone = rest
    return gone


def _inside(order: Sequence[str], held: Occupancy | None, zone: int) -> list[str]:
    touching = {tenant.uid for tenant in held.tenants if zone in tenant.zones} if held is not None else set()
    return [uid for uid in order if uid in touching]


def _freeing(node: str, gone: Sequence[AssignedPod], lack: Lack | None, held: Occupancy | None) -> Freeing:
    names = tuple(sorted(each.pod.metadata.full_name for each in gone))
    uids = {each.uid for each in gone}
    if lack is None:
        return Freeing(node=node, pods=names)
    if not lack.zones or held is None:
        freed = sum(_requested(each, lack.resource) for each in gone)
        return Freeing(node=node, pods=names, resource=lack.resource, amount=freed)
    zones = _zones_of(held, uids, lack.resource)
    unit = 1000 if lack.resource == resourcenames.CPU else 1
    freed = unit * sum(amount for uid, amount in held.holders(lack.resource, zones).items() if uid in uids)
    return Freeing(node=node, pods=names, resource=lack.resource, amount=freed, zones=zones)


def _zones_of(held: Occupancy, uids: Iterable[str], resource: str) -> tuple[int, ...]:
    wanted = set(uids)
    charges = (each for tenant in held.tenants if tenant.uid in wanted for each in tenant.charges)
    return tuple(sorted({zone for each in charges if each.resource == resource for zone in each.zones}))


def _amount(held: Occupancy | None, uid: str, lack: Lack | None, assigned: AssignedPod) -> tuple[bool, int]:
    """How much of what is lacking the pod holds; pods that hold none of it come last."""
    if lack is None:
        return False, 0
    amount = _requested(assigned, lack.resource)
    if lack.zones and held is not None:
        amount = held.holders(lack.resource, held.zones).get(uid, 0)
    return not amount, amount


def _requested(assigned: AssignedPod, resource: str) -> int:
    return shapes.totals(assigned.pod).get(resource, 0)


def _is_movable(assigned: AssignedPod, search: FitSearch) -> bool:
    """False for pods that come back by themselves, and for pods that are being bound."""
    meta = assigned.pod.metadata
    stays = (meta.controller is not None and meta.controller.kind in STAYING) or MIRRORED in meta.annotations
    return not stays and assigned.uid not in search.cluster.assumed
