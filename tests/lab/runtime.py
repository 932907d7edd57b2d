"""Containers of the fake runtime run until somebody ends them: here, by the call that a kubelet makes."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Final

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import TEXTS, Message, MessageField
from numalign.lab import node as nodes
from numalign.lab.node import LabNode
from numalign.process import rpc

SERVICE: Final = "/runtime.v1.RuntimeService"
POD_UID, CONTAINER_NAME = "io.kubernetes.pod.uid", "io.kubernetes.container.name"
CONTAINER: Final[Message] = {
    1: MessageField("id", "string"),
    6: MessageField("state", "int"),
    8: MessageField("labels", TEXTS, many=True),
}
LIST: Final[Message] = {1: MessageField("containers", CONTAINER, many=True)}
STOP: Final[Message] = {1: MessageField("id", "string")}
RUNNING: Final = 1


async def end(node: LabNode, uid: str, names: Container[str]) -> list[str]:
    """Ends those of a pod's containers that run and have one of these names; exit code 0."""
    socket = Path("/proc", str(node.parts["runtime"].pid), "root", Path(nodes.RUNTIME_SOCKET).relative_to("/"))
    channel = rpc.Channel(socket)
    try:
        listed = protobuf.decode_message(await channel.call(f"{SERVICE}/ListContainers", b""), LIST)
        ended = []
        for each in listed.get("containers", ()):
            labels = {entry["key"]: entry["value"] for entry in each.get("labels", ())}
            if each.get("state") == RUNNING and labels[POD_UID] == uid and labels[CONTAINER_NAME] in names:
                await channel.call(f"{SERVICE}/StopContainer", protobuf.encode_message({"id": each["id"]}, STOP))
                ended.append(labels[CONTAINER_NAME])
        return ended
    finally:
        await channel.close()
