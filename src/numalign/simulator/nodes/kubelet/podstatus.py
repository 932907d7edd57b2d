"""The pod status that a kubelet writes, and the writer that sends it.

`loop` calls it after every change. The functions are pure: they derive the status from the pod's lifecycle and its
previous status. Conditions and fields of other components are kept, those of the kubelet are replaced. `PodWriter`
writes statuses, events and the final deletion. It leaves a pod alone that is gone or has been replaced by another of
the same name."""

import hashlib
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from msgspec import Struct

from numalign.api.objects import qos
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, ResourceRequirements
from numalign.kubelet.demand import Role
from numalign.kubelet.predicates import Lacking
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes.environment import NodeEnvironment
from numalign.simulator.nodes.kubelet.podlife import ContainerExit, ContainerRun, PodLife
from numalign.simulator.nodes.nodeobjects import KubeletEvent
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.trees import Tree

KUBELETS_OWN: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
KEPT: Final = ("nominatedNodeName", "resourceClaimStatuses", "startTime")
TERMINAL: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


class StatusContext(Struct, frozen=True):
    """Node addresses, and the current time as written in a status."""

    host_ip: str
    pod_ip: str
    now: float
    written: Callable[[float], str]


def rejected(pod: Pod, before: Tree, reason: str, message: str, now: str) -> Tree:
    """The status of a rejected pod: without container statuses and kubelet conditions (kubelet spec 1)."""
    others = _of_others(before)
    return _kept(before) | {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "qosClass": str(qos.of(pod)),
        "startTime": before.get("startTime") or now,
        **({"conditions": others} if others else {}),
    }


def of(life: PodLife, before: Tree, context: StatusContext) -> Tree:
    """The status of an admitted pod."""
    status = _kept(before) | {
        "phase": life.phase,
        "qosClass": str(qos.of(life.pod)),
        "startTime": before.get("startTime") or context.written(context.now),
        "hostIP": context.host_ip,
        "hostIPs": [{"ip": context.host_ip}],
        "conditions": [*_of_others(before), *_conditions(life, before, context)],
        "containerStatuses": [_container(life, each, context) for each in life.apps],
    }
    if life.init:
        status["initContainerStatuses"] = [_container(life, each, context) for each in life.init]
    if life.sandbox:
        ip = context.host_ip if life.pod.spec.host_network else context.pod_ip
        status |= {"podIP": ip, "podIPs": [{"ip": ip}]}
    return status


def _kept(before: Tree) -> Tree:
    return {key: before[key] for key in KEPT if key in before}


def _of_others(before: Tree) -> list[Tree]:
    return [each for each in before.get("conditions") or () if each.get("type") not in KUBELETS_OWN]


def _conditions(life: PodLife, before: Tree, context: StatusContext) -> Iterable[Tree]:
    known = {each.get("type"): each for each in before.get("conditions") or ()}
    unready = [each.name for each in life.containers if each.role is not Role.INIT and not each.running]
    ready = _condition_of_readiness(life, unready)
    found = {
        "PodReadyToStartContainers": {"status": "True" if life.sandbox and not life.ended else "False"},
        "Initialized": _condition_of_init(life),
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }
    for kind, content in found.items():
        old = known.get(kind, {})
        same = old.get("status") == content["status"]
        since = old.get("lastTransitionTime") if same else None
        yield {
            "type": kind,
            **content,
            "lastProbeTime": None,
            "lastTransitionTime": since or context.written(context.now),
        }


def _condition_of_readiness(life: PodLife, unready: list[str]) -> Tree:
    if life.phase in TERMINAL:
        return {"status": "False", "reason": TERMINAL[life.phase]}
    if not unready:
        return {"status": "True"}
    return {
        "status": "False",
        "reason": "ContainersNotReady",
        "message": f"containers with unready status: [{' '.join(unready)}]",
    }


def _condition_of_init(life: PodLife) -> Tree:
    incomplete = [each.name for each in life.init if not _initialised(each)]
    if life.phase == "Succeeded":
        return {"status": "True", "reason": "PodCompleted"}
    if not incomplete or any(each.starts for each in life.apps):
        return {"status": "True"}
    return {
        "status": "False",
        "reason": "ContainersNotInitialized",
        "message": f"containers with incomplete status: [{' '.join(incomplete)}]",
    }


def _initialised(each: ContainerRun) -> bool:
    if each.role is Role.SIDECAR:
        return each.running
    return each.ended is not None and each.ended.exit_code == 0


def _container(life: PodLife, each: ContainerRun, context: StatusContext) -> Tree:
    done = each.role is Role.INIT and _initialised(each)
    status: Tree = {
        "name": each.name,
        "image": each.container.image,
        "imageID": f"docker.io/{each.container.image}" if each.starts else "",
        "restartCount": max(0, each.starts - 1),
        "ready": done if each.role is Role.INIT else each.running,
        "started": each.running,
        "state": _state(life, each, context),
        "lastState": _terminated(life, each, _last(life, each, context), context),
        "resources": _amounts(each.container.resources),
    }
    if each.starts:
        status["containerID"] = _container_id(life, each, each.starts)
    if each.container.resources.requests:
        status["allocatedResources"] = _amounts(each.container.resources)["requests"]
    return status


def _state(life: PodLife, each: ContainerRun, context: StatusContext) -> Tree:
    if each.began is not None:
        return {"running": {"startedAt": context.written(each.began)}}
    if each.ended is not None and not _backs_off(life, each, context):
        return _terminated(life, each, each.ended, context)
    if each.ended is not None:
        seconds = int(each.retry - each.ended.finished)
        about = f"container={each.name} pod={life.pod.metadata.name}_{life.pod.metadata.namespace}({life.uid})"
        message = f"back-off {_duration(seconds)} restarting failed {about}"
        return {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
    initialising = bool(life.init) and each.role is Role.APP and not all(map(_initialised, life.init))
    return {"waiting": {"reason": "PodInitializing" if initialising else "ContainerCreating"}}


def _last(life: PodLife, each: ContainerRun, context: StatusContext) -> ContainerExit | None:
    return each.ended if each.ended is not None and _backs_off(life, each, context) else each.last


def _backs_off(life: PodLife, each: ContainerRun, context: StatusContext) -> bool:
    """Whether the container waits in CrashLoopBackOff. A container that restarts at once or never is shown as
    terminated."""
    return not life.ended and not life.stopping and each.retry > context.now and life.restarts(each)


def _terminated(life: PodLife, each: ContainerRun, how: ContainerExit | None, context: StatusContext) -> Tree:
    if how is None:
        return {}
    state: Tree = {"exitCode": how.exit_code, "reason": how.reason, "finishedAt": context.written(how.finished)}
    if how.message:
        state["message"] = how.message
    if how.began is None:
        return {"terminated": state | {"startedAt": None, "finishedAt": None}}
    number = each.starts - 1 if how is each.last else each.starts
    state |= {"startedAt": context.written(how.began), "containerID": _container_id(life, each, number)}
    return {"terminated": state}


def _amounts(resources: ResourceRequirements) -> Tree:
    lists = {"requests": resources.requests, "limits": resources.limits}
    return {what: {name: str(amount) for name, amount in found.items()} for what, found in lists.items() if found}


def _container_id(life: PodLife, each: ContainerRun, number: int) -> str:
    digest = hashlib.sha256(f"{life.uid}/{each.name}/{number}".encode()).hexdigest()
    return f"containerd://{digest}"


def _duration(seconds: int) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


class PodWriter:
    __slots__ = ("_addresses", "_env", "_node_state")

    def __init__(self, node_state: NodeState, env: NodeEnvironment) -> None:
        self._node_state = node_state
        self._env = env
        self._addresses = 0
        """Number of pod IPs that were assigned."""

    def current(self, metadata: Tree) -> Tree | None:
        """The pod as the API server has it; None if it is gone or another pod has its name."""
        name, namespace = metadata["name"], metadata.get("namespace", "")
        tree = self._env.written(lambda: self._env.api.get(PODS, name, namespace))
        return tree if tree is not None and tree["metadata"]["uid"] == metadata["uid"] else None

    def report(self, life: PodLife) -> None:
        clock = self._env.clock
        self._write(life.pod.metadata, lambda before: of(life, before, self._site(before, clock.now())))

    def rejected(self, pod: Pod, lacking: Lacking) -> None:
        now = self._env.clock.rfc3339()
        self._write(pod.metadata, lambda before: rejected(pod, before, lacking.reason, lacking.message, now))

    def confirm(self, metadata: Tree) -> None:
        """Deletes the pod's object, after its containers have ended."""
        name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata["uid"]
        self._env.written(lambda: self._env.api.delete(PODS, name, namespace, grace=0, uid=uid))

    def record_event(self, pod: Pod, reason: str, message: str, kind: str = "Normal") -> None:
        metadata = {"name": pod.metadata.name, "namespace": pod.metadata.namespace, "uid": pod.metadata.uid}
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._env.record_event(KubeletEvent(about, reason, message, kind), self._node_state.name)

    def _site(self, before: Tree, now: float) -> StatusContext:
        identity = self._node_state.identity
        address = before.get("podIP")
        if not address:
            address = identity.pod_ip(self._addresses)
            self._addresses += 1
        return StatusContext(identity.host_ip, address, now, self._env.clock.rfc3339)

    def _write(self, metadata: ObjectMeta, status: Callable[[Tree], Tree]) -> None:
        tree = self.current({"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid})
        if tree is not None:
            tree["status"] = status(tree.get("status") or {})
            self._env.written(partial(self._env.api.update, PODS, tree, subresource="status"))
