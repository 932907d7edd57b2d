"""What differs between minor versions of the kubelet.

The rest of this package describes the newest minor. Where an older one differs, it asks here: `gate_default` for
feature gates, `option_stage` for policy options, `behaviour` for changed rules. A minor outside OLDEST..NEWEST gets the
rules of the nearest one, which `clamped` returns. Patch releases are not distinguished: a minor stands for the
release it was read from (docs/compatibility/kubelet-versions.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from msgspec import Struct

Stage = Literal["alpha", "beta", "ga"]

VERSION = re.compile(r"v?([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]{1,3})?(?:[-+].{0,80})?")


class Minor(NamedTuple):
    """A Kubernetes minor version, such as 1.38."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Gate(NamedTuple):
    """How a feature gate stands from one minor on."""

    since: Minor
    default: bool
    locked: bool = False


_V34, _V35, _V36, _V37, _V38 = (Minor(1, minor) for minor in range(34, 39))
OLDEST, NEWEST = _V34, _V38

# Gates that decide something in this package, or that one of those depends on. A first row later than OLDEST: the
# gate is unknown before, and setting it keeps such a kubelet from starting.
GATES: Mapping[str, tuple[Gate, ...]] = {
    "CPUManagerPolicyAlphaOptions": (Gate(_V34, default=False),),
    "CPUManagerPolicyBetaOptions": (Gate(_V34, default=True),),
    "InPlacePodLevelResourcesVerticalScaling": (Gate(_V35, default=False), Gate(_V36, default=True)),
    "InPlacePodVerticalScaling": (Gate(_V34, default=True), Gate(_V35, default=True, locked=True)),
    "InPlacePodVerticalScalingExclusiveCPUs": (Gate(_V34, default=False),),
    "InPlacePodVerticalScalingExclusiveMemory": (Gate(_V34, default=False),),
    "InPlacePodVerticalScalingInitContainers": (Gate(_V36, default=True), Gate(_V37, default=True, locked=True)),
    "KubeletPodResourcesDynamicResources": (Gate(_V34, default=True), Gate(_V36, default=True, locked=True)),
    "KubeletPodResourcesGet": (Gate(_V34, default=True), Gate(_V36, default=True, locked=True)),
    "KubeletPodResourcesListUseActivePods": (Gate(_V34, default=True),),
    "NodeDeclaredFeatures": (
        Gate(_V35, default=False),
        Gate(_V36, default=True),
        Gate(_V37, default=True, locked=True),
    ),
    "PodLevelResourceManagers": (Gate(_V36, default=False),),
    "PodLevelResources": (Gate(_V34, default=True),),
    "PodLevelResourcesFixDefaulting": (Gate(_V37, default=True),),
    "PodLevelResourcesFixKubeletQOSClass": (Gate(_V37, default=True),),
    "TopologyManagerPolicyAlphaOptions": (Gate(_V34, default=False),),
    "TopologyManagerPolicyBetaOptions": (Gate(_V34, default=True),),
    "TopologyManagerPolicyOptions": (Gate(_V34, default=True), Gate(_V36, default=True, locked=True)),
}

# Checked from 1.35 on. Needs that are locked on by then cannot fail and are left out.
_GATE_NEEDS: Mapping[str, tuple[str, ...]] = {
    "InPlacePodLevelResourcesVerticalScaling": ("NodeDeclaredFeatures", "PodLevelResources"),
    "InPlacePodVerticalScalingInitContainers": ("NodeDeclaredFeatures",),
    "PodLevelResourceManagers": ("PodLevelResources",),
    "PodLevelResourcesFixDefaulting": ("PodLevelResources",),
    "PodLevelResourcesFixKubeletQOSClass": ("PodLevelResources",),
}

_OPTION_STAGES: Mapping[str, tuple[tuple[Minor, Stage], ...]] = {
    "full-pcpus-only": ((_V34, "ga"),),
    "strict-cpu-reservation": ((_V34, "beta"), (_V35, "ga")),
    "prefer-align-cpus-by-uncorecache": ((_V34, "beta"), (_V36, "ga")),
    "distribute-cpus-across-numa": ((_V34, "beta"),),
    "align-by-socket": ((_V34, "alpha"),),
    "distribute-cpus-across-cores": ((_V34, "alpha"),),
    "prefer-closest-numa-nodes": ((_V34, "ga"),),
    "max-allowable-numa-nodes": ((_V34, "beta"), (_V35, "ga")),
}


class Behaviour(Struct, frozen=True, kw_only=True):
    """The rules of one minor that are not the same in all of them; section numbers are those of the kubelet spec."""

    amounts_from_allocated_status: bool
    """Until 1.34, with gate InPlacePodVerticalScaling: an app container or sidecar that has a container status asks
    for that status' allocatedResources, and for nothing where it is missing (5.2, 6.2). Later: always for its spec."""

    pod_level_pods_need_gate: bool
    """Since 1.36 CPU and Memory Manager leave a pod with pod-level resources alone unless both PodLevelResources and
    PodLevelResourceManagers are on. Before, with PodLevelResources off, it was pinned by its containers (10.1)."""

    device_hints_over_device_zones: bool
    """Since 1.36 device hints range over the zones that host a device of the resource, minSize counting those (7.2).
    Before, over all zones of the machine, so masks may name zones without a device."""

    assigned_cpus_skip_smt_check: bool
    """Since 1.37 a container that holds CPUs is served before full-pcpus-only is checked. Before, steps 2 and 3 of
    5.3 ran the other way round, so a full node refuses on restart what it already runs (9)."""

    distribution_knows_sockets: bool
    """Since 1.37 distribute-cpus-across-numa heeds align-by-socket and caps d in step 4. Before, 5.7 read without
    every "with align-by-socket" in step 3 and without the cap."""

    distribution_keeps_affinity: bool
    """Since 1.38 distribute-cpus-across-numa takes CPUs from at least as many zones as the affinity has, where so many
    have free CPUs (5.7, step 2). Before, from as few zones as hold the request. CPUs outside the affinity, and the
    containers that share the CPUs of a pod with pod-level resources, are distributed as before."""

    memory_skips_empty_requests: bool
    """Since 1.37 a container without memory request is left alone (6.2). Before, it went through 6.4: an error where
    no affinity is stored, else the group check and an empty list of blocks. Reached only by shared containers of
    pod-level pods (10.2), as every other Guaranteed container requests memory."""

    pod_resources_by_isolation: bool
    """Since 1.37 the Pod Resources API withholds what a container shares with its pod and reports it for the pod.
    Before, every recorded assignment was the container's, and pods had none (10.6, 11)."""


def parse(text: str) -> Minor | None:
    """The minor that a version names, with or without v, patch and suffix; None where it names none."""
    match = VERSION.fullmatch(text)
    return Minor(int(match[1]), int(match[2])) if match else None


def clamped(minor: Minor) -> Minor:
    """The minor whose rules stand in for this one; differs from it only outside OLDEST..NEWEST."""
    return max(OLDEST, min(minor, NEWEST))


def gate(name: str, minor: Minor) -> Gate | None:
    """The state of the gate in this minor; None: the kubelet does not know it."""
    known = clamped(minor)
    return next((row for row in reversed(GATES[name]) if row.since <= known), None)


def gate_default(name: str, minor: Minor) -> bool:
    """The gate's default; a feature that does not exist yet is off."""
    row = gate(name, minor)
    return row is not None and row.default


def gate_errors(chosen: Mapping[str, bool], minor: Minor) -> tuple[str, ...]:
    """Why this kubelet would not start with these feature gates; gates outside GATES are passed over."""
    listed = {name: chosen[name] for name in sorted(chosen) if name in GATES}
    refused = (_refusal(name, value, minor) for name, value in listed.items())
    return tuple(error for error in refused if error is not None) or _unmet_needs(listed, minor)


def option_stage(option: str, minor: Minor) -> Stage | None:
    """How mature a CPU or topology policy option is; None: no option of this name."""
    known = clamped(minor)
    return next((stage for since, stage in reversed(_OPTION_STAGES.get(option, ())) if since <= known), None)


@cache
def behaviour(minor: Minor) -> Behaviour:
    """The rules of this minor, or of the nearest one known."""
    known = clamped(minor)
    return Behaviour(
        amounts_from_allocated_status=known < _V35,
        pod_level_pods_need_gate=known >= _V36,
        device_hints_over_device_zones=known >= _V36,
        assigned_cpus_skip_smt_check=known >= _V37,
        distribution_knows_sockets=known >= _V37,
        distribution_keeps_affinity=known >= _V38,
        memory_skips_empty_requests=known >= _V37,
        pod_resources_by_isolation=known >= _V37,
    )


def _refusal(name: str, value: bool, minor: Minor) -> str | None:
    row = gate(name, minor)
    if row is None:
        return f"unrecognized feature gate: {name}"
    if row.locked and value != row.default:
        return f"cannot set feature gate {name} to {_go(value)}, feature is locked to {_go(row.default)}"
    return None


def _unmet_needs(chosen: Mapping[str, bool], minor: Minor) -> tuple[str, ...]:
    if clamped(minor) < _V35:
        return ()
    state = {name: chosen.get(name, gate_default(name, minor)) for name in GATES}
    missing = {name: [need for need in needs if not state[need]] for name, needs in _GATE_NEEDS.items() if state[name]}
    return tuple(
        f"{name} is enabled, but depends on features that are disabled: [{' '.join(needs)}]"
        for name, needs in missing.items()
        if needs
    )


def _go(value: bool) -> str:
    return "true" if value else "false"
