"""What the plugins wait for: the stock scheduler's table, and the zones of nodes beside it (kube-scheduler spec 3.6).

`wakeups` walks it. For zones there is no event of the cluster but `Wake`s of the engine, which name a node: a pod is
woken if its zones were what kept it from that node, and the engine, asked again, does not refuse it there any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.placement.decisions import Wake
from numalign.placement.rules.nodes.declaredfeatures import NodeDeclaredFeatures
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodeunschedulable import NodeUnschedulable
from numalign.placement.rules.nodes.tainttoleration import TaintToleration
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.scheduler.choose.profiles import ZONES
from numalign.scheduler.intake.clusterevents import Action, ObjectChange, Resource
from numalign.scheduler.queue import nodehints, podhints, volumehints
from numalign.scheduler.queue.queued import QueuedPod
from numalign.scheduler.queue.wakeups import Hint, Interest, Table

SCHEDULING_GATES: Final = "SchedulingGates"
PREEMPTION: Final = "DefaultPreemption"

ADD_OR_UPDATE: Final = Action.ADD | Action.UPDATE
ADD_OR_LABEL: Final = Action.ADD | Action.UPDATE_NODE_LABEL
ADD_OR_TAINT: Final = Action.ADD | Action.UPDATE_NODE_TAINT
COUNTED: Final = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE

T = TypeVar("T")
NodeHint = Callable[[Pod, Node | None, Node | None], bool]
PodHint = Callable[[Pod, Pod | None, Pod | None], bool]


class ZoneHints(Protocol):
    """Whoever knows what the engine says about one node now."""

    def refuses(self, pod: Pod, node: str) -> bool: ...


def stock(
    affinity: NodeAffinity | None = None, fit: NodeResourcesFit | None = None, zones: ZoneHints | None = None
) -> Table:
    """A profile's table, with the two rules whose settings matter; without `zones` every wake-up is taken to help."""
    return {
        **_of_nodes(affinity or NodeAffinity(), fit or NodeResourcesFit()),
        **_of_pods(),
        **_of_volumes(),
        SCHEDULING_GATES: (Interest(Resource.TARGET_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),),
        # A preemptor waits for its victims; whether room is enough is for the plugins to say that refused it.
        PREEMPTION: (
            _assigned(Action.DELETE, lambda *_: False),
            Interest(Resource.ZONES, Action.UPDATE, lambda *_: False),
        ),
        ZONES: (
            Interest(Resource.NODE, Action.ADD),
            Interest(Resource.ZONES, Action.UPDATE, _unblocked(zones)),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            _target(Action.UPDATE, podhints.wishes_otherwise),
        ),
    }


def _of_nodes(affinity: NodeAffinity, fit: NodeResourcesFit) -> Table:
    glances = nodehints.SingleNodes()
    cordons, taints, features = NodeUnschedulable(), TaintToleration(), NodeDeclaredFeatures()
    return {
        "NodeName": (
            _node(Action.ADD, lambda pod, _, new: new is not None and pod.spec.node_name == new.metadata.name),
        ),
        cordons.name: (
            _node(ADD_OR_TAINT, lambda *change: glances.newly_fits(cordons, *change)),
            _target(Action.UPDATE_POD_TOLERATION, lambda pod, *_: nodehints.tolerates_cordons(pod)),
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
            _assigned(Action.UPDATE_POD_SCALE_DOWN, podhints.scaled_down),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_SCALE_DOWN),
            Interest(Resource.DEVICE_CLASS, ADD_OR_UPDATE),
        ),
    }


def _of_pods() -> Table:
    return {
        "NodePorts": (_assigned(Action.DELETE, podhints.frees_port), Interest(Resource.NODE, Action.ADD)),
        "PodTopologySpread": (
            _assigned(COUNTED, podhints.changes_spread),
            _target(Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION, podhints.respread),
            _node(ADD_OR_LABEL | ADD_OR_TAINT | Action.DELETE, podhints.changes_domains),
        ),
        "InterPodAffinity": (
            _assigned(COUNTED, podhints.changes_affinity),
            Interest(Resource.TARGET_POD, Action.UPDATE_POD_LABEL),
            _node(ADD_OR_LABEL, podhints.changes_topology),
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
            _assigned(Action.DELETE, volumehints.frees_disk),
            Interest(Resource.NODE, Action.ADD),
            _claim(Action.ADD),
        ),
        "NodeVolumeLimits": (
            Interest(Resource.CSI_NODE, ADD_OR_UPDATE),
            _assigned(Action.DELETE, volumehints.frees_attachment),
            _claim(Action.ADD),
            Interest(Resource.VOLUME_ATTACHMENT, Action.DELETE),
        ),
    }


# Interests whose hint looks at objects of one kind. One of another kind fails in here, which counts as yes.


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
        return claim is None or volumehints.is_claimed(queued.pod, claim)

    return Interest(Resource.PERSISTENT_VOLUME_CLAIM, actions, hint)


def _in_other_zone(_: QueuedPod, what: ObjectChange) -> bool:
    return volumehints.is_in_other_zone(_typed(PersistentVolume, what.old), _typed(PersistentVolume, what.new))


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
