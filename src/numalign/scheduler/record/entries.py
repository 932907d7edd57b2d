"""The entries of a recording: every change that the scheduler applied to its view of the cluster, and every decision.

`taps` writes them while the scheduler runs, and `playback` applies them to a restored view, in the same order. An entry
is one line of JSON. Objects are written as `discreet` leaves them: without environments, arguments and annotations of
others. An entry that is to be written holds the object, which the encoder writes as it would write its JSON; an entry
that is read holds the JSON."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec
from msgspec import Raw, structs

from numalign.api.decode import structs as wire
from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.scheduler.choose.decisionlog import DecisionRecord

KEPT: Final = ("numalign.io", "kubernetes.io", "k8s.io", "k8stopoawareschedwg")
"""Domains of annotations that decisions read. Other annotations may contain anything."""
APPLIED: Final = "kubectl.kubernetes.io"
"""This annotation is dropped, because it repeats the whole object."""
MOST_REMEMBERED: Final = 1024


class Entry(Wire, frozen=True, tag_field="is", tag=lambda name: name[0].lower() + name[1:]):
    """The base of all entries. `now` is the scheduler's monotonic clock."""


class NodeSeen(Entry, frozen=True):
    now: float
    object: Raw


class NodeGone(Entry, frozen=True):
    name: str


class ReportSeen(Entry, frozen=True):
    now: float
    object: Raw


class ReportGone(Entry, frozen=True):
    now: float
    node: str


class PodSeen(Entry, frozen=True):
    """A pod that has a node."""

    now: float
    object: Raw


class PodGone(Entry, frozen=True):
    now: float
    object: Raw


class PodWaits(Entry, frozen=True):
    """A pod without a node."""

    now: float
    object: Raw


class ObjectSeen(Entry, frozen=True):
    """An object that plugins read, of the resource with this plural name."""

    now: float
    resource: str
    object: Raw


class ObjectGone(Entry, frozen=True):
    now: float
    resource: str
    object: Raw


class Ticked(Entry, frozen=True):
    now: float


class Attempted(Entry, frozen=True):
    """One attempt to schedule a pod, and its result."""

    decision: DecisionRecord


class Assumed(Entry, frozen=True):
    """The pod of the latest attempt counts on its node."""

    uid: str


class BindingSent(Entry, frozen=True):
    uid: str


class BindingAccepted(Entry, frozen=True):
    uid: str


class BindingFailed(Entry, frozen=True):
    uid: str


class Nominated(Entry, frozen=True):
    node: str
    object: Raw
    """The pod; an empty node ends its nomination."""


class VictimsExpected(Entry, frozen=True):
    uid: str
    victims: tuple[str, ...]


class NominationEnded(Entry, frozen=True):
    uid: str


class Rejected(Entry, frozen=True):
    """A kubelet rejected a pod of the shape that `object` has; `owner`: only pods of this controller avoid the node."""

    now: float
    node: str
    reason: str
    object: Raw
    owner: str = ""


class GuardedNodeChanged(Entry, frozen=True):
    node: str


class GuardedNodeGone(Entry, frozen=True):
    node: str


Change = (
    NodeSeen
    | NodeGone
    | ReportSeen
    | ReportGone
    | PodSeen
    | PodGone
    | PodWaits
    | ObjectSeen
    | ObjectGone
    | Ticked
    | Attempted
    | Assumed
    | BindingSent
    | BindingAccepted
    | BindingFailed
    | Nominated
    | VictimsExpected
    | NominationEnded
    | Rejected
    | GuardedNodeChanged
    | GuardedNodeGone
)
_READER: Final[msgspec.json.Decoder[Change]] = msgspec.json.Decoder(Change)


def lines(several: Iterable[Entry]) -> bytes:
    """The lines of entries, in their order."""
    return wire.ENCODER.encode_lines(several)


def read(text: bytes) -> Change:
    """The entry of a line. `msgspec.DecodeError` if it is none."""
    return _READER.decode(text)


def discreet(thing: Any) -> Any:
    """The object without annotations that decisions do not read: as an entry that is to be written holds it."""
    meta: ObjectMeta = thing.metadata
    if not meta.annotations or all(map(_is_kept, meta.annotations)):
        return thing
    kept = {name: value for name, value in meta.annotations.items() if _is_kept(name)}
    return structs.replace(thing, metadata=structs.replace(meta, annotations=kept))


@lru_cache(maxsize=MOST_REMEMBERED)
def _is_kept(annotation: str) -> bool:
    """Cached, because all objects have few different annotations."""
    domain = annotation.partition("/")[0]
    return domain != APPLIED and any(domain == each or domain.endswith(f".{each}") for each in KEPT)
