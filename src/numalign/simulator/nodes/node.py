"""One simulated node, put together: its kubelet's loop, its heartbeat and its publisher, and what may happen to it.

`fleet` makes nodes and brings them what the API server says. The verbs below are for stories: processes that stop,
start and restart, a machine that reboots, a device that falls ill. Cordon, drain and deletion are the API server's."""

from __future__ import annotations

from functools import partial

from msgspec import structs

from numalign.api.decode import decode
from numalign.api.objects.node import Taint
from numalign.kubelet.refusals import StartRefusal
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes import nodeobjects, specs
from numalign.simulator.nodes.environment import NodeChange, NodeEnvironment, TimerEntry
from numalign.simulator.nodes.kubelet import staticpods
from numalign.simulator.nodes.kubelet.heartbeat import Heartbeat
from numalign.simulator.nodes.kubelet.loop import KubeletLoop
from numalign.simulator.nodes.nodeobjects import Identity, KubeletEvent
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.nodes.publisher.exporter import Exporter
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree


class SimulatedNode:
    """`why_down` is what the kubelet would log as the reason for not coming up."""

    __slots__ = ("_around", "_booting", "_exporter", "_heartbeat", "_loop", "standing", "why_down")

    def __init__(self, spec: NodeSpec, number: int, around: NodeEnvironment) -> None:
        self._around = around
        self.standing = NodeState(spec, around.makes.of(spec.machine, spec.settings), Identity(number))
        self._heartbeat = Heartbeat(self.standing, around)
        self._loop = KubeletLoop(self.standing, around, self._happened)
        published = spec.publishing.dialect != "none"
        self._exporter = Exporter(self.standing, around, lambda: self._heartbeat.uid) if published else None
        self._booting: TimerEntry | None = None
        self.why_down = ""

    @property
    def name(self) -> str:
        return self.standing.name

    @property
    def pods(self) -> frozenset[str]:
        """Uids of the pods that run here or are about to."""
        return frozenset(self._loop.lives)

    @property
    def undecided(self) -> dict[str, str]:
        """Uids of pods that the real kubelet would never finish looking at, and what it would be doing."""
        return dict(self._loop.undecided)

    # What stories do to it

    def start(self) -> None:
        """The kubelet comes up, for the first time or again; on a machine that boots it does so by itself."""
        if self.standing.up or self._booting:
            return
        first = not self._heartbeat.uid
        self._come_up(rebooted=False)
        if first and self._exporter and self.standing.up:
            self._exporter.begin()

    def stop(self) -> None:
        """The kubelet goes down; containers run on, and heartbeats are missed."""
        self.standing.up = False
        self._loop.stop()
        self._heartbeat.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def reboot(self) -> None:
        """The machine goes down with everything on it, and comes up after its boot time."""
        self.destroy()
        self._loop.crash()
        boots = self._around.clock.now() + self.standing.spec.boot_seconds
        self._booting = self._around.agenda.at(boots, self._booted)

    def destroy(self) -> None:
        """The machine goes for good."""
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
        """Unless it runs, or the machine is still booting, which starts it by itself."""
        if self._exporter and not self._exporter.running and not self._booting:
            self._exporter.begin()

    def devices(self, resource: str) -> tuple[str, ...]:
        """Ids of all devices of the resource, well or unwell; none if the node has no such resource."""
        plugin = self.standing.kubelet.machine.devices.get(resource)
        return tuple(each.id for each in plugin.devices) if plugin else ()

    def set_health(self, resource: str, device: str, *, healthy: bool) -> None:
        """A device falls ill or recovers; containers that hold it keep it."""
        kubelet = self.standing.kubelet
        machine = specs.with_health(kubelet.machine, resource, device, healthy=healthy)
        self.standing.make = self._around.makes.of(machine, kubelet.settings)
        self._heartbeat.refresh()
        self._happened("devices")

    # What the API server says

    def see_pod(self, tree: Tree, *, gone: bool) -> None:
        if self.standing.up:
            self._loop.see(tree, gone=gone)
            if gone and staticpods.MIRROR in (tree["metadata"].get("annotations") or {}):
                self._mirror()

    def see_node(self, tree: Tree) -> None:
        """The Node object is READ ONLY, and nothing is written here."""
        labels, taints = trees.metadata(tree).get("labels") or {}, trees.at(tree, "spec", "taints") or []
        # Most changes are heartbeats; equal labels are not kept a second time.
        if labels != self.standing.labels:
            self.standing.labels = labels
        self.standing.taints = tuple(decode.decode(Taint, taint) for taint in taints)
        if not nodeobjects.is_ready(tree):
            self._heartbeat.refresh()

    # Inside

    def _come_up(self, *, rebooted: bool) -> None:
        self.standing.up, self.why_down = True, ""
        try:
            self._loop.start(rebooted=rebooted)
        except StartRefusal as refusal:
            self.standing.up, self.why_down = False, str(refusal)
            return
        self._heartbeat.begin()
        self._mirror()

    def _booted(self) -> None:
        standing, self._booting = self.standing, None
        standing.identity = structs.replace(standing.identity, boots=standing.identity.boots + 1)
        self._come_up(rebooted=True)
        if standing.up:
            about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "uid": self.name}}
            boot = nodeobjects.boot_id(standing.spec, standing.identity)
            message = f"Node {self.name} has been rebooted, boot id: {boot}"
            self._around.tell(KubeletEvent(about, "Rebooted", message, "Warning"), self.name)
            if self._exporter:
                self._exporter.begin()

    def _mirror(self) -> None:
        now = self._around.clock.rfc3339()
        for pod in self.standing.spec.static_pods:
            tree = staticpods.mirror(pod, self.name, self._heartbeat.uid, now)
            self._around.written(partial(self._around.api.create, PODS, tree))

    def _happened(self, what: NodeChange) -> None:
        if self._exporter:
            self._exporter.happened(what)
