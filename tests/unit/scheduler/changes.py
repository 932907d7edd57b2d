"""Changes of objects in few words, and whether one of them helps a pod that some plugin refused."""

from __future__ import annotations

from typing import Any

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.scheduler.queue import wakeups as interests
from numalign.scheduler.queue.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.queued import QueuedPod
from numalign.scheduler.queue.wakeups import QueueingStrategy, Wakeups
from tests.unit.scheduler.waitingpods import pod, refused

ASSIGNED, NODE, TARGET = Resource.ASSIGNED_POD, Resource.NODE, Resource.TARGET_POD
SSD = {"disk": "ssd"}
TAINTED: dict[str, Any] = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
CORDONED: dict[str, Any] = {"unschedulable": True}
TOLERANT: dict[str, Any] = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
UNCORDONED: dict[str, Any] = {
    "tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}]
}


def helps(
    plugin: str, waiting: Pod, resource: Resource, action: Action, old: object = None, new: object = None
) -> bool:
    queued = QueuedPod(pod=waiting, added=0, since=0, number=1, rejection=refused(plugin))
    wakeups = Wakeups(interests.stock())
    strategy = wakeups.strategy(queued, ObjectChange(ClusterEvent(resource, action), old, new))
    assert not [answer for answer in wakeups.answers if answer[2] == "Error"]
    return strategy is not QueueingStrategy.SKIP


def here(name: str, spec: dict[str, Any] | None = None, **meta: Any) -> Pod:
    """A pod that has a node."""
    return pod(name, {"nodeName": "n", **(spec or {})}, **meta)


def ports(*numbers: int) -> dict[str, Any]:
    return {"containers": [{"name": "c", "ports": [{"containerPort": 1, "hostPort": each} for each in numbers]}]}


def selecting(**labels: str) -> dict[str, Any]:
    return {"nodeSelector": labels}


def spread(**more: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": {"matchLabels": {"app": "web"}}, **more}]}


def near(kind: str = "podAffinity", **more: Any) -> dict[str, Any]:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **more}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def away(**more: Any) -> dict[str, Any]:
    return near("podAntiAffinity", **more)


def claiming(name: str) -> dict[str, Any]:
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]}


def claim(name: str, namespace: str = "default") -> PersistentVolumeClaim:
    return decode.decode(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": namespace}})


def volume(**labels: str) -> PersistentVolume:
    return decode.decode(PersistentVolume, {"metadata": {"name": "pv", "labels": labels}})


WEB = {"labels": {"app": "web"}}
ZONE: dict[str, str] = {"zone": "a"}
EPHEMERAL = {"volumes": [{"name": "v", "ephemeral": {}}]}
DISK = {"volumes": [{"name": "v", "awsElasticBlockStore": {"volumeID": "x"}}]}
ALLOCATABLE, LABEL, TAINT = Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_LABEL, Action.UPDATE_NODE_TAINT
Change = tuple[Resource, Action, object, object]
