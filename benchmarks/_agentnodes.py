"""Nodes of a `Cluster` as our own agent reports them: with everything it reads there, and where each pod sits.

Every node is a kubelet of the model with the cluster's zones and kinds of resources, on which so many pods run. Reports
are kept as an API server sends them, so that whoever decodes two of them shares no part of them by chance."""

from collections.abc import Sequence
from functools import cache

from msgspec import Struct, structs

from benchmarks._cluster import Cluster, name, node_name
from numalign.api.decode import structs as wire
from numalign.api.nrt import normalise
from numalign.api.nrt import wire as nrtwire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, start
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.presets import Blueprint
from numalign.kubelet.report import report
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState

PODS = 7
CORES = 32
DEVICES = 16
"""Per zone, of each kind."""
MEMORY = 256 * presets.GIB
RESERVED = {"cpu": 1000, "memory": presets.GIB}
FIRST = 1_000_000
"""Number of the first pod: others have the lower ones."""


class Seen(Struct, frozen=True):
    """What becomes known of a node: its pods, the report that lacks the last of them, and the one that has it."""

    pods: tuple[Pod, ...]
    before: bytes
    after: bytes


def seen(cluster: Cluster, number: int) -> Seen:
    made = kubelet(cluster)
    pods = [running(cluster.pod(FIRST + PODS * number + each, number + each), number) for each in range(PODS)]
    first = admitted(made, made.initial(), pods[:-1])
    return Seen(tuple(pods), sent(made, first, number), sent(made, admitted(made, first, pods[-1:]), number))


@cache
def kubelet(cluster: Cluster) -> Kubelet:
    kinds = {
        name(each): presets.attached(f"dev{each}", [zone for zone in range(cluster.zones) for _ in range(DEVICES)])
        for each in range(2, cluster.resources)
    }
    plan = Blueprint(zones=cluster.zones, sockets=2, cores=CORES, threads=2, memory=MEMORY, devices=kinds)
    settings = Settings(
        topology_policy=cluster.policy,
        cpu_policy="static",
        memory_policy="Static",
        reserved=RESERVED,
        reserved_memory=(MemoryReservation(0, {"memory": RESERVED["memory"]}),),
    )
    return start.start(presets.build("bench", plan), settings)


def running(pod: Pod, number: int) -> Pod:
    spec = structs.replace(pod.spec, node_name=node_name(number))
    return structs.replace(pod, spec=spec, status=structs.replace(pod.status, phase="Running"))


def admitted(kubelet: Kubelet, state: KubeletState, pods: Sequence[Pod]) -> KubeletState:
    for pod in pods:
        state, outcome = admission.admit(kubelet, state, pod)
        if not outcome.admitted:
            raise RuntimeError(f"{pod.metadata.name} was refused: {outcome.message}")
    return state


def sent(kubelet: Kubelet, state: KubeletState, number: int) -> bytes:
    return wire.encode(normalise.encode(report.of(node_name(number), kubelet, state)))


def decoded(report: bytes) -> NodeTopology:
    return normalise.normalise(nrtwire.decode(report))
