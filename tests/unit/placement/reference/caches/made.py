"""Small reports and pods for the tests of the caches, with defaults that a test may forget about.

The plain report is of node `n`, with two zones of 10 cpu and 10Gi; a pod wants 2 cpu and 1Gi, Guaranteed, and runs
there. `signed` writes the fingerprint of pods into a report."""

from collections.abc import Iterable, Mapping

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.nrt import fingerprint, normalise, topologymanager
from numalign.api.nrt.wire import Attribute, NodeResourceTopology, PublishedZone, Resource
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements
from numalign.placement.reference.caches.cache import Cache
from numalign.placement.reference.caches.overreserve import OverReserve
from numalign.placement.reference.caches.repairs import ALL, Repair
from numalign.placement.reference.caches.rules import Rules

OURS = "topo-aware-scheduler"
NIC = "example.com/nic"
ZONE = {"cpu": "10", "memory": "10Gi"}
POLICY, SCOPE = topologymanager.POLICY, topologymanager.SCOPE


def report(
    node: str = "n", zones: Iterable[Mapping[str, str]] = (ZONE, ZONE), attributes: Mapping[str, str] | None = None
) -> NodeResourceTopology:
    named = {POLICY: "single-numa-node"} | dict(attributes or {})
    return NodeResourceTopology(
        metadata=ObjectMeta(name=node),
        zones=tuple(zone(f"node-{place}", amounts) for place, amounts in enumerate(zones)),
        attributes=tuple(Attribute(name=name, value=value) for name, value in named.items()),
    )


def zone(name: str, amounts: Mapping[str, str], kind: str = "Node") -> PublishedZone:
    resources = (Resource(name=each, capacity=text, allocatable=text, available=text) for each, text in amounts.items())
    return PublishedZone(name=name, type=kind, resources=tuple(resources))


def signed(plain: NodeResourceTopology, pods: Iterable[Pod], method: str | None = None) -> NodeResourceTopology:
    text = fingerprint.of((pod.metadata.namespace, pod.metadata.name) for pod in pods)
    found = {normalise.FINGERPRINT: text} | ({} if method is None else {normalise.FINGERPRINT_METHOD: method})
    more = tuple(Attribute(name=name, value=value) for name, value in found.items())
    return structs.replace(plain, attributes=plain.attributes + more)


def pod(
    name: str = "p",
    node: str = "n",
    phase: str = "Running",
    scheduler: str = OURS,
    requests: Mapping[str, str] | None = None,
    uid: str = "",
    guaranteed: bool = True,
) -> Pod:
    amounts = {"cpu": "2", "memory": "1Gi"} if requests is None else requests
    wants = {each: quantity.parse(text) for each, text in amounts.items()}
    resources = ResourceRequirements(requests=wants, limits=wants if guaranteed else {})
    return Pod(
        metadata=ObjectMeta(namespace="default", name=name, uid=uid or f"uid-{name}"),
        spec=PodSpec(
            containers=(Container(name="main", resources=resources),), node_name=node, scheduler_name=scheduler
        ),
        status=PodStatus(phase=phase),
    )


def over_reserve(
    *reports: NodeResourceTopology, mended: frozenset[Repair] = ALL, rules: Rules | None = None
) -> OverReserve:
    settings = structs.replace(rules or Rules(profiles=(OURS,)), repairs=mended)
    return OverReserve(settings, reports or (report(),))


def round_of(cache: OverReserve, reports: Iterable[NodeResourceTopology], pods: Iterable[Pod]) -> tuple[str, ...]:
    return cache.resync({each.metadata.name: each for each in reports}, pods, now=0.0)


def free(cache: Cache, resource: str = "cpu", node: str = "n") -> list[str | None]:
    """What the look-up has of the resource, zone by zone; empty without a report."""
    found = cache.look_up(node).nrt
    zones = [] if found is None else found.zones or ()
    amounts = ({each.name: str(each.available) for each in zone.resources} for zone in zones)
    return [each.get(resource) for each in amounts]
