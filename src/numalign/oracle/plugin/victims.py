"""The victims of a preemption cycle: the plugin's PreFilter, RemovePod and AddPod.

The stock scheduler chooses victims and calls these while it simulates; `suites.filters` repeats that, and hands the
result to `filter` (scheduler plugin spec 16.1). A cycle is a value: each call returns the next one. None: the cycle has
no victim set, as without PreFilter."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.reference import status
from numalign.placement.reference.status import Status
from numalign.placement.referenceargs import PreemptionMode

NO_STATE: Final = status.error("no victim set in the cycle; PreFilter has not run")
NO_POD: Final = status.error("missing pod")

Key = tuple[str, str]
"""Namespace and name."""
Victims = dict[Key, Pod]


class VictimsCycle(Struct, frozen=True):
    mode: PreemptionMode
    victims: Victims | None = None

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The victims that Filter takes into account; empty if preemption is disabled."""
        return tuple((self.victims or {}).values())


Change = Callable[[VictimsCycle, Pod | None], tuple[VictimsCycle, Status]]


def pre_filter(cycle: VictimsCycle) -> tuple[VictimsCycle, Status]:
    if cycle.mode is PreemptionMode.DISABLED:
        return cycle, status.SUCCESS
    return VictimsCycle(cycle.mode, {}), status.SUCCESS


def remove_pod(cycle: VictimsCycle, pod: Pod | None) -> tuple[VictimsCycle, Status]:
    """The pod is taken off the node: a victim."""
    return _changed(cycle, pod, lambda victims, key, gone: {**victims, key: gone})


def add_pod(cycle: VictimsCycle, pod: Pod | None) -> tuple[VictimsCycle, Status]:
    """The pod is put back, or is a nominated one, of which the plugin knows nothing."""
    return _changed(cycle, pod, lambda victims, key, _: {each: victims[each] for each in victims if each != key})


def _changed(
    cycle: VictimsCycle, pod: Pod | None, change: Callable[[Victims, Key, Pod], Victims]
) -> tuple[VictimsCycle, Status]:
    if cycle.mode is PreemptionMode.DISABLED:
        return cycle, status.SUCCESS
    if pod is None:
        return cycle, NO_POD
    if cycle.victims is None:
        return cycle, NO_STATE
    key = pod.metadata.namespace, pod.metadata.name
    return VictimsCycle(cycle.mode, change(cycle.victims, key, pod)), status.SUCCESS
