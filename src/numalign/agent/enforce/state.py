"""Which CPUs and memory zones each container of the node has to have: the state machine of enforcement.

`enforcer` tells it what the container runtime reports, and sends what it answers. It follows
docs/concepts/direct-mode.md: CPUs of its own as the decision says, shared pools for everything else. A decision that
contradicts another container, the kubelet or the hardware is not applied: the container waits for a while, and then
runs in the shared pools, until the contradiction is gone. Pure: time is an argument.

The runtime may apply changes late, fail, or forget them. So the state keeps what every container has beside what it has
to have, and `changes` is the difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from numalign.agent.enforce import messages
from numalign.agent.enforce.messages import CPUSettings, RuntimeContainer, Sandbox, Update
from numalign.agent.enforce.pools import NodeCPUs
from numalign.api import errors
from numalign.api.attributes import directresult
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import ContainerResult, DirectResult
from numalign.api.decode import cpuset
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodSpec

STRAYS: Final = 3
"""Checks in a row in which the kernel reports other CPUs, after which the decision counts as failed."""

UNINJECTED: Final = "the container was created without its devices; it gets them when it is created again"

Key = tuple[str, str]
"""A pod's uid and the name of a container."""


class HostPod(Struct):
    """A pod that has a sandbox in the runtime."""

    sandbox: Sandbox
    decision: DirectResult | None
    problem: str = ""
    """Why its decision cannot be read."""

    @property
    def cpus(self) -> int:
        """Of its containers, and of the pod as a whole."""
        if self.decision is None:
            return 0
        return self.decision.cpus | _union(each.cpus for each in self.decision.containers)

    def of(self, container: str) -> ContainerResult | None:
        listed = self.decision.containers if self.decision is not None else ()
        return next((each for each in listed if each.name == container), None)


class HostContainer(Struct):
    """A container that was created and has not ended."""

    id: str
    pod: HostPod
    name: str
    own: ContainerResult | None
    """Its part of the decision."""
    running: bool = False
    pid: int = 0
    holds: bool = False
    """Whether it has the CPUs of its decision for itself."""
    contradiction: str = ""
    """Why it does not hold the CPUs of its decision."""
    trouble: str = ""
    """Why its decision is not applied although nothing contradicts it."""
    lacking: str = ""
    """Why it has no devices. They cannot be added later."""
    has: CPUSettings | None = None
    """What the runtime last accepted; None: unknown."""
    sent: int = 0
    """Number of the last change that was sent."""
    seen: tuple[int, int] | None = None
    """CPUs and memory zones that the kernel reports."""
    strays: int = 0

    @property
    def key(self) -> Key:
        return self.pod.sandbox.uid, self.name

    @property
    def failure(self) -> str:
        return self.contradiction or self.lacking or self.trouble

    @property
    def wants(self) -> int:
        """CPUs for itself; 0: none."""
        return self.own.cpus if self.own is not None else 0


class Waiter(Struct, frozen=True):
    """A container that waits."""

    sandbox: Sandbox
    since: float
    why: str


class Refusal(Struct, frozen=True):
    """A container may not be created yet."""

    why: str


class Change(Struct, frozen=True):
    """A change of one container, with a number that tells it from later ones."""

    update: Update
    number: int


class NodeState:
    def __init__(self, node: str, patience: float = 0.0) -> None:
        """`patience`: seconds for which a container waits whose decision cannot be applied."""
        self._node, self._patience = node, patience
        self.cpus = NodeCPUs({})
        self._kubelet: Mapping[Key, int] = {}
        self._barred = ""
        self._pods: dict[str, HostPod] = {}
        """By the id of the sandbox."""
        self.containers: dict[str, HostContainer] = {}
        """By id, in the order in which they were created."""
        self._left: dict[str, str] = {}
        """The sandbox of each container that the runtime has not removed."""
        self._waiting: dict[Key, Waiter] = {}
        self._number = 0
        self.taken = 0
        """CPUs that no shared container may use: those of every decision on the node, and the kubelet's."""

    def configure(self, cpus: NodeCPUs, kubelet: Mapping[Key, int], barred: str = "") -> None:
        """`kubelet`: CPUs that the kubelet gave to containers. `barred`: why no container may be touched; empty: they
        may."""
        self.cpus, self._kubelet, self._barred = cpus, dict(kubelet), barred
        self._settle()

    @property
    def barred(self) -> str:
        return self._barred

    def synchronize(self, pods: Iterable[Sandbox], containers: Iterable[RuntimeContainer]) -> None:
        """Starts anew from what the runtime has. Containers that already have the CPUs of their decisions keep them
        before others take theirs."""
        self._pods = {each.id: self._pod(each) for each in pods}
        before, self.containers, self._left = self.containers, {}, {}
        for each in containers:
            pod = self._pods.get(each.sandbox)
            if pod is None:
                continue
            self._left[each.id] = each.sandbox
            if each.state == messages.STOPPED:
                continue
            found = self._container(pod, each)
            found.has = _on_record(each)
            found.running, found.pid = each.state == messages.RUNNING, each.pid
            if found.own is not None and found.own.devices and not each.injected:
                found.lacking = UNINJECTED
            if (known := before.get(each.id)) is not None:
                found.trouble, found.seen, found.strays = known.trouble, known.seen, known.strays
            self.containers[each.id] = found
        for found in self.containers.values():
            has = found.has
            found.holds = bool(found.wants) and has is not None and has.cpus == cpuset.text(found.wants)
            if found.strays:
                # The kernel reports something else than the runtime has on record.
                found.has = None
        self._settle()

    def pod_started(self, sandbox: Sandbox) -> None:
        self._pods[sandbox.id] = self._pod(sandbox)
        self._settle()

    def pod_stopped(self, sandbox: str) -> None:
        """All containers of the pod have ended."""
        self._pods.pop(sandbox, None)
        self._left = {id: own for id, own in self._left.items() if own != sandbox}
        for each in [id for id, found in self.containers.items() if found.pod.sandbox.id == sandbox]:
            del self.containers[each]
        uids = {pod.sandbox.uid for pod in self._pods.values()}
        self._waiting = {key: each for key, each in self._waiting.items() if key[0] in uids}
        self._settle()

    def create(
        self, sandbox: Sandbox, made: RuntimeContainer, now: float, lacking: str = ""
    ) -> CPUSettings | Refusal | None:
        """What the container starts with; None: as it is. A `Refusal` where it has to wait. `lacking`: why it gets no
        devices."""
        pod = self._pods.get(sandbox.id)
        if pod is None:
            pod = self._pods[sandbox.id] = self._pod(sandbox)
        found = self._container(pod, made)
        found.lacking = lacking
        before = dict(self.containers)
        for each in [id for id, other in before.items() if _ends_before(other, found)]:
            del self.containers[each]
        self.containers[made.id] = found
        self._settle()
        if found.failure:
            known = self._waiting.get(found.key)
            since = known.since if known is not None else now
            if now - since < self._patience:
                self._waiting[found.key] = Waiter(sandbox, since, found.failure)
                self.containers = before
                self._settle()
                return Refusal(found.failure)
        self._waiting.pop(found.key, None)
        self._left[made.id] = sandbox.id
        found.has = self._wanted(found)
        return found.has

    def started(self, container: str, pid: int) -> None:
        found = self.containers.get(container)
        if found is None:
            return
        found.running, found.pid, found.seen = True, pid, None
        if found.sent:
            # The runtime ignores changes of a container that it is still creating.
            found.has = None

    def ended(self, container: str) -> None:
        if self.containers.pop(container, None) is not None:
            self._settle()

    def removed(self, container: str) -> None:
        """The pod is gone with its last container: after a restart, containerd says nothing of the end of pods that
        were there before. Otherwise their CPUs would stay out of the shared pools."""
        self.ended(container)
        sandbox = self._left.pop(container, "")
        if sandbox and sandbox not in self._left.values():
            self.pod_stopped(sandbox)

    def own(self, sandbox: Sandbox, container: str) -> ContainerResult | None:
        """The part of the pod's decision for this container."""
        pod = self._pods.get(sandbox.id) or self._pod(sandbox)
        return pod.of(container)

    def resized(self, container: str) -> CPUSettings | None:
        """What a container keeps when the kubelet changes its limits; None: the kubelet's changes apply as they are."""
        found = self.containers.get(container)
        return self._wanted(found) if found is not None and found.holds else None

    def changes(self, before: str = "") -> list[Change]:
        """What the runtime has to change now. First containers leave CPUs, then containers get their own, then pools
        grow: so no CPU belongs to two containers in between. `before`: only what has to happen before this container
        starts."""
        ranked = []
        for found in self.containers.values():
            wanted = self._wanted(found)
            if wanted is None or found.id == before or _equal(found.has, wanted):
                continue
            leaves = found.has is None or bool(cpuset.parse(found.has.cpus) & ~cpuset.parse(wanted.cpus))
            if leaves or not before:
                ranked.append((1 if found.holds else 0 if leaves else 2, found, wanted))
        made = []
        for _, found, wanted in sorted(ranked, key=lambda each: each[0]):
            self._number += 1
            found.sent = self._number
            made.append(Change(Update(found.id, wanted), self._number))
        return made

    def accepted(self, change: Change) -> None:
        """The runtime applied the change. Where a later one was sent meanwhile, the order of both is unknown."""
        found = self.containers.get(change.update.container)
        if found is not None:
            found.has = change.update.settings if found.sent == change.number else None
            # The kernel was asked before.
            found.seen = None
            if not found.strays:
                found.trouble = ""

    def rejected(self, change: Change, why: str) -> None:
        found = self.containers.get(change.update.container)
        if found is not None:
            found.has = None
            if found.own is not None:
                found.trouble = why

    def see(self, container: str, cpus: int, mems: int) -> None:
        """What the kernel reports for a running container. Another state than the wanted one is to be mended."""
        found = self.containers.get(container)
        wanted = self._wanted(found) if found is not None else None
        if found is None or wanted is None or not _equal(found.has, wanted):
            return
        found.seen = cpus, mems
        # A process may limit itself to a part of what it may use.
        outside = cpus & ~cpuset.parse(wanted.cpus) or (wanted.mems and mems & ~cpuset.parse(wanted.mems))
        if not outside:
            if found.strays:
                found.strays, found.trouble = 0, ""
            return
        found.has, found.strays = None, found.strays + 1
        if found.strays >= STRAYS and found.own is not None:
            found.trouble = f"the kernel reports CPUs {cpuset.text(cpus)} and zones {cpuset.text(mems)}"

    @property
    def applied(self) -> Iterator[AppliedContainer]:
        """What became of each running container for which there is a decision."""
        for found in self.containers.values():
            uid, name = found.key
            if found.own is None or not found.running:
                continue
            if found.failure:
                yield AppliedContainer(uid=uid, container=name, failure=found.failure)
            elif found.has is not None:
                cpus, mems = found.seen or (cpuset.parse(found.has.cpus), self._mems(found.own))
                yield AppliedContainer(uid=uid, container=name, cpus=cpus, mems=mems)

    @property
    def failures(self) -> Iterator[tuple[Sandbox, str, str]]:
        """Pods, their containers (empty: the pod as a whole), and why their decisions are not applied."""
        for pod in self._pods.values():
            if pod.problem:
                yield pod.sandbox, "", pod.problem
        for found in self.containers.values():
            if found.failure:
                yield found.pod.sandbox, found.name, found.failure
        for (_, name), waiter in self._waiting.items():
            yield waiter.sandbox, name, waiter.why

    def _pod(self, sandbox: Sandbox) -> HostPod:
        metadata = ObjectMeta(
            name=sandbox.name,
            namespace=sandbox.namespace,
            uid=sandbox.uid,
            annotations={key: text for key, text in sandbox.annotations.items() if key == directresult.RESULT},
        )
        try:
            decision = directresult.of_pod(Pod(metadata=metadata, spec=PodSpec(node_name=self._node)))
        except errors.BadObject as problem:
            return HostPod(sandbox, None, str(problem))
        return HostPod(sandbox, decision)

    def _container(self, pod: HostPod, made: RuntimeContainer) -> HostContainer:
        return HostContainer(id=made.id, pod=pod, name=made.name, own=pod.of(made.name))

    def _settle(self) -> None:
        """Decides anew who holds CPUs: those that hold them already, then the others in order of creation."""
        held = 0
        kubelet = _union(self._kubelet.values())
        self.taken = _union(pod.cpus for pod in self._pods.values()) | kubelet
        for found in sorted(self.containers.values(), key=lambda each: not each.holds):
            if not found.wants:
                found.holds, found.contradiction = False, self._barred if found.own is not None else ""
                continue
            found.contradiction = self._contradiction(found, kubelet, held)
            found.holds = not found.contradiction
            held |= found.wants if found.holds else 0

    def _contradiction(self, found: HostContainer, kubelet: int, held: int) -> str:
        if self._barred:
            return self._barred
        if found.key in self._kubelet:
            return "the kubelet has given this container CPUs"
        if strange := found.wants & ~self.cpus.allocatable:
            return f"CPUs {cpuset.text(strange)} may not be handed out on this node"
        if overlap := found.wants & kubelet:
            return f"the kubelet has given CPUs {cpuset.text(overlap)} to another container"
        if overlap := found.wants & held:
            other = next(each for each in self.containers.values() if each.holds and each.wants & overlap)
            sandbox = other.pod.sandbox
            return (
                f"container {other.name} of pod {sandbox.namespace}/{sandbox.name} runs on CPUs {cpuset.text(overlap)}"
            )
        return ""

    def _wanted(self, found: HostContainer) -> CPUSettings | None:
        """None: the container is not touched."""
        if self._barred or found.key in self._kubelet or not self.cpus.every:
            return None
        mems = found.own.mems if found.own is not None else ""
        if found.holds:
            return CPUSettings(cpuset.text(found.wants), mems, unlimited=True)
        pool = self.cpus.pool(found.own.zones if found.own is not None else (), self.taken)
        return CPUSettings(cpuset.text(pool), mems)

    def _mems(self, own: ContainerResult) -> int:
        return cpuset.parse(own.mems) if own.mems else self.cpus.memory_zones


def _ends_before(other: HostContainer, made: HostContainer) -> bool:
    """Whether a container of the same pod has ended although the runtime has not said so yet: an earlier run of the
    same container, or an init container whose CPUs a later container gets."""
    same_pod = other.pod.sandbox.uid == made.pod.sandbox.uid
    return same_pod and (other.name == made.name or bool(other.holds and other.wants & made.wants))


def _on_record(made: RuntimeContainer) -> CPUSettings | None:
    try:
        cpus = cpuset.text(cpuset.parse(made.cpus))
    except cpuset.CPUSetError:
        return None
    return CPUSettings(cpus, made.mems, unlimited=made.quota < 0) if cpus else None


def _equal(has: CPUSettings | None, wanted: CPUSettings) -> bool:
    if has is None or has.cpus != wanted.cpus:
        return False
    return (not wanted.mems or has.mems == wanted.mems) and (not wanted.unlimited or has.unlimited)


def _union(cpus: Iterable[int]) -> int:
    found = 0
    for each in cpus:
        found |= each
    return found
