"""A cluster and its pods, made from a few numbers, so that ours and the reference peer (Go) can be measured on it.

Every zone has 64 CPUs, 256 GiB and 64 devices of each kind; of each up to 8 parts of 64 are in use, drawn by hashing.
Reports are plain, as any publisher's: amounts, policy and scope."""

from collections.abc import Iterator

from msgspec import Struct

from numalign.api.decode import quantity
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import Policy, TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceRequirements

PARTS = 64
MOST_USED = 8
MEMORY_PART = 4 << 30
MOST_PODS = 512
WORD = (1 << 64) - 1


class Cluster(Struct, frozen=True, kw_only=True):
    """`resources` counts cpu, memory and kinds of devices."""

    nodes: int = 5000
    zones: int = 2
    containers: int = 1
    resources: int = 6
    seed: int = 1
    policy: Policy = "single-numa-node"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(map(name, range(self.resources)))

    def described(self) -> Iterator[tuple[Node, NodeTopology]]:
        return ((self.node(number), self.topology(number)) for number in range(self.nodes))

    def node(self, number: int) -> Node:
        offered = {name(each): quantity.of(self.zones * PARTS * part(each)) for each in range(self.resources)}
        offered["pods"] = quantity.of(MOST_PODS)
        return Node(metadata=ObjectMeta(name=node_name(number)), status=NodeStatus(offered, offered))

    def topology(self, number: int) -> NodeTopology:
        zones = tuple(Zone(id=zone, resources=self._amounts(number, zone)) for zone in range(self.zones))
        manager = TopologyManager(policy=self.policy, scope="container")
        return NodeTopology(node=node_name(number), manager=manager, zones=zones)

    def free(self, node: int, zone: int, resource: int) -> int:
        """In parts: CPUs, pieces of 4 GiB, devices."""
        return PARTS - drawn(self.seed, node, zone, resource) % (MOST_USED + 1)

    def free_cpus(self) -> int:
        """Of all nodes: whoever made another cluster is found out."""
        return sum(self.free(node, zone, 0) for node in range(self.nodes) for zone in range(self.zones))

    def pod(self, number: int, shape: int) -> Pod:
        """Guaranteed; container by container it asks for the amounts of one step more."""
        uid = f"pod-{number}"
        containers = tuple(self._container(each, shape + each) for each in range(self.containers))
        return Pod(
            metadata=ObjectMeta(name=uid, namespace="default", uid=uid),
            spec=PodSpec(containers=containers),
        )

    def pods(self, numbers: range, shapes: int) -> list[Pod]:
        """Taking turns with so many shapes; 0: each has its own."""
        return [self.pod(number, number % shapes if shapes else number) for number in numbers]

    def _amounts(self, node: int, zone: int) -> dict[str, Amounts]:
        found = {}
        for each in range(self.resources):
            unit = part(each) * (1000 if each == 0 else 1)
            found[name(each)] = Amounts(PARTS * unit, PARTS * unit, self.free(node, zone, each) * unit)
        return found

    def _container(self, number: int, step: int) -> Container:
        """1 to 4 CPUs, 64 MiB and a page per step of memory, one or two devices of each kind."""
        asked = {"cpu": quantity.of(1 + step % 4), "memory": quantity.of((64 << 20) + (step << 12))}
        for each in range(2, self.resources):
            asked[name(each)] = quantity.of(1 + (step >> each) % 2)
        return Container(name=f"c{number}", resources=ResourceRequirements(requests=asked, limits=asked))


def node_name(number: int) -> str:
    return f"node-{number:05}"


def name(resource: int) -> str:
    return ("cpu", "memory")[resource] if resource < 2 else f"example.com/dev-{resource - 2}"


def part(resource: int) -> int:
    return MEMORY_PART if resource == 1 else 1


def drawn(seed: int, *numbers: int) -> int:
    """Hashed one after the other, with the last step of SplitMix64."""
    state = seed
    for number in numbers:
        state = (state ^ number) + 0x9E3779B97F4A7C15 & WORD
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & WORD
        state = (state ^ state >> 27) * 0x94D049BB133111EB & WORD
        state ^= state >> 31
    return state
