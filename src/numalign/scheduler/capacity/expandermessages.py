"""The messages of cluster-autoscaler's gRPC expander, and the parts of Pod and Node in them that decide placement.

`expander` calls it. The service is `grpcplugin.Expander`, method `BestOptions`. Since 1.35 cluster-autoscaler sends
pods and nodes as bytes instead of typed fields; the encoding is the same, so both are read alike. Clients are not
authenticated, so the tables say how many entries a message may have."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from numalign.api.decode import protobuf, quantity
from numalign.api.decode.protobuf import TEXTS, Message, MessageField, Tree
from numalign.api.objects import requests
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeInfo, NodeStatus
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceList, ResourceRequirements

MOST_OPTIONS: Final = 1_000
MOST_PODS: Final = 8_192
"""Different pods of a request."""
MOST_GROUPS: Final = 8_192
"""Nodes of a request: every node group has one, whether it is an option or not."""
MOST_CONTAINERS: Final = 256
MOST_AMOUNTS: Final = 128
MOST_TEXTS: Final = 1_000
"""Labels, and annotations, of an object."""
LONGEST: Final = 1 << 20
"""Bytes of a pod or node; the API server stores none that is much larger."""

AMOUNT: Final[Message] = {1: MessageField("text", "string")}
AMOUNTS: Final[Message] = {1: MessageField("key", "string"), 2: MessageField("value", AMOUNT)}
RESOURCES: Final[Message] = {
    1: MessageField("limits", AMOUNTS, many=True, most=MOST_AMOUNTS),
    2: MessageField("requests", AMOUNTS, many=True, most=MOST_AMOUNTS),
}
CONTAINER: Final[Message] = {
    1: MessageField("name", "string"),
    8: MessageField("resources", RESOURCES),
    24: MessageField("restart_policy", "string"),
}
METADATA: Final[Message] = {
    1: MessageField("name", "string"),
    3: MessageField("namespace", "string"),
    5: MessageField("uid", "string"),
    11: MessageField("labels", TEXTS, many=True, most=MOST_TEXTS),
    12: MessageField("annotations", TEXTS, many=True, most=MOST_TEXTS),
}
POD: Final[Message] = {
    1: MessageField("metadata", METADATA),
    2: MessageField(
        "spec",
        {
            2: MessageField("containers", CONTAINER, many=True, most=MOST_CONTAINERS),
            20: MessageField("inits", CONTAINER, many=True, most=MOST_CONTAINERS),
            32: MessageField("overhead", AMOUNTS, many=True, most=MOST_AMOUNTS),
            40: MessageField("resources", RESOURCES),
        },
    ),
}
NODE: Final[Message] = {
    1: MessageField("metadata", METADATA),
    3: MessageField(
        "status",
        {
            1: MessageField("capacity", AMOUNTS, many=True, most=MOST_AMOUNTS),
            2: MessageField("allocatable", AMOUNTS, many=True, most=MOST_AMOUNTS),
            7: MessageField("info", {7: MessageField("version", "string")}),
        },
    ),
}
BY_NAME: Final[Message] = {1: MessageField("key", "string"), 2: MessageField("value", "bytes")}
OPTION: Final[Message] = {
    1: MessageField("group", "string"),
    2: MessageField("count", "int"),
    3: MessageField("debug", "string"),
    4: MessageField("pods", "bytes", many=True, most=MOST_PODS),
    5: MessageField("pod_bytes", "bytes", many=True, most=MOST_PODS),
}
REQUEST: Final[Message] = {
    1: MessageField("options", OPTION, many=True, most=MOST_OPTIONS),
    2: MessageField("nodes", BY_NAME, many=True, most=MOST_GROUPS),
    3: MessageField("node_bytes", BY_NAME, many=True, most=MOST_GROUPS),
}
RESPONSE: Final[Message] = {1: MessageField("options", OPTION, many=True)}


class ExpansionOption(Struct, frozen=True):
    """A node group that could grow by so many nodes, and the pods for which it would."""

    group: str
    count: int
    pods: tuple[bytes, ...]
    """As they were sent; `pod` reads them."""
    debug: str = ""


class ExpansionRequest(Struct, frozen=True):
    options: tuple[ExpansionOption, ...]
    nodes: dict[str, bytes]
    """By node group, a Node like those that it would have; `node` reads it."""


def decode_request(data: bytes) -> ExpansionRequest:
    """BadProtobuf if it cannot be read."""
    tree = protobuf.decode_message(data, REQUEST)
    options = tuple(
        ExpansionOption(
            group=each.get("group", ""),
            count=each.get("count", 0),
            pods=tuple(each.get("pod_bytes") or each.get("pods", ())),
            debug=each.get("debug", ""),
        )
        for each in tree.get("options", ())
    )
    nodes = tree.get("node_bytes") or tree.get("nodes", ())
    return ExpansionRequest(options, {each.get("key", ""): each.get("value", b"") for each in nodes})


def encode_response(options: list[tuple[ExpansionOption, str]]) -> bytes:
    """The options to keep, with what is said about each; cluster-autoscaler knows their pods by the group."""
    trees = [{"group": each.group, "count": each.count, "debug": said} for each, said in options]
    return protobuf.encode_message({"options": trees}, RESPONSE)


def pod(data: bytes) -> Pod:
    """BadProtobuf or ValueError if it cannot be read."""
    tree = _decoded(data, POD)
    spec: Tree = tree.get("spec", {})
    made = Pod(
        metadata=_metadata(tree.get("metadata", {})),
        spec=PodSpec(
            containers=tuple(map(_container, spec.get("containers", ()))),
            init_containers=tuple(map(_container, spec.get("inits", ()))),
            overhead=_amounts(spec.get("overhead", ())),
            resources=_resources(spec.get("resources", {})),
        ),
    )
    return requests.defaulted(made)


def node(data: bytes) -> Node:
    """BadProtobuf or ValueError if it cannot be read."""
    tree = _decoded(data, NODE)
    status: Tree = tree.get("status", {})
    return Node(
        metadata=_metadata(tree.get("metadata", {})),
        status=NodeStatus(
            capacity=_amounts(status.get("capacity", ())),
            allocatable=_amounts(status.get("allocatable", ())),
            node_info=NodeInfo(kubelet_version=status.get("info", {}).get("version", "")),
        ),
    )


def _decoded(data: bytes, message: Message) -> Tree:
    if len(data) > LONGEST:
        raise protobuf.BadProtobuf(f"{len(data):,} bytes; at most {LONGEST:,} are read")
    return protobuf.decode_message(data, message)


def _metadata(tree: Tree) -> ObjectMeta:
    return ObjectMeta(
        name=tree.get("name", ""),
        namespace=tree.get("namespace", ""),
        uid=tree.get("uid", ""),
        labels=_texts(tree.get("labels", ())),
        annotations=_texts(tree.get("annotations", ())),
    )


def _container(tree: Tree) -> Container:
    return Container(
        name=tree.get("name", ""),
        restart_policy=tree.get("restart_policy", ""),
        resources=_resources(tree.get("resources", {})),
    )


def _resources(tree: Tree) -> ResourceRequirements:
    return ResourceRequirements(requests=_amounts(tree.get("requests", ())), limits=_amounts(tree.get("limits", ())))


def _amounts(entries: Any) -> ResourceList:
    return {each.get("key", ""): quantity.parse(each.get("value", {}).get("text", "0")) for each in entries}


def _texts(entries: Any) -> dict[str, str]:
    return {each.get("key", ""): each.get("value", "") for each in entries}
