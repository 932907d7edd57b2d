"""What a pod's owner asks of a node in direct mode: zones by `numa-topology-spec`, CPUs by `cpu-spec`, devices by
`device-spec` (which `devicespec` reads).

The shapes of `placement` call `read`; docs/use/direct-mode.md describes the values, and `deploy` renders the same rules
as a ValidatingAdmissionPolicy. Koordinator's keys are read only where the caller says so, and ours win. Containers are
named by their place in admission order, so that replicas with other names are alike. Anything unknown or impossible is
a BadObject that names the field."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from numalign.api.attributes import devicespec
from numalign.api.attributes.devicespec import NO_DEVICES, DeviceSpec
from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.errors import BadObject
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Container, Pod

TOPOLOGY_SPEC: Final = "numalign.io/numa-topology-spec"
CPU_SPEC: Final = "numalign.io/cpu-spec"
SPECS: Final = (TOPOLOGY_SPEC, CPU_SPEC, devicespec.DEVICE_SPEC)

KOORDINATOR_TOPOLOGY_SPEC: Final = "scheduling.koordinator.sh/numa-topology-spec"
KOORDINATOR_RESOURCE_SPEC: Final = "scheduling.koordinator.sh/resource-spec"
KOORDINATOR_SPECS: Final = (KOORDINATOR_TOPOLOGY_SPEC, KOORDINATOR_RESOURCE_SPEC, *devicespec.KOORDINATOR_KEYS)

LONGEST: Final = 16 << 10
"""Characters of an annotation that are read: a hundred containers by name, with a policy each, are half of it."""

AlignmentPolicy = Literal["none", "best-effort", "restricted", "single-numa-node"]
BindPolicy = Literal["FullPCPUs", "SpreadByPCPUs"]
CPUExclusion = Literal["None", "PCPULevel", "NUMANodeLevel"]
Strategy = Literal["MostAllocated", "LeastAllocated", "DistributeEvenly"]

POLICIES: Final[Mapping[str, AlignmentPolicy]] = {
    "None": "none",
    "BestEffort": "best-effort",
    "Restricted": "restricted",
    "SingleNUMANode": "single-numa-node",
}
"""By the word of the annotation, least strict first."""
SCOPES: Final[Mapping[str, Literal["container", "pod"]]] = {"Container": "container", "Pod": "pod"}
STRATEGIES: Final[tuple[Strategy, ...]] = ("MostAllocated", "LeastAllocated", "DistributeEvenly")
BIND_POLICIES: Final[tuple[BindPolicy, ...]] = ("FullPCPUs", "SpreadByPCPUs")
CPU_EXCLUSIONS: Final[tuple[CPUExclusion, ...]] = ("None", "PCPULevel", "NUMANodeLevel")
KOORDINATOR_UNSAID: Final = ("", "Default", "ConstrainedBurst")
"""Words of Koordinator that leave the choice to the scheduler."""
EXCLUSIVE: Final = {"Required": True, "Preferred": False}
MEMORY: Final = {"Enforce": True, "Account": False}


STRICTNESS: Final = {policy: rank for rank, policy in enumerate(POLICIES.values())}


def strictest(policies: Iterable[AlignmentPolicy]) -> AlignmentPolicy:
    return max(policies, key=STRICTNESS.__getitem__)


class DirectSpec(Struct, frozen=True, kw_only=True):
    """None: the pod does not say, and the node's default counts."""

    policy: AlignmentPolicy | None = None
    scope: Literal["container", "pod"] | None = None
    exclusive: bool | None = None
    """Whether pods inside one zone and pods over several zones stay apart. False: it is only preferred."""
    strategy: Strategy | None = None
    enforce_memory: bool = False
    """Whether the runtime limits memory to the zones (`cpuset.mems`), and not only the ledger counts it there."""
    excluded: frozenset[int] = frozenset()
    """Containers that run in the node's shared pool, by place in admission order."""
    policies: tuple[tuple[int, AlignmentPolicy], ...] = ()
    """Policies of single containers, by place."""
    required_cpus: BindPolicy | None = None
    preferred_cpus: BindPolicy | None = None
    cpu_exclusion: CPUExclusion = "None"
    devices: DeviceSpec = NO_DEVICES

    @property
    def needs_direct(self) -> bool:
        """Whether no kubelet could keep it, so that only nodes in direct mode may take the pod."""
        return bool(
            self.exclusive
            or self.enforce_memory
            or self.excluded
            or self.policies
            or self.required_cpus
            or self.cpu_exclusion != "None"
            or self.devices.requests
        )


NOTHING: Final = DirectSpec()


def read(pod: Pod, *, koordinator: bool = False) -> DirectSpec:
    """The pod's wishes. `koordinator`: Koordinator's annotations count where ours are absent."""
    annotations = pod.metadata.annotations
    devices = devicespec.read(pod, _root, koordinator=koordinator)
    found: dict[str, Any] = {"devices": devices} if devices != NO_DEVICES else {}
    for names, take in ((_TOPOLOGY, _topology), (_CPUS, _cpus)) if annotations else ():
        name = next((each for each in (names if koordinator else names[:1]) if each in annotations), None)
        if name is not None:
            found |= take(_root(pod, name), pod)
    if not found:
        return NOTHING
    spec = DirectSpec(**found)
    _require_whole_cpus(pod, spec)
    return spec


_TOPOLOGY: Final = (TOPOLOGY_SPEC, KOORDINATOR_TOPOLOGY_SPEC)
_CPUS: Final = (CPU_SPEC, KOORDINATOR_RESOURCE_SPEC)


def _root(pod: Pod, annotation: str) -> Field:
    path, text = f"metadata.annotations[{annotation}]", pod.metadata.annotations[annotation]
    field = Field(None, path, "Pod", pod.metadata.full_name)
    if len(text) > LONGEST:
        raise field.bad(f"{len(text)} characters; at most {LONGEST} are read")
    try:
        value = _json(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as problem:
        raise field.bad(f"not JSON that can be read: {problem}; write an object like {{}}") from None
    return msgspec.structs.replace(field, value=value)


_json: Final[Callable[[str], Any]] = lru_cache(maxsize=1024)(msgspec.json.Decoder().decode)
"""Cached, because replicas have the same text. No caller changes the value."""


def _topology(root: Field, pod: Pod) -> dict[str, Any]:
    if root.path.endswith(f"[{KOORDINATOR_TOPOLOGY_SPEC}]"):
        return _koordinator_topology(root)
    fields.only(root, ("policy", "scope", "exclusive", "strategy", "memory", "containers"))
    found = {
        "policy": _word(root.at("policy"), POLICIES),
        "scope": _word(root.at("scope"), SCOPES),
        "exclusive": _word(root.at("exclusive"), EXCLUSIVE),
        "strategy": _choice(root.at("strategy"), STRATEGIES),
        "enforce_memory": bool(_word(root.at("memory"), MEMORY)),
    }
    containers = root.at("containers")
    if containers.given:
        fields.only(containers, ("exclude", "overrides"))
        found["excluded"] = _excluded(containers.at("exclude"), pod)
        found["policies"] = _overrides(containers.at("overrides"), pod, found)
    return found


def _koordinator_topology(root: Field) -> dict[str, Any]:
    """A pod with a policy has its zones to itself unless it says otherwise (koordinator spec 4)."""
    fields.only(root, ("numaTopologyPolicy", "singleNUMANodeExclusive", "numaAllocateStrategy"))
    written = root.at("numaTopologyPolicy")
    policy = _word(written, POLICIES) if written.value != "" else None
    exclusive = _word(root.at("singleNUMANodeExclusive"), EXCLUSIVE)
    return {
        "policy": policy,
        "exclusive": policy is not None if exclusive is None else exclusive,
        "strategy": _choice(root.at("numaAllocateStrategy"), STRATEGIES),
    }


def _cpus(root: Field, pod: Pod) -> dict[str, Any]:
    names: tuple[str, str, str] = ("required", "preferred", "exclusive")
    unsaid: Sequence[str] = ()
    if root.path.endswith(f"[{KOORDINATOR_RESOURCE_SPEC}]"):
        names = ("requiredCPUBindPolicy", "preferredCPUBindPolicy", "preferredCPUExclusivePolicy")
        unsaid = KOORDINATOR_UNSAID
    fields.only(root, names)
    required, preferred, exclusive = (root.at(name) for name in names)
    return {
        "required_cpus": None if required.value in unsaid else _choice(required, BIND_POLICIES),
        "preferred_cpus": None if preferred.value in unsaid else _choice(preferred, BIND_POLICIES),
        "cpu_exclusion": (None if exclusive.value in unsaid else _choice(exclusive, CPU_EXCLUSIONS)) or "None",
    }


def _word(field: Field, known: Mapping[str, Any]) -> Any:
    chosen = _choice(field, tuple(known))
    return known[chosen] if chosen is not None else None


def _choice(field: Field, known: tuple[Any, ...]) -> Any:
    return fields.one_of(field, known, "") if field.given else None


def _excluded(field: Field, pod: Pod) -> frozenset[int]:
    places = frozenset(_place(pod, each, fields.text(each)) for each in fields.items(field))
    if len(places) == len(pod.in_admission_order()):
        raise field.bad("every container is excluded; leave the annotation out, or name fewer containers")
    return places


def _overrides(field: Field, pod: Pod, said: Mapping[str, Any]) -> tuple[tuple[int, AlignmentPolicy], ...]:
    found: list[tuple[int, AlignmentPolicy]] = []
    for name, wish in fields.entries(field):
        if said["scope"] == "pod":
            raise wish.bad("with scope Pod all containers have one policy; use scope Container, or remove overrides")
        fields.only(wish, ("policy",))
        place, policy = _place(pod, wish, name), _word(wish.at("policy"), POLICIES)
        if place in said["excluded"]:
            raise wish.bad("the container is excluded, too; remove one of both")
        if policy is not None:
            found.append((place, policy))
    return tuple(sorted(found))


def _place(pod: Pod, field: Field, name: str) -> int:
    names = [container.name for container in pod.in_admission_order()]
    if name not in names:
        raise field.bad(f"the pod has no container of this name; {fields.suggestion(name, names)}")
    return names.index(name)


def _require_whole_cpus(pod: Pod, spec: DirectSpec) -> None:
    """A required bind policy is about CPUs of its own, so every container that counts must request whole ones."""
    if spec.required_cpus is None:
        return
    for place, container in enumerate(pod.in_admission_order()):
        cpu = container.resources.requests.get(resourcenames.CPU)
        if place in spec.excluded or cpu is None or not cpu.milli:
            continue
        if not owns_cpus(container):
            kind = "initContainers" if place < len(pod.spec.init_containers) else "containers"
            at = place if kind == "initContainers" else place - len(pod.spec.init_containers)
            raise BadObject(
                "Pod",
                pod.metadata.full_name,
                f"spec.{kind}[{at}].resources.requests[cpu]",
                f"{cpu} is not a whole number of CPUs with an equal limit or none, as the required CPU policy "
                f"{spec.required_cpus} needs; change it, or exclude container {container.name}",
            )


def owns_cpus(container: Container) -> bool:
    """Whether the container can have CPUs of its own: it requests whole ones, and may not use more."""
    resources = container.resources
    asked, limit = resources.requests.get(resourcenames.CPU), resources.limits.get(resourcenames.CPU)
    return asked is not None and asked.milli >= 1000 and asked.milli % 1000 == 0 and limit in (None, asked)
