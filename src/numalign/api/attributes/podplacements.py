"""What every pod on a node holds exclusively: CPUs, memory blocks and devices, by container; with its compact text.

The agent publishes it from podresources and the checkpoints. The ledger turns it into observed placements, and the
kubelet model restores its state from it. Sets of CPUs and zones are integers with bit n for CPU or zone n. The text
writes each name once, in a list at the front, omits a repeated namespace, and packs a UUID into 22 characters;
docs/concepts/attributes.md gives the grammar."""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final
from weakref import WeakValueDictionary

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import deviceclasses, grammar
from numalign.api.decode import cpuset


class MemoryBlock(Struct, frozen=True, kw_only=True, order=True):
    """Memory of one type (`memory` or a hugepage size) pinned to a set of zones."""

    type: str
    zones: int
    size: int


class HeldDevices(Struct, frozen=True, kw_only=True):
    """Devices of one resource on one set of zones, by id where the ids are known, else by number."""

    resource: str
    zones: int | None = None
    """None: the plugin reports no topology; the empty mask: a topology that names no zone."""
    count: int = 0
    ids: tuple[str, ...] = ()
    """Ascending; as many as `count`, or none."""


class Holding(Struct, frozen=True, kw_only=True):
    """What one container holds. Shared resources are not part of it."""

    container: str
    """Empty: what the pod holds as a whole (pod-level resources, kubelet spec 10)."""
    cpus: int = 0
    memory: tuple[MemoryBlock, ...] = ()
    devices: tuple[HeldDevices, ...] = ()

    @property
    def is_exclusive(self) -> bool:
        """By the rule of the fingerprint method `with-exclusive-resources` (exporter spec 4.6)."""
        return bool(self.cpus) or any(block.zones for block in self.memory) or any(held.zones for held in self.devices)


class PodPlacement(Struct, frozen=True, kw_only=True, weakref=True):
    """A pod, named by namespace and name, by uid, or by both, and what its containers hold."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    holdings: tuple[Holding, ...] = ()

    @property
    def is_exclusive(self) -> bool:
        return any(holding.is_exclusive for holding in self.holdings)


PODS: Final = 1024
"""Pods whose texts are cached; more than a node runs."""
UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PACKED_UUID: Final = re.compile(r"[-_A-Za-z0-9]{22}")
POD: Final = re.compile(r"(?:([^/~|]*)/([^/~|]+))?(?:(~~?)([^/~|]+))?")
BLOCK: Final = re.compile(r"([0-9]+)=([^@]+)@([-0-9+]+)")
DEVICES: Final = re.compile(r"([0-9]+)(?:\*([0-9]+)|=([^@]+))@([-0-9+]*|none)")


def encode_placements(pods: Iterable[PodPlacement]) -> str:
    """The words, then the pods, all separated by semicolons; no pods, no text."""
    ordered = sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid))
    if not ordered:
        return ""
    # In alphabetical order, so that the text of a pod does not depend on the other pods.
    words = sorted({name for pod in ordered for holding in pod.holdings for name in _names(holding)})
    parts = [",".join(map(grammar.word, words))]
    namespace = ""
    named = tuple(words)
    for pod in ordered:
        parts.append(_pod_text(pod, namespace, named))
        namespace = pod.namespace or namespace
    return ";".join(parts)


@lru_cache(maxsize=PODS)
def _pod_text(pod: PodPlacement, namespace: str, words: tuple[str, ...]) -> str:
    """Cached: between two reports of an agent, most pods do not change."""
    places = {name: place for place, name in enumerate(words)}
    return "|".join((_key(pod, namespace), *_holdings(pod, places)))


def decode_placements(body: str) -> tuple[PodPlacement, ...]:
    if not body:
        return ()
    head, *texts = body.split(";")
    listed = grammar.split(head, ",")
    words = {str(place): grammar.from_word(word) for place, word in enumerate(listed)}
    named = tuple(words.values())
    pods: list[PodPlacement] = []
    namespace = ""
    for text in texts:
        pod = _READ.get((text, namespace, named))
        if pod is None:
            pod = _READ[text, namespace, named] = _pod(text, namespace, words)
        pods.append(pod)
        namespace = pods[-1].namespace or namespace
    grammar.unique(((pod.namespace, pod.name, pod.uid), pod) for pod in pods)
    return tuple(sorted(pods, key=lambda pod: (pod.namespace, pod.name, pod.uid)))


_READ: Final[WeakValueDictionary[tuple[str, str, tuple[str, ...]], PodPlacement]] = WeakValueDictionary()
"""Placements by text, namespace and words: a pod that the last report had, too, is the same object."""


def _names(holding: Holding) -> Iterator[str]:
    if holding.container:
        yield holding.container
    yield from (block.type for block in holding.memory)
    yield from (held.resource for held in holding.devices)


def _key(pod: PodPlacement, namespace: str) -> str:
    if bool(pod.namespace) != bool(pod.name) or not (pod.name or pod.uid):
        raise grammar.AttributeTextError("a placement needs namespace and name of its pod, or its uid, or both")
    same = pod.namespace == namespace
    name = f"{'' if same else _key_word(pod.namespace)}/{_key_word(pod.name)}" if pod.name else ""
    return name + _uid(pod.uid)


def _key_word(text: str) -> str:
    return grammar.word(text).replace("/", "%2F")


def _uid(uid: str) -> str:
    if not uid:
        return ""
    if UUID.fullmatch(uid) is None:
        return f"~~{_key_word(uid)}"
    return "~" + base64.urlsafe_b64encode(bytes.fromhex(uid.replace("-", ""))).decode().rstrip("=")


def _holdings(pod: PodPlacement, places: Mapping[str, int]) -> Iterator[str]:
    for holding in sorted(pod.holdings, key=lambda holding: holding.container):
        name = str(places[holding.container]) if holding.container else ""
        memory = ",".join(_block(block, places) for block in sorted(holding.memory))
        devices = ",".join(_devices(held, places) for held in sorted(holding.devices, key=_device_order))
        yield ":".join((name, cpuset.text(holding.cpus), memory, devices)).rstrip(":")


def _block(block: MemoryBlock, places: Mapping[str, int]) -> str:
    return f"{places[block.type]}={grammar.size(block.size)}@{grammar.zones(block.zones)}"


def _devices(held: HeldDevices, places: Mapping[str, int]) -> str:
    if held.ids and len(held.ids) != held.count:
        raise grammar.AttributeTextError(f"{held.resource} has {held.count} devices and {len(held.ids)} ids")
    amount = f"={'+'.join(map(grammar.word, sorted(held.ids)))}" if held.ids else f"*{held.count}"
    return f"{places[held.resource]}{amount}@{deviceclasses.zones_text(held.zones)}"


def _device_order(held: HeldDevices) -> tuple[str, int]:
    return held.resource, -1 if held.zones is None else held.zones


def _pod(text: str, namespace: str, words: Mapping[str, str]) -> PodPlacement:
    key, *entries = text.split("|")
    match = POD.fullmatch(key)
    if match is None or not key:
        raise grammar.AttributeTextError(f"{errors.echo(key)} is not namespace/name, ~uid or both")
    given, name, mark, uid = match.groups()
    if name and not (given or namespace):
        raise grammar.AttributeTextError(f"{errors.echo(key)} has no namespace, and no pod before it has one")
    holdings = [_holding(entry, words) for entry in entries]
    grammar.unique((holding.container, holding) for holding in holdings)
    return PodPlacement(
        namespace=(grammar.from_word(given) if given else namespace) if name else "",
        name=grammar.from_word(name) if name else "",
        uid=_from_uid(mark, uid) if uid else "",
        holdings=tuple(sorted(holdings, key=lambda holding: holding.container)),
    )


def _from_uid(mark: str, uid: str) -> str:
    if mark == "~~":
        return grammar.from_word(uid)
    if PACKED_UUID.fullmatch(uid) is None:
        raise grammar.AttributeTextError(f"{errors.echo(uid)} is not a UUID in 22 signs of base64")
    digits = base64.urlsafe_b64decode(uid + "==").hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _holding(text: str, words: Mapping[str, str]) -> Holding:
    fields = text.split(":")
    if len(fields) > 4:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not container:cpus:memory:devices")
    name, cpus, memory, devices = fields + [""] * (4 - len(fields))
    return Holding(
        container=_word(name, words) if name else "",
        cpus=grammar.cpus(cpus),
        memory=tuple(sorted(_from_block(block, words) for block in grammar.split(memory, ","))),
        devices=tuple(sorted((_held(held, words) for held in grammar.split(devices, ",")), key=_device_order)),
    )


def _from_block(text: str, words: Mapping[str, str]) -> MemoryBlock:
    match = BLOCK.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not type=size@zones")
    size, zones = grammar.from_size(match[2]), grammar.from_zones(match[3])
    return MemoryBlock(type=_word(match[1], words), size=size, zones=zones)


def _held(text: str, words: Mapping[str, str]) -> HeldDevices:
    match = DEVICES.fullmatch(text)
    if match is None:
        raise grammar.AttributeTextError(f"{errors.echo(text)} is not resource*count@zones or resource=ids@zones")
    place, number, names, zones = match.groups()
    ids = tuple(sorted(grammar.from_word(name) for name in grammar.split(names or "", "+")))
    count = len(ids) or grammar.number(number)
    return HeldDevices(resource=_word(place, words), zones=deviceclasses.zones_from_text(zones), count=count, ids=ids)


def _word(place: str, words: Mapping[str, str]) -> str:
    if place not in words:
        raise grammar.AttributeTextError(f"word {errors.echo(place)} is not among the {len(words)} at the front")
    return words[place]
