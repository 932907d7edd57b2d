"""Finds how much less a container would have to ask for: one resource at a time, the most that some node takes.

`advise` calls it for the causes that nodes gave. It bisects the amount and tries each on all nodes as they are, or on
empty nodes where no node is large enough. A suggestion is a round number that was itself tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from numalign.api.objects import requests, resourcenames
from numalign.api.objects.pod import Container, Pod, ResourceList
from numalign.placement.explain import nodeview
from numalign.placement.explain.reasons import Absent, Lack, Oversized, Reason, Shrinking
from numalign.scheduler.explain import trial
from numalign.scheduler.explain.explanations import Cause, Explained
from numalign.scheduler.explain.trial import FitSearch

MOST_CAUSES: Final = 4
MOST_KINDS: Final = 8
"""Node types that are tried empty for each amount."""
MOST_EMPTIED: Final = 128
"""Node types that are tried empty once."""
GIB, MIB = 1 << 30, 1 << 20
WIDER: Final = ("restricted", "best-effort")
"""Policies that may take a container into several zones."""


def found(explained: Explained, search: FitSearch) -> Shrinking | None:
    """The change that keeps the largest part of what is asked for."""
    pod = explained.pod
    smaller = [each for wish in _wishes(explained) if (each := _smaller(pod, wish, search)) is not None]
    return max(smaller, key=lambda each: each.amount / each.instead_of, default=None)


def oversized(explained: Explained, search: FitSearch, now: Shrinking | None) -> Oversized | Absent | None:
    """The suggestion for a pod that no empty node admits."""
    if not _is_too_large(explained, search):
        return None
    absent = next(_absent(explained, search), None)
    if absent is not None:
        return absent
    found = [each for wish in _wishes(explained) if (each := _on_empty(explained, wish, search, now)) is not None]
    if found:
        return max(found, key=lambda each: each.amount / each.instead_of)
    if explained.never is None:
        return None
    kinds = {nodeview.hardware(search.cluster.engine, node): node for node in explained.refused}
    wider = tuple(_policies(explained, list(kinds.values())[:MOST_KINDS], search))
    return Oversized(policies=wider) if wider else None


def _is_too_large(explained: Explained, search: FitSearch) -> bool:
    """Whether no node would take the pod even if it were empty, for lack of resources."""
    if explained.never is not None:
        return True
    if not explained.refused or any(answer.reason is None for answer in explained.refused.values()):
        return False
    open_ones = [node for node, answer in explained.refused.items() if answer.distance[0] == 0]
    kinds = {nodeview.hardware(search.cluster.engine, node): node for node in open_ones}
    return len(kinds) <= MOST_EMPTIED and not any(search.fits_empty(explained.pod, node) for node in kinds.values())


class Wish:
    """One resource of one container, and the amount that may be too large."""

    def __init__(self, container: Container, lack: Lack) -> None:
        self.container, self.resource, self.lack = container.name, lack.resource, lack
        written = container.resources.requests.get(lack.resource) or container.resources.limits.get(lack.resource)
        is_cpu = lack.resource == resourcenames.CPU
        self.amount = 0 if written is None else written.milli if is_cpu else written.value
        self.step = 1000 if is_cpu else _round(self.amount) if resourcenames.is_bytes(lack.resource) else 1

    def most(self, fits: Callable[[int], bool]) -> int | None:
        """The largest smaller amount that fits, in whole steps."""
        low, high = 1, -(-self.amount // self.step) - 1
        if high < 1 or not fits(self.step):
            return None
        if fits(high * self.step):
            return high * self.step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle * self.step) else (low, middle)
        return low * self.step


def _round(amount: int) -> int:
    return GIB if amount >= 16 * GIB else MIB * 64 if amount >= GIB else MIB


def _wishes(explained: Explained) -> Iterator[Wish]:
    """The resources that nodes lack, each once."""
    seen: set[tuple[str, str]] = set()
    for cause in explained.causes[:MOST_CAUSES]:
        for lack in _lacks(cause):
            for container in _containers(explained.pod, cause.answer.reason, lack.resource):
                if (container.name, lack.resource) not in seen:
                    seen.add((container.name, lack.resource))
                    yield Wish(container, lack)


def _lacks(cause: Cause) -> Sequence[Lack]:
    reason = cause.answer.reason
    if reason is None:
        return ()
    return [lack for lack in reason.lacks if lack.is_short] or reason.lacks


def _containers(pod: Pod, reason: Reason | None, resource: str) -> Iterable[Container]:
    """The container that was refused, else the one that asks for most."""
    if requests.has_pod_level_resources(pod):
        return ()
    asking = [each for each in pod.in_admission_order() if resource in _wants(each)]
    named = [each for each in asking if reason is not None and each.name == reason.container]
    return named or sorted(asking, key=lambda each: _wants(each)[resource], reverse=True)[:1]


def _wants(container: Container) -> ResourceList:
    return {**container.resources.limits, **container.resources.requests}


def _smaller(pod: Pod, wish: Wish, search: FitSearch) -> Shrinking | None:
    def less(amount: int) -> Pod:
        return trial.resized(pod, wish.container, wish.resource, amount)

    amount = wish.most(lambda amount: search.first(less(amount)) is not None)
    if amount is None:
        return None
    return Shrinking(
        container=_unless_alone(pod, wish.container),
        resource=wish.resource,
        amount=amount,
        instead_of=wish.amount,
        nodes=search.nodes(less(amount)),
    )


def _on_empty(explained: Explained, wish: Wish, search: FitSearch, now: Shrinking | None) -> Oversized | None:
    pod, nodes = explained.pod, _largest(explained, wish, search)

    def fits(amount: int) -> bool:
        less = trial.resized(pod, wish.container, wish.resource, amount)
        return any(search.fits_empty(less, node) for node in nodes)

    amount = wish.most(fits)
    if amount is None:
        return None
    same = now is not None and (now.container, now.resource) == (_unless_alone(pod, wish.container), wish.resource)
    return Oversized(
        container=_unless_alone(pod, wish.container),
        resource=wish.resource,
        amount=amount,
        instead_of=wish.amount,
        fits_now=now if same else None,
        policies=tuple(_policies(explained, nodes, search)),
    )


def _policies(explained: Explained, nodes: Sequence[str], search: FitSearch) -> Iterator[str]:
    for policy in WIDER:
        if any(search.fits_under(explained.pod, node, policy) for node in nodes):
            yield policy


def _largest(explained: Explained, wish: Wish, search: FitSearch) -> list[str]:
    """Nodes to try empty: one of every type, those with the most of the resource in one zone first."""
    room = {node: nodeview.most_in_a_zone(search.cluster.engine, node, wish.resource) for node in explained.refused}
    kinds = {(nodeview.rules(search.cluster.engine, node), most): node for node, most in room.items()}
    return sorted(kinds.values(), key=lambda node: (-room[node], node))[:MOST_KINDS]


def _absent(explained: Explained, search: FitSearch) -> Iterator[Absent]:
    for wish in _wishes(explained):
        if not nodeview.is_offered(search.cluster.engine, wish.resource):
            yield Absent(resource=wish.resource)


def _unless_alone(pod: Pod, container: str) -> str:
    return container if len(pod.in_admission_order()) > 1 else ""
