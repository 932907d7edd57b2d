"""The room that a Node's annotation holds for pods that are about to be created again.

`plan defrag --execute` writes the annotation before it evicts a pod, and removes it when the pod's successor runs. The
scheduler keeps the room of such a pod free for the next pod of its controller. docs/use/plan-defrag.md describes the
annotation. A room ends at its time, so that a program that died holds nothing for long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from numalign.api import errors
from numalign.api.decode import structs
from numalign.api.decode.structs import Wire
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod

NAME: Final = "numalign.io/held-rooms"
LONGEST: Final = 128 << 10
"""Characters of the annotation: half of what an API server takes for all annotations of an object."""


class HeldRoom(Wire, frozen=True, omit_defaults=False):
    uid: str
    """Of the pod that leaves."""
    until: str
    """A timestamp."""
    pod: Pod
    """As its controller creates it again."""


READER: Final = msgspec.json.Decoder(tuple[HeldRoom, ...], dec_hook=structs.decoded)


def of_node(node: Node) -> tuple[HeldRoom, ...]:
    """BadObject if the annotation makes no sense."""
    written = node.metadata.annotations.get(NAME)
    if not written:
        return ()
    try:
        if len(written) > LONGEST:
            raise ValueError(f"has {len(written):,} characters; {LONGEST:,} are the most")
        found = READER.decode(written)
        for each in found:
            ends(each)
        # A copy of a room would hold it twice.
        if len({each.uid for each in found}) < len(found):
            raise ValueError("holds two rooms of one pod")
    except (ValueError, RecursionError) as problem:
        where = f"metadata.annotations[{NAME}]"
        why = f"{errors.clipped(str(problem))}; remove the annotation"
        raise errors.BadObject("Node", node.metadata.name, where, why) from None
    return found


def written(rooms: Iterable[HeldRoom]) -> str | None:
    """The annotation's value; None: there is nothing to hold."""
    found = tuple(rooms)
    return structs.ENCODER.encode(found).decode() if found else None


def ends(room: HeldRoom) -> datetime:
    found = datetime.fromisoformat(room.until)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def is_successor(pod: Pod, room: HeldRoom) -> bool:
    """Whether a pod may be the one that the room is held for: another pod of the same controller that asks for the
    same. Controllers that are created again, such as those of a group, keep their name."""
    own, left = pod.metadata.controller, room.pod.metadata.controller
    if own is None or left is None or pod.metadata.uid == room.uid:
        return False
    if (pod.metadata.namespace, own.kind, own.name) != (room.pod.metadata.namespace, left.kind, left.name):
        return False
    return asked(pod) == asked(room.pod)


def asked(pod: Pod) -> Sequence[object]:
    """Equal for pods that ask for the same."""
    return [pod.spec.resources, *((each.name, each.resources) for each in pod.in_admission_order())]
