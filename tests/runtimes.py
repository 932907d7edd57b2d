"""A container runtime with NRI and CRI, as far as an agent sees it: pods, containers, and what plugins make of them.

It behaves like containerd 2.4: one request at a time, two seconds for an answer, a plugin that is too slow is dropped,
and without a plugin containers start as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from numalign.agent.enforce import messages, polling
from numalign.agent.enforce.wire import Trunk
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import TEXTS, Message, MessageField, Tree
from numalign.process.rpc import CallFailed
from numalign.simulator import pipes

SECONDS = 2.0
ANNOTATED_SANDBOX: Message = {
    1: MessageField("id", "string"),
    2: MessageField("name", "string"),
    3: MessageField("uid", "string"),
    4: MessageField("namespace", "string"),
    6: MessageField("annotations", TEXTS, many=True),
}
SYNCHRONIZE: Message = {
    1: MessageField("pods", ANNOTATED_SANDBOX, many=True),
    2: MessageField("containers", messages.CONTAINER, many=True),
    3: MessageField("more", "bool"),
}
LISTED_PODS: Message = {1: MessageField("items", polling.SANDBOX, many=True)}
LISTED_CONTAINERS: Message = {1: MessageField("items", polling.CONTAINER, many=True)}
SUBJECT: Message = {1: MessageField("pod", ANNOTATED_SANDBOX), 2: MessageField("container", messages.CONTAINER)}


class Pod(Struct):
    id: str
    uid: str
    name: str
    annotations: dict[str, str] = {}
    namespace: str = "default"

    @property
    def tree(self) -> Tree:
        return {
            "id": self.id,
            "uid": self.uid,
            "name": self.name,
            "namespace": self.namespace,
            "annotations": protobuf.entries(self.annotations),
        }

    @property
    def listed(self) -> Tree:
        """As CRI lists it."""
        metadata = {"name": self.name, "uid": self.uid, "namespace": self.namespace}
        return {"id": self.id, "metadata": metadata, "annotations": protobuf.entries(self.annotations)}


class Container(Struct):
    id: str
    pod: Pod
    name: str
    state: int = 1
    pid: int = 0
    cpus: str = ""
    mems: str = ""
    quota: int = 0
    cdi: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    annotations: dict[str, str] = {}

    @property
    def tree(self) -> Tree:
        quota = {"quota": {"value": self.quota}} if self.quota else {}
        cpu = {"cpus": self.cpus, "mems": self.mems, **quota}
        return {
            "id": self.id,
            "sandbox": self.pod.id,
            "name": self.name,
            "state": self.state,
            "annotations": protobuf.entries(self.annotations),
            "pid": self.pid,
            "linux": {"resources": {"cpu": cpu}},
        }

    @property
    def listed(self) -> Tree:
        """As CRI lists it."""
        state = {messages.RUNNING: polling.CRI_RUNNING, messages.STOPPED: polling.CRI_EXITED}.get(self.state, 0)
        return {"id": self.id, "sandbox": self.pod.id, "metadata": {"name": self.name}, "state": state}

    def apply(self, resources: Tree) -> None:
        cpu = resources.get("cpu", {})
        self.cpus, self.mems = cpu.get("cpus") or self.cpus, cpu.get("mems") or self.mems
        self.quota = cpu.get("quota", {}).get("value", 0) or self.quota


class Deaf(Trunk):
    """A runtime's end, which may not hear."""

    def __init__(self, runtime: Runtime, **more: Any) -> None:
        super().__init__(**more)
        self._runtime = runtime

    def _serve(self, stream: int, message: bytes) -> None:
        if not (self._runtime.deaf and b"UpdateContainers" in message):
            super()._serve(stream, message)


class CreateFailed(Exception):
    """The runtime did not do it; a kubelet tries again."""


class Runtime:
    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.containers: dict[str, Container] = {}
        self.up = True
        self.nri = True
        """Whether it has NRI."""
        self.part = 10_000
        """Objects per Synchronize message."""
        self.failing: Callable[[str], bool] = lambda _: False
        """Whether a change of this container fails."""
        self.odd: list[bytes] = []
        """Pods that no plugin can read."""
        self.deaf = False
        """Whether requests of plugins are not answered."""
        self.latency = 0.0
        """Seconds that a message takes."""
        self.plugin: Trunk | None = None
        self.events = 0
        self.updates: list[str] = []
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._number = 0
        self._trunks: list[Trunk] = []

    async def open(self, made: Callable[[], Trunk]) -> Trunk:
        """What an enforcer connects with."""
        if not self.up:
            raise ConnectionRefusedError(111, "Connection refused")
        if not self.nri:
            raise FileNotFoundError(2, "No such file or directory")
        registered = asyncio.Event()

        def answer(method: str, request: bytes) -> bytes:
            if method.endswith("/RegisterPlugin"):
                assert protobuf.decode_message(request, messages.REGISTER) == {"name": "numalign", "index": "50"}
                registered.set()
                return b""
            assert method == f"{messages.RUNTIME}/UpdateContainers"
            return self._update(request)

        theirs = made()
        ours = Deaf(self, serves=messages.RUNTIME_CONNECTION, calls=messages.PLUGIN_CONNECTION, answer=answer)
        pipes.joined(theirs, ours, self.latency)
        self._trunks.append(ours)
        self._start(self._welcome(ours, registered))
        return theirs

    async def cri(self, method: str, request: bytes) -> bytes:
        """What an enforcer without NRI calls."""
        if not self.up:
            raise CallFailed("UNAVAILABLE", "the runtime is down")
        await asyncio.sleep(self.latency)
        name = method.removeprefix(f"{polling.SERVICE}/")
        changes = name == "UpdateContainerResources"
        tree = protobuf.decode_message(request, polling.UPDATE if changes else polling.ASKED)
        match name:
            case "Version":
                return protobuf.encode_message({"runtime": "made-up", "version": "1"}, polling.VERSION)
            case "ListPodSandbox":
                odd = b"".join(protobuf.encode_field(1, each) for each in self.odd)
                pods = {"items": [each.listed for each in self.pods.values()]}
                return odd + protobuf.encode_message(pods, LISTED_PODS)
            case "ListContainers":
                listed = {"items": [each.listed for each in self.containers.values()]}
                return protobuf.encode_message(listed, LISTED_CONTAINERS)
            case "ContainerStatus" if (found := self.containers.get(tree["id"])) is not None:
                linux = {"cpus": found.cpus, "mems": found.mems, "quota": found.quota}
                # As containerd: CRI has what was changed over CRI, and the information what plugins changed, too.
                spec = {"linux": {"resources": {"cpu": linux}}} if self.nri else {}
                status = {"resources": {"linux": linux}} if not self.nri else {}
                info = protobuf.entries({"info": json.dumps({"pid": found.pid, "runtimeSpec": spec})})
                return protobuf.encode_message({"status": status, "info": info}, polling.STATUS)
            case "UpdateContainerResources" if (found := self.containers.get(tree["id"])) is not None:
                self.updates.append(found.id)
                if self.failing(found.id):
                    raise CallFailed("UNKNOWN", "failed to update resources")
                linux = tree["linux"]
                quota = {"quota": {"value": linux["quota"]}} if "quota" in linux else {}
                found.apply({"cpu": {"cpus": linux.get("cpus", ""), "mems": linux.get("mems", ""), **quota}})
                return b""
        raise CallFailed("NOT_FOUND", f"{method}: there is no such container")

    def kill(self) -> None:
        """The runtime's process ends; containers stay."""
        self.up, self.plugin = False, None
        for each in self._trunks:
            each.close()
        self._trunks.clear()

    async def run_pod(self, pod: Pod) -> None:
        async with self._lock:
            self._check()
            self.pods[pod.id] = pod
            await self._tell("RunPodSandbox", pod=pod.tree)

    async def create(self, pod: Pod, name: str) -> Container:
        """Creates and starts."""
        async with self._lock:
            self._check()
            self._number += 1
            made = Container(f"{pod.name}-{name}-{self._number}", pod, name, pid=1000 + self._number)
            try:
                answer = await self._tell("CreateContainer", pod=pod.tree, container=made.tree)
            except CallFailed as refusal:
                raise CreateFailed(refusal.text) from None
            self._check()
            tree = protobuf.decode_message(answer, messages.CREATED)
            for each in tree.get("updates", ()):
                self._change(each)
            adjust = tree.get("adjust", {})
            made.apply(adjust.get("linux", {}).get("resources", {}))
            made.cdi = tuple(each["name"] for each in adjust.get("cdi", ()))
            made.annotations = {each["key"]: each["value"] for each in adjust.get("annotations", ())}
            made.env = tuple((each["key"], each["value"]) for each in adjust.get("env", ()))
            self.containers[made.id] = made
        async with self._lock:
            self._check()
            made.state = messages.RUNNING
            await self._tell("PostStartContainer", pod=pod.tree, container=made.tree)
        return made

    async def stop(self, made: Container) -> None:
        async with self._lock:
            self._check()
            made.state = messages.STOPPED
            self.containers.pop(made.id, None)
            await self._tell("StopContainer", pod=made.pod.tree, container=made.tree)

    async def resize(self, made: Container, quota: int) -> None:
        async with self._lock:
            answer = await self._tell("UpdateContainer", pod=made.pod.tree, container=made.tree)
            made.quota = quota
            for each in protobuf.decode_message(answer, messages.UPDATED).get("updates", ()):
                self._change(each)

    async def stop_pod(self, pod: Pod) -> None:
        async with self._lock:
            self._check()
            self.pods.pop(pod.id, None)
            await self._tell("StopPodSandbox", pod=pod.tree)

    def _check(self) -> None:
        if not self.up:
            raise CreateFailed("the runtime is down")

    async def _welcome(self, trunk: Trunk, registered: asyncio.Event) -> None:
        await registered.wait()
        try:
            await self._call(trunk, "Configure", {}, {})
            async with self._lock:
                listed = [*self.pods.values(), *self.containers.values()]
                for at in range(0, max(1, len(listed)), self.part):
                    part = listed[at : at + self.part]
                    tree = {
                        "pods": [each.tree for each in part if isinstance(each, Pod)],
                        "containers": [each.tree for each in part if isinstance(each, Container)],
                        "more": at + self.part < len(listed),
                    }
                    odd = b"".join(protobuf.encode_field(1, each) for each in self.odd)
                    body = odd + protobuf.encode_message(tree, SYNCHRONIZE)
                    await trunk.call(messages.PLUGIN, "Synchronize", body, SECONDS)
                if self.up:
                    self.plugin = trunk
        except CallFailed:
            trunk.close()

    async def _tell(self, event: str, **tree: Any) -> bytes:
        self.events += 1
        if self.plugin is None:
            return b""
        try:
            return await self._call(self.plugin, event, tree, SUBJECT)
        except CallFailed as failure:
            if failure.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                raise
            if self.plugin is not None:
                self.plugin.close()
            self.plugin = None
            return b""

    async def _call(self, trunk: Trunk, method: str, tree: Tree, message: Message) -> bytes:
        return await trunk.call(messages.PLUGIN, method, protobuf.encode_message(tree, message), SECONDS)

    def _update(self, request: bytes) -> bytes:
        # A request waits for others in the real runtime; the answers of a trunk do not wait, so it is applied at once.
        failed = []
        for each in protobuf.decode_message(request, messages.UPDATED).get("updates", ()):
            if not self._change(each):
                failed.append(each)
        if failed:
            raise CallFailed("UNKNOWN", "NRI update of some containers failed")
        return b""

    def _change(self, update: Tree) -> bool:
        self.updates.append(update["container"])
        if self.failing(update["container"]):
            return False
        if (found := self.containers.get(update["container"])) is not None:
            found.apply(update["linux"]["resources"])
        return True

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
