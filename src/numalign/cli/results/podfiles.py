"""Reads pods and workloads from files, as the API server would hand them to a kubelet, in the order of admission.

`kubelet admit` and `explain shape` call `read`. A workload stands for as many pods as it asks for. Defaults are filled
in, and names and amounts that the API server refuses are refused here, because a kubelet never sees such a pod. Rules
that do not affect admission on the node (images, volumes, probes) are not checked. Errors are BadObject and name the
file, the object and the field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode import quantity
from numalign.api.decode.decode import decode
from numalign.api.decode.quantity import Quantity
from numalign.api.decode.structs import Int32, Wire
from numalign.api.decode.yamltext import Document
from numalign.api.objects import requests, resourcenames
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, PodStatus, ResourceList, ResourceRequirements
from numalign.cli import fileio
from numalign.kube import resources

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX_NAME = 253
NATIVE = (resourcenames.CPU, resourcenames.MEMORY, "ephemeral-storage")

LABEL_HELP = "write lower case letters, digits and -, at most 63, a letter or digit first and last"
NAME_HELP = "write lower case letters, digits, - and ., at most 253, a letter or digit first and last"


class PriorityClass(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"


CLASSES: Final = resources.of("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", PriorityClass)


def prioritised(pods: Iterable[Pod], classes: Iterable[PriorityClass]) -> tuple[list[Pod], list[str]]:
    """The pods as the API server would admit them: with the priority of their class, or of the default class.

    Also the names of classes that are not known."""
    by_name = {each.metadata.name: each for each in classes}
    usual = next((each for each in by_name.values() if each.global_default), None)
    found, unknown = list[Pod](), dict[str, None]()
    for pod in pods:
        name = pod.spec.priority_class_name
        known = by_name.get(name) if name else usual
        if name and known is None and not pod.spec.priority:
            unknown[name] = None
        if known is not None:
            spec = structs.replace(pod.spec, priority=known.value, preemption_policy=known.preemption_policy)
            pod = structs.replace(pod, spec=spec)
        found.append(pod)
    return found, list(unknown)


class Problem(NamedTuple):
    """A field of the pod, what is wrong with it and what to do."""

    field: str
    why: str


def problems(pod: Pod) -> Iterator[Problem]:
    """Everything that the API server would refuse, in the order of the file."""
    yield from _metadata(pod)
    yield from _containers(pod)
    yield from _negative(pod.spec.overhead, "spec.overhead")
    yield from _requirements(pod.spec.resources, "spec.resources", _pod_level_name)
    yield from _consistency(pod)


def _metadata(pod: Pod) -> Iterator[Problem]:
    name, namespace = pod.metadata.name, pod.metadata.namespace
    if not name:
        yield Problem("metadata.name", "missing; give the pod a name")
    elif len(name) > MAX_NAME or not SUBDOMAIN.fullmatch(name):
        yield Problem("metadata.name", f"{errors.echo(name)} cannot be a pod's name; {NAME_HELP}")
    if not LABEL.fullmatch(namespace):
        yield Problem("metadata.namespace", f"{errors.echo(namespace)} cannot be a namespace; {LABEL_HELP}")


def _containers(pod: Pod) -> Iterator[Problem]:
    if not pod.spec.containers:
        yield Problem("spec.containers", "missing; a pod has one container or more")
    names: dict[str, str] = {}
    for path, container in _with_paths(pod):
        if not LABEL.fullmatch(container.name):
            name = errors.echo(container.name)
            yield Problem(f"{path}.name", f"{name} cannot be a container's name; {LABEL_HELP}")
        if container.name in names:
            yield Problem(f"{path}.name", f"{names[container.name]} has the same name; give each its own")
        names[container.name] = path
        yield from _requirements(container.resources, f"{path}.resources", _container_name)


def _with_paths(pod: Pod) -> Iterator[tuple[str, Container]]:
    for index, container in enumerate(pod.spec.init_containers):
        yield f"spec.initContainers[{index}]", container
    for index, container in enumerate(pod.spec.containers):
        yield f"spec.containers[{index}]", container


def _requirements(
    resources: ResourceRequirements, path: str, bad_name: Callable[[str], str | None]
) -> Iterator[Problem]:
    for part, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name, amount in amounts.items():
            why = bad_name(name) or _bad_amount(name, amount)
            if why:
                yield Problem(f"{path}.{part}[{errors.clipped(name)}]", why)
    for name, amount in resources.requests.items():
        why = _bad_request(name, amount, resources.limits.get(name))
        if why:
            yield Problem(f"{path}.requests[{errors.clipped(name)}]", why)
    named = resources.requests.keys() | resources.limits.keys()
    if any(map(resourcenames.is_hugepages, named)) and not named & {resourcenames.CPU, resourcenames.MEMORY}:
        yield Problem(path, "hugepages need cpu or memory beside them; add one")


def _container_name(name: str) -> str | None:
    if name in NATIVE or resourcenames.is_extended(name):
        return None
    if resourcenames.is_hugepages(name):
        return None if _page_size(name) else "no page size; write a name like hugepages-2Mi"
    if "/" in name and resourcenames.is_native(name) and resourcenames.QUALIFIED.fullmatch(name):
        return None
    return f"not a resource; write {', '.join(NATIVE)}, hugepages-<size> or a name like example.com/nic"


def _pod_level_name(name: str) -> str | None:
    if resourcenames.is_pod_level(name):
        return _container_name(name)
    return "not a resource of whole pods; only cpu, memory and hugepages are"


def _page_size(name: str) -> int:
    try:
        size = quantity.parse(name.removeprefix(resourcenames.HUGEPAGES_PREFIX))
    except quantity.QuantityError:
        return 0
    return max(0, size.value)


def _bad_amount(name: str, amount: Quantity) -> str | None:
    if amount < quantity.ZERO:
        return f"{amount} is negative; write zero or more"
    if resourcenames.is_extended(name) and not amount.is_whole:
        return f"{amount} is not a whole number, and {name} cannot be divided; write one"
    if resourcenames.is_hugepages(name) and amount.value % _page_size(name):
        return f"{amount} is not a multiple of the page size; write one"
    return None


def _bad_request(name: str, request: Quantity, limit: Quantity | None) -> str | None:
    overcommits = resourcenames.is_native(name) and not resourcenames.is_hugepages(name)
    if limit is None:
        return None if overcommits else f"{name} needs a limit of the same amount; add it"
    if request != limit and not overcommits:
        return f"{request} differs from the limit of {limit}; for {name} both must be equal"
    if request > limit:
        return f"{request} is more than the limit of {limit}; lower it or raise the limit"
    return None


def _negative(amounts: ResourceList, path: str) -> Iterator[Problem]:
    for name, amount in amounts.items():
        if amount < quantity.ZERO:
            yield Problem(f"{path}[{errors.clipped(name)}]", f"{amount} is negative; write zero or more")


def _consistency(pod: Pod) -> Iterator[Problem]:
    """Pod-level amounts cover what the containers ask for; `effective` without them is what the containers come to."""
    whole = pod.spec.resources
    for name, asked in requests.effective(_containers_only(pod)).items():
        if name in whole.requests and asked > whole.requests[name]:
            why = f"{whole.requests[name]} is less than the containers' {asked} together; raise it"
            yield Problem(f"spec.resources.requests[{name}]", why)
    for path, container in _with_paths(pod):
        for name, limit in container.resources.limits.items():
            if name in whole.limits and limit > whole.limits[name]:
                why = f"{limit} is more than the pod's limit of {whole.limits[name]}; lower it"
                yield Problem(f"{path}.resources.limits[{name}]", why)


def _containers_only(pod: Pod) -> Pod:
    return Pod(spec=PodSpec(containers=pod.spec.containers, init_containers=pod.spec.init_containers))


MAX_PODS = 1_000
"""Far more than a kubelet takes (110 unless configured), and few enough to answer for each in seconds."""

MOST_NAMED = 3

ENDED = ("Succeeded", "Failed")
NATIVE_VERSIONS = ("v1", "apps/", "batch/")


class Template(NamedTuple):
    """Where a kind keeps its pod template, and which fields beside it say how many pods it makes.

    The first of them is 1 if it is left out; of several the smallest counts."""

    path: tuple[str, ...]
    counts: tuple[str, ...]


REPLICATED = Template(("spec", "template"), ("replicas",))
WORKLOADS: Mapping[str, Template] = {
    "Deployment": REPLICATED,
    "ReplicaSet": REPLICATED,
    "ReplicationController": REPLICATED,
    "StatefulSet": REPLICATED,
    "DaemonSet": Template(("spec", "template"), ()),
    "Job": Template(("spec", "template"), ("parallelism", "completions")),
    "CronJob": Template(("spec", "jobTemplate", "spec", "template"), ("parallelism", "completions")),
}


class PodFile(Struct, frozen=True):
    """The pods of all files, each with the place it comes from, and what in them was passed over."""

    pods: tuple[tuple[Pod, str], ...]
    warnings: tuple[str, ...]
    unmodelled: tuple[str, ...] = ()
    """Fields that the kubelet model ignores and the scheduler does not."""
    classes: tuple[PriorityClass, ...] = ()
    """Priority classes of the files, for pods that name one."""


class Found(NamedTuple):
    """One object of a file: an object of its own, or an item of a list."""

    kind: str
    value: Mapping[str, Any]
    place: str

    @property
    def name(self) -> str:
        metadata = self.value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        return errors.clipped(name) if isinstance(name, str) else ""

    @property
    def is_native(self) -> bool:
        """Whether the kind is one of Kubernetes' own: other groups have a Job too, of another shape."""
        group = self.value.get("apiVersion") or NATIVE_VERSIONS[0]
        return isinstance(group, str) and group.startswith(NATIVE_VERSIONS)

    def __str__(self) -> str:
        return f"{f'{self.kind} {self.name}'.rstrip()} ({self.place})"

    def bad(self, field: str, why: str) -> errors.BadObject:
        return errors.BadObject(self.kind, f"{self.name} ({self.place})".lstrip(), field, why)


class Reader:
    """Collects pods and makes their names distinct."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.pods: dict[str, tuple[Pod, str]] = {}
        self.warnings: list[str] = []
        self.unmodelled: list[str] = []
        self.classes: list[PriorityClass] = []
        self.generated = 0

    def add(self, found: Found) -> None:
        if found.kind == "Pod" and found.is_native:
            self._add_pod(found)
        elif found.kind in WORKLOADS and found.is_native:
            self._add_workload(found, WORKLOADS[found.kind])
        elif found.kind == "PriorityClass" and found.value.get("apiVersion") == "scheduling.k8s.io/v1":
            self._add_class(found)
        else:
            self.warnings.append(f"{found} is neither a pod nor a workload known here; left out")

    def _add_class(self, found: Found) -> None:
        try:
            self.classes.append(decode(PriorityClass, found.value))
        except errors.BadObject as problem:
            raise found.bad(problem.field, problem.why) from None

    def _add_pod(self, found: Found) -> None:
        pod = _decoded(found, found.value, "")
        if pod.status.phase in ENDED:
            self.warnings.append(f"{found} has ended ({pod.status.phase}); left out")
            return
        self._note_claims(found, found.value)
        name = pod.metadata.name
        if not name and pod.metadata.generate_name:
            self.generated += 1
            name = f"{pod.metadata.generate_name}{self.generated}"
        self._take(found, pod, _identity(pod.metadata, name))

    def _add_workload(self, found: Found, template: Template) -> None:
        value, path = _inside(found, template.path)
        pod = _decoded(found, value, f"{path}.")
        owner = _named_metadata(found)
        if not owner.name:
            raise found.bad("metadata.name", "missing; the pods are named after it")
        self._note_claims(found, value)
        # Pods carry their template's labels and annotations, and live where their owner does.
        carried = structs.replace(pod.metadata, namespace=owner.namespace)
        for number in range(_count(found, template)):
            self._take(found, pod, _identity(carried, f"{owner.name}-{number}"), f"{path}.")

    def _take(self, found: Found, pod: Pod, identity: ObjectMeta, prefix: str = "") -> None:
        # The status of a pod that ran elsewhere does not count: this is its first admission.
        pending = structs.replace(pod, metadata=identity, status=PodStatus())
        for problem in problems(pending):
            inside = prefix if problem.field.startswith("spec") else ""
            raise found.bad(inside + problem.field, problem.why)
        earlier = self.pods.get(identity.full_name)
        if earlier:
            raise found.bad("metadata.name", f"{identity.full_name} is also in {earlier[1]}; rename one of them")
        if len(self.pods) == self._most:
            raise found.bad("", f"more than {self._most} pods altogether; ask for fewer")
        self.pods[identity.full_name] = pending, found.place

    def _note_claims(self, found: Found, pod: Mapping[str, Any]) -> None:
        if (pod.get("spec") or {}).get("resourceClaims"):
            self.unmodelled.append(
                f"{found} has resource claims, which are not modelled; it is admitted as if it had none"
            )


def read(paths: Iterable[str], most: int = MAX_PODS) -> PodFile:
    """All pods of all files; one at least, and at most so many."""
    reader, names = Reader(most), list(paths)
    for path in names:
        for document in fileio.documents(path):
            for found in _objects(document):
                reader.add(found)
    if not reader.pods:
        left_out = "".join(f"; {warning}" for warning in reader.warnings[:MOST_NAMED])
        raise errors.BadObject("File", fileio.shown(*names), "", f"holds no pods{left_out}")
    return PodFile(tuple(reader.pods.values()), tuple(reader.warnings), tuple(reader.unmodelled), tuple(reader.classes))


def _objects(document: Document) -> Iterator[Found]:
    found = _object(document.value, document.place)
    if not found.kind.endswith("List"):
        yield found
        return
    items = found.value.get("items") or []
    if not isinstance(items, list):
        raise found.bad("items", f"{errors.echo(items)} is not a list")
    for index, item in enumerate(items):
        # The items of a typed list, such as PodList, may leave their kind out.
        yield _object(item, f"{document.place}, items[{index}]", default=found.kind.removesuffix("List"))


def _object(value: object, place: str, default: str = "") -> Found:
    if not isinstance(value, Mapping):
        raise errors.BadObject("Object", f"({place})", "", f"{errors.echo(value)} is not an object; write kind: Pod")
    kind = value.get("kind") or default
    if not isinstance(kind, str) or not kind:
        why = f"{errors.echo(kind)} is not the kind of an object; write Pod, or that of a workload"
        raise errors.BadObject("Object", f"({place})", "kind", why)
    return Found(errors.clipped(kind), value, place)


def _decoded(found: Found, value: Mapping[str, Any], prefix: str) -> Pod:
    try:
        return requests.defaulted(decode(Pod, value))
    except errors.BadObject as problem:
        raise found.bad(prefix + problem.field, problem.why) from None


def _named_metadata(found: Found) -> ObjectMeta:
    """The workload's own, read like a pod's."""
    return _decoded(found, {"metadata": found.value.get("metadata") or {}}, "").metadata


def _identity(metadata: ObjectMeta, name: str) -> ObjectMeta:
    namespace = metadata.namespace or "default"
    return ObjectMeta(name=name, namespace=namespace, labels=metadata.labels, annotations=metadata.annotations)


def _inside(found: Found, path: Iterable[str]) -> tuple[Mapping[str, Any], str]:
    value: Any = found.value
    walked = ""
    for step in path:
        walked = f"{walked}.{step}".lstrip(".")
        value = value.get(step)
        if not isinstance(value, Mapping):
            raise found.bad(walked, "missing" if value is None else f"{errors.echo(value)} is not an object")
    return value, walked


def _count(found: Found, template: Template) -> int:
    spec, path = _inside(found, template.path[:-1])
    counts: dict[str, Any] = dict.fromkeys(template.counts[:1], 1)
    counts |= {name: spec[name] for name in template.counts if spec.get(name) is not None}
    for name, count in counts.items():
        if type(count) is not int or count < 0:
            raise found.bad(f"{path}.{name}", f"{errors.echo(count)} is not a number of pods; write zero or more")
    return min(counts.values(), default=1)
