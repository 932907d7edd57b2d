"""The state of one node: its kubelet model, what the managers hold, and whether the kubelet runs.

`loop` and `node` write it, `heartbeat` and `exporter` read it. The state outlives the kubelet process, as the managers'
checkpoints do. Nodes of one type share the kubelet model."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.api.objects.node import Taint
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.simulator.nodes.directruntime import DirectRuntime
from numalign.simulator.nodes.nodeobjects import Identity
from numalign.simulator.nodes.specs import NodeSpec, NodeType


class NodeState:
    __slots__ = ("direct", "identity", "labels", "node_type", "spec", "state", "taints", "up")

    def __init__(self, spec: NodeSpec, node_type: NodeType, identity: Identity) -> None:
        self.spec = spec
        self.node_type = node_type
        self.identity = identity
        self.state: KubeletState = node_type.empty
        self.up = False
        reserved = spec.settings.reserved_cpus
        self.direct = DirectRuntime(spec.name, spec.machine, reserved) if spec.direct else None
        """The runtime in direct mode; None: the kubelet's managers decide."""
        # As in the Node object, which users and controllers change.
        self.labels: Mapping[str, str] = spec.labels
        self.taints: tuple[Taint, ...] = spec.taints

    @property
    def kubelet(self) -> Kubelet:
        return self.node_type.kubelet

    @property
    def name(self) -> str:
        return self.spec.name
