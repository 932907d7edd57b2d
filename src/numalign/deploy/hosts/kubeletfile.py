"""Writes the KubeletConfiguration that aligns pods on a machine, and judges an existing one.

`numalign deploy kubelet` calls `proposed` and `judged`. The kubelet refuses to start unless the reserved memory of all
zones adds up to what it reserves for the node, so the amounts are computed from the configuration itself. Every
proposal is started on the kubelet model first: what is printed starts. The steps are those of a change of policy, where
the kubelet's checkpoints have to go (kubelet spec 9)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, Final, Literal

from msgspec import Struct, field

from numalign.api.decode import cpuset, quantity
from numalign.api.errors import BadObject
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects import resourcenames
from numalign.kubelet import configuration, refusals, settings, start
from numalign.kubelet.configuration import API_VERSION, KIND, MEMORY_SIGNAL
from numalign.kubelet.cpu import topology
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.kubelet.settings import CPU_OPTIONS, TOPOLOGY_OPTIONS, Naming, Settings, TopologyPolicy, TopologyScope
from numalign.kubelet.start import DEFAULT_MAX_ZONES, MAX_ZONES, Kubelet
from numalign.kubelet.versions import NEWEST, Minor, gate_default

Form = Literal["config", "drop-in", "kubeadm-patch"]
Document = dict[str, Any]

MIB: Final = 1 << 20
SOURCE: Final = "the proposal"
DROP_IN: Final = "/etc/kubernetes/kubelet.conf.d/20-numalign.conf"
PATCH: Final = "kubeletconfiguration+merge.yaml"
PATCHES: Final = "/etc/kubernetes/patches"
# A file with any threshold loses the kubelet's defaults for the others.
THRESHOLDS: Final = {
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
}


class Wish(Struct, frozen=True, kw_only=True):
    """What the nodes should do; everything has a default that suits most machines."""

    policy: TopologyPolicy = "single-numa-node"
    scope: TopologyScope = "container"
    reserved_cpus: str = ""
    """For the system; empty: the first core of every zone."""
    kube_reserved: str = "1Gi"
    system_reserved: str = "1Gi"
    eviction: str = "100Mi"
    """The threshold of free memory at which the kubelet evicts."""
    cpu_options: Mapping[str, str] = field(default_factory=dict)
    topology_options: Mapping[str, str] = field(default_factory=dict)


def proposed(machine: Machine, wish: Wish, minor: Minor = NEWEST, base: Document | None = None) -> Document:
    """A configuration that starts on this machine. With `base`, its fields stay, also its reservations; only what
    alignment needs is set. BadObject where no such configuration exists."""
    document: Document = {"apiVersion": API_VERSION, "kind": KIND}
    document |= dict(base) if base is not None else _reservations(wish)
    for name in ("memoryManagerPolicy", "reservedMemory"):
        document.pop(name, None)
    document |= _managers(machine, wish, minor, document.get("featureGates") or {})
    document |= {"memoryManagerPolicy": "Static", "reservedMemory": _reserved_memory(machine, document, minor)}
    kubelet = _started(machine, document, minor)
    if kubelet.cpu is not None and not kubelet.cpu.allocatable:
        raise _bad("reservedSystemCPUs", "every CPU is reserved, so none is left for pods")
    return document


def _reservations(wish: Wish) -> Document:
    return {
        "kubeReserved": {"memory": wish.kube_reserved},
        "systemReserved": {"memory": wish.system_reserved},
        "evictionHard": {MEMORY_SIGNAL: wish.eviction, **THRESHOLDS},
    }


def _managers(machine: Machine, wish: Wish, minor: Minor, gates: Mapping[str, bool]) -> Document:
    topology_options = dict(wish.topology_options)
    if len(machine.zones) > DEFAULT_MAX_ZONES and wish.policy != "none":
        topology_options.setdefault(MAX_ZONES, str(len(machine.zones)))
    needed = dict(gates)
    for options, naming in ((wish.cpu_options, CPU_OPTIONS), (topology_options, TOPOLOGY_OPTIONS)):
        needed |= _gates(options, naming, minor)
    found: Document = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": dict(wish.cpu_options),
        "reservedSystemCPUs": wish.reserved_cpus or cpuset.text(first_cores(machine)),
        "topologyManagerPolicy": wish.policy,
        "topologyManagerScope": wish.scope,
        "topologyManagerPolicyOptions": topology_options,
        "featureGates": needed,
    }
    return {name: value for name, value in found.items() if value != {}}


def _gates(options: Mapping[str, str], naming: Naming, minor: Minor) -> dict[str, bool]:
    """The gates of these options that are off by default."""
    gates = [settings.maturity_gate(option, naming, minor) for option in options]
    return {gate: True for gate in gates if gate and not gate_default(gate, minor)}


def first_cores(machine: Machine) -> int:
    """The CPUs of the first core of every zone: all zones stay alike, and no core is shared with pods."""
    return cpuset.of(cpu for zone in machine.zones if zone.cores for cpu in min(core.cpus for core in zone.cores))


def _reserved_memory(machine: Machine, document: Document, minor: Minor) -> list[Document]:
    """What the node withholds, in equal parts of the zones that have CPUs and memory; the first takes the rest."""
    total = configuration.read(document, SOURCE, machine, minor).withheld(resourcenames.MEMORY)
    if not total:
        raise _bad("kubeReserved", "no memory is reserved; the Static memory manager needs some")
    zones = [zone for zone in machine.zones if zone.cores and zone.memory] or [z for z in machine.zones if z.memory]
    part = total // len(zones) // MIB * MIB if zones else 0
    parts = [total - part * (len(zones) - 1), *[part] * (len(zones) - 1)]
    # The kubelet would start, and count with amounts below zero.
    for zone, share in zip(zones, parts, strict=False):
        if share >= zone.memory:
            why = f"zone {zone.id} has {_size(zone.memory)} of memory, and {_size(share)} would be reserved there"
            raise _bad("reservedMemory", f"{why}; reserve less")
    return [
        {"numaNode": zone.id, "limits": {resourcenames.MEMORY: _size(share)}}
        for zone, share in zip(zones, parts, strict=False)
        if share
    ]


def _size(amount: int) -> str:
    return str(quantity.of(amount, quantity.Format.BINARY_SI))


def _started(machine: Machine, document: Document, minor: Minor) -> Kubelet:
    try:
        return start.start(machine, configuration.read(document, SOURCE, machine, minor))
    except (refusals.StartRefusal, refusals.Undecided) as refusal:
        raise _bad("", f"a kubelet would not start with it: {refusal}") from None


def _bad(path: str, why: str) -> BadObject:
    return BadObject(KIND, SOURCE, path, why)


class KubeletFinding(Struct, frozen=True):
    """`id` never changes, and is the doctor's where the doctor sees the same in a cluster. The rest are sentences."""

    id: str
    field: str
    seen: str
    remedy: str
    severity: Literal["error", "warning"] = "error"


def judged(document: object, source: str, machine: Machine, minor: Minor = NEWEST) -> list[KubeletFinding]:
    """What keeps pods from being aligned on this machine; empty where nothing does. BadObject where the file is no
    KubeletConfiguration at all."""
    found = configuration.read(document, source, machine, minor)
    try:
        start.start(machine, found)
    except (refusals.StartRefusal, refusals.Undecided) as refusal:
        return [_refused(refusal, document, found, machine)]
    reserved = _reserved(found, machine) if found.cpu_policy == "static" else ()
    return [*_policies(found), *reserved, *crowded(found.topology_policy, machine)]


def _refused(refusal: Exception, document: object, found: Settings, machine: Machine) -> KubeletFinding:
    seen = f"the kubelet does not start: {refusal}"
    parts = _parts(machine, document, found.minor) if found.memory_policy == "Static" else ""
    if not parts or "memory" not in str(refusal):
        return KubeletFinding(
            "kubelet-refuses-to-start", "", seen, "numalign deploy kubelet prints a configuration that starts"
        )
    name = "reserved-memory-wrong" if found.reserved_memory else "reserved-memory-missing"
    remedy = f"make the entries add up to kubeReserved, systemReserved and evictionHard: {parts}"
    return KubeletFinding(name, "reservedMemory", seen, remedy)


def _parts(machine: Machine, document: object, minor: Minor) -> str:
    """The reservation of each zone that would be right, in words; empty where none would."""
    given = document if isinstance(document, dict) else {}
    plain = {key: value for key, value in given.items() if key not in ("memoryManagerPolicy", "reservedMemory")}
    try:
        wanted = _reserved_memory(machine, plain, minor)
    except BadObject:
        return ""
    return ", ".join(f"{each['limits'][resourcenames.MEMORY]} for zone {each['numaNode']}" for each in wanted)


def _policies(found: Settings) -> Iterator[KubeletFinding]:
    """The managers whose policy aligns nothing."""
    policy = found.topology_policy
    if policy in ("none", "best-effort"):
        seen = f"the Topology Manager policy is {policy}, so pods that cannot be aligned run unaligned"
        severity: Literal["error", "warning"] = "error" if policy == "none" else "warning"
        remedy = "set single-numa-node or restricted"
        yield KubeletFinding(f"topology-policy-{policy}", "topologyManagerPolicy", seen, remedy, severity)
    if found.cpu_policy != "static":
        seen = "the CPU Manager policy is none, so no container gets CPUs of its own"
        yield KubeletFinding("cpu-manager-not-static", "cpuManagerPolicy", seen, "set static, and reservedSystemCPUs")
    if found.memory_policy != "Static":
        seen = "the Memory Manager policy is None, so memory comes from any zone"
        yield KubeletFinding("memory-manager-off", "memoryManagerPolicy", seen, "set Static, and reservedMemory")


def crowded(policy: TopologyPolicy, machine: Machine) -> Iterator[KubeletFinding]:
    """The kubelet goes through every set of zones for every container: on a real one with 34 zones, no pod was ever
    admitted."""
    zones = len(machine.zones)
    if policy != "none" and zones > DEFAULT_MAX_ZONES:
        seen = f"the machine has {zones} zones; the kubelet tries all 2^{zones} sets of them for every container"
        remedy = "make fewer zones in the firmware (NPS, SNC, memory of devices)"
        yield KubeletFinding(
            "too-many-zones", MAX_ZONES, seen, f"{remedy}; admission is slow, and above 16 may never end", "warning"
        )


def _reserved(found: Settings, machine: Machine) -> Iterator[KubeletFinding]:
    field = "reservedSystemCPUs"
    if not found.reserved_cpus:
        seen = "the CPUs for the system are not named, so the kubelet picks them"
        remedy = f"name them, for example {cpuset.text(first_cores(machine))}"
        yield KubeletFinding("reserved-cpus-unset", field, seen, remedy, "warning")
        return
    known = topology.discover(machine)
    whole = reduce(or_, (core for core in known.cores.values() if core & found.reserved_cpus), 0)
    if whole != found.reserved_cpus:
        halves = cpuset.text(whole & ~found.reserved_cpus)
        seen = f"CPUs {halves} share a core with a reserved CPU, so pods share it with the system"
        yield KubeletFinding(
            "reserved-cpus-split", field, seen, f"reserve whole cores: {cpuset.text(whole)}", "warning"
        )
    empty = [zone for zone, cpus in known.zones.items() if cpus and not cpus & ~found.reserved_cpus]
    if empty:
        seen = f"all CPUs of zone {', '.join(map(str, empty))} are reserved, so no pod can be aligned to it"
        yield KubeletFinding("reserved-cpus-zone", field, seen, "leave CPUs for pods in every zone", "warning")


def steps(form: Form, node: str, root: str = "/var/lib/kubelet") -> Sequence[str]:
    """How the configuration gets into force on a node. Its pods have to go first: the kubelet gives every container
    other CPUs, and refuses to start with checkpoints of another policy."""
    place = {
        "config": [f"put the fields into the kubelet's configuration file (kubeadm: {root}/config.yaml)"],
        "drop-in": [
            f"write the file to {DROP_IN}; the kubelet needs --config-dir {DROP_IN.rpartition('/')[0]}",
        ],
        "kubeadm-patch": [
            f"write the file to {PATCHES}/{PATCH}",
            f"kubeadm upgrade node phase kubelet-config --patches {PATCHES}",
        ],
    }[form]
    return [
        f"kubectl drain {node} --ignore-daemonsets --delete-emptydir-data",
        f"on {node}: systemctl stop kubelet",
        f"on {node}: rm -f {root}/cpu_manager_state {root}/memory_manager_state",
        *(f"on {node}: {each}" for each in place),
        f"on {node}: systemctl start kubelet",
        f"kubectl uncordon {node}",
    ]


def machine_of(report: NodeTopology) -> Machine:
    """The machine that a report describes. BadObject where its publisher does not say which CPUs form a core."""
    if not report.facts.cores:
        why = "does not say which CPUs form a core; run the command on the node, or describe its machine in a file"
        raise BadObject("NodeResourceTopology", report.node, "attributes[numalign.io/cores]", why)
    highest = max((zone.id for zone in report.zones), default=0)
    return Machine(report.node, tuple(_zone(report, zone.id, highest) for zone in report.zones))


def _zone(report: NodeTopology, zone: int, highest: int) -> Zone:
    reported = next(each for each in report.zones if each.id == zone)
    cores = tuple(Core(each.socket, each.cpus, each.l3) for each in report.facts.cores or () if each.zone == zone)
    memory = reported.resources.get(resourcenames.MEMORY)
    costs = reported.costs
    distances = tuple(costs.get(other, 0) for other in range(highest + 1)) if costs else ()
    return Zone(zone, cores, memory.capacity if memory else 0, (), distances)
