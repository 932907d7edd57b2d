"""Starting the CPU manager: reserving CPUs, and accepting or refusing the state of an earlier process.

A kubelet that refuses here does not come up at all, so the texts are the ones an administrator finds in its log."""

from __future__ import annotations

from msgspec import structs

from numalign.api.attributes import cpuset
from numalign.kubelet.cpu import options as cpuoptions
from numalign.kubelet.cpu import topology as cputopology
from numalign.kubelet.cpu.options import MANAGER
from numalign.kubelet.cpu.state import CPUState, Reuse
from numalign.kubelet.cpu.static import CPU, StaticCPUs
from numalign.kubelet.machine import Machine
from numalign.kubelet.refusals import Refusal, StartRefusal
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import behaviour


def start(machine: Machine, settings: Settings) -> StaticCPUs | None:
    """The policy of a kubelet that starts on this machine; None for the one that does nothing."""
    if settings.cpu_policy == "none":
        if settings.cpu_options:
            listed = " ".join(f"{name}:{text}" for name, text in sorted(settings.cpu_options.items()))
            why = f"None policy: received unsupported options=map[{listed}]"
            raise StartRefusal(MANAGER, f"new none policy error: {why}")
        return None
    if settings.reserved.get(CPU, 0) <= 0:
        raise StartRefusal(
            MANAGER,
            "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
        )
    try:
        return static_policy(machine, settings)
    except StartRefusal as refusal:
        raise StartRefusal(MANAGER, f"new static policy error: {refusal.error}") from None


def static_policy(machine: Machine, settings: Settings) -> StaticCPUs:
    """The static policy by itself, its refusals in its own words."""
    topology = cputopology.of(machine)
    policy = StaticCPUs(topology, cpuoptions.read(settings, topology), 0, behaviour(settings.minor))
    return structs.replace(policy, reserved=_reserved(policy, settings))


def restarted(policy: StaticCPUs, checkpoint: CPUState) -> CPUState:
    """The state that a new process takes over from its predecessor, or refuses to (kubelet spec 5.9)."""
    if not checkpoint.default:
        if checkpoint.assignments:
            raise StartRefusal(MANAGER, "default cpuset cannot be empty")
        return policy.initial()
    _require_reserved_to_match(policy, checkpoint.default)
    known = checkpoint.default
    for uid, held in checkpoint.assignments.items():
        for name, cpus in held.items():
            if cpus & checkpoint.default:
                raise StartRefusal(
                    MANAGER,
                    f"pod: {uid}, container: {name} cpuset: {_quoted(cpus)} overlaps with default cpuset "
                    f"{_quoted(checkpoint.default)}",
                )
            known |= cpus
    for cpus in checkpoint.pods.values():
        known |= cpus
    if known != policy.managed:
        raise StartRefusal(
            MANAGER,
            f"current set of available CPUs {_quoted(policy.managed)} doesn't match with CPUs in state "
            f"{_quoted(known)}",
        )
    return structs.replace(checkpoint, reuse=Reuse())


def _reserved(policy: StaticCPUs, settings: Settings) -> int:
    count = -(-settings.reserved.get(CPU, 0) // 1000)
    reserved = settings.reserved_cpus or _picked(policy, count)
    if reserved.bit_count() != count:
        raise StartRefusal(
            MANAGER,
            f"[cpumanager] unable to reserve the required amount of CPUs (size of {cpuset.text(reserved)} did not "
            f"equal {count})",
        )
    strangers = reserved & ~policy.topology.cpus
    if strangers:
        raise StartRefusal(
            MANAGER,
            "[cpumanager] unable to build the reserved physical CPUs from the reserved set: "
            f"unknown CPU ID: {cpuset.members(strangers)[0]}",
        )
    return reserved


def _picked(policy: StaticCPUs, count: int) -> int:
    try:
        return policy.take(policy.topology.cpus, count)
    except Refusal:
        return 0


def _require_reserved_to_match(policy: StaticCPUs, default: int) -> None:
    shared = policy.reserved & default
    if policy.options.strict_reservation and shared:
        raise StartRefusal(
            MANAGER,
            f"some of strictly reserved cpus: {_quoted(shared)} are present in defaultCpuSet: {_quoted(default)}",
        )
    if not policy.options.strict_reservation and shared != policy.reserved:
        raise StartRefusal(
            MANAGER,
            f"not all reserved cpus: {_quoted(policy.reserved)} are present in defaultCpuSet: {_quoted(default)}",
        )


def _quoted(cpus: int) -> str:
    return f'"{cpuset.text(cpus)}"'
