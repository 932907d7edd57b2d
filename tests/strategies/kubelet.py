"""Machines, kubelets, pods and histories as property tests of the kubelet model want them.

Everything drawn here is in order: a kubelet starts, a pod could have come from an API server. Machines may have gaps
in their zone ids, zones without CPUs or memory, more sockets than zones, and devices in one, several or no zones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements
from numalign.kubelet import start, versions
from numalign.kubelet.cpu import static as cpuoptions
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, HugePages, Machine, Zone
from numalign.kubelet.settings import MemoryReservation, Settings, TopologyPolicy
from numalign.kubelet.start import Kubelet

MIB = 1 << 20
UNIT = 256 * MIB
"""Memory comes in pieces of this size."""

RESOURCES = tuple(f"example.com/{name}" for name in ("gpu", "nic", "fpga", "vf", "qat", "dsa"))
FEW, FEW_ZONES = 3, 4
"""With more zones than that there are no more device resources than that: answers of both kinds take too long."""
UNEVEN = "uneven"
PAGE_SIZES = (2048, 1 << 20)
MINORS = [versions.Minor(1, number) for number in range(versions.OLDEST.minor, versions.NEWEST.minor + 1)]
POLICIES: tuple[TopologyPolicy, ...] = ("none", "best-effort", "restricted", "single-numa-node")
ZONE_MEMORY = st.sampled_from((24, 16, 8, 4, 0)).map(lambda pieces: pieces * UNIT)
NUMBERINGS: tuple[presets.Numbering, ...] = ("split", "consecutive")


class Layout(NamedTuple):
    """How many cores each socket has in each zone: one row per zone, sockets numbered through."""

    rows: tuple[Mapping[int, int], ...]

    @property
    def cores(self) -> int:
        return sum(count for row in self.rows for count in row.values())


@st.composite
def zone_ids(draw: st.DrawFn, max_zones: int) -> tuple[int, ...]:
    """Ascending ids, usually without gaps."""
    steps = draw(st.lists(st.sampled_from((1, 1, 1, 2, 5)), min_size=1, max_size=max_zones))
    return tuple(accumulate(steps[1:], initial=steps[0] - 1))


@st.composite
def zones_in_sockets(draw: st.DrawFn, zones: int) -> Layout:
    """Sockets of equal size, each divided among some zones, of which any but one may go without CPUs."""
    sockets = draw(st.sampled_from([count for count in (1, 2, 4) if count <= zones]))
    size = draw(st.sampled_from((8, 6, 4, 3, 1)))
    rows: list[dict[int, int]] = [{} for _ in range(zones)]
    for socket in range(sockets):
        own = [zone for zone in range(zones) if zone * sockets // zones == socket]
        cuts = sorted(draw(st.lists(st.integers(0, size), min_size=len(own) - 1, max_size=len(own) - 1)))
        for zone, first, last in zip(own, [0, *cuts], [*cuts, size], strict=True):
            rows[zone] = {socket: last - first} if last > first else {}
    return Layout(tuple(rows))


@st.composite
def sockets_in_zones(draw: st.DrawFn, zones: int) -> Layout:
    """Zones of several whole sockets each, or none."""
    counts = draw(st.lists(st.integers(0, 3), min_size=zones, max_size=zones).filter(any))
    size, ends = draw(st.sampled_from((4, 2, 1))), list(accumulate(counts))
    return Layout(tuple(dict.fromkeys(range(end - count, end), size) for count, end in zip(counts, ends, strict=True)))


@st.composite
def machines(draw: st.DrawFn, max_zones: int = 8, resources: int = len(RESOURCES)) -> Machine:
    """A machine whose sockets have equal numbers of cores, and cores equal numbers of threads."""
    ids = draw(zone_ids(max_zones))
    layout = draw(st.one_of(zones_in_sockets(len(ids)), sockets_in_zones(len(ids))))
    cores = draw(cores_of(layout))
    pages = draw(st.lists(st.sampled_from(PAGE_SIZES), unique=True, max_size=2))
    tables = [(draw(ZONE_MEMORY), draw(hugepages(pages))) for _ in ids]
    reach = draw(st.lists(st.integers(10, 40), min_size=2, max_size=2))
    return Machine(
        "drawn",
        tuple(
            Zone(
                id=zone,
                cores=own,
                memory=ordinary + sum(page.total_bytes for page in reserved),
                hugepages=reserved,
                distances=tuple(10 + (reach[zone + other & 1] + zone * other) % 23 for other in range(ids[-1] + 1)),
            )
            for zone, own, (ordinary, reserved) in zip(ids, cores, tables, strict=True)
        ),
        draw(device_plugins(ids, resources if len(ids) <= FEW_ZONES else min(resources, FEW))),
    )


@st.composite
def uneven_machines(draw: st.DrawFn, max_zones: int = 4) -> Machine:
    """A machine on which cores have different numbers of threads, and sockets lie anywhere."""
    even = draw(machines(max_zones))
    places = draw(st.lists(st.sampled_from(even.zones), min_size=1, max_size=8))
    cores: dict[int, list[Core]] = {zone.id: [] for zone in even.zones}
    first = 0
    for zone in places:
        threads, socket = draw(st.integers(1, 3)), draw(st.integers(0, 2))
        cores[zone.id].append(Core(socket, tuple(range(first, first + threads)), draw(st.sampled_from((None, 0, 1)))))
        first += threads
    zones = tuple(structs.replace(zone, cores=tuple(cores[zone.id])) for zone in even.zones)
    return structs.replace(even, name=UNEVEN, zones=zones)


@st.composite
def cores_of(draw: st.DrawFn, layout: Layout) -> list[tuple[Core, ...]]:
    """Cores for every zone of a layout: 1, 2 or 4 threads, L3 groups of some cores or none reported."""
    threads, numbering = draw(st.sampled_from((1, 2, 2, 4))), draw(st.sampled_from(NUMBERINGS))
    per_l3 = draw(st.sampled_from((None, None, 2, 3)))
    folded = iter(enumerate(presets.fold(range(layout.cores * threads), threads, numbering)))
    return [
        tuple(
            Core(socket, cpus, None if per_l3 is None else place // per_l3)
            for socket, count in row.items()
            for place, cpus in (next(folded) for _ in range(count))
        )
        for row in layout.rows
    ]


@st.composite
def hugepages(draw: st.DrawFn, sizes: Sequence[int]) -> tuple[HugePages, ...]:
    """Every zone reports the same sizes; otherwise a request for them crashes the kubelet."""
    return tuple(HugePages(size, draw(st.sampled_from((4, 2, 1, 0))) * (512 if size == 2048 else 1)) for size in sizes)


@st.composite
def device_plugins(draw: st.DrawFn, ids: Sequence[int], most: int) -> dict[str, DevicePlugin]:
    places = st.one_of(
        *[st.sampled_from(ids).map(lambda zone: (zone,))] * 4,
        st.lists(st.sampled_from([*ids, 60]), unique=True, max_size=3).map(tuple),
        st.none(),
    )
    devices = st.tuples(places, st.sampled_from((True, True, True, False)))
    plugins = {}
    for resource in RESOURCES[: draw(st.sampled_from([1, 0, *range(most + 1)]))]:
        drawn = draw(st.lists(devices, min_size=draw(st.sampled_from((4, 2, 0))), max_size=6))
        listed = tuple(Device(f"{resource[12:]}-{i}", zones, healthy) for i, (zones, healthy) in enumerate(drawn))
        plugins[resource] = DevicePlugin(listed, draw(st.booleans()))
    return plugins


@st.composite
def kubelets(draw: st.DrawFn, /, machine: Machine, **fixed: Any) -> Kubelet:
    """A kubelet that starts on this machine; `fixed` settings are taken as they are, or drawn as they say."""
    drawn = {
        "topology_policy": draw(st.sampled_from(POLICIES)),
        "topology_scope": draw(st.sampled_from(("container", "pod"))),
        "topology_options": {start.PREFER_CLOSEST: draw(st.sampled_from(("true", "false")))},
        "cpu_policy": draw(st.sampled_from(("static", "static", "static", "none"))),
        "memory_policy": draw(st.sampled_from(("Static", "Static", "None"))),
        "minor": draw(st.sampled_from(MINORS)),
    } | {name: draw(value) if isinstance(value, st.SearchStrategy) else value for name, value in fixed.items()}
    return start.start(machine, Settings(**draw(completed(machine, drawn))))


@st.composite
def completed(draw: st.DrawFn, machine: Machine, drawn: dict[str, Any]) -> dict[str, Any]:
    """Options that agree with each other and with the machine, and reservations that add up."""
    reserved = draw(memory_reservations(machine))
    if not any(each.limits["memory"] for each in reserved):
        drawn = drawn | {"memory_policy": "None"}
    static = drawn["cpu_policy"] == "static"
    gates = {"CPUManagerPolicyAlphaOptions": True} | drawn.get("feature_gates", {})
    options = draw(cpu_options(machine, drawn["topology_policy"])) if static else {}
    cpus = draw(reserved_cpus(machine))
    withheld = {kind: sum(each.limits.get(kind, 0) for each in reserved) for kind in machine.memory_types}
    return {
        "cpu_options": options,
        # Where averages mislead the kubelet it may pick fewer than it needs, and not start.
        "reserved_cpus": cpus if machine.name == UNEVEN or draw(st.booleans()) else 0,
        "reserved_memory": reserved,
        "reserved": withheld | {"cpu": 1000 * cpus.bit_count()},
        **drawn,
        "feature_gates": gates,
    }


@st.composite
def reserved_cpus(draw: st.DrawFn, machine: Machine) -> int:
    """One to three CPUs, and one left for pods if there are two."""
    cpus = [cpu for zone in machine.zones for core in zone.cores for cpu in core.cpus]
    chosen = draw(st.lists(st.sampled_from(cpus), unique=True, min_size=1, max_size=min(3, max(1, len(cpus) - 1))))
    return sum(1 << cpu for cpu in chosen)


@st.composite
def memory_reservations(draw: st.DrawFn, machine: Machine) -> tuple[MemoryReservation, ...]:
    return tuple(
        MemoryReservation(
            zone.id,
            {"memory": draw(st.sampled_from((UNIT // 3, 0, UNIT, ordinary // 2))) if ordinary else 0}
            | {page.resource: draw(st.sampled_from((0, page.total_bytes // 2))) for page in zone.hugepages},
        )
        for zone in machine.zones
        for ordinary in [zone.memory - sum(page.total_bytes for page in zone.hugepages)]
    )


@st.composite
def cpu_options(draw: st.DrawFn, machine: Machine, policy: str) -> dict[str, str]:
    chosen = draw(st.sets(st.sampled_from(sorted(cpuoptions.KNOWN)), max_size=3))
    for one, other in cpuoptions.CONFLICTS:
        if one in chosen:
            chosen.discard(other)
    sockets = {core.socket for zone in machine.zones for core in zone.cores}
    if policy == "single-numa-node" or len(sockets) > sum(bool(zone.cores) for zone in machine.zones):
        chosen.discard(cpuoptions.ALIGN_BY_SOCKET)
    return dict.fromkeys(sorted(chosen), "true")


CPUS = st.sampled_from(("2", "1", "1", "2", "2", "4", "3", "5", "8", "500m", "1500m"))
MEMORY = st.sampled_from((2, 1, 3, 4, 7, 12, 20, 30)).map(lambda pieces: pieces * UNIT)


@st.composite
def containers(draw: st.DrawFn, name: str, machine: Machine, guaranteed: bool) -> Container:
    wants: ResourceList = {"cpu": quantity.parse(draw(CPUS)), "memory": quantity.of(draw(MEMORY))}
    for page in machine.zones[0].hugepages:
        count = draw(st.sampled_from((0, 0, 0, 1, 2)))
        if count:
            wants[page.resource] = quantity.of(count * page.size_kib * 1024 * (512 if page.size_kib == 2048 else 1))
    devices = {
        resource: quantity.of(count)
        for resource in machine.devices
        if (count := draw(st.sampled_from((0, 1, 0, 1, 2))))
    }
    limits = wants | devices if guaranteed else devices
    return Container(name=name, resources=ResourceRequirements(wants | devices, limits))


@st.composite
def init_containers(draw: st.DrawFn, machine: Machine, guaranteed: bool, policies: Sequence[str]) -> list[Container]:
    """Up to two init containers with these restart policies."""
    drawn = [draw(containers(f"init-{i}", machine, guaranteed)) for i in range(draw(st.integers(0, 2)))]
    return [structs.replace(each, restart_policy=draw(st.sampled_from(policies))) for each in drawn]


@st.composite
def pods(draw: st.DrawFn, machine: Machine, init: Sequence[str] = ("", "Always"), pod_level: bool = False) -> Pod:
    """A pod of up to two init containers, plain ones or sidecars by `init`, and up to two app containers."""
    guaranteed = draw(st.sampled_from((True, True, True, False)))
    before = draw(init_containers(machine, guaranteed, init))
    apps = [draw(containers(f"app-{i}", machine, guaranteed)) for i in range(draw(st.sampled_from((1, 1, 2))))]
    whole: ResourceList = {}
    if pod_level and draw(st.booleans()):
        whole = {"cpu": quantity.parse(draw(CPUS)), "memory": quantity.of(draw(MEMORY))}
    resources = ResourceRequirements(whole, dict(whole) if guaranteed else {})
    spec = PodSpec(containers=tuple(apps), init_containers=tuple(before), resources=resources)
    return named(Pod(spec=spec), "pod")


@st.composite
def plain_pods(draw: st.DrawFn) -> Pod:
    """A small Guaranteed pod of one container, which finds room on most machines."""
    cpu, memory = draw(st.sampled_from(("2", "4", "1"))), draw(st.sampled_from((UNIT, 2 * UNIT, 5 * UNIT)))
    wants: ResourceList = {"cpu": quantity.parse(cpu), "memory": quantity.of(memory)}
    return Pod(spec=PodSpec(containers=(Container(name="app-0", resources=ResourceRequirements(wants, dict(wants))),)))


def named(pod: Pod, uid: str) -> Pod:
    return structs.replace(pod, metadata=ObjectMeta(name=uid, uid=uid))


class End(NamedTuple):
    """Some active pod ends."""

    which: int


class Start(NamedTuple):
    """The containers of some active pod are started."""

    which: int


class Restart(NamedTuple):
    """The kubelet restarts and admits every active pod again."""


Step = Pod | End | Start | Restart


@st.composite
def histories(draw: st.DrawFn, /, machine: Machine, restarts: bool = True, **how: Any) -> list[Step]:
    """What happens on a node: copies of three pods come, run and go."""
    shapes = [draw(plain_pods()), draw(pods(machine, **how)), draw(pods(machine, **how))]
    others: list[Step] = [End(0), End(1), Start(0), Start(1), *[Restart()] * restarts]
    drawn = draw(st.lists(st.sampled_from([*shapes * 3, *others]), min_size=5, max_size=10))
    return [named(step, f"pod-{number}") if isinstance(step, Pod) else step for number, step in enumerate(drawn)]
