"""Place a few pods by the scheduler's own choice, without a cluster: two servers with 8 GPUs, described by reports.

Run it with `.venv/bin/python examples/place_pods.py`; docs/concepts/placement.md walks through it."""

from random import Random

from numalign.api.decode import decode, quantity
from numalign.api.nrt import normalise
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.kubelet import predicates, start
from numalign.kubelet.machine import presets
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.placement.engine import Engine
from numalign.placement.explain import answers, wording
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler import main as scheduler
from numalign.scheduler.choose import choose
from numalign.scheduler.choose.choose import Attempt, Chosen
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.plugins import Plugins

SERVER = start.start(
    presets.machine("gpu-8"),
    Settings(topology_policy="single-numa-node", cpu_policy="static", reserved_cpus=0b11, reserved={"cpu": 2000}),
)


def server(name: str) -> tuple[Node, NodeResourceTopology]:
    """A node as the API server knows it, and its topology report."""
    offered = predicates.allocatable(SERVER, SERVER.initial())
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    amounts |= {"cpu": quantity.parse(f"{offered['cpu']}m"), "pods": quantity.of(110)}
    node = Node(metadata=ObjectMeta(name=name), status=NodeStatus(capacity=amounts, allocatable=amounts))
    return node, normalise.encode(report.of(name, SERVER, SERVER.initial()))


def trainer(name: str, gpus: int) -> Pod:
    """A Guaranteed pod with 8 CPUs and some GPUs."""
    wants = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": str(gpus)}
    containers = [{"name": "trainer", "resources": {"requests": wants, "limits": wants}}]
    return decode.decode(Pod, {"metadata": {"name": name, "uid": name}, "spec": {"containers": containers}})


def main() -> None:
    world, rng = ClusterState(), Random(1)
    cluster, profile = Cluster(Engine(), world), Plugins(world).profile(scheduler.defaults().profiles[0])
    for name in ("gpu-0", "gpu-1"):
        node, topology = server(name)
        cluster.node(node)
        cluster.report(topology, now=0.0)
    for number, gpus in enumerate((3, 3, 3, 3)):
        pod = trainer(f"train-{number}", gpus)
        found = choose.choose(Attempt(pod=pod, shape=cluster.engine.shape(pod), now=0.0), profile, cluster, rng)
        if isinstance(found, Chosen):
            cluster.assume(pod, found.decision)
            zones = [zones for each in found.decision.placement for zones in each.zones]
            print(f"{pod.metadata.name}, {gpus} GPUs: {found.decision.node}, zones {zones}")
    late = trainer("train-late", 2)
    why = answers.of(cluster.engine, late)
    for name, row in world.rows.items():
        reason = why.reason(row)
        print(f"{late.metadata.name}, 2 GPUs on {name}:", "fits" if reason is None else wording.sentence(reason))


if __name__ == "__main__":
    main()
