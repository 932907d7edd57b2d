"""Decides what a cluster event means for an unschedulable pod, by the plugins that rejected it.

`queue` calls `Wakeups.strategy`. The table of events and hints per plugin is kube-scheduler's (kube-scheduler spec
3.6); one plugin that says yes is enough, a plugin without events is woken by all, and a hint that fails counts as
yes. For zones the engine's wakes, which name a node, take the place of events: a pod is woken if only that node's
zones rejected it and the engine does not reject it there any more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.placement.decisions import Wake
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodespec import NodeDeclaredFeatures, NodeUnschedulable, TaintToleration
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.scheduler.profiles import ZONES
from numalign.scheduler.queue import hints
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.queued import SCHEDULING_GATES, QueuedPod


class QueueingStrategy(IntEnum):
    """What an event means for a pod; of several the highest counts."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


Hint = Callable[[QueuedPod, ObjectChange], bool]


class Interest(Struct, frozen=True):
    """Events that may help: all of them, or with a hint those that the hint accepts."""

    resource: Resource
    actions: Action
    hint: Hint | None = None

    def covers(self, event: ClusterEvent) -> bool:
        return self.resource is event.resource and event.action & self.actions == event.action


Table = Mapping[str, tuple[Interest, ...]]


class Wakeups:
    """The wake-up table of one profile, with counts of its hints' results."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._covering: dict[tuple[str, ClusterEvent], tuple[Interest, ...]] = {}
        self._answers: Counter[tuple[str, ClusterEvent, str]] = Counter()

    @property
    def answers(self) -> Counter[tuple[str, str, str]]:
        """How often each hint was called, by plugin, event and result."""
        return Counter(
            {(plugin, event.label, result): count for (plugin, event, result), count in self._answers.items()}
        )

    def concerns(self, plugin: str, event: ClusterEvent) -> bool:
        """Whether the event may change the plugin's result."""
        return event.is_anything or plugin not in self._table or bool(self._covered(plugin, event))

    def strategy(self, queued: QueuedPod, happening: ObjectChange) -> QueueingStrategy:
        rejecting, pending = queued.rejecting, queued.rejection.pending
        if not rejecting or happening.event.is_anything:
            return QueueingStrategy.AFTER_BACKOFF
        found = QueueingStrategy.SKIP
        for plugin in rejecting:
            if self._helps(plugin, queued, happening):
                found = max(
                    found, QueueingStrategy.IMMEDIATELY if plugin in pending else QueueingStrategy.AFTER_BACKOFF
                )
                if found is QueueingStrategy.IMMEDIATELY or not pending:
                    return found
        return found

    def _helps(self, plugin: str, queued: QueuedPod, happening: ObjectChange) -> bool:
        if plugin not in self._table:
            return True
        covered = self._covered(plugin, happening.event)
        return any(each.hint is None or self._asked(plugin, each.hint, queued, happening) for each in covered)

    def _covered(self, plugin: str, event: ClusterEvent) -> tuple[Interest, ...]:
        if (plugin, event) not in self._covering:
            self._covering[plugin, event] = tuple(each for each in self._table[plugin] if each.covers(event))
        return self._covering[plugin, event]

    def _asked(self, plugin: str, hint: Hint, queued: QueuedPod, happening: ObjectChange) -> bool:
        try:
            answer = hint(queued, happening)
            result = "Queue" if answer else "QueueSkip"
        except Exception:
            # A hint that fails must not leave a pod waiting for an event that has already occurred.
            answer, result = True, "Error"
        self._answers[plugin, happening.event, result] += 1
        return answer


PREEMPTION: Final = "DefaultPreemption"

ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE
ADD_OR_LABEL: Final = Action.ADD | Action.UPDATE_NODE_LABEL
ADD_OR_TAINT: Final = Action.ADD | Action.UPDATE_NODE_TAINT
COUNTED: Final = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE

T = TypeVar("T")
NodeHint = Callable[[Pod, Node | None, Node | None], bool]
PodHint = Callable[[Pod, Pod | None, Pod | None], bool]


class ZoneHints(Protocol):
    """Asks the engine about one node."""

    def refuses(self, pod: Pod, node: str) -> bool: ...


def stock(
    affinity: NodeAffinity | None = None, fit: NodeResourcesFit | None = None, zones: ZoneHints | None = None
) -> Table:
    """The table of a profile, with the two plugins whose settings matter. Without `zones` every wake-up helps."""
    return {
        **_of_nodes(affinity or NodeAffinity(), fit or NodeResourcesFit()),
        **_of_pods(),
        **_of_volumes(),
        SCHEDULING_GATES: (Interest(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),),
        # A preemptor waits for its victims. Whether enough is free then, the plugins that rejected it decide.
        PREEMPTION: (
            _assigned(Action.DELETE, lambda *_: False),
            Interest(Resource.ZONES, Action.UPDATE, lambda *_: False),
        ),
        ZONES: (
            Interest(Resource.NODE, Action.ADD),
            Interest(Resource.ZONES, Action.UPDATE, _unblocked(zones)),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            _target(Action.UPDATE, hints.wishes_otherwise),
        ),
    }


def _of_nodes(affinity: NodeAffinity, fit: NodeResourcesFit) -> Table:
    glances = hints.SingleNodes()
    cordons, taints, features = NodeUnschedulable(), TaintToleration(), NodeDeclaredFeatures()
    return {
        "NodeName": (
            _node(Action.ADD, lambda pod, _, new: new is not None and pod.spec.node_name == new.metadata.name),
        ),
        cordons.name: (
            _node(ADD_OR_TAINT, lambda *change: glances.newly_fits(cordons, *change)),
            _target(Action.UPDATE_POD_TOLERATION, lambda pod, *_: hints.tolerates_cordons(pod)),
        ),
        taints.name: (
            _node(ADD_OR_TAINT, lambda *change: glances.newly_fits(taints, *change)),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_TOLERATION),
        ),
        affinity.name: (_node(ADD_OR_LABEL, lambda *change: glances.newly_fits(affinity, *change)),),
        features.name: (
            _node(
                Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, lambda *change: glances.newly_fits(features, *change)
            ),
            _target(Action.UPDATE, lambda _, old, new: old is None or new is None or old.spec != new.spec),
        ),
        fit.name: (
            Interest(Resource.ASSIGNED_POD, Action.DELETE),
            _node(Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, lambda *change: glances.roomier(fit, *change)),
            _assigned(Action.UPDATE_POD_SCALE_DOWN, hints.scaled_down),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            Interest(Resource.DEVICE_CLASS, ADD_OR_UPDATE),
        ),
    }


def _of_pods() -> Table:
    return {
        "NodePorts": (_assigned(Action.DELETE, hints.frees_port), Interest(Resource.NODE, Action.ADD)),
        "PodTopologySpread": (
            _assigned(COUNTED, hints.changes_spread),
            _target(Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION, hints.respread),
            _node(ADD_OR_LABEL | ADD_OR_TAINT | Action.DELETE, hints.changes_domains),
        ),
        "InterPodAffinity": (
            _assigned(COUNTED, hints.changes_affinity),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            _node(ADD_OR_LABEL, hints.changes_topology),
        ),
    }


def _of_volumes() -> Table:
    return {
        "VolumeBinding": (
            _claim(ADD_OR_UPDATE),
            Interest(Resource.PERSISTENT_VOLUME, ADD_OR_UPDATE),
            Interest(Resource.STORAGE_CLASS, ADD_OR_UPDATE),
            Interest(Resource.NODE, ADD_OR_LABEL),
            Interest(Resource.CSI_NODE, ADD_OR_UPDATE),
            Interest(Resource.CSI_DRIVER, Action.UPDATE),
            Interest(Resource.CSI_STORAGE_CAPACITY, ADD_OR_UPDATE),
        ),
        "VolumeZone": (
            Interest(Resource.STORAGE_CLASS, Action.ADD),
            _claim(ADD_OR_UPDATE),
            Interest(Resource.PERSISTENT_VOLUME, ADD_OR_UPDATE, _in_other_zone),
            Interest(Resource.NODE, ADD_OR_LABEL),
        ),
        "VolumeRestrictions": (
            _assigned(Action.DELETE, hints.frees_disk),
            Interest(Resource.NODE, Action.ADD),
            _claim(Action.ADD),
        ),
        "NodeVolumeLimits": (
            Interest(Resource.CSI_NODE, ADD_OR_UPDATE),
            _assigned(Action.DELETE, hints.frees_attachment),
            _claim(Action.ADD),
            Interest(Resource.VOLUME_ATTACHMENT, Action.DELETE),
        ),
    }


# Interests whose hint reads objects of one kind. An object of another kind fails here, which counts as yes.


def _node(actions: Action, hint: NodeHint) -> Interest:
    return Interest(
        Resource.NODE,
        actions,
        lambda queued, what: hint(queued.pod, _typed(Node, what.old), _typed(Node, what.new)),
    )


def _assigned(actions: Action, hint: PodHint) -> Interest:
    return Interest(Resource.ASSIGNED_POD, actions, _of_pod(hint))


def _target(actions: Action, hint: PodHint) -> Interest:
    return Interest(Resource.TARGET_POD, actions, _of_pod(hint))


def _of_pod(hint: PodHint) -> Hint:
    return lambda queued, what: hint(queued.pod, _typed(Pod, what.old), _typed(Pod, what.new))


def _claim(actions: Action) -> Interest:
    def hint(queued: QueuedPod, what: ObjectChange) -> bool:
        claim = _typed(PersistentVolumeClaim, what.new)
        return claim is None or hints.is_claimed(queued.pod, claim)

    return Interest(Resource.PERSISTENT_VOLUME_CLAIM, actions, hint)


def _in_other_zone(_: QueuedPod, what: ObjectChange) -> bool:
    return hints.is_in_other_zone(_typed(PersistentVolume, what.old), _typed(PersistentVolume, what.new))


def _unblocked(zones: ZoneHints | None) -> Hint:
    def hint(queued: QueuedPod, what: ObjectChange) -> bool:
        wake, blocked = what.new, queued.rejection.zones_of
        if not isinstance(wake, Wake):
            raise TypeError(f"{type(wake).__name__} is not a wake-up")
        return (blocked is None or wake.node in blocked) and (zones is None or not zones.refuses(queued.pod, wake.node))

    return hint


def _typed(kind: type[T], thing: object) -> T | None:
    if thing is not None and not isinstance(thing, kind):
        raise TypeError(f"{type(thing).__name__} is not a {kind.__name__}")
    return thing
