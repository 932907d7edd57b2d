"""Enforcement without NRI: looks at the containers of the node again and again, and changes them over CRI.

`enforcer` opens a `Polling` in place of a `Session` where the runtime does not accept the agent as an NRI plugin. It is
weaker: a container starts on all CPUs of the node, and is changed with the next look. It gets no devices, it cannot
wait, and memory that it allocated before is moved by the kernel as far as possible. The state is the same."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from msgspec import structs

from numalign.agent.enforce import messages
from numalign.agent.enforce.messages import RuntimeContainer, Sandbox
from numalign.agent.enforce.state import Change, NodeState
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import TEXTS, BadProtobuf, Message, MessageField, Tree
from numalign.process.log import about
from numalign.process.rpc import CallFailed

LOG: Final = logging.getLogger(__name__)
SERVICE: Final = "/runtime.v1.RuntimeService"
LISTS: Final = ("ListPodSandbox", "ListContainers")
LOOKING: Final = 1.0
"""Seconds between two looks, and so the longest time for which a new container runs on other CPUs."""
AGAIN: Final = 10.0
"""Seconds after which a container with CPUs of its own is read again: the kubelet may have changed its quota."""
GONE: Final = "NOT_FOUND"

NOT_READY: Final = 1
"""The state of a pod whose containers have ended."""
CRI_RUNNING: Final = 1
CRI_EXITED: Final = 2

METADATA: Final[Message] = {
    1: MessageField("name", "string"),
    2: MessageField("uid", "string"),
    3: MessageField("namespace", "string"),
}
SANDBOX: Final[Message] = {
    1: MessageField("id", "string"),
    2: MessageField("metadata", METADATA),
    3: MessageField("state", "int"),
    6: MessageField("annotations", TEXTS, many=True),
}
CONTAINER: Final[Message] = {
    1: MessageField("id", "string"),
    2: MessageField("sandbox", "string"),
    3: MessageField("metadata", {1: MessageField("name", "string")}),
    6: MessageField("state", "int"),
}
ITEMS: Final[Message] = {1: MessageField("items", "bytes", many=True)}
RESOURCES: Final[Message] = {
    2: MessageField("quota", "int"),
    6: MessageField("cpus", "string"),
    7: MessageField("mems", "string"),
}
ASKED: Final[Message] = {1: MessageField("id", "string"), 2: MessageField("verbose", "bool")}
STATUS: Final[Message] = {
    1: MessageField("status", {16: MessageField("resources", {1: MessageField("linux", RESOURCES)})}),
    2: MessageField("info", TEXTS, many=True),
}
VERSION: Final[Message] = {2: MessageField("runtime", "string"), 3: MessageField("version", "string")}
UPDATE: Final[Message] = {1: MessageField("id", "string"), 2: MessageField("linux", RESOURCES)}

Call = Callable[[str, bytes], Awaitable[bytes]]


class Polling:
    """`changed` is called after every look, because what is applied may have changed."""

    def __init__(
        self,
        state: NodeState,
        call: Call,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        changed: Callable[[], None],
    ) -> None:
        self._state, self._call, self._changed = state, call, changed
        self._now, self._sleep = now, sleep
        self._known: dict[str, RuntimeContainer] = {}
        self._read_at: dict[str, float] = {}
        self._last: object = None
        self.runtime = ""
        """Name and version of the runtime."""

    async def open(self) -> None:
        """The first look. CallFailed where the runtime does not answer."""
        found = await _asked(self._call, "Version", {}, ASKED, VERSION)
        self.runtime = f"{found.get('runtime', '')} {found.get('version', '')}".strip()
        await self._look()

    async def run(self, better: Callable[[], bool]) -> str:
        """Looks until the runtime does not answer, or there is a better way; why it ended."""
        while not better():
            await self._sleep(LOOKING)
            try:
                await self._look()
            except CallFailed as failure:
                return str(failure)
        return "NRI may be served now"

    def wake(self) -> None:
        """The next look sends what has to change."""

    async def _look(self) -> None:
        pods, listed = await _listed(self._call)
        alive = {each.id: each for each in listed if each.state != messages.STOPPED}
        self._known = {id: found for id, found in self._known.items() if id in alive}
        self._read_at = {id: at for id, at in self._read_at.items() if id in alive}
        for each in alive.values():
            known = self._known.get(each.id)
            if known is None or known.state != each.state or self._is_old(each.id):
                await self._read(each)
        seen = (tuple(pods), tuple(self._known.values()))
        if seen != self._last:
            self._last = seen
            self._state.synchronize(pods, self._known.values())
        changes = self._state.changes()
        for change in changes:
            await self._change(change)
        self._changed()

    def _is_old(self, container: str) -> bool:
        found = self._state.containers.get(container)
        return found is not None and found.holds and self._now() - self._read_at.get(container, 0.0) >= AGAIN

    async def _read(self, listed: RuntimeContainer) -> None:
        """What the runtime has on record of one container."""
        found = await _recorded(self._call, listed)
        if found is None:
            self._known.pop(listed.id, None)
            return
        self._read_at[listed.id] = self._now()
        self._known[listed.id] = found

    async def _change(self, change: Change) -> None:
        wanted, container = change.update.settings, change.update.container
        linux: Tree = {"cpus": wanted.cpus, "mems": wanted.mems, **({"quota": -1} if wanted.unlimited else {})}
        try:
            await _asked(self._call, "UpdateContainerResources", {"id": container, "linux": linux}, UPDATE, {})
        except CallFailed as failure:
            if failure.code == "UNAVAILABLE":
                raise
            if failure.code != GONE:
                LOG.warning("Failed to change a container: %s", failure.text, extra=about(container=container))
                self._state.rejected(change, failure.text)
            return
        self._state.accepted(change)
        known = self._known.get(container)
        if known is not None:
            has = structs.replace(known, cpus=wanted.cpus, mems=wanted.mems or known.mems)
            self._known[container] = structs.replace(has, quota=-1 if wanted.unlimited else known.quota)


async def containers(call: Call) -> tuple[list[Sandbox], list[RuntimeContainer]]:
    """Pods, and what the runtime has on record of each container that has not ended. CallFailed where it does not
    answer."""
    pods, listed = await _listed(call)
    found = [await _recorded(call, each) for each in listed if each.state != messages.STOPPED]
    return pods, [each for each in found if each is not None]


async def _listed(call: Call) -> tuple[list[Sandbox], list[RuntimeContainer]]:
    items = [(await _asked(call, method, {}, ASKED, ITEMS)).get("items", ()) for method in LISTS]
    pods = [each for each in messages.readable(items[0], _sandbox) if each is not None]
    return pods, messages.readable(items[1], _container)


async def _recorded(call: Call, listed: RuntimeContainer) -> RuntimeContainer | None:
    """With what the runtime has on record; None: it is gone."""
    try:
        found = await _asked(call, "ContainerStatus", {"id": listed.id, "verbose": True}, ASKED, STATUS)
    except CallFailed as failure:
        if failure.code == GONE:
            return None
        raise
    info = _info(found.get("info", ()))
    linux, cpu = found.get("status", {}).get("resources", {}).get("linux", {}), _cpu(info)
    pid = info.get("pid")
    return structs.replace(
        listed,
        pid=pid if isinstance(pid, int) and pid > 0 else 0,
        cpus=str(cpu.get("cpus", linux.get("cpus", ""))),
        mems=str(cpu.get("mems", linux.get("mems", ""))),
        quota=_number(cpu.get("quota", linux.get("quota", 0))),
    )


async def _asked(call: Call, method: str, tree: Tree, asks: Message, answers: Message) -> Tree:
    answer = await call(f"{SERVICE}/{method}", protobuf.encode_message(tree, asks))
    try:
        return protobuf.decode_message(answer, answers)
    except BadProtobuf as problem:
        raise CallFailed("INTERNAL", f"{method}: {problem}") from None


def _sandbox(data: bytes) -> Sandbox | None:
    """None: it has stopped."""
    tree = protobuf.decode_message(data, SANDBOX)
    if tree.get("state", 0) == NOT_READY:
        return None
    named = tree.get("metadata", {})
    return Sandbox(
        id=tree.get("id", ""),
        uid=named.get("uid", ""),
        namespace=named.get("namespace", ""),
        name=named.get("name", ""),
        annotations={each.get("key", ""): each.get("value", "") for each in tree.get("annotations", ())},
    )


def _container(data: bytes) -> RuntimeContainer:
    tree = protobuf.decode_message(data, CONTAINER)
    state = tree.get("state", 0)
    return RuntimeContainer(
        id=tree.get("id", ""),
        sandbox=tree.get("sandbox", ""),
        name=tree.get("metadata", {}).get("name", ""),
        state=messages.STOPPED if state == CRI_EXITED else messages.RUNNING if state == CRI_RUNNING else 0,
    )


def _info(info: Iterable[Tree]) -> dict[str, Any]:
    """What containerd and CRI-O say beyond CRI: the id of the first process, and what runc was asked for last."""
    written = next((each.get("value", "") for each in info if each.get("key") == "info"), "")
    try:
        found = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _cpu(info: Mapping[str, Any]) -> Mapping[str, Any]:
    """Plugins of the runtime change this and not the resources of CRI."""
    found: object = info
    for name in ("runtimeSpec", "linux", "resources", "cpu"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
