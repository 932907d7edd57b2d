"""One simulated node: its kubelet loop, heartbeat and publisher, and the faults that scenarios inject.

`fleet` creates nodes and passes them changes from the API server. Scenarios stop, start and restart processes, reboot
the machine and change the health of devices. Cordons, drains and deletions go through the API server."""

import logging
from functools import partial
from typing import Final

from msgspec import structs

from numalign.api.decode import decode
from numalign.api.objects.node import Taint
from numalign.kubelet.refusals import StartRefusal
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes import nodeobjects, specs
from numalign.simulator.nodes.environment import NodeChange, NodeEnvironment, TimerEntry
from numalign.simulator.nodes.kubelet.heartbeat import Heartbeat
from numalign.simulator.nodes.kubelet.loop import KubeletLoop
from numalign.simulator.nodes.nodeobjects import Identity, KubeletEvent
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.nodes.publisher.exporter import Exporter
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree

LOG: Final = logging.getLogger(__name__)


class SimulatedNode:
    """`why_down` is the reason that the kubelet logs if it fails to start."""

    __slots__ = ("_booting", "_env", "_exporter", "_heartbeat", "_loop", "node_state", "why_down")

    def __init__(self, spec: NodeSpec, number: int, env: NodeEnvironment) -> None:
        self._env = env
        self.node_state = NodeState(spec, env.node_types.of(spec.machine, spec.settings), Identity(number))
        self._heartbeat = Heartbeat(self.node_state, env)
        self._loop = KubeletLoop(self.node_state, env, self._happened)
        published = spec.publishing.publisher != "none"
        self._exporter = Exporter(self.node_state, env, lambda: self._heartbeat.uid) if published else None
        self._booting: TimerEntry | None = None
        self.why_down = ""

    @property
    def name(self) -> str:
        return self.node_state.name

    @property
    def pods(self) -> frozenset[str]:
        """Uids of pods that run here or are about to."""
        return frozenset(self._loop.lives)

    @property
    def undecided(self) -> dict[str, str]:
        """Pods for which the real kubelet's admission would not terminate, by uid, and where it would hang."""
        return dict(self._loop.undecided)

    # Faults

    def start(self) -> None:
        """Starts the kubelet. A booting machine starts it by itself."""
        if self.node_state.up or self._booting:
            return
        first = not self._heartbeat.uid
        self._come_up(rebooted=False)
        if first and self._exporter and self.node_state.up:
            self._exporter.begin()

    def stop(self) -> None:
        """Stops the kubelet. Containers keep running, and heartbeats stop."""
        self.node_state.up = False
        self._loop.stop()
        self._heartbeat.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def reboot(self) -> None:
        """Stops the machine with all containers, and starts it after its boot time."""
        self.destroy()
        self._loop.crash()
        boots = self._env.clock.now() + self.node_state.spec.boot_seconds
        self._booting = self._env.timers.at(boots, self._booted)

    def destroy(self) -> None:
        """Removes the machine for good."""
        self.stop()
        if self._exporter:
            self._exporter.stop()
        if self._booting:
            self._booting.cancel()

    def restart_exporter(self) -> None:
        if self._exporter:
            self._exporter.restart()

    def stop_exporter(self) -> None:
        if self._exporter:
            self._exporter.stop()

    def start_exporter(self) -> None:
        """Starts the publisher, unless it runs or the machine is booting, which starts it."""
        if self._exporter and not self._exporter.running and not self._booting:
            self._exporter.begin()

    def devices(self, resource: str) -> tuple[str, ...]:
        """Ids of all devices of the resource, healthy or not; empty if the node does not have the resource."""
        plugin = self.node_state.kubelet.machine.devices.get(resource)
        return tuple(each.id for each in plugin.devices) if plugin else ()

    def set_health(self, resource: str, device: str, *, healthy: bool) -> None:
        """Sets the health of a device. Containers that hold it keep it."""
        kubelet = self.node_state.kubelet
        machine = specs.with_health(kubelet.machine, resource, device, healthy=healthy)
        self.node_state.node_type = self._env.node_types.of(machine, kubelet.settings)
        self._heartbeat.refresh()
        self._happened("devices")

    # Changes from the API server

    def see_pod(self, tree: Tree, *, gone: bool) -> None:
        if self.node_state.up:
            self._loop.see(tree, gone=gone)
            if gone and nodeobjects.MIRROR in (tree["metadata"].get("annotations") or {}):
                self._mirror()

    def see_node(self, tree: Tree) -> None:
        """Reads labels and taints of the Node object, which is read only."""
        labels, taints = trees.metadata(tree).get("labels") or {}, trees.at(tree, "spec", "taints") or []
        # Most changes are heartbeats. Equal labels are not stored again.
        if labels != self.node_state.labels:
            self.node_state.labels = labels
        self.node_state.taints = tuple(decode.decode(Taint, taint) for taint in taints)
        if not nodeobjects.is_ready(tree):
            self._heartbeat.refresh()

    # Internals

    def _come_up(self, *, rebooted: bool) -> None:
        self.node_state.up, self.why_down = True, ""
        try:
            self._loop.start(rebooted=rebooted)
        except StartRefusal as refusal:
            self.node_state.up, self.why_down = False, str(refusal)
            LOG.warning("Kubelet failed to start node=%s: %s", self.name, refusal)
            return
        self._heartbeat.begin()
        self._mirror()

    def _booted(self) -> None:
        node_state, self._booting = self.node_state, None
        node_state.identity = structs.replace(node_state.identity, boots=node_state.identity.boots + 1)
        self._come_up(rebooted=True)
        if node_state.up:
            about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "uid": self.name}}
            boot = nodeobjects.boot_id(node_state.spec, node_state.identity)
            message = f"Node {self.name} has been rebooted, boot id: {boot}"
            self._env.record_event(KubeletEvent(about, "Rebooted", message, "Warning"), self.name)
            if self._exporter:
                self._exporter.begin()

    def _mirror(self) -> None:
        now = self._env.clock.rfc3339()
        for pod in self.node_state.spec.static_pods:
            tree = nodeobjects.mirror_pod(pod, self.name, self._heartbeat.uid, now)
            self._env.written(partial(self._env.api.create, PODS, tree))

    def _happened(self, what: NodeChange) -> None:
        if self._exporter:
            self._exporter.happened(what)
