"""Pods leave a node with a NoExecute taint: at once, or after the seconds that they tolerate it.

The wait runs from when the controller first saw the pod under the taints, and ends without harm if they go."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from numalign.simulator.apiserver.storage.resources import NODES, PODS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import conditions, tolerating
from numalign.simulator.controllers.framework.actions import Action, Again, Merge, Note, Remove
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.controllers.framework.views import Key, full_name, key_of
from numalign.simulator.controllers.workloads import pods
from numalign.simulator.trees import Tree


class TaintEviction:
    name = "taint-eviction-controller"

    def sit(self, desk: Desk) -> None:
        self._desk = desk
        self._since: dict[Key, float] = {}
        desk.views.watch(NODES, self._node_changed)
        desk.views.watch(PODS, self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        if change.kind == "DELETED" or (change.old is not None and lethal(change.old) == lethal(change.tree)):
            return
        if change.old is None and not lethal(change.tree):
            return
        for pod in self._desk.views[PODS].on_node(change.key[1]):
            self._desk.note(key_of(pod))

    def _pod_changed(self, change: Change) -> None:
        if change.key in self._since or lethal(self._node_of(change.tree)):
            self._desk.note(change.key)

    def _node_of(self, pod: Tree) -> Tree | None:
        return self._desk.views[NODES].get(("", pod["spec"].get("nodeName") or ""))

    def look(self, key: Key) -> Iterable[Action]:
        pod, now = self._desk.views[PODS].get(key), self._desk.api.clock.now()
        taints = lethal(self._node_of(pod)) if pod is not None else []
        if pod is None or not taints or pods.is_terminating(pod):
            return self._spared(key, pod)
        waited = now - self._since.setdefault(key, now)
        actions = evict_intolerant(pod, taints, waited, self._desk.api.clock.wall())
        if not actions:
            return self._spared(key, pod)
        return actions

    def _spared(self, key: Key, pod: Tree | None) -> list[Action]:
        if self._since.pop(key, None) is None or pod is None or pods.is_terminating(pod):
            return []
        return [Note(pod, "TaintManagerEviction", f"Cancelling deletion of Pod {full_name(pod)}")]


def lethal(node: Tree | None) -> list[Tree]:
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint.get("effect") == tolerating.NO_EXECUTE]


def evict_intolerant(pod: Tree, taints: Sequence[Tree], waited: float, now: datetime) -> list[Action]:
    """Nothing if the pod may stay for ever."""
    endures = tolerating.endures(taints, pod["spec"].get("tolerations") or ())
    if endures is None:
        return []
    if waited < endures:
        return [Again(endures - waited)]
    message = "Taint manager: deleting due to NoExecute taint"
    target = conditions.made("DisruptionTarget", "True", "DeletionByTaintManager", message)
    listed = conditions.put(conditions.listed(pod), target, now)
    return [
        Note(pod, "TaintManagerEviction", f"Marking for deletion Pod {full_name(pod)}"),
        Merge(PODS, pod, {"metadata": {"uid": pod["metadata"]["uid"]}, "status": {"conditions": listed}}, "status"),
        Remove(PODS, pod),
    ]
