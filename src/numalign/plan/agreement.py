"""Whether kubelets did what a replay says of them.

`zoned` says of each pod that it binds what the kubelet will do: a `PredictedBinding`. `numalign.simulator.kubelets` and
`numalign.lab.replay` put the bindings to kubelets, simulated and real, and give an `Answer` to each. `compare` names
every contradiction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

from msgspec import Struct

from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects import resourcenames
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.machine.machine import Machine
from numalign.placement.view import Taken
from numalign.plan.trace import TraceNode


class PredictedBinding(Struct, frozen=True, kw_only=True):
    """A pod that was bound to a node, and what the replay says of it."""

    pod: str
    spec: Mapping[str, Any]
    node: str
    is_admitted: bool
    is_certain: bool = True
    """Not where counts do not tell whether the kubelet admits the pod; the replay then counts it as rejected."""
    taken: tuple[Taken, ...] = ()
    """What the kubelet pins for the pod."""


ByZone = Mapping[str, Mapping[int, int]]
"""Amounts by resource and zone."""


class Answer(Struct, frozen=True, kw_only=True):
    """What the kubelet did."""

    why: str = ""
    """Why it rejected the pod; empty: it admitted the pod."""
    held: ByZone = {}


class Agreement(Struct, frozen=True, kw_only=True):
    """What came of all bindings of a run, in pods."""

    admitted: int
    """As the replay says, with everything in the zones that it says."""
    pinned: int
    """Of these, pods for which the kubelet pins something."""
    rejected: int
    """As the replay says."""
    given_up: int = 0
    """Pods that the replay counts as rejected without being certain, and that the kubelet admitted."""
    contradictions: tuple[str, ...]

    @property
    def bindings(self) -> int:
        return self.admitted + self.rejected + self.given_up + len(self.contradictions)


Kubelets = Callable[[Sequence[TraceNode], int, Policy, Sequence[PredictedBinding]], Sequence[Answer]]
"""Puts bindings, in their order, to the kubelets of these nodes; zones of the larger machines, and the policy."""


def compare(bindings: Sequence[PredictedBinding], answers: Sequence[Answer]) -> Agreement:
    found = [contradiction(binding, answer) for binding, answer in zip(bindings, answers, strict=True)]
    as_said = [binding for binding, wrong in zip(bindings, found, strict=True) if not wrong]
    given_up = sum(is_given_up(binding, answer) for binding, answer in zip(bindings, answers, strict=True))
    admitted = [binding for binding in as_said if binding.is_admitted]
    return Agreement(
        admitted=len(admitted),
        pinned=sum(bool(binding.taken) for binding in admitted),
        rejected=len(as_said) - len(admitted) - given_up,
        given_up=given_up,
        contradictions=tuple(wrong for wrong in found if wrong),
    )


def is_given_up(binding: PredictedBinding, answer: Answer) -> bool:
    """Whether the kubelet admitted a pod of which the replay was not certain. It has to go, as the replay goes on
    without it."""
    return not binding.is_admitted and not binding.is_certain and not answer.why


def contradiction(binding: PredictedBinding, answer: Answer) -> str:
    """A sentence; empty if the kubelet did what the replay says."""
    where = f"pod {binding.pod} on node {binding.node}"
    if binding.is_admitted and answer.why:
        return f"{where}: the replay says that it is admitted, and the kubelet rejected it: {answer.why}"
    if not binding.is_admitted:
        wrong = binding.is_certain and not answer.why
        return f"{where}: the replay says that it is rejected, and the kubelet admitted it" if wrong else ""
    for resource in sorted({each.resource for each in binding.taken} | answer.held.keys()):
        said = [each for each in binding.taken if each.resource == resource]
        held = answer.held.get(resource, {})
        if not _is_possible(said, held):
            return f"{where}: {resource} is said to be {_said(said)}, and is {_held(held)}"
    return ""


def held(machine: Machine, cpus: CPUState | None, devices: DeviceState, uid: str) -> dict[str, dict[int, int]]:
    """What a kubelet's managers hold for a pod."""
    mine = 0
    for exclusive in (cpus.assignments.get(uid, {}) if cpus is not None else {}).values():
        mine |= exclusive
    found: dict[str, dict[int, int]] = {}
    for zone in machine.zones:
        count = sum(mine >> cpu & 1 for core in zone.cores for cpu in core.cpus)
        if count:
            found.setdefault(resourcenames.CPU, {})[zone.id] = count
    for by_resource in devices.pods.get(uid, {}).values():
        for resource, ids in by_resource.items():
            by_zone = found.setdefault(resource, {})
            for each in machine.devices[resource].devices:
                if each.id in ids and each.zones:
                    by_zone[each.zones[0]] = by_zone.get(each.zones[0], 0) + 1
    return found


def _is_possible(said: Sequence[Taken], held: Mapping[int, int]) -> bool:
    """Whether amounts that lie in sets of zones can lie as they do: no set of zones holds less than must be in it."""
    zones = sorted({*chain.from_iterable(each.zones for each in said), *held})
    if sum(each.amount for each in said) != sum(held.values()):
        return False
    return all(
        sum(each.amount for each in said if set(each.zones) <= set(some)) <= sum(held.get(zone, 0) for zone in some)
        for count in range(1, len(zones) + 1)
        for some in combinations(zones, count)
    )


def _said(said: Sequence[Taken]) -> str:
    return ", ".join(f"{each.amount} in zone {' or '.join(map(str, each.zones))}" for each in said) or "not pinned"


def _held(held: Mapping[int, int]) -> str:
    return ", ".join(f"{amount} in zone {zone}" for zone, amount in sorted(held.items())) or "not pinned"
