"""The static CPU policy: start, options, hints and allocation of exclusive CPUs (policy_static.go).

`start` starts it: it reserves CPUs, checks the policy options against the machine (kubelet spec 5.8), and accepts or
refuses a checkpoint; its errors are the kubelet's log texts. `admission` asks for hints, then allocates with the merged
affinity. Nothing is rolled back: a failed allocation keeps what it had taken (kubelet spec 5 and 10.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct, structs

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import assignment
from numalign.kubelet.cpu.state import CPUState, ReusableCpus
from numalign.kubelet.cpu.topology import CPUTopology, discover
from numalign.kubelet.demand import ContainerDemand, PodDemand, Role
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import EMPTY_POD_SHARED_POOL, SMT_ALIGNMENT, Refusal, StartRefusal
from numalign.kubelet.settings import CPU_OPTIONS, Settings, boolean_option, require_available
from numalign.kubelet.topologymanager.hints import HintList, Room, SocketAlignment, Supply
from numalign.kubelet.topologymanager.mask import Mask
from numalign.kubelet.topologymanager.merge import HintMap
from numalign.kubelet.versions import Behaviour, behaviour

MANAGER = CPU_OPTIONS.manager

FULL_PCPUS_ONLY = "full-pcpus-only"
STRICT_RESERVATION = "strict-cpu-reservation"
ALIGN_UNCORE = "prefer-align-cpus-by-uncorecache"
ACROSS_NUMA = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET = "align-by-socket"
ACROSS_CORES = "distribute-cpus-across-cores"

KNOWN = frozenset({FULL_PCPUS_ONLY, STRICT_RESERVATION, ALIGN_UNCORE, ACROSS_NUMA, ALIGN_BY_SOCKET, ACROSS_CORES})

CONFLICTS = (
    (FULL_PCPUS_ONLY, ACROSS_CORES),
    (ACROSS_NUMA, ACROSS_CORES),
    (ALIGN_UNCORE, ACROSS_CORES),
    (ALIGN_UNCORE, ACROSS_NUMA),
)


class CPUOptions(Struct, frozen=True, kw_only=True):
    """The options after parsing."""

    full_pcpus_only: bool = False
    strict_reservation: bool = False
    align_uncore: bool = False
    across_numa: bool = False
    align_by_socket: bool = False
    across_cores: bool = False


def read_options(settings: Settings, topology: CPUTopology) -> CPUOptions:
    """Parse the configured options, refusing what the kubelet refuses to start with."""
    chosen: set[str] = set()
    for name, text in settings.cpu_options.items():
        require_available(name, KNOWN, CPU_OPTIONS, settings)
        if boolean_option(name, text, CPU_OPTIONS):
            chosen.add(name)
    for one, other in CONFLICTS:
        if one in chosen and other in chosen:
            raise StartRefusal(MANAGER, f"static policy options {one} and {other} can not be used at the same time")
    if ALIGN_BY_SOCKET in chosen:
        _require_sockets_to_fit(settings, topology)
    return CPUOptions(
        full_pcpus_only=FULL_PCPUS_ONLY in chosen,
        strict_reservation=STRICT_RESERVATION in chosen,
        align_uncore=ALIGN_UNCORE in chosen,
        across_numa=ACROSS_NUMA in chosen,
        align_by_socket=ALIGN_BY_SOCKET in chosen,
        across_cores=ACROSS_CORES in chosen,
    )


def _require_sockets_to_fit(settings: Settings, topology: CPUTopology) -> None:
    if settings.topology_policy == "single-numa-node":
        raise StartRefusal(  # the misspelling is the kubelet's
            MANAGER,
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option",
        )
    if len(topology.sockets) > len(topology.zones):
        raise StartRefusal(
            MANAGER,
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
        )


CPU = "cpu"
UNSATISFIED: HintMap = {CPU: HintList()}


class StaticCPUs(Struct, frozen=True, dict=True):
    """The policy of one kubelet process: its machine, options and reserved CPUs. State is passed in and out."""

    topology: CPUTopology
    options: CPUOptions
    reserved: int
    behaviour: Behaviour

    @cached_property
    def reserved_cores(self) -> int:
        """Reserved CPUs with their core siblings, which full-pcpus-only cannot hand out either."""
        return self.topology.whole_cores(self.reserved)

    @property
    def allocatable(self) -> int:
        return self.topology.cpus & ~self.reserved

    @cached_property
    def managed(self) -> int:
        """The CPUs that shared set and assignments add up to."""
        return self.allocatable if self.options.strict_reservation else self.topology.cpus

    def initial(self) -> CPUState:
        return CPUState(default=self.managed)

    def available(self, state: CPUState) -> int:
        return state.default & ~self.reserved

    # Hints

    def container_hints(self, state: CPUState, pod: PodDemand, container: ContainerDemand) -> HintMap | None:
        if container.cpus == 0:
            return None
        assigned = state.assigned(pod.uid, container.name)
        if assigned is None:
            return self._hints(self.available(state), state.reusable(pod.uid), container.cpus)
        if assigned.bit_count() != container.cpus:
            return UNSATISFIED
        return self._hints(assigned, 0, container.cpus)

    def pod_hints(self, state: CPUState, pod: PodDemand) -> HintMap | None:
        if pod.cpus == 0:
            return None
        if pod.budget is not None and empty_shared_pool(pod) is not None:
            return UNSATISFIED
        held = 0
        for container in pod.containers:
            assigned = state.assigned(pod.uid, container.name)
            if assigned is not None:
                if assigned.bit_count() != container.cpus:
                    return UNSATISFIED
                held |= assigned
        if held.bit_count() == pod.cpus:
            return self._hints(held, 0, pod.cpus)
        return self._hints(self.available(state), state.reusable(pod.uid) | held, pod.cpus)

    def _hints(self, available: int, reusable: int, need: int) -> HintMap:
        topology = self.topology
        room = Room(
            zones=self._zone_ids,
            supplies=(Supply(need, self._sizes, topology.by_zone(available), held=reusable.bit_count()),),
            must_include=sum(1 << zone for zone, cpus in topology.zones.items() if cpus & reusable),
            alignment=self._alignment,
        )
        return {CPU: room.hints()}

    @cached_property
    def _zone_ids(self) -> tuple[int, ...]:
        return tuple(sorted(self.topology.zones))

    @cached_property
    def _sizes(self) -> Mapping[Mask, int]:
        return self.topology.by_zone(self.topology.cpus)

    @cached_property
    def _alignment(self) -> SocketAlignment | None:
        zones, sockets = self.topology.zones, self.topology.sockets
        if not self.options.align_by_socket or len(zones) < len(sockets):
            return None
        spans = {zone: sum(1 << socket for socket in self.topology.sockets_in_zone[zone]) for zone in zones}
        return SocketAlignment(sockets=spans, zones_per_socket=len(zones) // len(sockets))

    # Allocation

    def allocate(
        self, state: CPUState, pod: PodDemand, container: ContainerDemand, affinity: Mask | None
    ) -> tuple[CPUState, Refusal | None]:
        if container.cpus == 0:
            return state, None
        try:
            return self._allocated(state, pod, container, affinity), None
        except Refusal as refusal:
            return state, refusal

    def _allocated(
        self, state: CPUState, pod: PodDemand, container: ContainerDemand, affinity: Mask | None
    ) -> CPUState:
        assigned = state.assigned(pod.uid, container.name)
        if assigned is None or not self.behaviour.assigned_cpus_skip_smt_check:
            self._require_whole_cores(state, container.cpus)
        if assigned is None:
            assigned = self._take_aligned(state, container.cpus, affinity, state.reusable(pod.uid))
            state = structs.replace(state, default=state.default & ~assigned)
            state = state.with_assignments(pod.uid, {container.name: assigned})
        left = state.reusable(pod.uid)
        left = left | assigned if container.role is Role.INIT else left & ~assigned
        return structs.replace(state, reuse=ReusableCpus(pod.uid, left))

    def allocate_pod(self, state: CPUState, pod: PodDemand, affinity: Mask | None) -> tuple[CPUState, Refusal | None]:
        """Serve a pod with pod-level resources as one allocation, then divide it among its containers."""
        if pod.cpus == 0:
            return state, None
        try:
            emptied = empty_shared_pool(pod)
            if emptied is not None:
                raise Refusal(emptied, EMPTY_POD_SHARED_POOL)
            self._require_whole_cores(state, pod.cpus)
            bubble = self._take_aligned(state, pod.cpus, affinity, 0)
            # Recorded before it is divided: if dividing fails, these CPUs are leaked (kubelet spec 10.5).
            state = structs.replace(state, default=state.default & ~bubble, pods={**state.pods, pod.uid: bubble})
            return state.with_assignments(pod.uid, self._divided(bubble, pod)), None
        except Refusal as refusal:
            return state, refusal

    def _divided(self, bubble: int, pod: PodDemand) -> dict[str, int]:
        exclusive: dict[str, int] = {}
        kept = 0
        for container in pod.containers:
            free = bubble & ~kept
            if container.cpus:
                exclusive[container.name] = taken = self.take(free, container.cpus)
                kept |= taken if container.role is not Role.INIT else 0
            elif container.role is Role.INIT:
                exclusive[container.name] = free
        shared = bubble & ~kept
        return {container.name: exclusive.get(container.name, shared) for container in pod.containers}

    def _require_whole_cores(self, state: CPUState, need: int) -> None:
        if not self.options.full_pcpus_only:
            return
        threads = self.topology.cpus_per_core
        if need % threads:
            raise Refusal(
                f"SMT Alignment Error: requested {need} cpus not multiple cpus per core = {threads}", SMT_ALIGNMENT
            )
        physical = (state.default & ~self.reserved_cores).bit_count()
        if need > physical:
            raise Refusal(
                "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = "
                f"{physical}, requested CPUs = {need}, CPUs per core = {threads}",
                SMT_ALIGNMENT,
            )

    def _take_aligned(self, state: CPUState, need: int, affinity: Mask | None, reusable: int) -> int:
        candidates = self.available(state) | reusable
        aligned = 0
        if affinity is not None:
            by_socket = self.options.align_by_socket
            area = self.topology.of_sockets_touching(affinity) if by_socket else self.topology.of_zones(affinity)
            inside = candidates & area
            least = affinity.bit_count() if self.behaviour.distribution_keeps_affinity else 0
            aligned = self.take(inside, min(need, inside.bit_count()), least)
        return aligned | self.take(candidates & ~aligned, need - aligned.bit_count())

    def take(self, free: int, need: int, least_zones: int = 0) -> int:
        """Pick CPUs by the configured options, wherever they are. `least_zones`: how many zones to distribute them over
        at least."""
        if self._distributing is not None:
            return assignment.take_by_topology_distributed(self.topology, free, need, self._distributing, least_zones)
        picking = assignment.Picking(spread=self.options.across_cores, align_uncore=self.options.align_uncore)
        return assignment.take_by_topology_packed(self.topology, free, need, picking)

    @cached_property
    def _distributing(self) -> assignment.Distributing | None:
        if not self.options.across_numa:
            return None
        return assignment.Distributing(
            group=self.topology.cpus_per_core if self.options.full_pcpus_only else 1,
            by_socket=self.options.align_by_socket and self.behaviour.distribution_knows_sockets,
            capped=self.behaviour.distribution_knows_sockets,
            picking=assignment.Picking(spread=self.options.across_cores),
        )

    # Release and collection

    def remove(self, state: CPUState, uid: str, container: str) -> CPUState:
        released = state.assigned(uid, container)
        if released is None:
            return state
        state = state.without_container(uid, container)
        remaining = state.assignments.get(uid, {})
        if uid in state.pods:
            # A pod served as a whole gives everything back with its last container.
            if remaining:
                return state
            pods = {other: cpus for other, cpus in state.pods.items() if other != uid}
            return structs.replace(state, default=state.default | state.pods[uid], pods=pods)
        for cpus in remaining.values():
            released &= ~cpus
        return structs.replace(state, default=state.default | released)

    def collect(self, state: CPUState, active: Mapping[str, Iterable[str]]) -> CPUState:
        """Drop what belongs to no container of an active pod; `active` is pod uid to container names."""
        for uid, held in state.assignments.items():
            for name in held:
                if name not in active.get(uid, ()):
                    state = self.remove(state, uid, name)
        return state


def empty_shared_pool(pod: PodDemand) -> str | None:
    """Why containers without CPUs of their own would find the pod's budget used up (kubelet spec 10.3)."""
    exclusive, sharing = 0, False
    for container in pod.containers:
        if container.role is Role.INIT:
            if container.cpus == 0 and exclusive >= pod.cpus:
                return "pod rejected, pod has shared init containers but no cpus available for them"
            continue
        exclusive += container.cpus
        sharing = sharing or container.cpus == 0
    if sharing and exclusive >= pod.cpus:
        return (
            "pod rejected, sum of exclusive container cpu requests equals pod budget, "
            "leaving no cpus for shared containers"
        )
    return None


def start_cpu_manager(machine: Machine, settings: Settings) -> StaticCPUs | None:
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
    topology = discover(machine)
    policy = StaticCPUs(topology, read_options(settings, topology), 0, behaviour(settings.minor))
    return structs.replace(policy, reserved=_reserved(policy, settings))


def restart_cpu_manager(policy: StaticCPUs, checkpoint: CPUState) -> CPUState:
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
    return structs.replace(checkpoint, reuse=ReusableCpus())


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
