"""From files to the pods that they describe, in the order in which they are to be admitted.

`inputs` hands in the paths. Pods may stand alone, in lists, or as the template of a workload, which gives as many pods
as it asks for. A pod comes out as the API server would hand it to a kubelet: defaults filled in, checked, pending,
and with a name of its own. Everything that is wrong is a BadObject that names the file, the object and the field."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.decode.decode import decode
from numalign.api.decode.yamltext import Document
from numalign.api.objects import requests
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodStatus
from numalign.cli import yamlfiles
from numalign.cli.admit import podchecks

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
    """What of pods the kubelet's model passes over; the scheduler does not."""


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
    """Collects pods, so that names can be made distinct and held against each other."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[Pod, str]] = {}
        self.warnings: list[str] = []
        self.unmodelled: list[str] = []
        self.generated = 0

    def add(self, found: Found) -> None:
        if found.kind == "Pod" and found.is_native:
            self._add_pod(found)
        elif found.kind in WORKLOADS and found.is_native:
            self._add_workload(found, WORKLOADS[found.kind])
        else:
            self.warnings.append(f"{found} is neither a pod nor a workload known here; left out")

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
        owner = _metadata(found)
        if not owner.name:
            raise found.bad("metadata.name", "missing; the pods are named after it")
        self._note_claims(found, value)
        # Pods carry their template's labels and annotations, and live where their owner does.
        carried = structs.replace(pod.metadata, namespace=owner.namespace)
        for number in range(_count(found, template)):
            self._take(found, pod, _identity(carried, f"{owner.name}-{number}"), f"{path}.")

    def _take(self, found: Found, pod: Pod, identity: ObjectMeta, prefix: str = "") -> None:
        # A pod that ran somewhere brings its history along; what is asked here is its first admission.
        pending = structs.replace(pod, metadata=identity, status=PodStatus())
        for problem in podchecks.problems(pending):
            inside = prefix if problem.field.startswith("spec") else ""
            raise found.bad(inside + problem.field, problem.why)
        earlier = self.pods.get(identity.full_name)
        if earlier:
            raise found.bad("metadata.name", f"{identity.full_name} is also in {earlier[1]}; rename one of them")
        if len(self.pods) == MAX_PODS:
            raise found.bad("", f"more than {MAX_PODS} pods altogether; ask for fewer")
        self.pods[identity.full_name] = pending, found.place

    def _note_claims(self, found: Found, pod: Mapping[str, Any]) -> None:
        if (pod.get("spec") or {}).get("resourceClaims"):
            self.unmodelled.append(
                f"{found} has resource claims, which are not modelled; it is admitted as if it had none"
            )


def read(paths: Iterable[str]) -> PodFile:
    """All pods of all files; one at least."""
    reader, names = Reader(), list(paths)
    for path in names:
        for document in yamlfiles.documents(path):
            for found in _objects(document):
                reader.add(found)
    if not reader.pods:
        left_out = "".join(f"; {warning}" for warning in reader.warnings[:MOST_NAMED])
        raise errors.BadObject("File", yamlfiles.shown(*names), "", f"holds no pods{left_out}")
    return PodFile(tuple(reader.pods.values()), tuple(reader.warnings), tuple(reader.unmodelled))


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


def _metadata(found: Found) -> ObjectMeta:
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
