"""The messages of NRI, version v1alpha1: what the container runtime tells its plugins, and what they answer.

`session` decodes and encodes with these tables. Pods and containers are decoded one by one, so that an odd one costs
only itself. Fields that enforcement does not need are skipped."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import TEXTS, BadProtobuf, Message, MessageField, Tree

LOG: Final = logging.getLogger(__name__)
T = TypeVar("T")

PLUGIN: Final = "nri.pkg.api.v1alpha1.Plugin"
RUNTIME: Final = "nri.pkg.api.v1alpha1.Runtime"
PLUGIN_CONNECTION: Final = 1
"""On which the runtime calls the plugin."""
RUNTIME_CONNECTION: Final = 2

# Numbers of the events that a plugin subscribes to; every runtime with NRI has these.
EVENTS: Final = {
    "RunPodSandbox": 1,
    "StopPodSandbox": 2,
    "RemovePodSandbox": 3,
    "CreateContainer": 4,
    "PostStartContainer": 7,
    "UpdateContainer": 8,
    "StopContainer": 10,
    "RemoveContainer": 11,
}
SUBSCRIBED: Final = sum(1 << number - 1 for number in EVENTS.values())
RUNNING: Final = 3
STOPPED: Final = 4

REGISTER: Final[Message] = {1: MessageField("name", "string"), 2: MessageField("index", "string")}
CONFIGURE: Final[Message] = {
    2: MessageField("runtime", "string"),
    3: MessageField("version", "string"),
    5: MessageField("milliseconds", "int"),
}
CONFIGURED: Final[Message] = {2: MessageField("events", "int")}
SANDBOX: Final[Message] = {
    1: MessageField("id", "string"),
    2: MessageField("name", "string"),
    3: MessageField("uid", "string"),
    4: MessageField("namespace", "string"),
    6: MessageField("annotations", TEXTS, many=True),
}
AMOUNT: Final[Message] = {1: MessageField("value", "int")}
CPU: Final[Message] = {
    2: MessageField("quota", AMOUNT),
    6: MessageField("cpus", "string"),
    7: MessageField("mems", "string"),
}
RESOURCES: Final[Message] = {2: MessageField("cpu", CPU)}
LINUX: Final[Message] = {3: MessageField("resources", RESOURCES)}
CONTAINER: Final[Message] = {
    1: MessageField("id", "string"),
    2: MessageField("sandbox", "string"),
    3: MessageField("name", "string"),
    4: MessageField("state", "int"),
    6: MessageField("annotations", TEXTS, many=True),
    11: MessageField("linux", LINUX),
    12: MessageField("pid", "uint"),
}
SYNCHRONIZE: Final[Message] = {
    1: MessageField("pods", "bytes", many=True),
    2: MessageField("containers", "bytes", many=True),
    3: MessageField("more", "bool"),
}
SUBJECT: Final[Message] = {1: MessageField("pod", "bytes"), 2: MessageField("container", "bytes")}
"""What every request about a pod or a container starts with."""
DEVICE: Final[Message] = {
    1: MessageField("path", "string"),
    2: MessageField("type", "string"),
    3: MessageField("major", "int"),
    4: MessageField("minor", "int"),
}
LINUX_ADJUSTMENT: Final[Message] = {
    1: MessageField("devices", DEVICE, many=True),
    2: MessageField("resources", RESOURCES),
}
CDI: Final[Message] = {1: MessageField("name", "string")}
ADJUSTMENT: Final[Message] = {
    2: MessageField("annotations", TEXTS, many=True),
    4: MessageField("env", TEXTS, many=True),
    6: MessageField("linux", LINUX_ADJUSTMENT),
    8: MessageField("cdi", CDI, many=True),
}
UPDATE: Final[Message] = {
    1: MessageField("container", "string"),
    2: MessageField("linux", {1: MessageField("resources", RESOURCES)}),
}
CREATED: Final[Message] = {1: MessageField("adjust", ADJUSTMENT), 2: MessageField("updates", UPDATE, many=True)}
UPDATED: Final[Message] = {1: MessageField("updates", UPDATE, many=True)}
"""Also the response to StopContainer, and the request of UpdateContainers."""
SYNCHRONIZED: Final[Message] = {1: MessageField("updates", UPDATE, many=True), 2: MessageField("more", "bool")}
FAILED: Final[Message] = {1: MessageField("updates", {1: MessageField("container", "string")}, many=True)}


INJECTED: Final = "numalign.io/devices-injected"
"""The annotation of a container in the runtime that got its devices, by which a later agent knows it."""


class Sandbox(Struct, frozen=True, kw_only=True):
    """A pod in the runtime."""

    id: str
    uid: str
    namespace: str
    name: str
    annotations: Mapping[str, str] = {}


class RuntimeContainer(Struct, frozen=True, kw_only=True):
    id: str
    sandbox: str
    name: str
    state: int = 0
    pid: int = 0
    cpus: str = ""
    """As the runtime has them on record; empty: not limited."""
    mems: str = ""
    quota: int = 0
    injected: bool = False
    """Whether it got its devices when it was created."""


class CPUSettings(Struct, frozen=True):
    """CPUs and memory zones of a container in the kernel's list format; empty: left as they are."""

    cpus: str
    mems: str = ""
    unlimited: bool = False
    """Without a CFS quota."""


class DeviceNode(Struct, frozen=True):
    path: str
    type: str
    major: int
    minor: int


class Injection(Struct, frozen=True):
    """The devices that a container gets."""

    cdi: tuple[str, ...] = ()
    nodes: tuple[DeviceNode, ...] = ()
    env: Mapping[str, str] = {}


class Update(Struct, frozen=True):
    container: str
    settings: CPUSettings


def sandbox(data: bytes) -> Sandbox:
    tree = protobuf.decode_message(data, SANDBOX)
    annotations = {each.get("key", ""): each.get("value", "") for each in tree.get("annotations", ())}
    return Sandbox(
        id=tree.get("id", ""),
        uid=tree.get("uid", ""),
        namespace=tree.get("namespace", ""),
        name=tree.get("name", ""),
        annotations=annotations,
    )


def container(data: bytes) -> RuntimeContainer:
    tree = protobuf.decode_message(data, CONTAINER)
    cpu = tree.get("linux", {}).get("resources", {}).get("cpu", {})
    return RuntimeContainer(
        id=tree.get("id", ""),
        sandbox=tree.get("sandbox", ""),
        name=tree.get("name", ""),
        state=tree.get("state", 0),
        pid=tree.get("pid", 0),
        cpus=cpu.get("cpus", ""),
        mems=cpu.get("mems", ""),
        quota=cpu.get("quota", {}).get("value", 0),
        injected=any(each.get("key") == INJECTED for each in tree.get("annotations", ())),
    )


def subjects(pods: Iterable[bytes], containers: Iterable[bytes]) -> tuple[list[Sandbox], list[RuntimeContainer]]:
    """Those that can be read; others are logged."""
    return readable(pods, sandbox), readable(containers, container)


def readable(parts: Iterable[bytes], read: Callable[[bytes], T]) -> list[T]:
    """What can be read of these; the rest is logged."""
    found = []
    for part in parts:
        try:
            found.append(read(part))
        except BadProtobuf as problem:
            LOG.warning(
                "Skipping a pod or container that the container runtime reports in a form of its own: %s", problem
            )
    return found


def resources(settings: CPUSettings) -> Tree:
    quota = {"quota": {"value": -1}} if settings.unlimited else {}
    return {"cpu": {"cpus": settings.cpus, "mems": settings.mems, **quota}}


def updates(wanted: Iterable[Update]) -> list[Tree]:
    return [{"container": each.container, "linux": {"resources": resources(each.settings)}} for each in wanted]


def adjustment(settings: CPUSettings | None, injected: Injection) -> Tree:
    nodes = [
        {"path": each.path, "type": each.type, "major": each.major, "minor": each.minor} for each in injected.nodes
    ]
    linux: Tree = {"devices": nodes} if nodes else {}
    if settings is not None:
        linux["resources"] = resources(settings)
    return {
        "annotations": protobuf.entries({INJECTED: "true"} if injected != Injection() else {}),
        "env": protobuf.entries(injected.env),
        "cdi": [{"name": name} for name in injected.cdi],
        **({"linux": linux} if linux else {}),
    }
