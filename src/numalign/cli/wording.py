"""The sentences of a report: amounts, zones and causes as people say them.

`explaining` puts the sentence of a cause beside its data, `drawing` writes amounts and zones. Nothing here knows how
a cause was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numalign.api import cpuset, resourcenames
from numalign.cli.amounts import Amount
from numalign.cli.report import Kubelet, Zones
from numalign.placement import amounts

MOST_LISTED = 3


def amount(resource: str, value: Amount) -> str:
    """An amount as people write it; bytes are rounded down, so that what looks sufficient is."""
    if resourcenames.is_bytes(resource):
        return f"{'-' * (value < 0)}{amounts.bare(resource, abs(int(value)))}"
    return f"{value:g}" if isinstance(value, float) else f"{value}"


def free_of(resource: str, free: Amount, allocatable: Amount) -> str:
    """46 of 94 free, 508 of 1020Gi free: a unit that both share is said once."""
    part, whole = amount(resource, free), amount(resource, allocatable)
    unit = whole.lstrip("0123456789.")
    return f"{part.removesuffix(unit) if unit else part} of {whole} free"


def wants(requested: Mapping[str, Amount]) -> str:
    """A whole request in one line: 48 cpu, 512Gi memory, 4 nvidia.com/gpu."""
    return ", ".join(f"{amount(name, value)} {name}" for name, value in requested.items()) or "nothing"


def zones(ids: Iterable[int]) -> str:
    listed = tuple(ids)
    if not listed:
        return "no zone"
    return f"zone {listed[0]}" if len(listed) == 1 else f"zones {cpuset.text(cpuset.of(listed))}"


def node(machine: str, kubelet: Kubelet) -> str:
    topology = kubelet.topology_manager_policy
    topology += f" per {kubelet.topology_manager_scope}" if topology != "none" else ""
    policies = f"topology {topology}, cpu {kubelet.cpu_manager_policy}, memory {kubelet.memory_manager_policy}"
    return f"machine {machine}, kubelet {kubelet.version}; {policies}"


def summary(verdicts: Sequence[str]) -> str:
    counts = ", ".join(f"{verdicts.count(each)} {each}" for each in ("admitted", "rejected", "undecided"))
    return f"{len(verdicts)} pod{'s' * (len(verdicts) != 1)}: {counts}"


def alike(sets: Sequence[Zones]) -> str:
    """The label of a row for one set of zones, or for several zones of which the same can be said."""
    return zones(sets[0]) if len(sets) == 1 else f"{zones(sorted(each[0] for each in sets))}, each"


def pod(full_name: str) -> str:
    """A pod's name, with the namespace only where it is not the usual one."""
    return full_name.removeprefix("default/")


def choices(sets: Sequence[Zones]) -> str:
    """Sets of zones to choose from: "zone 0 or 2", "one of zones 0-7", "zones 0+1, 2+3 or 26 more"."""
    if all(len(each) == 1 for each in sets) and len(sets) > 2:
        return f"one of {zones(zone for each in sets for zone in each)}"
    shown = ["+".join(map(str, each)) for each in sets[:MOST_LISTED]]
    if len(sets) > MOST_LISTED:
        shown.append(f"{len(sets) - MOST_LISTED} more")
    return f"{'zones' if len(sets[0]) > 1 else 'zone'} {' or '.join(filter(None, (', '.join(shown[:-1]), shown[-1])))}"


def exhausted(resource: str, needed: Amount, free: Amount) -> str:
    return f"{resource}: needs {amount(resource, needed)}, all zones together have {amount(resource, free)} free"


def grouped(resource: str, needed: Amount) -> str:
    return (
        f"{resource}: needs {amount(resource, needed)}, and that is free, but memory in use binds its zones: "
        "they can only be used alone or together as they already are"
    )


def too_large(resource: str, width: int) -> str:
    return f"{resource} needs {width} zones even on an empty machine, and single-numa-node accepts one"


def fragmented(resource: str, needed: Amount, sets: Sequence[Zones], policy: str) -> str:
    where = f"in {choices(sets)} together" if sets else "across more zones"
    return (
        f"{resource}: {amount(resource, needed)} are free only {where}, "
        f"and {policy} does not spread what fewer empty zones could hold"
    )


def different_widths(widths: Mapping[str, int]) -> str:
    return ", ".join(f"{resource} needs {width} zone{'s' * (width > 1)}" for resource, width in widths.items())


def disagreement(fits: Mapping[str, Sequence[Zones]]) -> str:
    return ", ".join(f"{resource} fits only {choices(sets)}" for resource, sets in fits.items())


def node_exhausted(resource: str, needed: Amount, free: Amount) -> str:
    return f"{resource}: needs {amount(resource, needed)}, the node as a whole has {amount(resource, free)} free"


def no_more_pods(most: int) -> str:
    return f"maxPods is {most}, and the node has as many pods"


def node_has_room(needed: Mapping[str, Amount], free: Mapping[str, Amount]) -> str:
    parts = (f"{amount(name, free[name])} {name} for {amount(name, needed[name])}" for name in free)
    return f"the node as a whole has room: {', '.join(parts)}"


def slow(steps: int) -> str:
    return f"the kubelet itself goes through about {steps:.2g} steps for this pod, which takes it minutes or more"


def not_on_this_machine(resource: str) -> str:
    return f"the machine has no {resource}, which a kubelet ignores; a scheduler would not send the pod here"
