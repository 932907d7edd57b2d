"""The nodes and pods of `_cluster` in direct mode, with as much in use by decisions as the reports there say.

`direct` measures them by `_decisions`, in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from benchmarks import _child, _decisions
from benchmarks._cluster import PARTS, Cluster, name, node_name
from benchmarks._decisions import WAYS, Placer, Task
from numalign.api.attributes import directresult, directspec
from numalign.api.attributes.attributes import NodeFacts
from numalign.api.attributes.coremap import Core
from numalign.api.attributes.directmode import DeviceMinors, DirectMode
from numalign.api.attributes.directresult import DirectResult, ZoneAmounts
from numalign.api.attributes.managers import ManagerPolicies
from numalign.api.decode import cpuset
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec

SPEC = {directspec.TOPOLOGY_SPEC: '{"policy": "SingleNUMANode", "scope": "Container"}'}


class DirectCluster(Struct, frozen=True):
    """`_decisions` takes it for a `Cluster`."""

    plain: Cluster

    @property
    def nodes(self) -> int:
        return self.plain.nodes

    def pods(self, numbers: range, shapes: int) -> list[Pod]:
        pods = self.plain.pods(numbers, shapes)
        return [structs.replace(pod, metadata=structs.replace(pod.metadata, annotations=SPEC)) for pod in pods]

    def objects(self) -> _decisions.Objects:
        cores = tuple(
            Core(cpus=(cpu,), zone=cpu // PARTS, socket=cpu // PARTS) for cpu in range(self.plain.zones * PARTS)
        )
        minors = tuple(
            DeviceMinors(name(each), 1 << zone, ((1 << PARTS) - 1) << zone * PARTS)
            for each in range(2, self.plain.resources)
            for zone in range(self.plain.zones)
        )
        facts = NodeFacts(managers=ManagerPolicies(), cores=cores, mode=DirectMode(), minors=minors)
        return [(node, normalise.encode(self._topology(topology, facts))) for node, topology in self.plain.described()]

    def _topology(self, topology: NodeTopology, facts: NodeFacts) -> NodeTopology:
        return structs.replace(topology, manager=TopologyManager("none", "container"), facts=facts)

    def residents(self) -> Iterator[Pod]:
        """A pod on each node that holds what is in use there, so that nodes differ as they do in predict mode."""
        for number in range(self.plain.nodes):
            held = 0
            for zone in range(self.plain.zones):
                used = PARTS - self.plain.free(number, zone, 0)
                held |= ((1 << used) - 1) << zone * PARTS
            node, uid = node_name(number), f"resident-{number}"
            zones = [(held >> zone * PARTS & ((1 << PARTS) - 1)).bit_count() for zone in range(self.plain.zones)]
            amounts = tuple(ZoneAmounts(zone, {"cpu": str(used)}) for zone, used in enumerate(zones) if used)
            result = DirectResult(version=1, uid=uid, node=node, cpuset=cpuset.text(held), numa_node_resources=amounts)
            annotations = {directresult.RESULT: directresult.encode(result)}
            meta = ObjectMeta(name=uid, namespace="default", uid=uid, annotations=annotations)
            yield Pod(metadata=meta, spec=PodSpec(node_name=node, containers=(Container(name="c"),)))


def rates(cluster: Cluster, ways: Sequence[str], *, compiled: bool) -> dict[str, float]:
    """Pods per second, by way of asking."""
    return _child.asked(__spec__.name, Task(cluster=cluster, compiled=compiled, ways=tuple(ways)))


def measure(task: Task) -> dict[str, float]:
    direct = DirectCluster(task.cluster)
    known, residents = direct.objects(), list(direct.residents())
    found = {}
    for way in task.ways:
        placer = Placer(known, compiled=task.compiled)
        for pod in residents:
            placer.cluster.pod(pod, 0.0)
        found[way] = WAYS[way](direct, placer)  # type: ignore[arg-type]
    return found


if __name__ == "__main__":
    _child.answer(Task, measure)
