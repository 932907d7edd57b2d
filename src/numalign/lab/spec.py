"""The specification of a lab: nodes with machines and kubelet configurations, and the programs beside them.

The command line and tests create a `LabSpec`; `up` runs it. A node's `kubelet` is a KubeletConfiguration. `modelled`
starts the model with it, so that a configuration that the kubelet would refuse is refused beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.kubelet import configuration, refusals, start, versions
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.lab import build
from numalign.process import background
from numalign.simulator.scenarios import nodegroups

MOST_NODES: Final = 50
KIND: Final[dict[str, Any]] = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
USUAL: Final = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "container"}
UNMANAGED: Final = {"cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "topologyManagerPolicy": "none"}
"""The managers of a kubelet of a node in direct mode."""
NOTHING_MORE: Final[Mapping[str, Any]] = {}

Reporter = Literal["own", "rte", "nfd"]
"""numalign's agent; the agent in the form of RTE; nfd-topology-updater."""
Runtime = Literal["fake", "containerd"]
"""One that runs nothing and reports every container as running; one that runs containers."""


class NodeSpec(Struct, frozen=True, kw_only=True, dict=True):
    name: str
    machine: Machine
    kubelet: Mapping[str, Any]
    """A KubeletConfiguration without the fields that the lab sets."""
    devices: Mapping[str, Any] | None = None
    """A file for `numalign device-plugin`; None means the machine's devices."""
    reporter: Reporter | None = None
    """The publisher of its report; None means the lab's default."""
    labels: Mapping[str, str] = NOTHING_MORE
    """Labels that the kubelet gives its Node. The API server restricts those with a domain of Kubernetes."""
    real: bool = False
    """The machine is the one that the lab runs on, so that CPUs of containers are real."""
    direct: bool = False
    """In direct mode: its agent enforces the scheduler's decisions. The kubelet's managers have to be off."""

    @cached_property
    def settings(self) -> Settings:
        minor = versions.parse(build.KUBERNETES) or versions.NEWEST
        return configuration.read(self.kubelet, f"node {self.name}", self.machine, minor)

    @cached_property
    def modelled(self) -> Kubelet:
        """The same kubelet in the model."""
        try:
            return start.start(self.machine, self.settings)
        except (refusals.StartRefusal, refusals.Undecided) as refusal:
            why = f"the kubelet would not start: {refusal}"
            raise BadObject(configuration.KIND, f"node {self.name}", "", why) from None


class LabSpec(Struct, frozen=True, kw_only=True):
    nodes: tuple[NodeSpec, ...]
    name: str = "numalign"
    runtime: Runtime = "fake"
    controllers: bool = True
    scheduler: bool = False
    agent: bool = False
    nfd: bool = False
    stock_scheduler: bool = False
    reference_scheduler: bool = False
    only_scheduler: bool = False
    """numalign's scheduler serves default-scheduler, too, in place of kube-scheduler."""
    extender: bool = False
    """kube-scheduler asks numalign's extender."""
    local_volumes: bool = False
    """The API server accepts local volumes, for a lab whose only client mounts nothing of value: see `accounts`."""

    def reporters(self, node: NodeSpec) -> tuple[Reporter, ...]:
        if node.reporter is not None:
            return (node.reporter,)
        asked: dict[Reporter, bool] = {"own": self.agent, "nfd": self.nfd}
        return tuple(reporter for reporter, wanted in asked.items() if wanted)

    def with_nodes(self, nodes: Iterable[NodeSpec]) -> LabSpec:
        return structs.replace(self, nodes=tuple(nodes))

    @property
    def runs_scheduler(self) -> bool:
        return self.scheduler or self.only_scheduler

    @property
    def runs_stock_scheduler(self) -> bool:
        return self.stock_scheduler or self.extender

    @property
    def runs_containers(self) -> bool:
        return self.runtime == "containerd"

    @property
    def defines_reports(self) -> bool:
        """Whether the lab brings the CRD of NodeResourceTopology. An installation that runs in its containers does."""
        uses = self.runs_scheduler or self.extender or self.reference_scheduler or self.reporter_count > 0
        return uses or not self.runs_containers

    @property
    def reporter_count(self) -> int:
        return sum(len(self.reporters(node)) for node in self.nodes)


def node(
    name: str,
    machine: Machine,
    *,
    kubelet: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] = NOTHING_MORE,
    real: bool = False,
    direct: bool = False,
) -> NodeSpec:
    """A node with all managers on, unless `kubelet` gives the configuration; `more` overrides both."""
    written = {**USUAL, **(nodegroups.usual(machine) if kubelet is None else kubelet), **more}
    return NodeSpec(name=name, machine=machine, kubelet=KIND | written, real=real, direct=direct)


def repeated(one: NodeSpec, count: int) -> tuple[NodeSpec, ...]:
    return tuple(structs.replace(one, name=f"{one.name}-{number}") for number in range(count))


def check(spec: LabSpec) -> None:
    """BadObject if the specification is invalid."""
    names = [each.name for each in spec.nodes]
    for name in names:
        if not background.NAME.fullmatch(name) or names.count(name) > 1:
            raise BadObject(
                "Lab", spec.name, "nodes", f"{name!r} is not a valid name, or is used twice; use letters and digits"
            )
    if not 0 < len(names) <= MOST_NODES:
        raise BadObject("Lab", spec.name, "nodes", f"{len(names)} is not possible; use 1 to {MOST_NODES}")
    if spec.only_scheduler and spec.runs_stock_scheduler:
        raise BadObject("Lab", spec.name, "only_scheduler", "kube-scheduler serves default-scheduler, too; run one")
    for each in spec.nodes:
        # The model refuses what the kubelet would refuse.
        _ = each.modelled
        if each.direct and not spec.runs_containers:
            raise BadObject("Lab", spec.name, f"nodes[{each.name}].direct", "needs real containers to be enforced on")
