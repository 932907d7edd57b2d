"""The scheduler's decision for a pod in direct mode, as an annotation that is written once, with the Binding.

The binder writes it. The node agent applies it as it stands, and the ledger of every later scheduler process starts
from it. It counts only for the pod and the node that it names, so a copied annotation has no effect. The fields
`cpuset` and `numaNodeResources` mean what they mean in Koordinator, whose agent can pin a pod as a whole by them.
docs/concepts/direct-mode.md describes every field."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct, field

from numalign.api import errors
from numalign.api.attributes.directspec import AlignmentPolicy
from numalign.api.decode import cpuset
from numalign.api.objects.pod import Pod

RESULT: Final = "numalign.io/resource-status"
KOORDINATOR_RESULT: Final = "scheduling.koordinator.sh/resource-status"
VERSION: Final = 1
LONGEST: Final = 64 << 10


class FunctionGrant(Struct, frozen=True):
    """One virtual function by its address on the bus."""

    bus: str = field(name="busID")


class Extension(Struct, frozen=True, omit_defaults=True):
    vfs: tuple[FunctionGrant, ...] = ()


NO_EXTENSION: Final = Extension()


class DeviceGrant(Struct, frozen=True, omit_defaults=True):
    """One device by its minor number. Without `resources` it is whole."""

    minor: int
    id: str = ""
    resources: Mapping[str, str] = field(default_factory=dict)
    """What is granted of the device, in the names of Koordinator."""
    extension: Extension = NO_EXTENSION


class ContainerResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one container gets. Without `cpuset` it runs in the shared pools of `zones`; without both in the node's."""

    name: str
    cpuset: str = ""
    zones: tuple[int, ...] = ()
    mems: str = ""
    """Zones to which memory is limited; empty: memory is counted, not limited."""
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By zone, the amounts that the ledger counts there."""
    devices: Mapping[str, tuple[DeviceGrant, ...]] = field(default_factory=dict)
    """By resource; by type (gpu, rdma, fpga) what is handed out in parts or together."""

    @property
    def cpus(self) -> int:
        return cpuset.parse(self.cpuset)


class ZoneAmounts(Struct, frozen=True):
    """Amounts of the pod in one zone."""

    node: int
    resources: Mapping[str, str]


class DirectResult(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The decision for one pod. `cpuset` and `numa_node_resources` are the sums over its containers."""

    version: int
    uid: str
    node: str
    scope: str = "container"
    policy: AlignmentPolicy = "none"
    containers: tuple[ContainerResult, ...] = ()
    cpuset: str = ""
    numa_node_resources: tuple[ZoneAmounts, ...] = ()
    exclusion: str = ""
    """The exclusive CPU policy under which its CPUs are held; empty: none."""
    devices: Mapping[str, tuple[DeviceGrant, ...]] = field(default_factory=dict)
    """By type, what the pod as a whole keeps of shared devices. `containers` may overlap where init containers hand
    theirs on."""

    @property
    def cpus(self) -> int:
        return cpuset.parse(self.cpuset)


class KoordinatorResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    cpuset: str = ""
    numa_node_resources: tuple[ZoneAmounts, ...] = ()


KOORDINATOR_DEVICES: Final = "scheduling.koordinator.sh/device-allocated"
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(DirectResult)


def encode(result: DirectResult) -> str:
    return _ENCODER.encode(result).decode()


def encode_for_koordinator(result: DirectResult) -> str:
    """The part that Koordinator's agent understands: CPUs and zones of the pod as a whole."""
    return _ENCODER.encode(KoordinatorResult(result.cpuset, result.numa_node_resources)).decode()


def encode_devices(result: DirectResult) -> str:
    """The devices of the pod as a whole, as Koordinator's agent reads them."""
    return _ENCODER.encode(result.devices).decode()


def of_pod(pod: Pod) -> DirectResult | None:
    """The decision about this pod on its node; None: it has none, or one about another pod or node. BadObject if it
    cannot be read."""
    text = pod.metadata.annotations.get(RESULT)
    if text is None:
        return None
    found = _decoded(text)
    if isinstance(found, str):
        raise errors.BadObject("Pod", pod.metadata.full_name, f"metadata.annotations[{RESULT}]", found)
    if found is None or found.uid != pod.metadata.uid or found.node != pod.spec.node_name:
        return None
    return found


@lru_cache(maxsize=4096)
def _decoded(text: str) -> DirectResult | str | None:
    """The result, or what is wrong with the text. None: it has a version of a later release."""
    if len(text) > LONGEST:
        return f"{len(text)} characters; at most {LONGEST} are read"
    try:
        found = _DECODER.decode(text)
        if found.version != VERSION:
            return None
        for text in (found.cpuset, *(text for each in found.containers for text in (each.cpuset, each.mems))):
            cpuset.parse(text)
    except (msgspec.DecodeError, cpuset.CPUSetError, RecursionError, UnicodeEncodeError) as problem:
        return f"not a result of this version: {problem}; the scheduler alone writes this annotation"
    return found
