"""What a kubelet writes about pods: their status, events, and the last word on one that is being deleted.

`kubeletloop` decides, this writes. A pod that went away in the meantime, or came again under its name, is left
alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod
from numalign.kubelet.predicates import Lacking
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes.environment import Surroundings
from numalign.simulator.nodes.kubelet import podstatus
from numalign.simulator.nodes.kubelet.podlife import PodLife
from numalign.simulator.nodes.kubelet.podstatus import Site
from numalign.simulator.nodes.nodeobjects import Happening
from numalign.simulator.nodes.nodestate import Standing
from numalign.simulator.trees import Tree


class PodWriter:
    __slots__ = ("_addresses", "_around", "_standing")

    def __init__(self, standing: Standing, around: Surroundings) -> None:
        self._standing = standing
        self._around = around
        self._addresses = 0
        """How many pods were given one."""

    def current(self, metadata: Tree) -> Tree | None:
        """The pod as the API server has it now; None if it is gone, or another one bears its name."""
        name, namespace = metadata["name"], metadata.get("namespace", "")
        tree = self._around.written(lambda: self._around.api.get(PODS, name, namespace))
        return tree if tree is not None and tree["metadata"]["uid"] == metadata["uid"] else None

    def report(self, life: PodLife) -> None:
        clock = self._around.clock
        self._write(life.pod.metadata, lambda before: podstatus.of(life, before, self._site(before, clock.now())))

    def rejected(self, pod: Pod, lacking: Lacking) -> None:
        now = self._around.clock.rfc3339()
        self._write(pod.metadata, lambda before: podstatus.rejected(pod, before, lacking.reason, lacking.message, now))

    def confirm(self, metadata: Tree) -> None:
        """Nothing of a pod that is being deleted is left on this node."""
        name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata["uid"]
        self._around.written(lambda: self._around.api.delete(PODS, name, namespace, grace=0, uid=uid))

    def tell(self, pod: Pod, reason: str, message: str, kind: str = "Normal") -> None:
        metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid}
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._around.tell(Happening(about, reason, message, kind), self._standing.name)

    def _site(self, before: Tree, now: float) -> Site:
        identity = self._standing.identity
        address = before.get("podIP")
        if not address:
            address = identity.pod_ip(self._addresses)
            self._addresses += 1
        return Site(identity.host_ip, address, now, self._around.clock.rfc3339)

    def _write(self, metadata: ObjectMeta, status: Callable[[Tree], Tree]) -> None:
        tree = self.current({"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid})
        if tree is not None:
            tree["status"] = status(tree.get("status") or {})
            self._around.written(partial(self._around.api.update, PODS, tree, part="status"))
