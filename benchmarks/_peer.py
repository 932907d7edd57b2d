"""The reference plugin on the same cluster: the lab's Go program reference-peer, built if it is missing.

It runs with as many threads as it likes, like kube-scheduler: 16 workers over the nodes."""

import subprocess
import sys

import msgspec
from msgspec import Struct

from benchmarks._cluster import Cluster
from numalign.lab import build

BINARY = "reference-peer"
SAMPLED = 10
"""kube-scheduler looks for a tenth of 5,000 nodes."""


class Answer(Struct, frozen=True):
    per_second: float
    free_cpus: int


class Peer:
    """The program, or a stand-in that is asked nothing where it cannot be built."""

    def __init__(self) -> None:
        self.there = build.found()
        if not self.there:
            print(f"engine: the peer is left out, ours is shown alone; {build.ADVICE}", file=sys.stderr)
            return
        (built,) = build.build(build.chosen([BINARY]), lambda _: None)
        self._program = built.path

    def sampled(self, cluster: Cluster, pods: int) -> float:
        """Decisions per second where a tenth of the nodes is enough."""
        return self._asked(cluster, pods, cluster.nodes // SAMPLED)

    def over_all(self, cluster: Cluster, pods: int) -> float:
        return self._asked(cluster, pods, 0)

    def _asked(self, cluster: Cluster, pods: int, sample: int) -> float:
        sizes = {name: getattr(cluster, name) for name in ("nodes", "zones", "containers", "resources", "seed")}
        flags = [f"-{name}={value}" for name, value in {**sizes, "pods": pods, "sample": sample}.items()]
        ran = subprocess.run([self._program, *flags], capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"{BINARY}: {ran.stderr.strip()}")
        answer = msgspec.json.decode(ran.stdout, type=Answer)
        if answer.free_cpus != cluster.free_cpus():
            raise RuntimeError(f"{BINARY} made another cluster: {answer.free_cpus} CPUs are free in it")
        return answer.per_second
