"""The sync loop of one kubelet: admits or rejects pods, runs them and reports their status.

`fleet` passes changes of pods, timers advance time, and every change is written as the kubelet writes it. The exact
model decides admission. A pod holds its resources until its containers have ended, even if its object is deleted
before. The loop outlives the kubelet process: `stop` and `start` model the process."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.objects import nodematching, qos
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Taint
from numalign.api.objects.pod import FINISHED, Pod
from numalign.kubelet import admission, refusals
from numalign.kubelet import start as starting
from numalign.kubelet.predicates import Lacking
from numalign.kubelet.start import Kubelet
from numalign.simulator import trees
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes import specs
from numalign.simulator.nodes.environment import NodeChange, NodeEnvironment, TimerEntry
from numalign.simulator.nodes.kubelet.podlife import PhaseChange, PodLife
from numalign.simulator.nodes.kubelet.podstatus import PodWriter
from numalign.simulator.nodes.nodeobjects import MIRROR
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.trees import Tree

PORTS: Final = "NodePorts"
SHORTEST_GRACE: Final = 1.0
AFFINITY: Final = Lacking(
    "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
)
TAINT: Final = Lacking(
    "TaintToleration", "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
)
NO_EXECUTE: Final = "NoExecute"


class KubeletLoop:
    __slots__ = ("_deleted", "_env", "_gone", "_happened", "_node_state", "_timers", "_writer", "lives", "undecided")

    def __init__(self, node_state: NodeState, env: NodeEnvironment, happened: Callable[[NodeChange], None]) -> None:
        self._node_state = node_state
        self._env = env
        self._happened = happened
        self._writer = PodWriter(node_state, env)
        self._timers: dict[str, TimerEntry] = {}
        self._deleted: set[str] = set()
        """Pods whose objects are to be deleted after their containers end; the next set has those that are already
        deleted."""
        self._gone: set[str] = set()
        self.lives: dict[str, PodLife] = {}
        """Admitted pods by uid, as long as one of their containers runs or may run."""
        self.undecided: dict[str, str] = {}
        """Pods for which the real kubelet's admission would not terminate, and where it would hang."""

    # Changes from the API server

    def see(self, tree: Tree, *, gone: bool) -> None:
        """A pod of this node was added, is being deleted, or is gone."""
        uid = tree["metadata"]["uid"]
        if uid in self.lives:
            self._let_go(uid, tree["metadata"], gone=gone)
            self._advance(uid)
        elif gone:
            self.undecided.pop(uid, None)
        else:
            # The queued change may be outdated: a kubelet that started meanwhile may have rejected the pod.
            now = self._writer.current(tree["metadata"])
            if now is not None:
                self._meet(now)

    def _meet(self, tree: Tree) -> None:
        if tree["metadata"].get("deletionTimestamp"):
            self.undecided.pop(tree["metadata"]["uid"], None)
            self._writer.confirm(tree["metadata"])  # no container of it runs here
        elif trees.text(tree, "status", "phase") not in FINISHED:
            self._admit(tree)

    def _let_go(self, uid: str, metadata: Tree, *, gone: bool) -> None:
        life = self.lives[uid]
        if not gone and not metadata.get("deletionTimestamp"):
            return
        (self._gone if gone else self._deleted).add(uid)
        # A grace period of 0 deletes the object at once. The containers still get the period of the pod's spec.
        given = metadata.get("deletionGracePeriodSeconds") or life.pod.spec.termination_grace_period_seconds
        grace = max(SHORTEST_GRACE, given)
        takes = self._node_state.spec.stop_seconds
        for each in life.containers if not life.stopping else ():
            if each.running:
                self._writer.record_event(life.pod, "Killing", f"Stopping container {each.name}")
        life.stop(self._env.clock.now() + min(takes, grace), killed=takes > grace)

    # Admission

    def _admit(self, tree: Tree) -> None:
        try:
            pod = decode.decode(Pod, tree)
        except errors.BadObject as problem:
            name, namespace, uid = (trees.text(tree, "metadata", key) for key in ("name", "namespace", "uid"))
            unread = Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))
            return self._reject(unread, Lacking(refusals.UNEXPECTED, str(problem)))
        lacking = self._judged(pod, tree, self._node_state.kubelet)
        if lacking is not None:
            self._reject(pod, lacking)
        elif pod.metadata.uid not in self.undecided:
            self._begin(pod)

    def _judged(self, pod: Pod, tree: Tree, kubelet: Kubelet) -> Lacking | None:
        """Why the pod is rejected; None if it is admitted. The managers keep what it was allocated until they collect
        it."""
        node_state = self._node_state
        node_state.state, outcome = admission.admit(kubelet, node_state.state, pod)
        if outcome.verdict == "undecided":
            self.undecided[pod.metadata.uid] = outcome.message
            return None
        refused = None if outcome.admitted else Lacking(outcome.reason, outcome.message)
        if refused is not None and refused.reason != PORTS:
            return refused
        taints = () if MIRROR in pod.metadata.annotations else node_state.taints
        unfit = misfit(pod, node_state.labels, taints)
        # The kubelet checks node affinity before host ports, and taints after them.
        if refused is not None and unfit is not AFFINITY:
            return refused
        if unfit is not None:
            node_state.state = node_state.state.without_pod(pod.metadata.uid)
        return unfit

    def _reject(self, pod: Pod, lacking: Lacking) -> None:
        self._writer.record_event(pod, lacking.reason, lacking.message, "Warning")
        self._writer.rejected(pod, lacking)
        self._happened("allocated")

    def _begin(self, pod: Pod) -> None:
        uid, env = pod.metadata.uid, self._env
        ready_at = env.clock.now() + self._node_state.spec.start_seconds
        self.lives[uid] = PodLife(pod, ready_at, env.workload)
        if self._node_state.direct is not None:
            self._node_state.direct.admit(pod)
        self._happened("allocated")
        self._advance(uid, said_before=False)

    # Time

    def _advance(self, uid: str, *, said_before: bool = True) -> None:
        """Advances a pod to now, writes what changed, and sets a timer for its next change."""
        life = self.lives[uid]
        changes = life.advance(self._env.clock.now())
        self._hook(life, changes)
        if life.ended:
            self._settle(life)
        else:
            if changes or not said_before:
                self._writer.report(life)
            self._come_back(life)

    def _come_back(self, life: PodLife) -> None:
        timer, due = self._timers.pop(life.uid, None), life.due()
        if timer is not None:
            timer.cancel()
        if due is not None:
            self._timers[life.uid] = self._env.timers.at(due, lambda: self._advance(life.uid))

    def _hook(self, life: PodLife, changes: list[PhaseChange]) -> None:
        """Runs the kubelet's start hook in the order of container starts, and notifies publishers."""
        node_state = self._node_state
        for move in changes:
            if move.what == "started":
                uid, name = life.uid, move.container
                node_state.state = admission.container_started(node_state.kubelet, node_state.state, uid, name)
                node_state.state, _ = admission.late_devices(node_state.kubelet, node_state.state, uid, name)
            if node_state.direct is not None:
                note = node_state.direct.started if move.what == "started" else node_state.direct.ended
                note(life.uid, move.container)
        if changes and (node_state.direct is not None or qos.of(life.pod) is qos.QoS.GUARANTEED):
            self._happened("container")

    def _settle(self, life: PodLife) -> None:
        """The pod's containers have ended: releases its resources and lets the API server delete it."""
        uid, node_state = life.uid, self._node_state
        node_state.state = node_state.state.without_pod(uid)
        if uid not in self._gone:
            self._writer.report(life)
        if uid in self._deleted and uid not in self._gone:
            self._writer.confirm(msgspec.to_builtins(life.pod.metadata))
        self._forget(uid)
        self._happened("released")

    def _forget(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
        del self.lives[uid]
        if self._node_state.direct is not None:
            self._node_state.direct.gone(uid)
        self._deleted.discard(uid)
        self._gone.discard(uid)

    # The kubelet process

    def stop(self) -> None:
        """Stops the kubelet. Containers keep running."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def crash(self) -> None:
        """The machine stops, and all containers with it."""
        now, spec = self._env.clock.now(), self._node_state.spec
        self.stop()
        if self._node_state.direct is not None:
            self._node_state.direct.stopped()
        for life in self.lives.values():
            life.reboot(now, now + spec.boot_seconds + spec.start_seconds)

    def start(self, *, rebooted: bool) -> None:
        """Starts a new kubelet process: it restores or rejects checkpoints (`StartRefusal`) and admits every pod again.

        Pods are admitted in order of creation, including pods that were bound meanwhile (kubelet spec 9)."""
        node_state = self._node_state
        node_state.state = starting.restart(node_state.kubelet, node_state.state)
        listed = self._env.api.list(PODS, fields=f"spec.nodeName={node_state.name}").items
        present = {tree["metadata"]["uid"] for tree in listed}
        self.undecided.clear()
        for tree in sorted(listed, key=lambda tree: str(tree["metadata"].get("creationTimestamp"))):
            self._resume(tree, rebooted=rebooted)
        for uid in [uid for uid in self.lives if uid not in present]:
            self._let_go(uid, {}, gone=True)
        for uid in list(self.lives):
            self._advance(uid, said_before=not rebooted)

    def _resume(self, tree: Tree, *, rebooted: bool) -> None:
        uid = tree["metadata"]["uid"]
        life = self.lives.get(uid)
        if life is None:
            return self._meet(tree)
        if tree["metadata"].get("deletionTimestamp"):
            return self._let_go(uid, tree["metadata"], gone=False)
        if life.ended:
            return None
        # A running container keeps its devices, even if they became unhealthy (kubelet spec 7.3, step 2).
        kubelet = self._node_state.kubelet if rebooted else self._lenient()
        lacking = self._judged(life.pod, tree, kubelet)
        if lacking is not None:
            self._forget(uid)
            self._reject(life.pod, lacking)

    def _lenient(self) -> Kubelet:
        kubelet = self._node_state.kubelet
        well = specs.all_healthy(kubelet.machine)
        return kubelet if well == kubelet.machine else self._env.node_types.of(well, kubelet.settings).kubelet


def misfit(pod: Pod, labels: Mapping[str, str], taints: Iterable[Taint]) -> Lacking | None:
    """Why the node's labels or taints exclude the pod. The kubelet checks NoExecute taints only (kubelet spec 1)."""
    spec = pod.spec
    if not nodematching.allows(spec.node_selector, spec.affinity, spec.node_name, labels):
        return AFFINITY
    hard = (taint for taint in taints if taint.effect == NO_EXECUTE)
    if all(nodematching.tolerated(each.key, each.value, each.effect, spec.tolerations) for each in hard):
        return None
    return TAINT
