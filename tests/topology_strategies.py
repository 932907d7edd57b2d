"""Hypothesis strategies for node topologies that are in order: what a flawless publisher could write."""

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.deviceclasses import DeviceCount
from numalign.api.attributes.directmode import FEATURES, AppliedContainer, DeviceMinors, DirectMode
from numalign.api.attributes.managers import KubeletBuild, ManagerPolicies, MemoryZone
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from numalign.api.decode import cpuset
from numalign.api.decode.quantity import INT64_MAX
from numalign.api.nrt import fingerprint, placementcodec
from numalign.api.nrt.nodetopology import Amounts, Fingerprint, NodeTopology, Zone
from numalign.api.nrt.topologymanager import POLICIES, SCOPES, TopologyManager

# Letters for names, and every sign that means something in one of the texts.
SIGNS = 'abz09-_./:;,|~@%=+*! "\\\0é\N{SNOWMAN}\N{PILE OF POO}'
TEXT = st.text(SIGNS, min_size=1, max_size=8)
ZONE_IDS = st.integers(0, 63)
ZONE_SETS = st.sets(ZONE_IDS, min_size=1, max_size=4).map(cpuset.of)
CPU_SETS = st.sets(st.integers(0, 300), max_size=8).map(cpuset.of)
SIZES = st.one_of(st.integers(0, 64).map(lambda count: count << 30), st.integers(0, INT64_MAX))
MEMORY_TYPES = st.sampled_from(["memory", "hugepages-2Mi", "hugepages-1Gi"])
RESOURCES = st.sampled_from(["memory", "hugepages-2Mi", "example.com/gpu", "example.com/nic"])
OPTIONS = st.dictionaries(TEXT, st.just("") | TEXT, max_size=3)


@st.composite
def amounts(draw: st.DrawFn) -> Amounts:
    available, allocatable, capacity = sorted(draw(st.tuples(*[st.integers(0, INT64_MAX)] * 3)))
    return Amounts(capacity, allocatable, available)


@st.composite
def zone_tuples(draw: st.DrawFn) -> tuple[Zone, ...]:
    ids = sorted(draw(st.sets(ZONE_IDS, min_size=1, max_size=8)))
    return tuple(
        Zone(
            id=zone,
            resources={"cpu": draw(amounts())} | draw(st.dictionaries(RESOURCES, amounts(), max_size=3)),
            costs={to: draw(st.integers(0, 255)) for to in ids},
            attributes=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
        )
        for zone in ids
    )


@st.composite
def core_tuples(draw: st.DrawFn) -> tuple[Core, ...]:
    """Any partition of some CPUs into cores, regular or not."""
    ids = draw(st.permutations(sorted(draw(st.sets(st.integers(0, 400), max_size=24)))))
    cores, start = [], 0
    while start < len(ids):
        threads = draw(st.integers(1, 4))
        place = draw(st.tuples(st.integers(0, 3), st.integers(0, 2), st.none() | st.integers(0, 5)))
        cores.append(Core(tuple(sorted(ids[start : start + threads])), *place))
        start += threads
    return tuple(sorted(cores))


@st.composite
def held_devices(draw: st.DrawFn) -> HeldDevices:
    ids = tuple(sorted(draw(st.sets(TEXT, max_size=3))))
    count = len(ids) or draw(st.integers(0, 9))
    return HeldDevices(resource=draw(TEXT), zones=draw(st.none() | st.just(0) | ZONE_SETS), count=count, ids=ids)


@st.composite
def holdings(draw: st.DrawFn) -> Holding:
    blocks = st.builds(MemoryBlock, type=MEMORY_TYPES, zones=ZONE_SETS, size=SIZES)
    devices = draw(st.lists(held_devices(), max_size=2, unique_by=lambda held: (held.resource, held.zones)))
    ordered = sorted(devices, key=lambda held: (held.resource, -1 if held.zones is None else held.zones))
    memory = tuple(sorted(draw(st.lists(blocks, max_size=3))))
    return Holding(container=draw(st.just("") | TEXT), cpus=draw(CPU_SETS), memory=memory, devices=tuple(ordered))


@st.composite
def pod_placements(draw: st.DrawFn) -> PodPlacement:
    known = draw(st.sampled_from(["name", "uid", "both"]))
    held = draw(st.lists(holdings(), max_size=3, unique_by=lambda holding: holding.container))
    return PodPlacement(
        namespace=draw(TEXT) if known != "uid" else "",
        name=draw(TEXT) if known != "uid" else "",
        uid=draw(TEXT | st.uuids().map(str)) if known != "name" else "",
        holdings=tuple(sorted(held, key=lambda holding: holding.container)),
    )


def pod_identity(pod: PodPlacement) -> tuple[str, str, str]:
    return pod.namespace, pod.name, pod.uid


PLACEMENTS = st.lists(pod_placements(), max_size=3, unique_by=pod_identity).map(
    lambda pods: tuple(sorted(pods, key=pod_identity))
)
MEMORY = st.lists(
    st.builds(
        MemoryZone,
        zone=ZONE_IDS,
        assignments=st.integers(0, 99),
        cells=ZONE_SETS,
        free=st.dictionaries(MEMORY_TYPES, SIZES, max_size=3),
    ),
    max_size=4,
    unique_by=lambda zone: zone.zone,
).map(lambda zones: tuple(sorted(zones, key=lambda zone: zone.zone)))


@st.composite
def device_classes(draw: st.DrawFn) -> DeviceCount:
    free, healthy, total = sorted(draw(st.tuples(*[st.integers(0, 99)] * 3)))
    zones = draw(st.none() | st.just(0) | ZONE_SETS)
    return DeviceCount(resource=draw(TEXT), zones=zones, total=total, healthy=healthy, free=free)


DEVICES = st.lists(device_classes(), max_size=4, unique_by=lambda item: (item.resource, item.zones)).map(
    lambda items: tuple(sorted(items, key=lambda item: (item.resource, -1 if item.zones is None else item.zones)))
)
POLICIES_OF_MANAGERS = st.builds(ManagerPolicies, cpu=TEXT, cpu_options=OPTIONS, memory=TEXT, topology_options=OPTIONS)
BUILDS = st.builds(KubeletBuild, version=TEXT, feature_gates=st.dictionaries(TEXT, st.booleans(), max_size=3))
RESERVED_MEMORY = st.dictionaries(ZONE_IDS, st.dictionaries(MEMORY_TYPES, SIZES, max_size=2), max_size=3)

MINORS = st.dictionaries(st.tuples(TEXT, st.just(0) | ZONE_SETS), CPU_SETS.filter(bool), max_size=4).map(
    lambda found: tuple(sorted(DeviceMinors(name, zones, minors) for (name, zones), minors in found.items()))
)
APPLIED = st.dictionaries(st.tuples(TEXT, TEXT), st.tuples(CPU_SETS, ZONE_SETS), max_size=4).map(
    lambda found: tuple(
        sorted(
            AppliedContainer(uid=uid, container=name, cpus=cpus, mems=mems)
            for (uid, name), (cpus, mems) in found.items()
        )
    )
)

FACTS: SearchStrategy[NodeFacts] = st.builds(
    NodeFacts,
    managers=st.none() | POLICIES_OF_MANAGERS,
    kubelet=st.none() | BUILDS,
    reserved_cpus=st.none() | CPU_SETS,
    reserved_memory=st.none() | RESERVED_MEMORY,
    cores=st.none() | core_tuples(),
    default_cpus=st.none() | CPU_SETS,
    memory=st.none() | MEMORY,
    devices=st.none() | DEVICES,
    placements=st.none() | PLACEMENTS,
    mode=st.none() | st.builds(DirectMode, st.frozensets(st.sampled_from(FEATURES))),
    minors=st.none() | MINORS,
    applied=st.none() | APPLIED,
)
CONTAINERS = st.builds(placementcodec.ContainerRef, TEXT, TEXT, TEXT)


@st.composite
def payloads(draw: st.DrawFn, zones: tuple[Zone, ...]) -> placementcodec.Payload | None:
    """A placement of the codec for machines whose zones are numbered without gaps, as the codec wants them."""
    if [zone.id for zone in zones] != list(range(len(zones))) or draw(st.booleans()):
        return None
    placed = draw(st.dictionaries(CONTAINERS, st.integers(0, len(zones) - 1), max_size=6))
    return placementcodec.encode(placed, len(zones))


@st.composite
def topologies(draw: st.DrawFn) -> NodeTopology:
    """A topology that any publisher could have meant, with nothing to guess."""
    zones = draw(zone_tuples())
    prints = st.builds(
        Fingerprint, st.lists(st.tuples(TEXT, TEXT)).map(fingerprint.of), st.sampled_from(fingerprint.Method)
    )
    manager = st.builds(TopologyManager, st.sampled_from(POLICIES), st.sampled_from(SCOPES), st.integers(8, 1024))
    return NodeTopology(
        node=draw(TEXT),
        manager=draw(manager),
        zones=zones,
        fingerprint=draw(st.none() | prints),
        placement=draw(payloads(zones)),
        facts=draw(FACTS),
        attributes=draw(st.dictionaries(TEXT, TEXT, max_size=2)),
    )
