"""What a pod asks of devices that are handed out in parts or together: its containers' limits, and annotations.

`directspec` calls `read`. Amounts are those of Koordinator's DeviceShare: a device has a hundred parts, and the memory
of a GPU goes by bytes or by hundredths. `numalign.io/device-spec` says which devices belong together; Koordinator's
keys are read only where the caller says so, and ours wins. Anything unknown or impossible is a BadObject that names
the field. docs/use/device-share.md describes the values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from numalign.api import errors
from numalign.api.attributes import devicetable
from numalign.api.attributes.devicetable import CORE, GPU, KINDS, MEMORY, PARTS, RATIO, SHARED, WHOLE, Kind, Labels
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.errors import BadObject
from numalign.api.objects import selectors
from numalign.api.objects.pod import Container, Pod

DEVICE_SPEC: Final = "numalign.io/device-spec"
KOORDINATOR_HINT: Final = "scheduling.koordinator.sh/device-allocate-hint"
KOORDINATOR_JOINT: Final = "scheduling.koordinator.sh/device-joint-allocate"
KOORDINATOR_PARTITION: Final = "scheduling.koordinator.sh/gpu-partition-spec"
KOORDINATOR_KEYS: Final = (KOORDINATOR_HINT, KOORDINATOR_JOINT, KOORDINATOR_PARTITION)

Within = Literal["Device", "PCIe", "NUMANode", "Node"]
Counting = Literal["ApplyForAll", "RequestsAsCount"]
Exclusion = Literal["DeviceLevel", "PCIeLevel"]
SCOPES: Final[tuple[Within, ...]] = ("Device", "PCIe", "NUMANode", "Node")
COUNTINGS: Final[tuple[Counting, ...]] = ("ApplyForAll", "RequestsAsCount")
EXCLUSIONS: Final[tuple[Exclusion, ...]] = ("DeviceLevel", "PCIeLevel")
SAME_PCIE: Final = "SamePCIe"
PARTITION_POLICIES: Final = ("BestEffort", "Restricted")


class Selector(Struct, frozen=True):
    """A label selector that is a value."""

    labels: Labels = ()
    terms: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Key, operator and values."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.labels) and all(
            selectors.holds(operator, values, labels.get(key)) for key, operator, values in self.terms
        )


class DeviceHint(Struct, frozen=True, kw_only=True):
    """How devices of one type are chosen."""

    selector: Selector = Selector()
    functions: Selector | None = None
    """Not None: of each device a virtual function that matches."""
    counting: Counting | None = None
    within: Within | None = None
    """What all devices of the container have in common; None: as much as possible."""
    exclusion: Exclusion | None = None


class DeviceRequest(Struct, frozen=True, kw_only=True):
    """Devices of one type for one container, and what it gets of each."""

    kind: Kind
    count: int = 1
    parts: int = 0
    ratio: int = 0
    """Hundredths of the memory."""
    memory: int = 0
    """Bytes, where the pod says no ratio."""


class DeviceSpec(Struct, frozen=True, kw_only=True):
    requests: tuple[tuple[DeviceRequest, ...], ...] = ()
    """By container in admission order; empty: no container asks for devices."""
    hints: tuple[tuple[Kind, DeviceHint], ...] = ()
    joint: tuple[Kind, ...] = ()
    """Types that are chosen together, the primary one first."""
    same_pcie: bool = False
    """Whether they have to be on the same PCIe roots."""
    partition: Literal["", "BestEffort", "Restricted"] = ""
    """Not empty: whole GPUs only as a partition; Restricted: only as one of the best ones."""
    bandwidth: int = 0
    """That the partition has to have."""

    def hint(self, kind: Kind) -> DeviceHint:
        return dict(self.hints).get(kind, NO_HINT)


NO_HINT: Final = DeviceHint()
NO_DEVICES: Final = DeviceSpec()
Root = Callable[[Pod, str], Field]


def read(pod: Pod, root: Root, *, koordinator: bool = False) -> DeviceSpec:
    """`root` reads the JSON of an annotation."""
    requests = tuple(_requests(pod, place, container) for place, container in enumerate(pod.in_admission_order()))
    annotations = pod.metadata.annotations
    said: dict[str, Any] = {}
    if DEVICE_SPEC in annotations:
        said = _spec(root(pod, DEVICE_SPEC))
    elif koordinator and annotations:
        said = _koordinator(pod, root)
    return DeviceSpec(requests=requests if any(requests) else (), **said)


# Limits of containers

GPU_WAYS: Final = tuple(
    frozenset(each)
    for each in (
        (GPU,),
        (MEMORY,),
        (RATIO,),
        (CORE, MEMORY),
        (CORE, RATIO),
        (SHARED, MEMORY),
        (SHARED, RATIO),
        (SHARED, CORE, MEMORY),
        (SHARED, CORE, RATIO),
    )
)
HUNDREDS: Final = (GPU, CORE, RATIO)


def _requests(pod: Pod, place: int, container: Container) -> tuple[DeviceRequest, ...]:
    limits = container.resources.limits
    found = {name: limits[name].value for name in limits if name.startswith(devicetable.PREFIX) and name in _NAMES}
    if not any(found.values()):
        return ()
    return tuple(_checked(pod, place, {name: amount for name, amount in found.items() if amount}))


_GPU_NAMES: Final = frozenset((GPU, CORE, MEMORY, RATIO, SHARED))
_NAMES: Final = _GPU_NAMES | {PARTS[kind] for kind in KINDS}


def _checked(pod: Pod, place: int, amounts: dict[str, int]) -> Iterator[DeviceRequest]:
    inits = len(pod.spec.init_containers)
    where = f"spec.initContainers[{place}]" if place < inits else f"spec.containers[{place - inits}]"

    def bad(name: str, why: str) -> BadObject:
        return BadObject("Pod", pod.metadata.full_name, f"{where}.resources.limits[{name}]", why)

    for name in (*HUNDREDS, PARTS["rdma"], PARTS["fpga"]):
        amount = amounts.get(name, 0)
        if amount > WHOLE and amount % WHOLE:
            raise bad(
                name, f"{amount} is neither at most {WHOLE} nor a multiple of it; write {amount // WHOLE * WHOLE}"
            )
    gpu = {name: amount for name, amount in amounts.items() if name in _GPU_NAMES}
    if gpu:
        if frozenset(gpu) not in GPU_WAYS:
            why = f"{' with '.join(sorted(gpu))} is no way to ask for GPUs"
            ways = f"ask for {GPU}, for one of {MEMORY} and {RATIO}, with {CORE} or without"
            raise bad(min(gpu), f"{why}; {ways}, and with {SHARED} for several GPUs")
        shared = gpu.get(SHARED, 0)
        for name in (CORE, RATIO):
            amount = gpu.get(name, 0)
            if shared and (amount % shared or amount > WHOLE * shared):
                why = f"{amount} is no multiple of {SHARED} {shared}, or more than {WHOLE} for each GPU"
                raise bad(name, f"{why}; write what one GPU gives, times {shared}")
        yield _gpu(gpu, bad)
    for kind in KINDS[1:]:
        amount = amounts.get(PARTS[kind], 0)
        if amount:
            count = amount // WHOLE if amount > WHOLE else 1
            yield DeviceRequest(kind=kind, count=count, parts=amount // count)


def _gpu(gpu: Mapping[str, int], bad: Callable[[str, str], BadObject]) -> DeviceRequest:
    whole = gpu.get(GPU, 0)
    parts, ratio, memory = gpu.get(CORE, whole), gpu.get(RATIO, whole), gpu.get(MEMORY, 0)
    count = gpu.get(SHARED) or max(1, (ratio or parts) // WHOLE)
    for name, amount in ((CORE, parts), (RATIO, ratio)):
        if amount % count or amount > WHOLE * count:
            raise bad(name, f"{amount} cannot be divided among {count} GPUs; write what one GPU gives, times {count}")
    return DeviceRequest(
        kind="gpu", count=count, parts=parts // count, ratio=ratio // count, memory=-(-memory // count)
    )


# Annotations


def _spec(root: Field) -> dict[str, Any]:
    fields.only(root, ("types", "joint", "partition"))
    joint, partition = root.at("joint"), root.at("partition")
    found = {"hints": _hints(root.at("types"), OURS)}
    if joint.given:
        fields.only(joint, ("types", "scope"))
        found |= _joint(joint.at("types"), joint.at("scope"))
    if partition.given:
        fields.only(partition, ("policy", "bandwidth"))
        found |= _partition(partition.at("policy"), partition.at("bandwidth"))
    return found


OURS: Final = ("selector", "functions", "counting", "within", "exclusive")
KOORDINATORS: Final = ("selector", "vfSelector", "allocateStrategy", "requiredTopologyScope", "exclusivePolicy")
"""The same fields in the same order."""


def _koordinator(pod: Pod, root: Root) -> dict[str, Any]:
    said, annotations = dict[str, Any](), pod.metadata.annotations
    if KOORDINATOR_HINT in annotations:
        said["hints"] = _hints(root(pod, KOORDINATOR_HINT), KOORDINATORS)
    if KOORDINATOR_JOINT in annotations:
        written = root(pod, KOORDINATOR_JOINT)
        fields.only(written, ("deviceTypes", "requiredScope"))
        said |= _joint(written.at("deviceTypes"), written.at("requiredScope"))
    if KOORDINATOR_PARTITION in annotations:
        written = root(pod, KOORDINATOR_PARTITION)
        fields.only(written, ("allocatePolicy", "ringBusBandwidth"))
        said |= _partition(written.at("allocatePolicy"), written.at("ringBusBandwidth"))
    return said


def _kind(field: Field, written: str) -> Kind:
    found = next((kind for kind in KINDS if kind == written), None)
    if found is None:
        raise field.bad(f"{errors.echo(written)} is no type of device; known are {', '.join(KINDS)}")
    return found


def _hints(field: Field, names: tuple[str, ...]) -> tuple[tuple[Kind, DeviceHint], ...]:
    found = []
    for name, hint in fields.entries(field):
        fields.only(hint, names)
        selector, functions, counting, within, exclusion = (hint.at(each) for each in names)
        found.append(
            (
                _kind(hint, name),
                DeviceHint(
                    selector=_selector(selector),
                    functions=_selector(functions) if functions.given else None,
                    counting=_choice(counting, COUNTINGS),
                    within=_choice(within, SCOPES),
                    exclusion=_choice(exclusion, EXCLUSIONS),
                ),
            )
        )
    return tuple(sorted(found, key=lambda each: each[0]))


def _choice(field: Field, known: tuple[Any, ...]) -> Any:
    return fields.one_of(field, known, "") if field.given and field.value != "" else None


def _selector(field: Field) -> Selector:
    if not field.given:
        return Selector()
    fields.only(field, ("matchLabels", "matchExpressions"))
    labels = tuple(sorted((key, fields.text(value)) for key, value in fields.entries(field.at("matchLabels"))))
    terms = []
    for each in fields.items(field.at("matchExpressions")):
        fields.only(each, ("key", "operator", "values"))
        operator = fields.one_of(each.at("operator"), ("In", "NotIn", "Exists", "DoesNotExist"), "")
        terms.append((fields.text(each.at("key")), operator, tuple(map(fields.text, fields.items(each.at("values"))))))
    return Selector(labels, tuple(terms))


def _joint(types: Field, scope: Field) -> dict[str, Any]:
    joint = tuple(_kind(each, fields.text(each)) for each in fields.items(types))
    if len(joint) < 2 or len(set(joint)) < len(joint):
        raise types.bad('not two or three different types; name the primary one first, like ["gpu", "rdma"]')
    return {"joint": joint, "same_pcie": _choice(scope, (SAME_PCIE,)) is not None}


def _partition(policy: Field, bandwidth: Field) -> dict[str, Any]:
    chosen = _choice(policy, PARTITION_POLICIES) or "BestEffort"
    return {"partition": chosen, "bandwidth": fields.whole_bytes(bandwidth) if bandwidth.given else 0}
