"""Place a few pods with the engine, without a cluster: two servers with 8 GPUs each, described by reports.

Run it with `.venv/bin/python examples/place_pods.py`; docs/concepts/placement.md walks through it."""

from random import Random

from numalign.api.decode import decode, quantity
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.kubelet import predicates, presets, report, start
from numalign.kubelet.settings import Settings
from numalign.placement.engine import Engine
from numalign.placement.explain import answers
from numalign.placement.facts import NodeSeen, ReportSeen

SERVER = start.start(
    presets.machine("gpu-8"),
    Settings(topology_policy="single-numa-node", cpu_policy="static", reserved_cpus=0b11, reserved={"cpu": 2000}),
)


def server(name: str) -> tuple[NodeSeen, ReportSeen]:
    """A node as the API server knows it, and its topology report."""
    offered = predicates.allocatable(SERVER, SERVER.initial())
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    amounts |= {"cpu": quantity.parse(f"{offered['cpu']}m"), "pods": quantity.of(110)}
    node = Node(metadata=ObjectMeta(name=name), status=NodeStatus(capacity=amounts, allocatable=amounts))
    return NodeSeen(node), ReportSeen(report.of(name, SERVER, SERVER.initial()), now=0.0)


def trainer(name: str, gpus: int) -> Pod:
    """A Guaranteed pod with 8 CPUs and some GPUs."""
    wants = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": str(gpus)}
    containers = [{"name": "trainer", "resources": {"requests": wants, "limits": wants}}]
    return decode.decode(Pod, {"metadata": {"name": name, "uid": name}, "spec": {"containers": containers}})


def main() -> None:
    engine = Engine()
    for name in ("gpu-0", "gpu-1"):
        for fact in server(name):
            engine.apply(fact)
    for number, gpus in enumerate((3, 3, 3, 3)):
        pod = trainer(f"train-{number}", gpus)
        decision = engine.decide(pod, now=0.0, rng=Random(1))
        zones = [zones for each in decision.placement for zones in each.zones]
        print(f"{pod.metadata.name}, {gpus} GPUs: {decision.node or 'nowhere'}, zones {zones}")
    late = trainer("train-late", 2)
    print(f"{late.metadata.name}, 2 GPUs:", *answers.explain(engine, late).lines, sep="\n  ")


if __name__ == "__main__":
    main()
