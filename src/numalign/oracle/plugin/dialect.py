"""The behaviours of v0.34.7 that a replay keeps, and the cache repairs that it applies.

`V0_34_7` must answer exactly as that release; `OURS` is the product. The behaviours are implemented here and not in the
product: the later upstream tree, which the product follows, has none of them (docs/develop/oracle-reference.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct, structs

from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Container, Pod
from numalign.placement.reference.args import NodeResourceTopologyMatchArgs
from numalign.placement.reference.caches import repairs, selection
from numalign.placement.reference.caches.cache import Cache, Reports
from numalign.placement.reference.caches.ledger import Ledger
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.reference.caches.rules import Rules


class Habit(StrEnum):
    """The listed behaviours of v0.34.7 that a history can show, and the defects of Filter and Score."""

    EVERY_DEVICE = "every-device"
    """Every device is exclusive, not only those that the node's report lists (3)."""
    INIT_CONTAINERS = "init-containers"
    """Ordinary init containers count for exclusive resources (4)."""
    RESERVE_UNMARKS = "reserve-unmarks"
    """Reserve clears the mark of a refused node (5)."""
    OLD_CLASSES = "old-classes"
    """The QoS class is that of Kubernetes 1.34 (7)."""
    DEFECTS = "defects"
    """Filter and Score panic and return invalid scores, as listed in docs/compatibility/plugin.md."""


class Dialect(Struct, frozen=True):
    habits: frozenset[Habit]
    repairs: frozenset[Repair]


V0_34_7: Final = Dialect(frozenset(Habit), repairs.NONE)
OURS: Final = Dialect(frozenset(), repairs.ALL)


def cache_of(
    settings: NodeResourceTopologyMatchArgs,
    profiles: Collection[str],
    nrts: Iterable[NodeResourceTopology],
    dialect: Dialect,
) -> Cache:
    built = selection.build(settings, profiles, nrts)
    if dialect == OURS or not isinstance(built, OverReserve):
        return built
    return Habitual(structs.replace(built.rules, repairs=dialect.repairs), nrts, dialect.habits)


class EveryName(frozenset[str]):
    def __contains__(self, name: object) -> bool:
        return True


class EveryDeviceListed(Ledger):
    def listed(self, node: str) -> frozenset[str]:
        return EveryName()


class Habitual(OverReserve):
    """The over-reserve cache with the behaviours of v0.34.7."""

    def __init__(self, rules: Rules, nrts: Iterable[NodeResourceTopology], habits: frozenset[Habit]) -> None:
        super().__init__(rules, nrts)
        self.habits = habits
        if Habit.EVERY_DEVICE in habits:
            self.ledger = EveryDeviceListed(nrts)

    def pod_seen(self, pod: Pod) -> None:
        super().pod_seen(self._as_counted(pod))

    def reserve(self, node: str, pod: Pod) -> None:
        super().reserve(node, pod)
        if Habit.RESERVE_UNMARKS in self.habits:
            self.marks.rejected.pop(node, None)

    def resync(self, nrts: Reports, pods: Iterable[Pod], now: float) -> tuple[str, ...]:
        return super().resync(nrts, map(self._as_counted, pods), now)

    def _as_counted(self, pod: Pod) -> Pod:
        """Sidecars count in either tree, so a pod whose init containers are all sidecars has all of them counted."""
        if Habit.INIT_CONTAINERS not in self.habits or not pod.spec.init_containers:
            return pod
        counted = tuple(map(_as_sidecar, pod.spec.init_containers))
        return structs.replace(pod, spec=structs.replace(pod.spec, init_containers=counted))


def _as_sidecar(container: Container) -> Container:
    return structs.replace(container, restart_policy="Always")
