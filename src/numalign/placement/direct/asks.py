"""What a pod asks of a machine in direct mode: the pod's annotations and the node's defaults, put together.

`decider` makes one ask per shape and machine, and `scope` answers it. The stricter policy of pod and node counts
(koordinator spec 20.3). A container has CPUs of its own if it requests whole ones, may not use more, and either it is
aligned or a CPU policy names it; any other one runs in the shared pools of its zones."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from msgspec import Struct

from numalign.api.attributes import directspec
from numalign.api.attributes.directspec import AlignmentPolicy, BindPolicy, CPUExclusion, Strategy
from numalign.api.attributes.intent import Intent
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Container, Pod
from numalign.kubelet.demand import Role
from numalign.placement.columns.directmachine import DirectMachine
from numalign.placement.direct.share import asks as shares
from numalign.placement.direct.share.asks import ShareAsk


class ContainerAsk(Struct, frozen=True, kw_only=True):
    role: Role
    policy: AlignmentPolicy = "none"
    """`none`: it is not aligned."""
    cpus: int = 0
    """Of its own."""
    milli: int = 0
    """Thousandths of CPUs in the shared pools of its zones."""
    memory: tuple[int, ...] = ()
    """By memory type of the machine; empty: not counted by zone."""
    devices: tuple[int, ...] = ()
    """By resource of the machine."""
    shares: ShareAsk | None = None


class PodAsk(Struct, frozen=True, kw_only=True, dict=True):
    containers: tuple[ContainerAsk, ...]
    """In admission order."""
    scope: Literal["container", "pod"] = "container"
    policy: AlignmentPolicy = "none"
    exclusive: bool = False
    strategy: Strategy = "MostAllocated"
    required: BindPolicy | None = None
    preferred: BindPolicy = "FullPCPUs"
    exclusion: CPUExclusion = "None"
    enforce_memory: bool = False

    @cached_property
    def has_init(self) -> bool:
        """Whether some container hands on what it got."""
        return any(each.role is Role.INIT for each in self.containers)

    @cached_property
    def has_shares(self) -> bool:
        """Whether it matters which devices a zone has, and what they are connected to."""
        return any(each.shares is not None for each in self.containers)


def of(pod: Pod, wish: Intent, machine: DirectMachine) -> PodAsk:
    spec, defaults = wish.direct, machine.terms.defaults
    policy = directspec.strictest((spec.policy or "none", defaults.policy))
    required = spec.required_cpus or (defaults.cpus if spec.preferred_cpus is None else None)
    own = dict(spec.policies)
    containers = []
    for place, container in enumerate(pod.in_admission_order()):
        excluded = place in spec.excluded
        aligned = "none" if excluded else directspec.strictest((own.get(place, spec.policy or "none"), defaults.policy))
        pinned = not excluded and (aligned != "none" or bool(required or spec.preferred_cpus))
        wanted = shares.of(spec.devices, place, container, machine.stock, machine.plugins)
        containers.append(_container(pod, place, container, aligned, pinned, machine, wanted))
    return PodAsk(
        containers=tuple(containers),
        scope=spec.scope or wish.scope or ("pod" if defaults.scope == "pod" else "container"),
        policy=policy,
        exclusive=bool(spec.exclusive),
        strategy=spec.strategy or defaults.strategy,
        required=required,
        preferred=required or spec.preferred_cpus or "FullPCPUs",
        exclusion=spec.cpu_exclusion,
        enforce_memory=spec.enforce_memory,
    )


def _container(
    pod: Pod,
    place: int,
    container: Container,
    policy: AlignmentPolicy,
    pinned: bool,
    machine: DirectMachine,
    wanted: ShareAsk | None,
) -> ContainerAsk:
    is_init = place < len(pod.spec.init_containers)
    requests, limits = container.resources.requests, container.resources.limits
    cpu = requests.get(resourcenames.CPU)
    milli = cpu.milli if cpu is not None else 0
    own = milli // 1000 if pinned and directspec.owns_cpus(container) else 0
    memory = [requests.get(name) for name, _ in machine.memory] if policy != "none" else []
    devices = [limits.get(name) for name, _, _ in machine.devices]
    amounts = tuple(amount.value if amount is not None else 0 for amount in memory)
    counts = tuple(amount.value if amount is not None else 0 for amount in devices)
    asks_something = bool(milli or any(amounts) or any(counts) or wanted)
    return ContainerAsk(
        role=Role.APP if not is_init else Role.SIDECAR if container.is_sidecar else Role.INIT,
        policy=policy if asks_something else "none",
        cpus=own,
        milli=milli if policy != "none" and not own else 0,
        memory=amounts if any(amounts) else (),
        devices=counts if any(counts) else (),
        shares=wanted,
    )
