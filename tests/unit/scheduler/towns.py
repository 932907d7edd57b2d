"""Clusters to be explained: servers under any policy, with pods that run on them or are on their way there."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from typing import Any

from hypothesis import strategies as st

from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.kubelet import start
from numalign.kubelet.machine import presets
from numalign.kubelet.report import plainreport, report
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.placement.explain.reasons import AnySuggestion
from numalign.scheduler.choose.choose import AttemptContext, Chosen
from numalign.scheduler.choose.stormguard import StormGuard
from numalign.scheduler.explain import advise, explanations
from numalign.scheduler.explain.explanations import Explained
from numalign.scheduler.queue.nominations import Nominations
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers, on, trainer

POLICIES = ("single-numa-node", "restricted", "best-effort", "none")
NAMES = ("a", "b", "c")
Tenant = tuple[str, int, int, bool]
"""Node, GPUs, CPUs, and whether it runs; else it is on its way."""
Built = tuple[tuple[str, ...], tuple[Tenant, ...], str]
"""Policies, tenants and who reports."""


@cache
def kubelet(policy: Any) -> Kubelet:
    settings = Settings(topology_policy=policy, cpu_policy="static", reserved_cpus=0b11, reserved={"cpu": 2000})
    return start.start(presets.machine("gpu-8"), settings)


def reported(name: str, policy: str, publisher: str) -> NodeTopology:
    made = kubelet(policy)
    if publisher == "agent":
        return report.of(name, made, made.initial())
    return plainreport.of(name, made, made.initial(), "nfd" if publisher == "nfd" else "rte")


class Town(Servers):
    def __init__(
        self, policies: Sequence[str] = ("single-numa-node",), tenants: Sequence[Tenant] = (), publisher: str = "agent"
    ) -> None:
        super().__init__()
        for name, policy in zip(NAMES, policies, strict=False):
            self.cluster.node(servers.node(name))
            self.cluster.report(normalise.encode(reported(name, policy, publisher)), 0.0)
        self.tenants: dict[str, Pod] = {}
        for number, (node, gpus, cpus, runs) in enumerate(tenants):
            if node in self.cluster.world.rows:
                self.put(trainer(f"p{number}", gpus=gpus, cpu=str(cpus)), node, runs=runs)
        self.around = AttemptContext(self.cluster, Nominations(), StormGuard())

    def put(self, pod: Pod, node: str, *, runs: bool = True) -> None:
        """Places the pod on this node if it fits there, without a choice of nodes."""
        if not self.fits_on(pod, node):
            return
        self.cluster.forget(pod.metadata.uid)
        self.tenants[pod.metadata.uid] = pod
        self.cluster.pod(on(pod, node, phase="Running" if runs else "Pending"), 1.0)

    def end(self, pods: Collection[str]) -> None:
        """By full name."""
        for pod in self.tenants.values():
            if pod.metadata.full_name in pods:
                node = self.cluster.world.names[self.cluster.world.pods[pod.metadata.uid].row]
                self.cluster.pod(on(pod, node, phase="Succeeded"), 2.0)

    def fits_on(self, pod: Pod, node: str) -> bool:
        """Whether the scheduler would put the pod there, all other nodes being kept from it. It is charged then."""
        others = [row for name, row in self.cluster.world.rows.items() if name != node]
        found = self.choose(pod, kept_off=dict.fromkeys(others, "not asked"))
        if isinstance(found, Chosen):
            self.cluster.assume(pod, found.decision)
        return isinstance(found, Chosen)

    def explained(self, pod: Pod) -> Explained:
        return explanations.explained(pod, self.profile, self.around)

    def suggested(self, pod: Pod) -> tuple[AnySuggestion, ...]:
        return advise.found(self.explained(pod), self.profile, self.around)

    def line(self, pod: Pod) -> str:
        return advise.line(self.suggested(pod))


tenants = st.tuples(st.sampled_from(NAMES), st.integers(0, 4), st.integers(1, 60), st.booleans())
towns = st.tuples(
    st.lists(st.sampled_from(POLICIES), min_size=1, max_size=3).map(tuple),
    st.lists(tenants, max_size=9).map(tuple),
    st.sampled_from(("agent", "rte", "nfd")),
)
"""What a town is built of: building it twice gives two that are alike."""
pods = st.builds(lambda gpus, cpus: trainer("late", gpus=gpus, cpu=str(cpus)), st.integers(0, 10), st.integers(1, 200))
